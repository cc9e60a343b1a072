//! Time: told with each attempt, taken from the caller, never slept past.

use std::time::Duration;

use relent::grpc::GrpcRetryLayer;
use relent::http::grpc_timeout;
use relent::{Cause, Retry, RetryOn, StopReason};

use super::server::{Act, Server, Stopwatch, always, by, call, ending, message, request, status};

fn told(server: &Server) -> Vec<u128> {
    let times = server.seen();
    times.iter().map(|seen| grpc_timeout::time_given(&seen.headers).unwrap().as_millis()).collect()
}

fn ms(length: u64) -> Duration {
    Duration::from_millis(length)
}

#[tokio::test(start_paused = true)]
async fn the_time_is_that_of_the_attempt_computed_anew() {
    let policy = always().attempt_timeout(ms(500)).deadline(ms(1000));
    let slow = vec![Act::Wait(300), Act::Head(200, vec![("grpc-status", "14")])];
    let server = Server::new([slow.clone(), slow, message("answer")]);
    by(policy, &server).await.unwrap();
    // Less 5 %: the server is to answer first.
    assert_eq!(server.times(), [0, 310, 630]);
    assert_eq!(told(&server), [475, 475, 351]);
}

/// P34 (istio#13806): the caller's own `grpc-timeout` is never sent unchanged a second time.
#[tokio::test(start_paused = true)]
async fn p34_the_callers_own_timeout_bounds_the_whole_call() {
    let slow = vec![Act::Wait(300), Act::Head(200, vec![("grpc-status", "14")])];
    let server = Server::new([slow, message("answer")]);
    let layer = GrpcRetryLayer::new(Retry::new(always().build().unwrap()));
    let mut request = request();
    request.headers_mut().insert("grpc-timeout", "1S".parse().unwrap());
    call(&layer, &server, request).await.unwrap();
    let told = told(&server);
    assert!(told[0] <= 1000 && told[1] <= 700, "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn a_caller_without_time_is_refused_before_anything_is_sent() {
    let server = Server::new([]);
    let layer = GrpcRetryLayer::new(Retry::new(always().build().unwrap()));
    let mut late = request();
    late.headers_mut().insert("grpc-timeout", "0m".parse().unwrap());
    let gave_up = call(&layer, &server, late).await.unwrap_err();
    assert_eq!((gave_up.reason(), gave_up.attempts()), (StopReason::DeadlineExceeded, 0));

    // And one without much of it does not get more from the policy.
    let server = Server::new([vec![Act::Wait(60_000)]]);
    let mut hurried = request();
    hurried.headers_mut().insert("grpc-timeout", "200m".parse().unwrap());
    let began = Stopwatch::start();
    let gave_up = call(&layer, &server, hurried).await.unwrap_err();
    assert_eq!((gave_up.reason(), began.elapsed()), (StopReason::DeadlineExceeded, ms(200)));
}

/// B18: grpc-go waits out a backoff that ends after the call's deadline; here it is refused before the wait.
#[tokio::test(start_paused = true)]
async fn b18_no_wait_ends_after_the_deadline() {
    let policy = always().attempt_timeout(ms(500)).deadline(ms(600));
    let server = Server::new([vec![
        Act::Read,
        Act::Head(200, vec![("grpc-status", "14"), ("grpc-retry-pushback-ms", "599")]),
    ]]);
    let began = Stopwatch::start();
    let ended = by(policy, &server).await;
    assert_eq!(ending(&ended).1, Some((StopReason::DeadlineTooClose, 1)));
    assert_eq!(began.elapsed(), Duration::ZERO);
}

/// The server is told to answer before the attempt's time is up; when it does, that is the attempt's timeout, and not a
/// status that `retry_on` does not name.
#[tokio::test(start_paused = true)]
async fn a_server_that_says_that_the_attempts_time_is_up_says_timeout() {
    for code in ["4", "1"] {
        let at_its_end = vec![Act::Wait(475), Act::Head(200, vec![("grpc-status", code)])];
        let server = Server::new([at_its_end.clone(), message("answer")]);
        by(always().attempt_timeout(ms(500)), &server).await.unwrap();
        assert_eq!(server.count(), 2, "{code}");

        let server = Server::new([at_its_end]);
        let only_unavailable = RetryOn::nothing().grpc(relent::GrpcCode::Unavailable).unwrap();
        assert!(!only_unavailable.contains(Cause::Timeout));
        let ended = by(always().attempt_timeout(ms(500)).retry_on(only_unavailable), &server).await;
        assert_eq!(ending(&ended).1, Some((StopReason::NotRetryable, 1)));
        assert!(ended.unwrap().extensions().get::<relent::http::Stopped>().unwrap().ambiguous);

        // Before that time it speaks of a time of its own.
        let server = Server::new([status(code)]);
        let ended = by(always().attempt_timeout(ms(500)), &server).await;
        assert_eq!(ending(&ended).1, Some((StopReason::NotRetryable, 1)));
    }
}
