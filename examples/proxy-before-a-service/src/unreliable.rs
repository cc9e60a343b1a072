//! A service that is not at its best: of each three requests the first two get 503.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

/// Starts it; where it listens.
pub(crate) fn start() -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let address = listener.local_addr()?;
    let requests = Arc::new(AtomicU32::new(0));
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let requests = Arc::clone(&requests);
            // A client that breaks off has nobody to tell.
            thread::spawn(move || drop(serve(stream, &requests)));
        }
    });
    Ok(address)
}

fn serve(stream: TcpStream, requests: &AtomicU32) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    while let Some(length) = read_head(&mut reader)? {
        io::copy(&mut (&mut reader).take(length), &mut io::sink())?;
        let (status, text) = match requests.fetch_add(1, Ordering::Relaxed) % 3 {
            2 => ("200 OK", "350\n"),
            _ => ("503 Service Unavailable", "busy\n"),
        };
        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{text}", text.len());
        reader.get_mut().write_all(answer.as_bytes())?;
    }
    Ok(())
}

/// The length of the body behind the next head; `None` at the end of the connection.
fn read_head(reader: &mut impl BufRead) -> io::Result<Option<u64>> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        if line == "\r\n" {
            return Ok(Some(length));
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap_or(0);
        }
    }
}
