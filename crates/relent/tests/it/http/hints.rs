//! What a server asks for is kept to: never earlier, and not at all where it asks for too much.

use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use http::Request;
use http_body_util::Empty;
use relent::http::{HttpRetryLayer, Stopped};
use relent::timer::Manual;
use relent::{Event, PolicyBuilder, StopReason, WaitOrigin};
use tower::{Layer, ServiceExt};

use super::client::{passing, policy, retry};
use super::service::{Told, answer};

/// When the attempts were made, and why no further one was.
async fn times(
    time: &Manual,
    policy: PolicyBuilder,
    status: u16,
    headers: &[(&str, &str)],
) -> (Vec<Duration>, Option<Stopped>) {
    let told = Told::new(time, [answer(status, headers)]);
    let service = HttpRetryLayer::new(retry(policy, time)).layer(told.clone());
    let request = Request::get("http://a.example/").body(Empty::<Bytes>::new()).unwrap();
    let response = passing(time, service.oneshot(request)).await.unwrap();
    (told.times(), response.extensions().get().copied())
}

fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

#[tokio::test]
async fn p47_a_hint_is_a_lower_bound() {
    for status in [429, 503] {
        let (times, stopped) = times(&Manual::new(), policy(), status, &[("retry-after", "4")]).await;
        assert_eq!((times.len(), stopped), (2, None));
        assert!((seconds(4)..=seconds(6)).contains(&times[1]), "{times:?}");
    }
}

#[tokio::test]
async fn a37_the_longer_of_hint_and_backoff_wins_and_the_event_says_whose_word_it_was() {
    for (backoff, hint, origin) in [(1, "5", WaitOrigin::Server), (30, "2", WaitOrigin::Backoff)] {
        let time = Manual::new();
        let (sender, origins) = std::sync::mpsc::channel();
        let policy = policy().base(seconds(backoff)).cap(seconds(backoff));
        let retry = retry(policy, &time).on_event(move |event| {
            if let Event::Waiting { origin, wait, .. } = event {
                sender.send((*origin, *wait)).unwrap();
            }
        });
        let told = Told::new(&time, [answer(503, &[("retry-after", hint)])]);
        let service = HttpRetryLayer::new(retry).layer(told.clone());
        let request = Request::get("http://a.example/").body(Empty::<Bytes>::new()).unwrap();
        passing(&time, service.oneshot(request)).await.unwrap();
        let (said, wait) = origins.recv().unwrap();
        assert_eq!(said, origin);
        assert_eq!(wait, told.times()[1]);
    }
}

#[tokio::test]
async fn throttled_without_a_hint_waits_the_throttled_base() {
    let (times, _) = times(&Manual::new(), policy().throttled_base(seconds(3)), 429, &[]).await;
    assert!(times[1] >= seconds(3), "{times:?}");
}

#[tokio::test]
async fn b13_b21_dates_are_read_against_the_responses_own_whatever_the_clocks_say() {
    let dates =
        ["Sun, 06 Nov 1994 08:50:00 GMT", "Sunday, 06-Nov-94 08:50:00 GMT", "Sun Nov  6 08:50:00 1994"];
    for date in dates {
        for wall in [0, 784_111_777 - 3600, 784_111_777 + 3600] {
            let time = Manual::new();
            time.set_wall(UNIX_EPOCH + seconds(wall));
            let headers = [("date", "Sun, 06 Nov 1994 08:49:37 GMT"), ("retry-after", date)];
            let (times, _) = times(&time, policy(), 503, &headers).await;
            assert!((seconds(23)..seconds(35)).contains(&times[1]), "{date} {times:?}");
        }
        let time = Manual::new();
        time.set_wall(UNIX_EPOCH + seconds(784_111_797));
        let (times, _) = times(&time, policy(), 503, &[("retry-after", date)]).await;
        assert!((seconds(3)..seconds(5)).contains(&times[1]), "without a Date of its own: {times:?}");
    }
}

#[tokio::test]
async fn a31_a32_b21_a_hint_over_the_ceiling_stops_at_once() {
    for hint in ["3600", "99999999999999999999", "18446744073709551615", "Fri, 31 Dec 9999 23:59:59 GMT"] {
        let time = Manual::new();
        let (times, stopped) =
            times(&time, policy().max_hint(seconds(5)), 503, &[("retry-after", hint)]).await;
        let stopped = stopped.unwrap();
        assert_eq!((times.len(), stopped.reason), (1, StopReason::HintTooLong), "{hint}");
        if hint == "3600" {
            assert_eq!(stopped.hint, Some(seconds(3600)));
        }
        assert_eq!(time.elapsed(), Duration::ZERO);
    }
}

#[tokio::test]
async fn p38_a_hint_beyond_the_deadline_stops_at_once() {
    let time = Manual::new();
    let (times, stopped) = times(&time, policy().deadline(seconds(1)), 503, &[("retry-after", "10")]).await;
    assert_eq!((times.len(), stopped.unwrap().reason), (1, StopReason::DeadlineTooClose));
    assert_eq!(time.elapsed(), Duration::ZERO);
}

/// A35, A34: what is no wait is none, and what asks for none leaves the backoff as it is.
#[tokio::test]
async fn a34_a35_hostile_values_leave_the_backoff() {
    let backoff = Duration::from_millis(250);
    let past = "Thu, 01 Jan 1970 00:00:00 GMT";
    for hint in ["-1", "1.5", "+3", "0x10", "1e3", "", " ", "soon", "3 s", "0", past, "-99999999999999999999"]
    {
        let time = Manual::new();
        let policy = policy().base(backoff).cap(backoff);
        time.set_wall(UNIX_EPOCH + seconds(1_790_000_000));
        let (times, stopped) = times(&time, policy, 503, &[("retry-after", hint)]).await;
        assert_eq!((times, stopped), (vec![Duration::ZERO, backoff], None), "{hint:?}");
    }
}

#[tokio::test]
async fn of_repeated_headers_the_longest_wins() {
    let headers =
        [("retry-after", "2"), ("retry-after", "rubbish"), ("retry-after", "9"), ("retry-after", "-7")];
    let (times, _) = times(&Manual::new(), policy(), 503, &headers).await;
    assert!(times[1] >= seconds(9), "{times:?}");
}

/// What retry-policies with reqwest-retry does otherwise, one after another.
#[tokio::test]
async fn b10_methods_statuses_hints_and_limits_are_asked_and_the_wall_clock_is_not() {
    let time = Manual::new();
    let once = |method: &'static str, answers: Vec<super::service::Answer>| {
        let told = Told::new(&time, answers);
        let policy =
            policy().attempts(100).no_budget().base(seconds(1)).cap(seconds(1)).deadline(seconds(10));
        let service = HttpRetryLayer::new(retry(policy, &time)).layer(told.clone());
        let request = Request::builder().method(method).uri("http://a.example/").body(Empty::<Bytes>::new());
        let time = &time;
        async move {
            let response = passing(time, service.oneshot(request.unwrap())).await.unwrap();
            let stopped = response.extensions().get::<Stopped>().copied();
            (told.times(), stopped.map(|stopped| stopped.reason))
        }
    };
    let busy = |headers: &[(&str, &str)]| answer(503, headers);
    let (times, reason) = once("POST", vec![busy(&[])]).await;
    assert_eq!((times.len(), reason), (1, Some(StopReason::UnsafeToRepeat)));
    let (times, reason) = once("GET", vec![answer(501, &[])]).await;
    assert_eq!((times.len(), reason), (1, Some(StopReason::NotRetryable)));
    let (times, reason) = once("GET", vec![busy(&[("retry-after", "4")])]).await;
    assert_eq!((times.len(), reason), (2, None));
    assert!(times[1] - times[0] >= seconds(4));
    // The limit is asked with the wait, before it, and by no clock that jumps.
    let (began, hours) = (time.elapsed(), seconds(100 * 3600));
    for wall in [UNIX_EPOCH, UNIX_EPOCH + hours, UNIX_EPOCH + hours / 2] {
        time.set_wall(wall);
        let (times, reason) = once("GET", (0..100).map(|_| busy(&[])).collect()).await;
        assert_eq!((times.len(), reason), (10, Some(StopReason::DeadlineTooClose)));
    }
    assert_eq!(time.elapsed() - began, 3 * seconds(9), "nobody slept only to be refused");
}

#[tokio::test]
async fn b14_no_number_of_seconds_overflows_into_an_immediate_retry() {
    for seconds in ["9223372037", "18446744073709551615", "99999999999999999999999"] {
        let (times, stopped) = times(&Manual::new(), policy(), 503, &[("retry-after", seconds)]).await;
        assert_eq!(times.len(), 1, "{seconds}");
        assert_eq!(stopped.map(|stopped| stopped.reason), Some(StopReason::HintTooLong), "{seconds}");
    }
}

#[tokio::test]
async fn b14_dates_of_every_form_are_read() {
    for date in
        ["Sun, 06 Nov 1994 08:49:57 GMT", "Sunday, 06-Nov-94 08:49:57 GMT", "Sun Nov  6 08:49:57 1994"]
    {
        let headers = [("date", "Sun, 06 Nov 1994 08:49:37 GMT"), ("retry-after", date)];
        let (times, _) = times(&Manual::new(), policy(), 503, &headers).await;
        assert!(times[1] >= seconds(20), "{date}: {times:?}");
    }
}
