//! The client layer: what is left of the ambient deadline goes upon each request.

use std::cell::RefCell;

use http::header::{CONTENT_TYPE, HeaderName};
use http::{HeaderMap, Request, Response};
use relent::http::{
    EXPECTED_TIMEOUT, GRPC_TIMEOUT, PeersError, SendDeadlineError, SendDeadlineLayer, TimeUnit,
};
use relent::timer::{Clock, Manual, Timer};
use relent::{Classify, Deadline, Retry, RetryLayer, Standard, Verdict};
use tower::{Layer, Service, service_fn};

use crate::rig::{Busy, handle, ms, unbounded};

const OWN: HeaderName = HeaderName::from_static("request-timeout");

fn layer(time: &Manual) -> SendDeadlineLayer<Manual> {
    SendDeadlineLayer::with_timer(time.clone())
}

type Told = Result<HeaderMap, SendDeadlineError<std::convert::Infallible>>;

/// What is sent of `request` within so many microseconds.
fn sent(time: &Manual, layer: &SendDeadlineLayer<Manual>, within: u64, request: Request<()>) -> Told {
    let mut client =
        layer.layer(service_fn(async |request: Request<()>| Ok(Response::new(request.headers().clone()))));
    let deadline = Deadline::within_on(time.clone(), std::time::Duration::from_micros(within));
    let response = time.run(deadline.run(async { client.call(request).await }));
    response.map(Response::into_body)
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).map(|value| value.to_str().unwrap())
}

#[test]
fn what_is_left_is_told_rounded_down() {
    let time = Manual::new();
    let told = sent(&time, &layer(&time), 250_999, Request::new(())).unwrap();
    assert_eq!((text(&told, &EXPECTED_TIMEOUT), told.len()), (Some("250"), 1));

    let grpc = Request::builder().header(CONTENT_TYPE, "application/grpc").body(()).unwrap();
    let told = sent(&time, &layer(&time), 250_999, grpc).unwrap();
    assert_eq!((text(&told, &GRPC_TIMEOUT), text(&told, &EXPECTED_TIMEOUT)), (Some("250m"), None));

    let own = layer(&time).header(OWN, TimeUnit::Seconds);
    let told = sent(&time, &own, 250_999, Request::new(())).unwrap();
    assert_eq!((text(&told, &OWN), text(&told, &EXPECTED_TIMEOUT)), (Some("0.250"), Some("250")));
}

#[test]
fn what_the_request_says_is_only_lowered() {
    let time = Manual::new();
    for (said, expected) in [("100", "100"), ("5000", "250"), ("soon", "250")] {
        let request = Request::builder().header(EXPECTED_TIMEOUT, said).body(()).unwrap();
        assert_eq!(
            text(&sent(&time, &layer(&time), 250_000, request).unwrap(), &EXPECTED_TIMEOUT),
            Some(expected)
        );
    }
}

#[test]
fn without_time_nothing_is_sent() {
    let time = Manual::new();
    for within in [0, 999] {
        let refused = sent(&time, &layer(&time), within, Request::new(())).unwrap_err();
        assert!(matches!(refused, SendDeadlineError::Exceeded(exceeded) if !exceeded.may_have_run()));
        assert_eq!(Standard.classify(&refused).verdict(), Verdict::Unprocessed);
    }
}

#[test]
fn without_a_deadline_nothing_is_told() {
    let time = Manual::new();
    let mut client = layer(&time).layer(service_fn(async |request: Request<()>| {
        assert!(request.headers().is_empty());
        Ok::<_, std::io::Error>(Response::new(()))
    }));
    assert!(time.run(client.call(Request::new(()))).is_ok());
}

#[test]
fn a_deadline_may_come_with_the_request() {
    let time = Manual::new();
    let mut request = Request::new(());
    request.extensions_mut().insert(Deadline::within_on(time.clone(), ms(100)));
    assert_eq!(text(&sent(&time, &layer(&time), 250_000, request).unwrap(), &EXPECTED_TIMEOUT), Some("100"));
}

#[test]
fn only_peers_are_told_where_they_are_named() {
    let time = Manual::new();
    let layer = layer(&time).peers(["a.example:8080"]).unwrap();
    let sent = |uri: &str| sent(&time, &layer, 250_000, Request::get(uri).body(()).unwrap()).unwrap().len();
    assert_eq!((sent("http://a.example:8080/x"), sent("http://b.example/x")), (1, 0));
    let refused = SendDeadlineLayer::new().peers(["http://a.example/"]).unwrap_err();
    assert!(matches!(refused, PeersError::NotAnAuthority(_)));
}

#[test]
fn below_a_retry_each_attempt_tells_what_is_left_then() {
    let (time, told) = (Manual::new(), RefCell::new(Vec::new()));
    let client = service_fn(async |_: Ping| {
        let wire = service_fn(async |request: Request<()>| {
            told.borrow_mut().push(text(request.headers(), &EXPECTED_TIMEOUT).unwrap().to_owned());
            time.sleep_until(time.now() + ms(30)).await;
            Err::<Response<()>, _>(Busy(1))
        });
        layer(&time).layer(wire).call(Request::new(())).await.map_err(|_| Busy(2))
    });
    let retry: Retry<_, _> = handle(unbounded(3), &time);
    let mut client = RetryLayer::new(retry).layer(client);
    let deadline = Deadline::within_on(time.clone(), ms(1000));
    let call = client.call(Ping);
    assert!(time.run(deadline.run(call)).is_err());
    // Less 5 % each, in which the caller can still answer.
    assert_eq!(*told.borrow(), ["950", "912", "874"]);
}

#[derive(Clone)]
struct Ping;
