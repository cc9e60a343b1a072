//! The words around the figures: what is about to happen, what was seen, and what to do next.
//!
//! Every sentence follows from the figures it quotes; where a run comes out otherwise, it says otherwise.

use super::lane::Lane;
use super::measure::LaneReport;
use super::scenario::Scenario;
use super::table::recovered;
use crate::render::percent;

/// The width that paragraphs are set to.
const WIDTH: usize = 86;

/// What is about to happen.
pub(crate) fn opening(scenario: &Scenario) -> String {
    let setting = format!(
        "Four clients make the same {:.0} calls a second, {} of them payments (POST without an idempotency key), each to \
         a server of its own that can do {:.0} a second and goes on working for callers who gave up. {} of the requests \
         fail for ordinary reasons. From second {:.0} to {:.0} the servers have {} of their capacity, and {} of their \
         answers are lost after the work was done. An attempt may take {} ms.",
        scenario.rate,
        percent(scenario.payments),
        scenario.rate / scenario.utilisation(),
        percent(scenario.refused + scenario.lost),
        scenario.outage_from.as_secs_f64(),
        scenario.outage_to.as_secs_f64(),
        percent(scenario.outage_capacity),
        percent(scenario.lost_in_outage),
        scenario.attempt_timeout.as_millis(),
    );
    let lanes: String =
        Lane::ALL.iter().map(|lane| format!("  {:11} {}\n", lane.title(), lane.about())).collect();
    format!(
        "relent demo: what retries do to a struggling service ({:.0} s, on 127.0.0.1, seed {})\n\n{}\n{lanes}\n{}",
        scenario.length.as_secs_f64(),
        scenario.seed,
        wrap(&setting),
        wrap(
            "The two loops repeat whatever failed, payments too, as most such loops do. relent: all defaults, through \
             its HTTP layer; only the attempt timeout is the one that all lanes share."
        ),
    )
}

/// Three paragraphs: what was seen of the load, what of the payments, and what to do next.
pub(crate) fn closing(scenario: &Scenario, lanes: &[LaneReport]) -> String {
    let of = |lane: Lane| lanes.iter().find(|report| report.lane == lane);
    let mut paragraphs = Vec::new();
    if let [Some(none), Some(naive), Some(textbook), Some(relent)] = Lane::ALL.map(of) {
        paragraphs.push(loops(scenario, naive, textbook) + &budget(none, relent));
        paragraphs.push(payments(naive, textbook, relent));
    }
    paragraphs.push(NEXT.to_owned());
    paragraphs.iter().map(|paragraph| wrap(paragraph)).collect()
}

const NEXT: &str = "Next: `relent explain` shows what these defaults do, in numbers; `relent run -- COMMAND` retries a \
    command; the README has a function and an HTTP client. To have payments retried, send an Idempotency-Key that the \
    receiver honours, and say repeat = \"key-honoured\".";

fn loops(scenario: &Scenario, naive: &LaneReport, textbook: &LaneReport) -> String {
    let after = match (naive.recovery, textbook.recovery) {
        (None, None) => {
            let left = scenario.length.saturating_sub(scenario.outage_to).as_secs_f64();
            format!("neither was back when the run ended, {left:.0} s after the outage")
        }
        _ => format!("naive was {}, textbook was {}", back(naive), back(textbook)),
    };
    format!(
        "Load: in the outage naive sent {:.2} attempts a call and textbook {:.2}. More than {:.0} is over what a healthy \
         server can do: {after}, and {} of the run's work was for callers who had gone. ",
        naive.load_factor_outage,
        textbook.load_factor_outage,
        1.0 / scenario.utilisation(),
        percent((naive.wasted + textbook.wasted) / 2.0),
    )
}

fn budget(none: &LaneReport, relent: &LaneReport) -> String {
    format!(
        "relent sent {:.2}, its budget refused {} further retries, and it was {} (no retries: {}).",
        relent.load_factor_outage,
        relent.refused.by_budget,
        back(relent),
        back(none),
    )
}

fn back(report: &LaneReport) -> String {
    report.recovery.map_or_else(
        || "not back when the run ended".to_owned(),
        |_| format!("back {} after it", recovered(report.recovery)),
    )
}

fn payments(naive: &LaneReport, textbook: &LaneReport, relent: &LaneReport) -> String {
    let relents = match relent.executed_twice {
        0 => "relent none: it does not repeat a POST without a key that may have been executed".to_owned(),
        n => format!("relent {n}, which is a defect: please report it"),
    };
    format!(
        "Payments: naive executed {} twice, textbook {}, {relents}. {} whose answer was lost or late came back as \
         ambiguous errors (\"it may have taken effect\"), to be looked up, not as double charges.",
        naive.executed_twice, textbook.executed_twice, relent.ambiguous_payments
    )
}

/// One paragraph, set to [`WIDTH`].
fn wrap(text: &str) -> String {
    let mut lines = String::new();
    let mut width = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        if width > 0 && width + 1 + length > WIDTH {
            lines.push('\n');
            width = 0;
        } else if width > 0 {
            lines.push(' ');
            width += 1;
        }
        lines.push_str(word);
        width += length;
    }
    lines.push('\n');
    lines
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::demo::table::testing::reports;

    #[test]
    fn the_opening_names_the_sizes_of_the_run() {
        let text = opening(&Scenario::shown(7));
        assert!(text.starts_with(
            "relent demo: what retries do to a struggling service (40 s, on 127.0.0.1, seed 7)\n"
        ));
        let flat = text.replace('\n', " ");
        for part in [
            "the same 100 calls a second, 10 % of them payments",
            "that can do 200 a second",
            "2 % of the requests fail",
            "From second 10 to 20 the servers have 10 % of their capacity, and 5 % of their answers are lost",
            "An attempt may take 250 ms.",
            "textbook    3 tries, exponential waits",
        ] {
            assert!(flat.contains(part), "{part}: {text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
    }

    #[test]
    fn the_closing_quotes_the_figures() {
        let text = closing(&Scenario::shown(1), &reports());
        let flat = text.replace('\n', " ");
        for part in [
            "naive sent 2.83 attempts a call and textbook 2.81. More than 2 is over",
            "neither was back when the run ended, 20 s after the outage, and 81 % of the run's work was for callers who",
            "relent sent 1.09, its budget refused 1571 further retries, and it was back 8.2 s after it (no retries: back \
             7.6 s after it).",
            "naive executed 213 twice, textbook 201, relent none: it does not repeat a POST",
            "177 whose answer was lost or late came back as ambiguous errors",
        ] {
            assert!(flat.contains(part), "{part}: {text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
    }

    #[test]
    fn another_run_is_told_otherwise() {
        let mut reports = reports();
        reports[1].recovery = Some(Duration::from_secs(9));
        reports[3].executed_twice = 2;
        let flat = closing(&Scenario::shown(1), &reports).replace('\n', " ");
        assert!(
            flat.contains("naive was back 9.0 s after it, textbook was not back when the run ended"),
            "{flat}"
        );
        assert!(flat.contains("relent 2, which is a defect"), "{flat}");
    }
}
