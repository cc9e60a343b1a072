//! The figures for programs.

use std::time::Duration;

use serde::Serialize;

use super::measure::LaneReport;
use super::scenario::Scenario;

/// One JSON document.
pub(crate) fn json(scenario: &Scenario, lanes: &[LaneReport]) -> String {
    let document = Document {
        seed: scenario.seed,
        calls_per_second: scenario.rate,
        attempt_timeout_ms: millis(scenario.attempt_timeout),
        run_s: seconds(scenario.length),
        outage_from_s: seconds(scenario.outage_from),
        outage_to_s: seconds(scenario.outage_to),
        lanes: lanes.iter().map(Lane::of).collect(),
    };
    let text = serde_json::to_string_pretty(&document).expect("numbers and fixed names always serialise");
    format!("{text}\n")
}

#[derive(Debug, Serialize)]
struct Document {
    seed: u64,
    calls_per_second: f64,
    attempt_timeout_ms: f64,
    run_s: f64,
    outage_from_s: f64,
    outage_to_s: f64,
    lanes: Vec<Lane>,
}

#[derive(Debug, Serialize)]
struct Lane {
    name: &'static str,
    calls: usize,
    success: f64,
    success_calm: f64,
    load_factor: f64,
    load_factor_outage: f64,
    p50_ms: f64,
    p99_ms: f64,
    recovery_s: Option<f64>,
    executed_twice: usize,
    refused_retries: usize,
    ambiguous_payments: usize,
    wasted_work: f64,
}

impl Lane {
    fn of(report: &LaneReport) -> Lane {
        Lane {
            name: report.lane.name(),
            calls: report.calls,
            success: rounded(report.success, 1e5),
            success_calm: rounded(report.success_calm, 1e5),
            load_factor: rounded(report.load_factor, 1e4),
            load_factor_outage: rounded(report.load_factor_outage, 1e4),
            p50_ms: millis(report.p50),
            p99_ms: millis(report.p99),
            recovery_s: report.recovery.map(seconds),
            executed_twice: report.executed_twice,
            refused_retries: report.refused.total(),
            ambiguous_payments: report.ambiguous_payments,
            wasted_work: rounded(report.wasted, 1e4),
        }
    }
}

fn rounded(number: f64, steps: f64) -> f64 {
    (number * steps).round() / steps
}

fn millis(length: Duration) -> f64 {
    rounded(length.as_secs_f64() * 1000.0, 10.0)
}

fn seconds(length: Duration) -> f64 {
    rounded(length.as_secs_f64(), 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::table::testing::reports;

    #[test]
    fn a_document() {
        let text = json(&Scenario::shown(7), &reports());
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&value["seed"], &value["calls_per_second"]), (&7.into(), &100.0.into()));
        let names: Vec<&str> =
            value["lanes"].as_array().unwrap().iter().map(|l| l["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["none", "naive", "textbook", "relent"]);
        let relent = serde_json::json!({
            "name": "relent", "calls": 4012, "success": 0.5384, "success_calm": 1.0, "load_factor": 1.04,
            "load_factor_outage": 1.09, "p50_ms": 41.4, "p99_ms": 251.1, "recovery_s": 8.2, "executed_twice": 0,
            "refused_retries": 1759, "ambiguous_payments": 177, "wasted_work": 0.25,
        });
        assert_eq!(value["lanes"][3], relent);
        assert!(value["lanes"][1]["recovery_s"].is_null());
    }
}
