//! The table of figures, and what its columns mean.

use std::time::Duration;

use super::measure::{LaneReport, RECOVERED, WINDOW};

/// One row a lane.
pub(crate) fn table(lanes: &[LaneReport]) -> String {
    let mut text = String::from(
        "                 success         answer after    load in    recovered           payments\n\
         \x20             calm   overall     p50      p99   outage     after               executed twice\n",
    );
    for lane in lanes {
        text.push_str(&row(lane));
    }
    text
}

/// The legend.
pub(crate) fn legend() -> String {
    format!(
        "calm: GETs well before the outage, and after the recovery. answer after: until the answer or the error\n\
         came, all calls. load: attempts by calls, both begun in the outage. recovered: from the outage's end on,\n\
         until {:.0} % of the calls of {} s succeed. executed twice: within the run.\n",
        RECOVERED * 100.0,
        WINDOW.as_secs()
    )
}

fn row(report: &LaneReport) -> String {
    format!(
        "{:10}{:>9}{:>9}{:>9}{:>9}{:>8.2}     {:<20}{}\n",
        report.lane.title(),
        share(report.success_calm),
        share(report.success),
        millis(report.p50),
        millis(report.p99),
        report.load_factor_outage,
        recovered(report.recovery),
        report.executed_twice,
    )
}

/// The moment of recovery as text.
pub(crate) fn recovered(after: Option<Duration>) -> String {
    after.map_or_else(|| "not within the run".to_owned(), |after| format!("{:.1} s", after.as_secs_f64()))
}

/// A share as text, with one decimal place so that they stand under each other; only all is 100 %.
fn share(share: f64) -> String {
    if share == 1.0 { "100 %".to_owned() } else { format!("{:.1} %", (share * 1000.0).floor() / 10.0) }
}

fn millis(length: Duration) -> String {
    format!("{:.0} ms", length.as_secs_f64() * 1000.0)
}

#[cfg(test)]
pub(super) mod testing {
    use super::*;
    use crate::demo::lane::Lane;
    use crate::demo::measure::Refused;

    /// Figures as a run gives them.
    pub(crate) fn reports() -> Vec<LaneReport> {
        let none = LaneReport {
            lane: Lane::None,
            calls: 4012,
            success: 0.5521,
            success_calm: 0.9812,
            load_factor: 1.0,
            load_factor_outage: 1.0,
            p50: Duration::from_micros(41_400),
            p99: Duration::from_micros(251_100),
            recovery: Some(Duration::from_millis(7_600)),
            executed_twice: 0,
            wasted: 0.25,
            refused: Refused::default(),
            ambiguous_payments: 0,
        };
        let naive = LaneReport {
            lane: Lane::Naive,
            success: 0.2511,
            success_calm: 0.9999,
            load_factor: 2.5,
            load_factor_outage: 2.83,
            p99: Duration::from_millis(752),
            recovery: None,
            executed_twice: 213,
            wasted: 0.81,
            ..none.clone()
        };
        let textbook = LaneReport {
            lane: Lane::Textbook,
            load_factor_outage: 2.81,
            executed_twice: 201,
            ..naive.clone()
        };
        let relent = LaneReport {
            lane: Lane::Relent,
            success: 0.5384,
            success_calm: 1.0,
            load_factor: 1.04,
            load_factor_outage: 1.09,
            recovery: Some(Duration::from_millis(8_200)),
            refused: Refused { by_budget: 1571, by_repeat_rule: 188, otherwise: 0 },
            ambiguous_payments: 177,
            ..none.clone()
        };
        vec![none, naive, textbook, relent]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table() {
        let expected = "                 \
                 success         answer after    load in    recovered           payments
              calm   overall     p50      p99   outage     after               executed twice
no retries   98.1 %   55.2 %    41 ms   251 ms    1.00     7.6 s               0
naive        99.9 %   25.1 %    41 ms   752 ms    2.83     not within the run  213
textbook     99.9 %   25.1 %    41 ms   752 ms    2.81     not within the run  201
relent        100 %   53.8 %    41 ms   251 ms    1.09     8.2 s               0
";
        assert_eq!(table(&testing::reports()), expected);
    }

    #[test]
    fn only_all_is_a_hundred_percent() {
        assert_eq!([1.0, 0.99999, 0.24, 0.0].map(share), ["100 %", "99.9 %", "24.0 %", "0.0 %"]);
    }
}
