//! Hedged requests: what runs beside what, which answer is taken, and what becomes of bodies.

use std::future::pending;
use std::io::{Error, ErrorKind};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use relent::http::{HttpRetryLayer, ReplayBody, RetryBody, Stopped};
use relent::timer::{Clock, Manual, Timer};
use relent::{HedgeConfig, PolicyBuilder, RepeatRule, Retry, StopReason};
use tower::{Layer, Service, service_fn};

use crate::rig::{ms, unbounded};

/// What an attempt comes to, and when, counted from its start.
#[derive(Clone, Copy)]
enum Act {
    Answer(u64, u16),
    Break(u64),
    Hang,
}

/// Attempts as the service saw them: when they came, and with which body.
type Seen = Arc<Mutex<Vec<(u64, Bytes)>>>;

fn hedged(attempts: u32, hedges: u32) -> PolicyBuilder {
    unbounded(attempts).hedge(HedgeConfig::after(ms(50)).most(hedges))
}

fn millis(time: &Manual) -> u64 {
    u64::try_from(time.elapsed().as_millis()).unwrap()
}

async fn serve(
    time: Manual,
    seen: Seen,
    acts: &'static [Act],
    request: Request<ReplayBody<Full<Bytes>>>,
) -> Result<Response<Full<Bytes>>, Error> {
    let came = millis(&time);
    let body = request.into_body().collect().await.map_err(Error::other)?.to_bytes();
    let number = {
        let mut seen = seen.lock().unwrap();
        seen.push((came, body));
        seen.len()
    };
    let wait = |length: u64| time.sleep_until(time.now() + ms(length));
    match acts[number - 1] {
        Act::Hang => pending().await,
        Act::Break(after) => {
            wait(after).await;
            Err(Error::from(ErrorKind::ConnectionReset))
        }
        Act::Answer(after, status) => {
            wait(after).await;
            let body = Full::new(Bytes::from(format!("attempt {number}")));
            Ok(Response::builder().status(status).body(body).unwrap())
        }
    }
}

struct Played {
    /// Status and body, or the reason why there is none.
    outcome: Result<(u16, String), StopReason>,
    stopped: Option<StopReason>,
    seen: Vec<(u64, Bytes)>,
    took: u64,
}

fn play(policy: PolicyBuilder, method: Method, body: &'static str, acts: &'static [Act]) -> Played {
    let (time, seen) = (Manual::new(), Seen::default());
    let retry = Retry::with_timer(policy.build().unwrap(), time.clone());
    let (clock, log) = (time.clone(), Arc::clone(&seen));
    let inner = service_fn(move |request| serve(clock.clone(), Arc::clone(&log), acts, request));
    let mut service = HttpRetryLayer::new(retry).layer(inner);
    let request = Request::builder().method(method).uri("http://a.example/").body(Full::from(body)).unwrap();
    let answer = time.run(service.call(request));
    let took = millis(&time);
    let (outcome, stopped) = match answer {
        Ok(response) => {
            let (parts, body): (_, RetryBody<Full<Bytes>>) = response.into_parts();
            let body = time.run(body.collect()).unwrap().to_bytes();
            let stopped = parts.extensions.get::<Stopped>().map(|stopped| stopped.reason);
            (Ok((parts.status.as_u16(), String::from_utf8(body.to_vec()).unwrap())), stopped)
        }
        Err(error) => (Err(error.reason()), Some(error.reason())),
    };
    assert_eq!(time.sleepers(), 0, "nobody is left behind");
    let seen = seen.lock().unwrap().clone();
    Played { outcome, stopped, seen, took }
}

fn launches(played: &Played) -> Vec<u64> {
    played.seen.iter().map(|(at, _)| *at).collect()
}

fn answered(number: u32) -> Result<(u16, String), StopReason> {
    Ok((200, format!("attempt {number}")))
}

#[test]
fn the_first_good_answer_is_taken() {
    use Act::Answer;
    let slow_first = play(hedged(3, 1), Method::GET, "", &[Answer(500, 200), Answer(10, 200)]);
    assert_eq!((slow_first.outcome, slow_first.took), (answered(2), 60));
    let slow_second = play(hedged(3, 1), Method::GET, "", &[Answer(70, 200), Answer(500, 200)]);
    assert_eq!((slow_second.outcome, slow_second.took), (answered(1), 70));
}

#[test]
fn every_attempt_sends_the_whole_body() {
    let put =
        play(hedged(4, 3), Method::PUT, "order 7", &[Act::Hang, Act::Hang, Act::Hang, Act::Answer(1, 200)]);
    assert_eq!(put.outcome, answered(4));
    assert_eq!(launches(&put), [0, 50, 100, 150]);
    assert!(put.seen.iter().all(|(_, body)| body == "order 7"));
}

#[test]
fn what_may_not_be_sent_twice_is_not_hedged() {
    let post = play(hedged(3, 1), Method::POST, "order 7", &[Act::Answer(500, 200)]);
    assert_eq!((launches(&post), post.outcome), (vec![0], answered(1)));
    let word = hedged(3, 1).repeat(RepeatRule::Always);
    let post = play(word, Method::POST, "order 7", &[Act::Hang, Act::Answer(1, 200)]);
    assert_eq!((launches(&post), post.outcome), (vec![0, 50], answered(2)));
}

#[test]
fn a_body_that_is_not_kept_is_not_hedged() {
    let put = play(hedged(3, 1).replay_limit(3), Method::PUT, "order 7", &[Act::Answer(500, 200)]);
    assert_eq!((launches(&put), put.outcome), (vec![0], answered(1)));
}

#[test]
fn a_failed_answer_waits_for_those_in_flight() {
    use Act::{Answer, Break};
    let first = play(hedged(3, 1), Method::GET, "", &[Answer(60, 503), Answer(100, 200)]);
    assert_eq!((first.outcome, first.took), (answered(2), 150));
    let second = play(hedged(3, 1), Method::GET, "", &[Answer(200, 200), Answer(5, 503)]);
    assert_eq!((second.outcome, second.took), (answered(1), 200));
    let broken = play(hedged(3, 1), Method::GET, "", &[Break(60), Answer(100, 200)]);
    assert_eq!((broken.outcome, broken.took), (answered(2), 150));
}

#[test]
fn once_all_have_failed_the_request_is_sent_again() {
    use Act::Answer;
    let played = play(hedged(3, 1), Method::PUT, "x", &[Answer(60, 503), Answer(20, 503), Answer(5, 200)]);
    assert_eq!((launches(&played), played.outcome), (vec![0, 50, 80], answered(3)));
    assert!(played.seen.iter().all(|(_, body)| body == "x"));
}

#[test]
fn the_last_outcome_of_all_comes_back() {
    use Act::{Answer, Break};
    let answer = play(hedged(2, 1), Method::GET, "", &[Break(60), Answer(100, 503)]);
    assert_eq!(answer.outcome, Ok((503, "attempt 2".to_owned())));
    assert_eq!(answer.stopped, Some(StopReason::AttemptsExhausted));
    let broken = play(hedged(2, 1), Method::GET, "", &[Answer(60, 503), Break(100)]);
    assert_eq!(broken.outcome, Err(StopReason::AttemptsExhausted));
}

#[test]
fn an_answer_that_no_repeat_would_mend_ends_the_others() {
    let played = play(hedged(3, 1), Method::GET, "", &[Act::Hang, Act::Answer(5, 404)]);
    assert_eq!(played.outcome, Ok((404, "attempt 2".to_owned())));
    assert_eq!((played.stopped, played.took), (Some(StopReason::NotRetryable), 55));
}

#[test]
fn a_request_that_is_dropped_leaves_nothing_behind() {
    let (time, seen) = (Manual::new(), Seen::default());
    let retry = Retry::with_timer(hedged(3, 2).build().unwrap(), time.clone());
    let (clock, log) = (time.clone(), Arc::clone(&seen));
    let inner = service_fn(move |request| {
        serve(clock.clone(), Arc::clone(&log), &[Act::Hang, Act::Hang, Act::Hang], request)
    });
    let mut service = HttpRetryLayer::new(retry).layer(inner);
    let request = Request::get("http://a.example/").body(Full::from("")).unwrap();
    let mut call = crate::stepper::Stepper::new(&time, service.call(request));
    for _ in 0..3 {
        assert!(call.poll().is_pending());
        time.advance(ms(50));
    }
    drop(call);
    assert_eq!((seen.lock().unwrap().len(), time.sleepers()), (3, 0));
}
