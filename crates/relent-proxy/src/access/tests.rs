use std::sync::mpsc;
use std::time::{Duration, UNIX_EPOCH};

use http::{Method, Version};
use relent_core::{Cause, StopReason};

use super::*;
use crate::facts::{Attempt, Call, Line, Outcome, Unread};

fn upstream() -> Upstream {
    let endpoints = vec!["http://10.0.0.1:80".parse().unwrap(), "http://10.0.0.2:80".parse().unwrap()];
    Upstream::new("api".to_owned(), relent_config::Upstream::new(endpoints))
}

fn attempt(number: u32, outcome: Outcome) -> Attempt {
    Attempt {
        number,
        endpoint: Some(number as usize - 1),
        outcome,
        wrote: true,
        reused: false,
        waited: Duration::from_micros(u64::from(number - 1) * 50_500),
        took: Duration::from_millis(2),
    }
}

fn line() -> Line {
    Line {
        time: UNIX_EPOCH + Duration::from_millis(1_796_118_245_250),
        client: Some("127.0.0.1:4000".parse().unwrap()),
        method: Method::POST,
        host: Some("api.example".to_owned()),
        path: "/a\"b\u{1}".to_owned(),
        version: Version::HTTP_11,
        bytes_in: 5,
        bytes_out: 7,
        attempts: vec![attempt(1, Outcome::Failed(Cause::Reset)), attempt(2, Outcome::Status(503))],
        error: None,
    }
}

fn call() -> Call {
    Call {
        target: Some(0),
        status: 503,
        took: Duration::from_micros(54_501),
        attempts: 2,
        stop: Some(StopReason::BudgetExhausted),
        ambiguous: true,
        broken: false,
    }
}

/// What is written, a batch at a time.
struct Pipe(mpsc::Sender<Vec<u8>>);

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.send(bytes.to_vec()).map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_line_has_every_attempt() {
    let text = line::of_call(&call(), &line(), Some((&upstream(), "p")));
    let expected = concat!(
        r#"{"time":"2026-12-01T09:44:05.250Z","client":"127.0.0.1:4000","method":"POST","host":"api.example","#,
        r#""path":"/a\"b\u0001","protocol":"http/1.1","status":503,"upstream":"api","policy":"p","#,
        r#""duration_ms":54.501,"bytes_in":5,"bytes_out":7,"attempts":["#,
        r#"{"number":1,"endpoint":"10.0.0.1:80","failure":"reset","wrote":true,"reused":false,"wait_ms":0.0,"ms":2.0},"#,
        r#"{"number":2,"endpoint":"10.0.0.2:80","status":503,"wrote":true,"reused":false,"wait_ms":50.5,"ms":2.0}],"#,
        r#""stop":"BudgetExhausted","ambiguous":true}"#,
        "\n"
    );
    assert_eq!(String::from_utf8(text).unwrap(), expected);
}

#[test]
fn what_was_never_a_request_has_a_line_too() {
    let unread = Unread { time: UNIX_EPOCH, client: None, error: "a bare line feed".to_owned() };
    let text = String::from_utf8(line::of_unread(400, &unread)).unwrap();
    assert_eq!(
        text,
        "{\"time\":\"1970-01-01T00:00:00.000Z\",\"status\":400,\"attempts\":[],\"error\":\"a bare line feed\"}\n"
    );
}

#[test]
fn everything_is_written_before_the_last_handle_is_gone() {
    let (sender, written) = mpsc::channel();
    let log = AccessLog::to(Pipe(sender)).unwrap();
    let other = log.clone();
    for _ in 0..1000 {
        other.write(&call(), &line(), None);
    }
    drop((log, other));
    let text: Vec<u8> = written.try_iter().flatten().collect();
    assert_eq!(text.iter().filter(|byte| **byte == b'\n').count(), 1000);
}

#[test]
fn a_target_that_is_gone_costs_lines_and_nothing_else() {
    let (sender, written) = mpsc::channel();
    drop(written);
    let log = AccessLog::to(Pipe(sender)).unwrap();
    log.write(&call(), &line(), None);
    while log.dropped() == 0 {
        log.write(&call(), &line(), None);
    }
}
