//! What is told of a handle's calls: the snapshot, `metrics`, `tracing` events and spans.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use metrics::{
    Counter, CounterFn, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit,
};
use relent::timer::{Clock, Manual, Timer};
use relent::{BreakerState, ClassicConfig, HedgeConfig, PolicyBuilder, Retry, StopReason, Verdict, observe};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};

use crate::rig::{Busy, ms, unbounded};

fn handle(policy: PolicyBuilder, time: &Manual) -> Retry<relent::Standard, Manual> {
    Retry::with_timer(policy.build().unwrap(), time.clone())
}

/// One call that recovers, one that gives up, and one that is hedged.
fn three_calls<T: Fn(Retry<relent::Standard, Manual>) -> Retry<relent::Standard, Manual>>(told: T) -> String {
    let time = Manual::new();
    let policy =
        unbounded(2).hedge(HedgeConfig::after(ms(50))).breaker(ClassicConfig::new().consecutive_failures(3));
    let retry = told(handle(policy, &time)).classify(|_: &Busy| Verdict::Transient);
    let recovers = time
        .run(retry.run(|attempt| std::future::ready(if attempt.is_retry() { Ok(()) } else { Err(Busy(1)) })));
    assert!(recovers.is_ok());
    let hedged = time.run(retry.run(|attempt| {
        let time = time.clone();
        async move {
            time.sleep_until(time.now() + if attempt.is_retry() { ms(1) } else { ms(500) }).await;
            Ok::<_, Busy>(())
        }
    }));
    assert!(hedged.is_ok());
    for _ in 0..2 {
        assert!(time.run(retry.run(async |_| Err::<(), _>(Busy(1)))).is_err());
    }
    let seen = retry.snapshot();
    assert_eq!((seen.recovered, seen.hedges, seen.retries, seen.failed_attempts), (2, 1, 2, 4));
    assert_eq!(seen.breaker, Some(BreakerState::Open));
    assert_eq!(seen.stops, [(StopReason::AttemptsExhausted, 1), (StopReason::BreakerOpen, 1)]);
    seen.to_string()
}

#[test]
fn the_snapshot_counts_what_was_not_silent_and_prints_as_a_table() {
    let table = three_calls(|retry| retry.named("shop"));
    assert_eq!(
        table,
        "handle                  shop\n\
         failed attempts         4\n\
         retries                 2\n\
         recovered               2\n\
         hedges                  1\n\
         hedges refused          0\n\
         ambiguous               0\n\
         waiting                 0\n\
         stop AttemptsExhausted  1\n\
         stop BreakerOpen        1\n\
         breaker                 open\n"
    );
}

#[test]
fn metrics_are_counted_under_the_handles_name() {
    let counted = Counted::default();
    metrics::with_local_recorder(&counted, || three_calls(|retry| retry.metered("shop")));
    let counts = counted.0.lock().unwrap();
    let of = |name: &str| counts.get(name).copied();
    assert_eq!(of("relent_attempts_failed_total cause=other handle=shop verdict=transient"), Some(4.0));
    assert_eq!(of("relent_retries_total handle=shop"), Some(2.0));
    assert_eq!(of("relent_recovered_calls_total handle=shop"), Some(2.0));
    assert_eq!(of("relent_hedges_total handle=shop"), Some(1.0));
    assert_eq!(of("relent_stops_total handle=shop reason=BreakerOpen"), Some(1.0));
    assert_eq!(of("relent_breaker_changes_total handle=shop to=open"), Some(1.0));
    assert_eq!(of("relent_wait_seconds handle=shop"), Some(0.02));
}

#[test]
fn every_name_of_a_metric_is_on_its_page() {
    let page = include_str!("../../../../docs/observability.md");
    let code = include_str!("../../src/observe/meter.rs");
    let names: Vec<_> = code.split('"').filter(|word| word.starts_with("relent_")).collect();
    assert!(names.len() > 7);
    for name in names {
        assert!(page.contains(&format!("`{name}`")), "{name} is not on the page");
    }
}

#[test]
fn tracing_events_have_the_facts_and_no_words_of_errors() {
    let log = Log::default();
    tracing::subscriber::with_default(log.clone(), || three_calls(|retry| retry.named("shop").traced()));
    let log = log.0.lock().unwrap();
    let with =
        |words: &[&str]| log.iter().filter(|line| words.iter().all(|word| line.contains(word))).count();
    assert_eq!(with(&["DEBUG", "handle=shop", "attempt=1", "cause=other"]), 3);
    assert_eq!(with(&["WARN", "handle=shop", "reason=BreakerOpen", "attempts=1"]), 1);
    assert_eq!(with(&["WARN", "from=closed", "to=open", "why=consecutive-failures"]), 1);
    assert_eq!(with(&["busy"]), 0, "what an error says of itself is not told");
}

#[test]
fn every_attempt_has_a_span_under_the_calls_own() {
    let (time, log) = (Manual::new(), Log::default());
    let retry = handle(unbounded(3), &time).classify(|_: &Busy| Verdict::Transient);
    tracing::subscriber::with_default(log.clone(), || {
        let _call = tracing::info_span!("call").entered();
        let operation = observe::spans("tea", |attempt| async move {
            tracing::info!("in attempt {}", attempt.number());
            if attempt.number() < 3 { Err(Busy(1)) } else { Ok(()) }
        });
        assert!(time.run(retry.run(operation)).is_ok());
    });
    let log = log.0.lock().unwrap();
    let spans: Vec<_> = log.iter().filter(|line| line.starts_with("span attempt")).collect();
    assert_eq!(spans.len(), 3);
    assert!(spans.iter().all(|span| span.contains("in call") && span.contains("operation=tea")));
    let resent: Vec<_> = log.iter().filter(|line| line.starts_with("record")).map(String::as_str).collect();
    assert_eq!(
        resent,
        ["record attempt http.request.resend_count=1", "record attempt http.request.resend_count=2"]
    );
    assert_eq!(
        log.iter().filter(|line| line.contains("in attempt") && line.ends_with("inside attempt")).count(),
        3
    );
}

#[cfg(feature = "http")]
#[test]
fn every_http_attempt_has_a_client_span() {
    use bytes::Bytes;
    use http::{Request, Response};
    use http_body_util::Full;
    use relent::http::HttpRetryLayer;
    use tower::{Layer, Service, service_fn};

    let (time, log) = (Manual::new(), Log::default());
    let answers = Arc::new(Mutex::new(vec![200_u16, 503]));
    let client = service_fn(move |_: Request<relent::http::ReplayBody<Full<Bytes>>>| {
        let status = answers.lock().unwrap().pop().unwrap();
        let response = Response::builder().status(status).body(Full::<Bytes>::default());
        std::future::ready(Ok::<_, std::io::Error>(response.unwrap()))
    });
    let stack = HttpRetryLayer::new(handle(unbounded(3), &time));
    let mut service = stack.layer(observe::AttemptSpanLayer::new().layer(client));
    let request = Request::get("http://shop.example/price?secret=1").body(Full::<Bytes>::default()).unwrap();
    let answer = tracing::subscriber::with_default(log.clone(), || time.run(service.call(request)));
    assert_eq!(answer.unwrap().status(), 200);
    let log = log.0.lock().unwrap();
    let spans: Vec<_> = log.iter().filter(|line| line.starts_with("span HTTP")).collect();
    assert_eq!(spans.len(), 2);
    assert!(spans[0].contains("http.request.method=GET") && spans[0].contains("server.address=shop.example"));
    assert!(!log.iter().any(|line| line.contains("secret")));
    let recorded: Vec<_> = log.iter().filter(|line| line.starts_with("record")).map(String::as_str).collect();
    assert_eq!(
        recorded,
        [
            "record HTTP http.response.status_code=503",
            "record HTTP http.request.resend_count=1",
            "record HTTP http.response.status_code=200"
        ]
    );
}

/// What was counted, by name and labels.
#[derive(Default)]
struct Counted(Arc<Mutex<BTreeMap<String, f64>>>);

struct Cell(Arc<Mutex<BTreeMap<String, f64>>>, String);

impl Cell {
    fn add(&self, value: f64) {
        *self.0.lock().unwrap().entry(self.1.clone()).or_default() += value;
    }
}

impl CounterFn for Cell {
    fn increment(&self, value: u64) {
        self.add(value as f64);
    }

    fn absolute(&self, _value: u64) {}
}

impl HistogramFn for Cell {
    fn record(&self, value: f64) {
        self.add(value);
    }
}

impl Counted {
    fn cell(&self, key: &Key) -> Arc<Cell> {
        let mut labels: Vec<_> =
            key.labels().map(|label| format!(" {}={}", label.key(), label.value())).collect();
        labels.sort();
        Arc::new(Cell(Arc::clone(&self.0), format!("{}{}", key.name(), labels.concat())))
    }
}

impl Recorder for Counted {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.cell(key))
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.cell(key))
    }
}

/// A subscriber that writes lines.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>, Arc<Mutex<Spans>>);

#[derive(Default)]
struct Spans {
    metadata: Vec<&'static tracing::Metadata<'static>>,
    entered: Vec<u64>,
}

#[derive(Default)]
struct Fields(String);

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0 += &format!(" {}={value}", field.name());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0 += &format!(" {}={value:?}", field.name());
    }
}

impl Log {
    fn write(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }

    fn name(&self, id: u64) -> &'static str {
        self.1.lock().unwrap().metadata[id as usize - 1].name()
    }
}

impl Subscriber for Log {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let (id, current) = {
            let mut spans = self.1.lock().unwrap();
            spans.metadata.push(attributes.metadata());
            (spans.metadata.len() as u64, spans.entered.last().copied())
        };
        let parent = attributes
            .parent()
            .map(|parent| parent.into_u64())
            .or(current.filter(|_| attributes.is_contextual()));
        let parent = parent.map_or("nothing", |parent| self.name(parent));
        self.write(format!("span {} in {parent}{}", attributes.metadata().name(), fields.0));
        Id::from_u64(id)
    }

    fn record(&self, id: &Id, record: &Record<'_>) {
        let mut fields = Fields::default();
        record.record(&mut fields);
        self.write(format!("record {}{}", self.name(id.into_u64()), fields.0));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let inside = self.1.lock().unwrap().entered.last().copied();
        let inside = inside.map_or(String::new(), |id| format!(" inside {}", self.name(id)));
        self.write(format!("{}{}{inside}", event.metadata().level(), fields.0));
    }

    fn enter(&self, id: &Id) {
        self.1.lock().unwrap().entered.push(id.into_u64());
    }

    fn exit(&self, _: &Id) {
        self.1.lock().unwrap().entered.pop();
    }

    fn current_span(&self) -> tracing_core::span::Current {
        let spans = self.1.lock().unwrap();
        match spans.entered.last() {
            Some(id) => tracing_core::span::Current::new(Id::from_u64(*id), spans.metadata[*id as usize - 1]),
            None => tracing_core::span::Current::none(),
        }
    }
}
