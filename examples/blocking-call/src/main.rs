//! Retry a blocking call: without a runtime, with a socket timeout that keeps to the time left, and without doing twice
//! what must be done once.

use std::error::Error;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use relent::{Attempt, Policy, Retry, StopReason};

fn main() -> Result<(), Box<dyn Error>> {
    let policy = Policy::exponential(Duration::from_millis(5), Duration::from_millis(20)).build()?;
    let retry = Retry::new(policy);

    // Two connections break off without an answer, the third one answers.
    let server = start(["", "", "pong"])?;
    let answer = retry.run_blocking(|attempt| ask(server, attempt))?;
    assert_eq!(answer, "pong");

    // What must not happen twice is repeated only when it provably has not happened. This may have: a request was sent,
    // and no answer came. So there is one attempt, and the error says that nobody knows.
    let server = start(["", "paid", "paid"])?;
    let unknown = retry
        .run_blocking_only_if_unprocessed(|attempt| ask(server, attempt))
        .expect_err("the answer never came");
    assert_eq!((unknown.reason(), unknown.attempts()), (StopReason::UnsafeToRepeat, 1));
    assert!(unknown.ambiguous());
    Ok(())
}

/// One attempt: a running attempt can't be interrupted, so its sockets keep to the time it has.
fn ask(server: SocketAddr, attempt: Attempt) -> io::Result<String> {
    let time = attempt.time_left().unwrap_or(Duration::from_secs(5));
    let mut stream = TcpStream::connect_timeout(&server, time)?;
    stream.set_read_timeout(Some(time))?;
    stream.write_all(b"ping")?;
    let mut answer = [0; 4];
    stream.read_exact(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// A server on loopback that reads each request and answers it like this; "" breaks off.
fn start(answers: [&'static str; 3]) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for (answer, stream) in answers.into_iter().zip(listener.incoming()) {
            let mut stream = stream?;
            stream.read_exact(&mut [0; 4])?;
            stream.write_all(answer.as_bytes())?;
        }
        io::Result::Ok(())
    });
    Ok(address)
}
