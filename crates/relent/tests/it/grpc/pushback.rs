//! `grpc-retry-pushback-ms`: kept to the letter.

use std::time::Duration;

use relent::{Jitter, StopReason};

use super::server::{Act, Server, always, by, ending, message, status, status_with};

const PUSHBACK: &str = "grpc-retry-pushback-ms";

#[tokio::test(start_paused = true)]
async fn a_pushback_is_exact_and_starts_the_curve_anew() {
    let server = Server::new([
        status("14"),
        status("14"),
        status_with("14", PUSHBACK, "1000"),
        status("14"),
        status("14"),
        message("answer"),
    ]);
    let ended = by(always().attempts(6).jitter(Jitter::Full), &server).await;
    assert_eq!(ending(&ended), (None, None));
    let times = server.times();
    // Exactly a second, though the jitter is full; and then the first wait again.
    assert_eq!(times[3] - times[2], 1000);
    assert!(times[4] - times[3] <= 10 && times[5] - times[4] <= 20, "{times:?}");

    let server = Server::new([status_with("8", PUSHBACK, "0"), message("answer")]);
    by(always(), &server).await.unwrap();
    assert_eq!(server.times(), [0, 0]);
}

/// grpc-go's streaming cases: negative, non-numeric and multiple pushbacks all mean: no retry.
#[tokio::test(start_paused = true)]
async fn a_pushback_that_is_negative_unreadable_or_doubled_stops() {
    for values in [&["-1"][..], &["xxx"], &["100", "10"], &[""], &["2147483648"]] {
        let mut fields = vec![("grpc-status", "14")];
        fields.extend(values.iter().map(|value| (PUSHBACK, *value)));
        let server = Server::new([vec![Act::Read, Act::Head(200, fields)]]);
        let ended = by(always(), &server).await;
        assert_eq!(ending(&ended), (Some("14"), Some((StopReason::StoppedByPeer, 1))), "{values:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pushback_makes_no_code_retryable() {
    let server = Server::new([status_with("3", PUSHBACK, "10")]);
    let ended = by(always(), &server).await;
    assert_eq!(ending(&ended), (Some("3"), Some((StopReason::NotRetryable, 1))));
}

#[tokio::test(start_paused = true)]
async fn a_pushback_over_max_hint_ends_the_call_and_is_told() {
    let server = Server::new([status_with("14", PUSHBACK, "60000")]);
    let ended = by(always(), &server).await;
    assert_eq!(ending(&ended).1, Some((StopReason::HintTooLong, 1)));
    let stopped = *ended.unwrap().extensions().get::<relent::http::Stopped>().unwrap();
    assert_eq!(stopped.hint, Some(Duration::from_secs(60)));
}
