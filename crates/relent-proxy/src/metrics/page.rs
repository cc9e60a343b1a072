//! The counters as Prometheus reads them.

use std::fmt::{self, Write};
use std::time::UNIX_EPOCH;

use super::histogram::{Histogram, LABELS};
use super::{CAUSES, Count, Gauges, Metrics, OUTCOMES, REFUSED, STATUSES, STOPS, Target};

pub(super) fn render(metrics: &Metrics, gauges: &dyn Gauges) -> String {
    let mut page = String::with_capacity(16 * 1024);
    // Writing to a string does not fail.
    let _ = write_all(&mut page, metrics, gauges);
    page
}

fn write_all(page: &mut String, metrics: &Metrics, gauges: &dyn Gauges) -> fmt::Result {
    let mut page = Page { page, metrics };
    page.counters("calls", "Calls by what their clients were answered", "status", &STATUSES, |t| &t.calls)?;
    page.counters("attempts", "Attempts by what they came to", "outcome", &OUTCOMES, |t| &t.attempts)?;
    page.counters("retries", "Retries by what they followed", "reason", &CAUSES, |t| &t.retries)?;
    page.counter("free_repeats", "Repeats of what provably reached nobody", |t| &t.free_repeats)?;
    let stops = STOPS.map(|reason| reason.name());
    page.counters("stops", "Calls by why no further attempt was made", "reason", &stops, |t| &t.stops)?;
    page.counter("ambiguous_calls", "Calls that may have been executed without an answer", |t| &t.ambiguous)?;
    page.counter("broken_responses", "Responses that broke off after their head", |t| &t.broken)?;
    let exhausted = STOPS.iter().position(|reason| *reason == relent_core::StopReason::BudgetExhausted);
    page.counter("budget_refusals", "Retries that the budget refused", |t| {
        &t.stops[exhausted.expect("it is in the list")]
    })?;
    page.histogram("call_duration_seconds", "From a request's head to its response's end", |t| &t.call_time)?;
    page.histogram("attempt_duration_seconds", "From an attempt's launch to its outcome", |t| {
        &t.attempt_time
    })?;
    page.gauge("budget_balance", "Retries that the budget would grant now", |t| gauges.budget_balance(t))?;
    page.gauge("calls_waiting", "Calls that wait for a retry now", |t| Some(gauges.waiting(t).into()))?;
    page.gauge("replay_bytes", "Bytes kept for a repeat now", |t| Some(gauges.replay_bytes(t)))?;
    page.process(gauges)
}

struct Page<'a> {
    page: &'a mut String,
    metrics: &'a Metrics,
}

impl Page<'_> {
    fn head(&mut self, name: &str, help: &str, kind: &str) -> fmt::Result {
        writeln!(self.page, "# HELP relent_{name} {help}.\n# TYPE relent_{name} {kind}")
    }

    /// The labels of a target.
    fn labels(&self, target: usize) -> String {
        let names = &self.metrics.targets[target];
        format!("upstream=\"{}\",policy=\"{}\"", Escaped(&names.upstream), Escaped(&names.policy))
    }

    fn counters<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        values: &[&str; N],
        counts: impl Fn(&Target) -> &[Count; N],
    ) -> fmt::Result {
        self.head(&format!("{name}_total"), help, "counter")?;
        for target in 0..self.metrics.targets.len() {
            let labels = self.labels(target);
            for (place, value) in values.iter().enumerate() {
                let sum = self.metrics.sum(|shard| &counts(&shard.targets[target])[place]);
                writeln!(self.page, "relent_{name}_total{{{labels},{label}=\"{value}\"}} {sum}")?;
            }
        }
        Ok(())
    }

    fn counter(&mut self, name: &str, help: &str, count: impl Fn(&Target) -> &Count) -> fmt::Result {
        self.head(&format!("{name}_total"), help, "counter")?;
        for target in 0..self.metrics.targets.len() {
            let labels = self.labels(target);
            let sum = self.metrics.sum(|shard| count(&shard.targets[target]));
            writeln!(self.page, "relent_{name}_total{{{labels}}} {sum}")?;
        }
        Ok(())
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl Fn(usize) -> Option<u64>) -> fmt::Result {
        self.head(name, help, "gauge")?;
        for target in 0..self.metrics.targets.len() {
            if let Some(value) = value(target) {
                let labels = self.labels(target);
                writeln!(self.page, "relent_{name}{{{labels}}} {value}")?;
            }
        }
        Ok(())
    }

    fn histogram(&mut self, name: &str, help: &str, of: impl Fn(&Target) -> &Histogram) -> fmt::Result {
        self.head(name, help, "histogram")?;
        for target in 0..self.metrics.targets.len() {
            let labels = self.labels(target);
            let mut count = 0;
            for (place, bound) in LABELS.iter().chain(&["+Inf"]).enumerate() {
                count += self.metrics.sum(|shard| &of(&shard.targets[target]).buckets[place]);
                writeln!(self.page, "relent_{name}_bucket{{{labels},le=\"{bound}\"}} {count}")?;
            }
            let nanos = self.metrics.sum(|shard| &of(&shard.targets[target]).nanos);
            let (seconds, rest) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
            writeln!(self.page, "relent_{name}_sum{{{labels}}} {seconds}.{rest:09}")?;
            writeln!(self.page, "relent_{name}_count{{{labels}}} {count}")?;
        }
        Ok(())
    }

    /// What is not of a target.
    fn process(&mut self, gauges: &dyn Gauges) -> fmt::Result {
        self.head("refused_requests_total", "Requests that found no route, by the answer", "counter")?;
        for place in 0..=REFUSED.len() {
            let status = REFUSED.get(place).map_or("other".to_owned(), ToString::to_string);
            let sum = self.metrics.sum(|shard| &shard.refused[place]);
            writeln!(self.page, "relent_refused_requests_total{{status=\"{status}\"}} {sum}")?;
        }
        let opened = self.metrics.sum(|shard| &shard.connections_opened);
        let closed = self.metrics.sum(|shard| &shard.connections_closed);
        self.single("client_connections_total", "Connections of clients so far", "counter", opened)?;
        self.single(
            "client_connections",
            "Connections of clients now",
            "gauge",
            opened.saturating_sub(closed),
        )?;
        self.single(
            "requests_in_flight",
            "Requests in flight now",
            "gauge",
            gauges.requests_in_flight().into(),
        )?;
        let dropped = gauges.access_log_dropped();
        self.single(
            "access_log_dropped_total",
            "Lines that the access log could not take",
            "counter",
            dropped,
        )?;
        self.head("build_info", "The version of relent", "gauge")?;
        writeln!(self.page, "relent_build_info{{version=\"{}\"}} 1", env!("CARGO_PKG_VERSION"))?;
        let started = self.metrics.started.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        self.single("start_time_seconds", "When the proxy was started, since 1970", "gauge", started)
    }

    fn single(&mut self, name: &str, help: &str, kind: &str, value: u64) -> fmt::Result {
        self.head(name, help, kind)?;
        writeln!(self.page, "relent_{name} {value}")
    }
}

/// A label's value: backslash, quote and line feed are escaped.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for letter in self.0.chars() {
            match letter {
                '\\' => f.write_str("\\\\")?,
                '"' => f.write_str("\\\"")?,
                '\n' => f.write_str("\\n")?,
                letter => f.write_char(letter)?,
            }
        }
        Ok(())
    }
}
