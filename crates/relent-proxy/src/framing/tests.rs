mod beside_hyper;

use super::*;

/// The fault in these bytes, read at once.
fn fault(bytes: &[u8]) -> Option<FaultKind> {
    Framing::new().read(bytes).err().map(|fault| fault.kind)
}

/// The same, read in parts of so many bytes.
fn fault_in_parts(bytes: &[u8], length: usize) -> Option<FaultKind> {
    let mut framing = Framing::new();
    bytes.chunks(length).find_map(|part| framing.read(part).err()).map(|fault| fault.kind)
}

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n";

/// Heads that begin a GET, what is appended, and what is wrong with it.
const TABLE: &[(&str, Option<FaultKind>)] = &[
    ("\r\n", None),
    ("A: b\r\n\r\n", None),
    ("Content-Length: 0\r\n\r\n", None),
    ("Content-Length: 5\r\n\r\nhello", None),
    ("Content-Length: 5\r\n\r\nhelloGET / HTTP/1.1\r\nHost: b\r\n\r\n", None),
    ("Content-Length:5 \t\r\n\r\nhello", None),
    ("content-length: 00005\r\n\r\nhello", None),
    ("Content-Lengthy: x\r\n\r\n", None),
    ("Content-Length: +5\r\n\r\n", Some(FaultKind::BadLength)),
    ("Content-Length: -5\r\n\r\n", Some(FaultKind::BadLength)),
    ("Content-Length: 0x5\r\n\r\n", Some(FaultKind::BadLength)),
    ("Content-Length: 5,5\r\n\r\n", Some(FaultKind::BadLength)),
    ("Content-Length: 5 5\r\n\r\n", Some(FaultKind::BadLength)),
    ("Content-Length:\r\n\r\n", Some(FaultKind::BadLength)),
    ("Content-Length: \u{b}5\r\n\r\n", Some(FaultKind::BadLength)),
    ("Content-Length: 99999999999999999999\r\n\r\n", Some(FaultKind::BadLength)),
    ("Content-Length: 5\r\nContent-Length: 5\r\n\r\n", Some(FaultKind::TwoLengths)),
    ("Content-Length: 5\r\ncontent-length: 6\r\n\r\n", Some(FaultKind::TwoLengths)),
    ("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", Some(FaultKind::LengthAndCoding)),
    ("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n", Some(FaultKind::LengthAndCoding)),
    ("Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n", Some(FaultKind::LengthAndCoding)),
    ("Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", None),
    ("TRANSFER-ENCODING:\tChunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", None),
    (
        "Transfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nX: y\r\n\r\nGET / HTTP/1.1\r\nHost: b\r\n\r\n",
        None,
    ),
    ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", Some(FaultKind::BadCoding)),
    ("Transfer-Encoding: xchunked\r\n\r\n", Some(FaultKind::BadCoding)),
    ("Transfer-Encoding: gzip, chunked\r\n\r\n", Some(FaultKind::BadCoding)),
    ("Transfer-Encoding: chunked, identity\r\n\r\n", Some(FaultKind::BadCoding)),
    ("Transfer-Encoding: identity\r\n\r\n", Some(FaultKind::BadCoding)),
    ("Transfer-Encoding: \u{b}chunked\r\n\r\n", Some(FaultKind::BadCoding)),
    ("Transfer-Encoding: \"chunked\"\r\n\r\n", Some(FaultKind::BadCoding)),
    ("Transfer-Encoding:\r\n\r\n", Some(FaultKind::BadCoding)),
    ("Transfer-Encoding: chunked\r\n\r\nx\r\n", Some(FaultKind::BadChunk)),
    ("Transfer-Encoding: chunked\r\n\r\n-1\r\n", Some(FaultKind::BadChunk)),
    ("Transfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n", Some(FaultKind::BadChunk)),
    ("Transfer-Encoding: chunked\r\n\r\n\r\n", Some(FaultKind::BadChunk)),
    ("Transfer-Encoding: chunked\r\n\r\n 5\r\nhello\r\n", Some(FaultKind::BadChunk)),
    ("Transfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n", Some(FaultKind::BadChunk)),
    ("Transfer-Encoding: chunked\r\n\r\n5\r\nhello\n0\r\n\r\n", Some(FaultKind::BadChunk)),
    ("Transfer-Encoding: chunked\r\n\r\n4\r\nhello\r\n0\r\n\r\n", Some(FaultKind::BadChunk)),
    ("Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", Some(FaultKind::BadChunk)),
    ("Transfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 5\r\n\r\n", Some(FaultKind::BadTrailer)),
    ("Transfer-Encoding: chunked\r\n\r\n5 ;a=\"b\"\r\nhello\r\n0 \r\nX-Y: a\tb\r\n\r\n", None),
    ("Transfer-Encoding: chunked\r\n\r\n0000000000000005\r\nhello\r\n0\r\n\r\n", None),
    ("Transfer-Encoding: chunked\r\n\r\n00000000000000005\r\n", Some(FaultKind::BadChunk)),
    ("Transfer-Encoding: chunked\r\n\r\n+5\r\n", Some(FaultKind::BadChunk)),
    ("Transfer-Encoding: chunked\r\n\r\n5\u{c}\r\n", Some(FaultKind::BadChunk)),
    ("Transfer-Encoding: chunked\r\n\r\n5\r\r\n", Some(FaultKind::BadChunk)),
    ("Transfer-Encoding: chunked\r\n\r\n5;a\n\r\nhello\r\n", Some(FaultKind::BadChunk)),
    ("Transfer-Encoding: chunked\r\n\r\n5;a\rb\r\nhello\r\n", Some(FaultKind::BadChunk)),
    ("Transfer-Encoding: chunked\r\n\r\n5;a\0\r\nhello\r\n", Some(FaultKind::BadChunk)),
    ("Transfer-Encoding: chunked\r\n\r\n;a\r\n", Some(FaultKind::BadChunk)),
    ("Transfer-Encoding: chunked\r\n\r\n5\r\nhelloX", Some(FaultKind::BadChunk)),
    ("Transfer-Encoding: chunked\r\n\r\n5\r\nhello\rX", Some(FaultKind::BadChunk)),
    (
        "Transfer-Encoding: chunked\r\n\r\n0\r\ntransfer-encoding: chunked\r\n\r\n",
        Some(FaultKind::BadTrailer),
    ),
    ("Transfer-Encoding: chunked\r\n\r\n0\r\nContent-Length : 5\r\n\r\n", Some(FaultKind::BadTrailer)),
    ("Transfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\n c\r\n\r\n", Some(FaultKind::BadTrailer)),
    ("Transfer-Encoding: chunked\r\n\r\n0\r\nA: b\0\r\n\r\n", Some(FaultKind::BadTrailer)),
    ("Transfer-Encoding: chunked\r\n\r\n0\r\nA: b\rC: d\r\n\r\n", Some(FaultKind::BadTrailer)),
    ("Transfer-Encoding: chunked\r\n\r\n0\r\n: b\r\n\r\n", Some(FaultKind::BadTrailer)),
    ("Transfer-Encoding: chunked\r\n\r\n0\r\nA\r\n\r\n", Some(FaultKind::BadTrailer)),
    ("Transfer-Encoding: chunked\r\n\r\n0\r\n\n", Some(FaultKind::BareLf)),
    ("Transfer-Encoding: chunked\r\n\r\n0\r\nHost: b\r\n\r\n", Some(FaultKind::BadTrailer)),
    ("Transfer-Encoding: chunked\r\n\r\n0\r\nX: y\n\r\n", Some(FaultKind::BareLf)),
    ("A: b\n\r\n", Some(FaultKind::BareLf)),
    ("A: b\r\n\n", Some(FaultKind::BareLf)),
    ("A: b\nContent-Length: 5\r\n\r\n", Some(FaultKind::BareLf)),
    ("Host: b\r\n\r\n", Some(FaultKind::TwoHosts)),
    ("host:\r\n\r\n", Some(FaultKind::TwoHosts)),
    ("\r\n\r\nGET / HTTP/1.1\r\nHost: b\r\n\r\n", None),
    ("\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: b\r\n\r\n", Some(FaultKind::EmptyLines)),
    ("\r\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Some(FaultKind::RequestLine)),
];

/// Whole streams.
const STREAMS: &[(&str, Option<FaultKind>)] = &[
    ("GET / HTTP/1.0\r\n\r\n", None),
    ("GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", Some(FaultKind::BadCoding)),
    ("GET / HTTP/1.1\r\n\r\n", Some(FaultKind::NoHost)),
    ("GET / HTTP/1.1\r\nHostess: a\r\n\r\n", Some(FaultKind::NoHost)),
    ("GET /\r\n\r\n", Some(FaultKind::RequestLine)),
    ("GET /\tHTTP/1.1\r\n\r\n", Some(FaultKind::RequestLine)),
    (" HTTP/1.1\r\n\r\n", Some(FaultKind::RequestLine)),
    ("GET / HTTP/1.2\r\n\r\n", Some(FaultKind::RequestLine)),
    ("GET / HTTP/11\r\n\r\n", Some(FaultKind::RequestLine)),
    ("GET / HTTP/0.9\r\n\r\n", Some(FaultKind::RequestLine)),
    ("GET / HTTP/2.0\r\n\r\n", Some(FaultKind::RequestLine)),
    ("GET / http/1.1\r\n\r\n", Some(FaultKind::RequestLine)),
    ("GET / HTTP/1.1 \r\n\r\n", Some(FaultKind::RequestLine)),
    ("GET / HTTP/1.1\nHost: a\r\n\r\n", Some(FaultKind::BareLf)),
    ("\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", Some(FaultKind::BareLf)),
    ("\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", None),
    ("\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", Some(FaultKind::EmptyLines)),
    ("GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n", None),
    ("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", None),
    ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Some(FaultKind::RequestLine)),
];

fn all() -> Vec<(Vec<u8>, Option<FaultKind>)> {
    let appended = TABLE.iter().map(|(rest, fault)| (format!("{GET}{rest}").into_bytes(), *fault));
    let whole = STREAMS.iter().map(|(text, fault)| (text.as_bytes().to_vec(), *fault));
    appended.chain(whole).collect()
}

#[test]
fn every_row_of_the_table() {
    for (bytes, expected) in all() {
        assert_eq!(fault(&bytes), expected, "{:?}", String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn however_the_bytes_come() {
    for (bytes, expected) in all() {
        for length in 1..bytes.len() {
            let found = fault_in_parts(&bytes, length);
            assert_eq!(found, expected, "by {length}: {:?}", String::from_utf8_lossy(&bytes));
        }
    }
}

#[test]
fn a_fault_says_what_comes_before_its_head() {
    let good = format!("{GET}Content-Length: 5\r\n\r\nhello");
    let both = format!("{good}GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n");
    let mut framing = Framing::new();
    let fault = framing.read(both.as_bytes()).unwrap_err();
    assert_eq!((fault.keep, fault.in_head), (good.len(), true));

    let mut framing = Framing::new();
    framing.read(good.as_bytes()).unwrap();
    framing.read(b"GET / HT").unwrap();
    assert!(framing.is_inside_head());
    let fault = framing.read(b"TP/1.1\n").unwrap_err();
    assert_eq!((fault.keep, fault.in_head), (0, true));

    // An empty line before a request belongs to it, and is no head by itself.
    let mut framing = Framing::new();
    framing.read(b"\r\n").unwrap();
    assert!(!framing.is_inside_head());
    let fault = framing.read(b"GET / HTTP/1.1\n").unwrap_err();
    assert_eq!((fault.keep, fault.in_head), (0, true));
}

#[test]
fn a_fault_of_a_body_says_whether_the_request_is_under_way() {
    let (head, bad) = (format!("{GET}Transfer-Encoding: chunked\r\n\r\n"), "5\r\nhello\r\nx\r\n");
    // All at once, behind another request: that one is kept, this one never was.
    let mut framing = Framing::new();
    let fault = framing.read(format!("{GET}\r\n{head}{bad}").as_bytes()).unwrap_err();
    assert_eq!((fault.keep, fault.in_head), (GET.len() + 2, true));
    // The end of the head comes with the fault.
    let mut framing = Framing::new();
    framing.read(&head.as_bytes()[..20]).unwrap();
    let fault = framing.read(&[&head.as_bytes()[20..], bad.as_bytes()].concat()).unwrap_err();
    assert_eq!((fault.keep, fault.in_head), (0, true));
    // The head was there before.
    let mut framing = Framing::new();
    framing.read(head.as_bytes()).unwrap();
    assert!(!framing.is_inside_head());
    let fault = framing.read(bad.as_bytes()).unwrap_err();
    assert_eq!((fault.keep, fault.in_head), (0, false));
}

#[test]
fn long_heads_and_lines_are_refused() {
    let chunked = format!("{GET}Transfer-Encoding: chunked\r\n\r\n");
    let value = "x".repeat(head::LONGEST);
    let fitting = &value[..head::LONGEST - GET.len() - "A: \r\n\r\n".len()];
    let rows = [
        (format!("{GET}A: {fitting}\r\n\r\n"), None),
        (format!("{GET}A: {fitting}x\r\n\r\n"), Some(FaultKind::HeadTooLarge)),
        (format!("{GET}A: {value}\r\n\r\n"), Some(FaultKind::HeadTooLarge)),
        (format!("{GET}A: {value}\n"), Some(FaultKind::HeadTooLarge)),
        (format!("{GET}{}\r\n", "A: b\r\n".repeat(head::LONGEST / 6 + 1)), Some(FaultKind::HeadTooLarge)),
        (format!("{chunked}0\r\nA: {value}\r\n\r\n"), Some(FaultKind::HeadTooLarge)),
        (
            format!("{chunked}0\r\n{}\r\n", "A: b\r\n".repeat(head::LONGEST / 6 + 1)),
            Some(FaultKind::HeadTooLarge),
        ),
        (format!("{chunked}5;{}", &value[..LONGEST_CHUNK_LINE]), Some(FaultKind::BadChunk)),
        (format!("{GET}Content-Length: {}5\r\n\r\nhelloX\n", "0".repeat(100)), Some(FaultKind::BareLf)),
    ];
    for (text, expected) in rows {
        let start = &text[..text.len().min(120)];
        assert_eq!(fault(text.as_bytes()), expected, "{start}");
        for length in [1, 1000, 65_536] {
            assert_eq!(fault_in_parts(text.as_bytes(), length), expected, "by {length}: {start}");
        }
    }
}

#[test]
fn the_longest_bodies() {
    let most = u64::MAX;
    for (rest, expected) in [
        (format!("Content-Length: {most}\r\n\r\n\n\0\n"), None),
        (format!("Content-Length: {}\r\n\r\n", u128::from(most) + 1), Some(FaultKind::BadLength)),
        (format!("Transfer-Encoding: chunked\r\n\r\n{most:X}\r\n\n\0\n"), None),
    ] {
        assert_eq!(fault(format!("{GET}{rest}").as_bytes()), expected, "{rest}");
    }
}

#[test]
fn what_is_not_http1_is_let_be() {
    let mut framing = Framing::new();
    framing.switch_off();
    assert!(framing.is_off() && !framing.is_inside_head());
    framing.read(b"\n\0\n").unwrap();
}

proptest::proptest! {
    /// Rows behind each other and noise: neither panics, nor hangs on where the bytes are cut.
    #[test]
    fn any_bytes_cut_anywhere(
        rows in proptest::collection::vec(proptest::sample::select(all()), 1..4),
        noise: Vec<u8>,
        cuts in proptest::collection::vec(0_usize..200, 0..20),
    ) {
        let bytes: Vec<u8> = rows.into_iter().flat_map(|(row, _)| row).chain(noise).collect();
        let (mut framing, mut rest, mut found) = (Framing::new(), &bytes[..], None);
        for cut in cuts.into_iter().chain([bytes.len()]) {
            let part = rest.split_off(..cut.min(rest.len())).unwrap_or_default();
            let read = framing.read(part);
            if let Err(fault) = read {
                proptest::prop_assert!(fault.keep <= part.len());
                found = Some(fault.kind);
                break;
            }
        }
        proptest::prop_assert_eq!(found, fault(&bytes));
    }
}
