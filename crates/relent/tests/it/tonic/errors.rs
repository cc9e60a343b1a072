//! tonic's errors where no layer is: a retry around whole calls.

use std::time::Duration;

use relent::adapter::tonic::{stopped, with_pushback};
use relent::grpc::Pushback;
use relent::{Cause, Classify, Health, Retry, Standard, StopReason, Verdict};
use tonic::{Code, ConnectError, Status, TimeoutExpired};

use super::stage::{Prices, always, ask, connected, fail, ok};

#[tokio::test(start_paused = true)]
async fn a_retry_around_whole_calls_knows_every_status() {
    let prices = Prices::new(|n, _| match n {
        0 => fail(Status::unavailable("a restart")),
        1 => fail(with_pushback(Status::unavailable("full"), Pushback::After(Duration::from_millis(500)))),
        2 => ok("350"),
        _ => fail(Status::not_found("no such thing")),
    });
    let channel = connected(&prices, 0);
    let retry = Retry::new(always().build().unwrap());
    let answer = retry.run(|_| ask(channel.clone())).await.unwrap();
    assert_eq!(answer.into_inner(), "350");
    assert_eq!(prices.seen().iter().map(|(at, _)| *at).collect::<Vec<_>>(), [0, 10, 510]);

    let gave_up = retry.run(|_| ask(channel.clone())).await.unwrap_err();
    assert_eq!((gave_up.reason(), gave_up.attempts()), (StopReason::NotRetryable, 1));
    assert_eq!(gave_up.last().unwrap().code(), Code::NotFound);
    assert!(stopped(gave_up.last().unwrap()).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_refused_connection_is_unprocessed_however_deep() {
    let prices = Prices::new(|_, _| ok("350"));
    let status = ask(connected(&prices, 1)).await.unwrap_err();
    let failure = Standard.classify(&status);
    assert_eq!((failure.verdict(), failure.kind()), (Verdict::Unprocessed, Cause::Connect));
}

#[test]
fn every_code_means_what_it_means_in_a_head() {
    for number in 1..=16 {
        let status = Status::new(Code::from_i32(number), "why");
        let code = relent::GrpcCode::numbered(number.unsigned_abs().into()).unwrap();
        let expected = relent::grpc::failure_of_code(code, &http::HeaderMap::new()).unwrap();
        assert_eq!(Standard.classify(&status), expected);
    }
    let stop = with_pushback(Status::unavailable("full"), Pushback::Stop);
    assert_eq!(Standard.classify(&stop).stopped(), Some(relent::StopScope::Service));
}

#[test]
fn tonics_other_errors_are_known() {
    let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
    let failure = Standard.classify(&ConnectError(Box::new(refused)));
    assert_eq!((failure.verdict(), failure.kind()), (Verdict::Unprocessed, Cause::Connect));
    let failure = Standard.classify(&TimeoutExpired(()));
    assert_eq!(
        (failure.kind(), failure.target(), failure.is_ambiguous()),
        (Cause::Timeout, Health::Bad, true)
    );
}
