//! The server layer: the caller's time is read, kept to, and known inside; credit comes in and its use is told.

use std::cell::Cell;
use std::convert::Infallible;
use std::error::Error;
use std::future::{Future, pending, ready};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName};
use http::{Request, Response, StatusCode};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Full};
use relent::http::{ATTEMPTS, DeadlineBody, DeadlineLayer, EXPECTED_TIMEOUT, GRPC_TIMEOUT, TimeUnit};
use relent::timer::{Clock, Manual, ManualSleep, Timer};
use relent::{Deadline, DeadlineExceeded, StopReason};
use tower::{Layer, Service, service_fn};

use crate::rig::{Busy, handle, ms, spend_all_credit, unbounded};
use crate::stepper::Stepper;

type Answer<B> = Response<DeadlineBody<B, Manual>>;

fn layer(time: &Manual) -> DeadlineLayer<Manual> {
    DeadlineLayer::with_timer(time.clone())
}

fn request(fields: &[(&HeaderName, &str)]) -> Request<()> {
    let mut request = Request::new(());
    for (name, value) in fields {
        request.headers_mut().append(*name, value.parse().unwrap());
    }
    request
}

/// What a handler's surroundings say.
fn left(time: &Manual) -> Option<Duration> {
    Deadline::current_on(time.clone()).map(|deadline| deadline.time_left())
}

/// What `layer` answers for `handler`.
fn answer<F, B>(
    time: &Manual,
    layer: &DeadlineLayer<Manual>,
    request: Request<()>,
    handler: impl Fn(Request<()>) -> F,
) -> Answer<B>
where
    F: Future<Output = Result<Response<B>, Infallible>>,
    B: Body,
{
    time.run(layer.layer(service_fn(handler)).call(request)).unwrap()
}

/// The time that a handler sees, told by these fields.
fn told(
    layer: impl Fn(DeadlineLayer<Manual>) -> DeadlineLayer<Manual>,
    fields: &[(&HeaderName, &str)],
) -> Option<Duration> {
    let time = Manual::new();
    let seen = Cell::new(None);
    let response = answer(&time, &layer(self::layer(&time)), request(fields), async |request| {
        seen.set(left(&time));
        let extension = request.extensions().get::<Deadline<Manual>>().map(Deadline::time_left);
        assert_eq!(extension, left(&time));
        Ok(Response::new(Full::<Bytes>::default()))
    });
    assert_eq!(response.status(), StatusCode::OK);
    seen.get()
}

fn text<B>(time: &Manual, body: DeadlineBody<B, Manual>) -> String
where
    B: Body,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    String::from_utf8(time.run(body.collect()).unwrap().to_bytes().to_vec()).unwrap()
}

fn nothing() -> Response<Full<Bytes>> {
    Response::new(Full::default())
}

const GRPC: (&HeaderName, &str) = (&CONTENT_TYPE, "application/grpc");

#[test]
fn the_time_on_the_wire_is_what_the_handler_sees() {
    const OWN: HeaderName = HeaderName::from_static("request-timeout");
    let as_is = |layer| layer;
    assert_eq!(told(as_is, &[]), None);
    assert_eq!(told(as_is, &[(&EXPECTED_TIMEOUT, "250")]), Some(ms(250)));
    assert_eq!(told(as_is, &[GRPC, (&GRPC_TIMEOUT, "250m")]), Some(ms(250)));
    assert_eq!(told(as_is, &[GRPC, (&GRPC_TIMEOUT, "250m"), (&EXPECTED_TIMEOUT, "100")]), Some(ms(100)));
    assert_eq!(told(as_is, &[(&GRPC_TIMEOUT, "250m")]), None, "it is gRPC's alone");
    assert_eq!(told(as_is, &[(&OWN, "0.25")]), None);
    let own = |layer: DeadlineLayer<Manual>| layer.header(OWN, TimeUnit::Seconds);
    assert_eq!(told(own, &[(&OWN, "0.25")]), Some(ms(250)));
}

#[test]
fn what_cannot_be_read_counts_as_absent() {
    let as_is = |layer| layer;
    for text in ["", "0", "-5", "+5", "5ms", "1.5", "99999999999999999999"] {
        assert_eq!(told(as_is, &[(&EXPECTED_TIMEOUT, text)]), None, "{text}");
    }
    assert_eq!(told(as_is, &[(&EXPECTED_TIMEOUT, "5"), (&EXPECTED_TIMEOUT, "5")]), None);
    for text in ["", "5", "S", "5s", "-5S", "5 S", "123456789n"] {
        assert_eq!(told(as_is, &[GRPC, (&GRPC_TIMEOUT, text)]), None, "{text}");
    }
    assert_eq!(told(as_is, &[GRPC, (&GRPC_TIMEOUT, "5S"), (&GRPC_TIMEOUT, "5S")]), None);
}

#[test]
fn a_caller_never_raises_the_time() {
    let at_most = |layer: DeadlineLayer<Manual>| layer.at_most(ms(300));
    assert_eq!(told(at_most, &[]), Some(ms(300)));
    assert_eq!(told(at_most, &[(&EXPECTED_TIMEOUT, "250")]), Some(ms(250)));
    assert_eq!(told(at_most, &[(&EXPECTED_TIMEOUT, "5000")]), Some(ms(300)));
    assert_eq!(told(at_most, &[(&EXPECTED_TIMEOUT, "soon")]), Some(ms(300)));

    // Neither over that of a layer outside, nor over that of the code around.
    let time = Manual::new();
    let inner = layer(&time).layer(service_fn(async |_| {
        assert_eq!(left(&time), Some(ms(200)));
        Ok::<_, Infallible>(nothing())
    }));
    let mut both = layer(&time).at_most(ms(200)).layer(inner);
    time.run(both.call(request(&[(&EXPECTED_TIMEOUT, "250")]))).unwrap();
    Deadline::within_on(time.clone(), ms(100)).run_blocking(|| {
        let seen = answer(&time, &layer(&time), request(&[(&EXPECTED_TIMEOUT, "250")]), |_| {
            assert_eq!(left(&time), Some(ms(100)));
            ready(Ok(nothing()))
        });
        assert_eq!(seen.status(), StatusCode::OK);
    });
}

#[test]
fn expired_work_is_refused_before_the_handler_runs() {
    let time = Manual::new();
    let zero = request(&[GRPC, (&GRPC_TIMEOUT, "0m"), (&ATTEMPTS, "left=2")]);
    let response: Answer<Full<Bytes>> =
        answer(&time, &layer(&time), zero, |_| -> std::future::Ready<_> { panic!("it is not called") });
    assert_eq!(
        (response.status(), &response.headers()["grpc-status"]),
        (StatusCode::OK, &"4".parse().unwrap())
    );
    assert_eq!(response.headers()[CONTENT_TYPE], "application/grpc");
    assert_eq!(response.headers()[ATTEMPTS], "used=0");
    assert!(response.body().is_end_stream(), "trailers-only: the head is all");

    // One that stood in a queue until its time was up.
    let mut server = layer(&time).layer(service_fn(async |_| -> Result<Response<Full<Bytes>>, Infallible> {
        panic!("it is not run")
    }));
    let queued = server.call(request(&[(&EXPECTED_TIMEOUT, "20")]));
    time.advance(ms(20));
    let response = time.run(queued).unwrap();
    assert_eq!(
        (response.status(), response.headers()[CONTENT_TYPE].as_bytes()),
        (StatusCode::GATEWAY_TIMEOUT, &b"application/problem+json"[..])
    );
    assert!(response.headers().get(ATTEMPTS).is_none(), "nobody asked");
    let text = text(&time, response.into_body());
    assert!(
        text.starts_with(r#"{"title":"Gateway Timeout","status":504,"detail":""#)
            && text.contains("nothing was run"),
        "{text}"
    );
}

struct Running(Rc<Cell<u32>>);

impl Running {
    fn new(count: &Rc<Cell<u32>>) -> Running {
        count.set(count.get() + 1);
        Running(Rc::clone(count))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

#[test]
fn work_is_ended_when_its_time_is_up() {
    for (fields, status, grpc) in [
        (&[(&EXPECTED_TIMEOUT, "250")][..], StatusCode::GATEWAY_TIMEOUT, None),
        (&[GRPC, (&GRPC_TIMEOUT, "250m")][..], StatusCode::OK, Some("4")),
    ] {
        let (time, running) = (Manual::new(), Rc::default());
        let response: Answer<Full<Bytes>> = answer(&time, &layer(&time), request(fields), async |_| {
            let _running = Running::new(&running);
            pending().await
        });
        assert_eq!((response.status(), time.elapsed(), running.get()), (status, ms(250), 0));
        assert_eq!(
            response.headers().get("grpc-status").map(|status| status.as_bytes()),
            grpc.map(str::as_bytes)
        );
    }
}

#[test]
fn an_answer_at_the_last_moment_counts() {
    let time = Manual::new();
    let response = answer(&time, &layer(&time), request(&[(&EXPECTED_TIMEOUT, "250")]), async |_| {
        time.sleep_until(time.now() + ms(250)).await;
        Ok(nothing())
    });
    assert_eq!((response.status(), time.elapsed()), (StatusCode::OK, ms(250)));
}

#[test]
fn a_caller_that_goes_away_takes_everything_along() {
    let (time, running) = (Manual::new(), Rc::default());
    let retry = handle(unbounded(3), &time);
    let mut server = layer(&time).layer(service_fn(async |_| {
        let call = retry.run(async |_| {
            let _running = Running::new(&running);
            pending::<Result<(), Busy>>().await
        });
        call.await.map_err(|_| ()).unwrap();
        Ok::<_, Infallible>(nothing())
    }));
    let mut call = Stepper::new(&time, server.call(request(&[(&EXPECTED_TIMEOUT, "250")])));
    assert!(call.poll().is_pending());
    assert_eq!(running.get(), 1);
    drop(call);
    assert_eq!((running.get(), time.sleepers()), (0, 0));
}

#[test]
fn calls_inside_give_up_in_time_and_the_handler_can_say_why() {
    let time = Manual::new();
    let retry = handle(unbounded(50), &time);
    let response = answer(&time, &layer(&time), request(&[(&EXPECTED_TIMEOUT, "100")]), async |_| {
        let gave_up = retry.run(async |_| Err::<(), _>(Busy(1))).await.unwrap_err();
        assert_eq!(gave_up.reason(), StopReason::DeadlineTooClose);
        Ok(Response::new(Full::<Bytes>::from("busy")))
    });
    assert_eq!((response.status(), text(&time, response.into_body())), (StatusCode::OK, "busy".to_owned()));
    assert!(time.elapsed() < ms(100));
}

#[test]
fn credit_comes_in_and_its_use_is_told() {
    let used = |granted: &str, attempts: u32, status: StatusCode| {
        let time = Manual::new();
        let retry = handle(unbounded(attempts), &time);
        let response = answer(&time, &layer(&time), request(&[(&ATTEMPTS, granted)]), async |_| {
            let _ = retry.run(async |_| Err::<(), _>(Busy(1))).await;
            let mut response = nothing();
            *response.status_mut() = status;
            Ok(response)
        });
        response.headers().get(ATTEMPTS).map(|used| used.to_str().unwrap().to_owned())
    };
    let used_when_failing = |granted, attempts| used(granted, attempts, StatusCode::BAD_GATEWAY);
    assert_eq!(used_when_failing("left=2", 5).as_deref(), Some("used=2"));
    assert_eq!(used_when_failing("left=2", 2).as_deref(), Some("used=1"));
    assert_eq!(used_when_failing("left=0", 5).as_deref(), Some("used=0"));
    assert_eq!(used("left=2", 1, StatusCode::OK).as_deref(), Some("used=0"));
    assert_eq!(used_when_failing("left=two", 5), None);
}

#[test]
fn what_was_used_is_told_of_a_handler_that_was_cut_off() {
    let time = Manual::new();
    let retry = handle(unbounded(2), &time);
    let fields = [(&ATTEMPTS, "left=3"), (&EXPECTED_TIMEOUT, "100")];
    let response: Answer<Full<Bytes>> = answer(&time, &layer(&time), request(&fields), async |_| {
        let _ = retry.run(async |_| Err::<(), _>(Busy(1))).await;
        pending().await
    });
    assert_eq!(
        (response.status(), response.headers()[ATTEMPTS].as_bytes()),
        (StatusCode::GATEWAY_TIMEOUT, &b"used=1"[..])
    );
}

/// So many bytes, one each so many milliseconds, and what the surroundings were at each poll.
struct Drip {
    time: Manual,
    left: u32,
    every: u64,
    sleep: Option<Pin<Box<ManualSleep>>>,
    seen: Rc<Cell<(Option<Duration>, Option<u32>)>>,
}

impl Drip {
    fn new(time: &Manual, left: u32, every: u64) -> Drip {
        Drip { time: time.clone(), left, every, sleep: None, seen: Rc::default() }
    }
}

impl Body for Drip {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.seen.set((left(&self.time), spend_all_credit()));
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let until = self.time.now() + ms(self.every);
        let time = self.time.clone();
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(time.sleep_until(until)));
        if sleep.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        self.sleep = None;
        self.left -= 1;
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b".")))))
    }
}

fn stream(
    time: &Manual,
    layer: &DeadlineLayer<Manual>,
    fields: &[(&HeaderName, &str)],
    body: Drip,
) -> DeadlineBody<Drip, Manual> {
    let body = Cell::new(Some(body));
    answer(time, layer, request(fields), |_| ready(Ok(Response::new(body.take().unwrap())))).into_body()
}

#[test]
fn a_body_in_time_streams_through_and_sees_what_the_handler_saw() {
    let time = Manual::new();
    let drip = Drip::new(&time, 4, 10);
    let seen = Rc::clone(&drip.seen);
    let body = stream(&time, &layer(&time), &[(&EXPECTED_TIMEOUT, "100"), (&ATTEMPTS, "left=2")], drip);
    assert_eq!(text(&time, body), "....");
    assert_eq!(seen.get().0, Some(ms(60)));
    assert_eq!(left(&time), None);
}

#[test]
fn what_nobody_would_hear_of_is_not_spent() {
    for (status, expected) in [(200, Some(2)), (404, Some(0))] {
        let time = Manual::new();
        let drip = Drip::new(&time, 0, 0);
        let (seen, drip) = (Rc::clone(&drip.seen), Cell::new(Some(drip)));
        let response = answer(&time, &layer(&time), request(&[(&ATTEMPTS, "left=2")]), |_| {
            ready(Ok(Response::builder().status(status).body(drip.take().unwrap()).unwrap()))
        });
        assert_eq!(response.headers()[ATTEMPTS], "used=0");
        assert_eq!(text(&time, response.into_body()), "");
        assert_eq!(seen.get().1, expected, "{status}");
    }
}

#[test]
fn a_body_breaks_off_when_the_time_is_up() {
    let time = Manual::new();
    let body = stream(&time, &layer(&time), &[(&EXPECTED_TIMEOUT, "35")], Drip::new(&time, 100, 10));
    let mut body = std::pin::pin!(body);
    for _ in 0..3 {
        assert!(time.run(body.frame()).unwrap().unwrap().is_data());
    }
    let error = time.run(body.frame()).unwrap().unwrap_err();
    assert!(error.downcast_ref::<DeadlineExceeded>().is_some_and(DeadlineExceeded::may_have_run));
    assert_eq!(time.elapsed(), ms(35));
    assert!(time.run(body.frame()).is_none() && time.sleepers() == 0);
}

#[test]
fn a_body_that_is_always_ready_breaks_off_too() {
    let time = Manual::new();
    let body = stream(&time, &layer(&time), &[(&EXPECTED_TIMEOUT, "35")], Drip::new(&time, 100, 0));
    let mut body = std::pin::pin!(body);
    assert!(time.run(body.frame()).unwrap().is_ok());
    time.advance(ms(35));
    assert!(time.run(body.frame()).unwrap().is_err());
}

#[test]
fn a_complete_body_is_handed_on_however_late() {
    let time = Manual::new();
    let response = answer(&time, &layer(&time), request(&[(&EXPECTED_TIMEOUT, "35")]), |_| {
        ready(Ok(Response::new(Full::<Bytes>::from("all of it"))))
    });
    time.advance(ms(100));
    assert_eq!(text(&time, response.into_body()), "all of it");
}

#[test]
fn a_grpc_stream_that_breaks_off_says_so_in_its_trailers() {
    let time = Manual::new();
    let body = stream(&time, &layer(&time), &[GRPC, (&GRPC_TIMEOUT, "15m")], Drip::new(&time, 100, 10));
    let whole = time.run(body.collect()).unwrap();
    assert_eq!(whole.trailers().unwrap()["grpc-status"], "4");
    assert_eq!(whole.to_bytes(), ".");
}

#[test]
fn a_body_may_outlast_a_time_that_means_the_head() {
    let time = Manual::new();
    let drip = Drip::new(&time, 10, 10);
    let body = stream(&time, &layer(&time).head_only(), &[(&EXPECTED_TIMEOUT, "35")], drip);
    assert_eq!((text(&time, body), time.elapsed()), ("..........".to_owned(), ms(100)));
}

#[test]
fn a_handler_s_error_stays_what_it_is() {
    let time = Manual::new();
    let mut server = layer(&time).layer(service_fn(async |_| Err::<Response<Full<Bytes>>, _>(Busy(7))));
    assert_eq!(time.run(server.call(request(&[(&EXPECTED_TIMEOUT, "35")]))).unwrap_err(), Busy(7));
}
