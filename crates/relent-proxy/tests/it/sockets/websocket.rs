//! The server's side of a WebSocket that says everything back (RFC 6455), and SHA-1 and Base64 for its handshake.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

const CLOSE: u8 = 8;
const FIN: u8 = 0x80;

/// `Sec-WebSocket-Accept` for this key (RFC 6455 §4.2.2).
pub(super) fn accept(key: &str) -> String {
    base64(&sha1(format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11").as_bytes()))
}

/// Sends back each frame, until one closes.
pub(super) async fn echo<T: AsyncRead + AsyncWrite + Unpin>(io: &mut T) -> io::Result<()> {
    loop {
        let (first, second) = (io.read_u8().await?, io.read_u8().await?);
        let length = match second & 0x7f {
            126 => u64::from(io.read_u16().await?),
            127 => io.read_u64().await?,
            short => u64::from(short),
        };
        let mut mask = [0; 4];
        io.read_exact(&mut mask).await?;
        let mut payload = vec![0; usize::try_from(length).map_err(io::Error::other)?];
        io.read_exact(&mut payload).await?;
        payload.iter_mut().zip(mask.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
        let mut frame = vec![first | FIN];
        match payload.len() {
            length @ ..126 => frame.push(length as u8),
            length @ ..0x1_0000 => {
                frame.push(126);
                frame.extend((length as u16).to_be_bytes());
            }
            length => {
                frame.push(127);
                frame.extend((length as u64).to_be_bytes());
            }
        }
        frame.extend(payload);
        io.write_all(&frame).await?;
        io.flush().await?;
        if first & 0x0f == CLOSE {
            return Ok(());
        }
    }
}

/// FIPS 180-4 §6.1.
fn sha1(bytes: &[u8]) -> [u8; 20] {
    let mut hash: [u32; 5] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
    let mut text = bytes.to_vec();
    text.push(0x80);
    text.resize((text.len() + 8).next_multiple_of(64) - 8, 0);
    text.extend((bytes.len() as u64 * 8).to_be_bytes());
    for block in text.chunks_exact(64) {
        let mut words: Vec<u32> = block
            .chunks_exact(4)
            .map(|word| u32::from_be_bytes(word.try_into().expect("a word has four bytes")))
            .collect();
        for at in 16..80 {
            words.push((words[at - 3] ^ words[at - 8] ^ words[at - 14] ^ words[at - 16]).rotate_left(1));
        }
        let [mut a, mut b, mut c, mut d, mut e] = hash;
        for (at, word) in words.iter().enumerate() {
            let (mixed, constant) = match at {
                0..20 => ((b & c) | (!b & d), 0x5a82_7999),
                20..40 => (b ^ c ^ d, 0x6ed9_eba1),
                40..60 => ((b & c) | (b & d) | (c & d), 0x8f1b_bcdc_u32),
                _ => (b ^ c ^ d, 0xca62_c1d6),
            };
            let next = a.rotate_left(5).wrapping_add(mixed).wrapping_add(e);
            let next = next.wrapping_add(constant).wrapping_add(*word);
            (e, d, c, b, a) = (d, c, b.rotate_left(30), a, next);
        }
        for (sum, part) in hash.iter_mut().zip([a, b, c, d, e]) {
            *sum = sum.wrapping_add(part);
        }
    }
    let mut digest = [0; 20];
    digest.chunks_exact_mut(4).zip(hash).for_each(|(to, word)| to.copy_from_slice(&word.to_be_bytes()));
    digest
}

/// RFC 4648 §4.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for part in bytes.chunks(3) {
        let bits =
            part.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - part.len()));
        for place in 0..4 {
            let letter = ALPHABET[(bits >> (18 - 6 * place)) as usize & 63];
            text.push(if place > part.len() { '=' } else { char::from(letter) });
        }
    }
    text
}

/// The example of RFC 6455 §1.3.
#[test]
fn the_handshake_is_the_standards() {
    assert_eq!(accept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}
