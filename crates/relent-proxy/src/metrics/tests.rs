use std::time::Duration;

use super::*;

struct Now;

impl Gauges for Now {
    fn budget_balance(&self, _target: usize) -> Option<u64> {
        Some(3)
    }

    fn waiting(&self, _target: usize) -> u32 {
        2
    }

    fn replay_bytes(&self, _target: usize) -> u64 {
        1
    }

    fn requests_in_flight(&self) -> u32 {
        7
    }

    fn access_log_dropped(&self) -> u64 {
        0
    }
}

fn call(status: u16, stop: StopReason) -> facts::Call {
    facts::Call {
        target: Some(0),
        status,
        took: Duration::from_micros(1_500),
        attempts: 2,
        stop: Some(stop),
        ambiguous: true,
        broken: false,
    }
}

#[test]
fn workers_are_added_up() {
    let names = TargetNames { upstream: "a\"b".to_owned(), policy: "p".to_owned() };
    let metrics = Metrics::new(vec![names], 2);
    metrics.shard(0).call_ended(&call(200, StopReason::Succeeded));
    metrics.shard(1).call_ended(&call(503, StopReason::BudgetExhausted));
    metrics.shard(1).call_ended(&call(499, StopReason::Cancelled));
    metrics.shard(1).refused(431);
    metrics.shard(0).refused(418);
    metrics.shard(0).retry(0, Cause::Status(503));
    let page = metrics.render(&Now);
    let target = "upstream=\"a\\\"b\",policy=\"p\"";
    for line in [
        format!("relent_calls_total{{{target},status=\"2xx\"}} 1"),
        format!("relent_calls_total{{{target},status=\"5xx\"}} 1"),
        format!("relent_calls_total{{{target},status=\"gone\"}} 1"),
        format!("relent_stops_total{{{target},reason=\"BudgetExhausted\"}} 1"),
        format!("relent_budget_refusals_total{{{target}}} 1"),
        format!("relent_ambiguous_calls_total{{{target}}} 3"),
        format!("relent_retries_total{{{target},reason=\"503\"}} 1"),
        format!("relent_call_duration_seconds_bucket{{{target},le=\"0.001\"}} 0"),
        format!("relent_call_duration_seconds_bucket{{{target},le=\"0.0025\"}} 3"),
        format!("relent_call_duration_seconds_bucket{{{target},le=\"+Inf\"}} 3"),
        format!("relent_call_duration_seconds_sum{{{target}}} 0.004500000"),
        format!("relent_call_duration_seconds_count{{{target}}} 3"),
        format!("relent_budget_balance{{{target}}} 3"),
        "relent_refused_requests_total{status=\"431\"} 1".to_owned(),
        "relent_refused_requests_total{status=\"other\"} 1".to_owned(),
        "relent_requests_in_flight 7".to_owned(),
    ] {
        assert!(page.lines().any(|own| own == line), "{line} is not in\n{page}");
    }
}

/// Exposition format 0.0.4: each family has one HELP and one TYPE, before its samples, and its samples stand together.
#[test]
fn the_page_is_well_formed() {
    let names = |upstream: &str| TargetNames { upstream: upstream.to_owned(), policy: "p".to_owned() };
    let page = Metrics::new(vec![names("a"), names("b")], 1).render(&Now);
    let mut families: Vec<&str> = Vec::new();
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let family = rest.split(' ').next().unwrap();
            assert!(!families.contains(&family), "{family} comes twice");
            families.push(family);
        } else if !line.starts_with('#') {
            let (name, value) = line.rsplit_once(' ').unwrap();
            let name = name.split('{').next().unwrap();
            let family = families.last().unwrap();
            assert!(name.starts_with(family), "{name} under {family}");
            assert!(value.parse::<f64>().is_ok(), "{line}");
        }
    }
    assert!(families.len() > 15);
}
