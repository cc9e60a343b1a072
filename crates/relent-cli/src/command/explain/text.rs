//! The report in words and tables, for people.

use std::io::{self, Write};

use relent_core::Ratio;

use super::budget::BudgetFacts;
use super::load::{Fleet, Load};
use super::report::{BreakerFacts, Facts, Report, Row};
use super::totals::Outlook;
use crate::render::{Paint, decimal, length, percent, rough, table};

/// Writes the whole report.
pub(super) fn write(report: &Report, out: &mut dyn Write, paint: Paint) -> io::Result<()> {
    let sections = [
        (format!("Policy: {}", report.policy.source), policy(&report.policy)),
        ("Waits".into(), waits(report)),
        ("Time, if every attempt fails".into(), totals(report)),
        ("Load factor: requests per call".into(), load(report)),
        ("Retried".into(), matrix(report)),
        ("Not retried".into(), report.retried.never.iter().map(|line| format!("  {line}")).collect()),
        ("Budget".into(), budget(report)),
    ];
    let breaker = report.breaker.map(|breaker| ("Breaker".to_owned(), self::breaker(&breaker)));
    let fleet = report.fleet.as_ref().map(|fleet| (fleet_title(fleet), fleet_lines(fleet, report)));
    for (n, (title, lines)) in sections.into_iter().chain(breaker).chain(fleet).enumerate() {
        if n > 0 {
            writeln!(out)?;
        }
        writeln!(out, "{}", paint.strong(&title))?;
        for line in lines {
            writeln!(out, "{line}")?;
        }
    }
    for (n, warning) in report.warnings.iter().enumerate() {
        if n == 0 {
            writeln!(out)?;
        }
        writeln!(out, "{} {warning}", paint.warning("warning:"))?;
    }
    Ok(())
}

fn policy(facts: &Facts) -> Vec<String> {
    let plural = if facts.attempts == 1 { "" } else { "s" };
    let each = facts
        .attempt_timeout
        .map_or("no attempt timeout".into(), |timeout| format!("{} for each", length(timeout)));
    let whole = facts
        .deadline
        .map_or("no deadline".into(), |deadline| format!("{} for the whole call", length(deadline)));
    let floor =
        if facts.floor.is_zero() { String::new() } else { format!(", never under {}", length(facts.floor)) };
    let nested = match facts.nested {
        "pass-through" => "relent layers below get no attempts of their own: retries happen here only",
        "allow" => "layers below are told nothing: their attempts multiply with these",
        _ => {
            "relent layers above and below share these attempts: three layers of three make 3 requests, not 27"
        }
    };
    let last = facts
        .give_up_after
        .map(|time| format!("; none starts later than {} after the first failure", length(time)));
    let last = last.unwrap_or_default();
    vec![
        format!("  {} attempt{plural} in all; {each}, {whole}{last}", facts.attempts),
        format!("  waits {}, up to {}{floor}; jitter {}", growing(facts), length(facts.cap), facts.jitter),
        format!("  {nested}"),
    ]
}

/// From where on a wait grows, and how.
fn growing(facts: &Facts) -> String {
    let base = length(facts.base);
    match facts.growth.law {
        "exponential" => format!("from {base}, times {} each", facts.multiplier),
        "linear" => format!("from {base}, and as much more each"),
        "fibonacci" => format!("of {base} times 1, 1, 2, 3, 5 and so on"),
        _ => format!("of {}", facts.growth.steps.join(", ")),
    }
}

fn waits(report: &Report) -> Vec<String> {
    let mut rows =
        vec![["attempt", "by the curve", "drawn from", "mean", "at the cap", ""].map(String::from).to_vec()];
    let listed = &report.attempts;
    let last = report.policy.attempts;
    for (n, row) in listed.iter().enumerate() {
        // From here on all is the same: one line says it.
        let alike = row.steady
            && last - row.attempt >= 2
            && row.within_deadline == listed[listed.len() - 1].within_deadline;
        let number = if alike { format!("{}..{last}", row.attempt) } else { row.attempt.to_string() };
        rows.push(wait(row, number, n == 0));
        if alike {
            break;
        }
    }
    let unlisted = listed.len() < last as usize && !rows[rows.len() - 1][0].contains("..");
    let mut lines = table(&rows, &[true, true, false, true, true, false]);
    if unlisted {
        lines.push(format!("  and so on, up to attempt {last}"));
    }
    let sum = &report.waits;
    lines.push(format!(
        "  all waits together: {} by the curve, {} expected, {} at most",
        length(sum.unjittered),
        rough(sum.expected),
        length(sum.worst)
    ));
    lines.extend(late(report));
    lines
}

fn wait(row: &Row, number: String, first: bool) -> Vec<String> {
    if first {
        return vec![number, "-".into(), "no wait".into()];
    }
    let drawn = if row.min == row.max {
        length(row.max)
    } else {
        format!("{} to {}", length(row.min), length(row.max))
    };
    let late = if row.within_deadline { "" } else { "after the deadline" };
    vec![number, length(row.wait), drawn, rough(row.mean), percent(row.probability_at_cap), late.into()]
}

/// Where the curve runs into the deadline.
fn late(report: &Report) -> Option<String> {
    let deadline = report.policy.deadline?;
    let row = report.attempts.iter().find(|row| !row.within_deadline)?;
    Some(format!(
        "  by the curve attempt {} would start at {}; the deadline of {} ends the call after attempt {}",
        row.attempt,
        length(row.starts),
        length(deadline),
        row.attempt - 1
    ))
}

fn totals(report: &Report) -> Vec<String> {
    let mut rows = vec![["", "expected", "at most", "attempts"].map(String::from).to_vec()];
    rows.push(total("at once", &report.total.fails_at_once));
    if let (Some(outlook), Some(timeout)) = (&report.total.times_out, report.policy.attempt_timeout) {
        rows.push(total(&format!("by its timeout of {}", length(timeout)), outlook));
    }
    let mut lines = table(&rows, &[false, true, true, false]);
    if report.policy.attempt_timeout.is_none() {
        lines.push(match report.policy.deadline {
            Some(deadline) => format!("  if it never answers: {}, the deadline", length(deadline)),
            None => {
                "  if it never answers: for ever, since there is neither attempt timeout nor deadline".into()
            }
        });
    }
    lines
}

fn total(name: &str, outlook: &Outlook) -> Vec<String> {
    let attempts = if outlook.fewest == outlook.most {
        outlook.most.to_string()
    } else {
        format!("{} to {}", outlook.fewest, outlook.most)
    };
    let cut = if outlook.cut { format!("{attempts}, cut by the deadline") } else { attempts };
    vec![name.into(), rough(outlook.expected), length(outlook.worst), cut]
}

fn load(report: &Report) -> Vec<String> {
    let factor = report.load_factor;
    let (while_paid, outage) = match &report.budget {
        Some(BudgetFacts::Ratio { deposit: "success", .. }) => {
            ("while share and reserve last", "once they are spent")
        }
        Some(BudgetFacts::Ratio { .. }) => {
            ("while share and reserve last", "once they are spent, since every request deposits")
        }
        Some(BudgetFacts::Windowed { .. }) => {
            ("while they last", "of a busy caller, since every request deposits; so many a second besides")
        }
        Some(BudgetFacts::Adaptive { .. }) => {
            ("while enough is accepted", "once what was accepted is forgotten: hardly any is granted")
        }
        Some(BudgetFacts::Throttle { .. } | BudgetFacts::Cost { .. }) => {
            ("while the bucket lasts", "once it is spent")
        }
        Some(BudgetFacts::Concurrency { .. }) => (
            "of one call, while there is room",
            "it depends on how long attempts take: fast failures are retried one after another",
        ),
        None => ("nothing bounds it but the attempts", "nothing bounds it but the attempts"),
    };
    let sustained = match &report.budget {
        Some(BudgetFacts::Concurrency { .. }) => "it depends on how long attempts take",
        Some(BudgetFacts::Cost { .. }) => "at the second attempt, whose price comes back",
        Some(_) => "of a busy caller, in the long run",
        None => while_paid,
    };
    let line = |name: &str, factor: Option<f64>, why: &str| {
        vec![name.into(), factor.map_or("?".into(), |factor| decimal(factor, 4)), why.to_owned()]
    };
    let rows = [
        line("at worst", Some(factor.worst), while_paid),
        line("while calls succeed in the end", factor.sustained, sustained),
        line("in a long outage", factor.outage, outage),
    ];
    table(&rows, &[false, true, false])
}

fn matrix(report: &Report) -> Vec<String> {
    let mut rows = vec![
        ["", "GET HEAD OPTIONS", "POST PATCH", "POST PATCH with"].map(String::from).to_vec(),
        ["", "TRACE PUT DELETE", "", "Idempotency-Key"].map(String::from).to_vec(),
    ];
    for row in &report.retried.rows {
        let answers = [row.idempotent, row.other, row.with_key].map(|answer| answer.words().to_owned());
        rows.push([vec![row.failure.clone()], answers.to_vec()].concat());
    }
    let mut lines = table(&rows, &[false; 4]);
    lines.push(format!("  repeat = \"{}\"", report.policy.repeat));
    lines
}

fn budget(report: &Report) -> Vec<String> {
    let none = || vec!["  none: the attempts alone bound the retries".into()];
    report.budget.as_ref().map_or_else(none, BudgetFacts::lines)
}

fn breaker(breaker: &BreakerFacts) -> Vec<String> {
    match *breaker {
        BreakerFacts::RetriesOnly { failure_rate, window, minimum_calls } => vec![format!(
            "  Retries are refused while {} of the attempts in the last {} fail, once there are {}; first tries always go.",
            percent(share(failure_rate)),
            length(window),
            minimum_calls
        )],
        BreakerFacts::Classic { .. } => classic(breaker),
    }
}

fn classic(breaker: &BreakerFacts) -> Vec<String> {
    let &BreakerFacts::Classic {
        failure_rate,
        slow_call,
        slow_call_rate,
        consecutive_failures,
        window,
        calls,
        minimum_calls,
        open_for,
        open_cap,
        probes,
    } = breaker
    else {
        return Vec::new();
    };
    let over = match (window, calls) {
        (Some(window), _) => format!("of the attempts in the last {}", length(window)),
        (None, calls) => format!("of the last {} attempts", calls.unwrap_or(0)),
    };
    let mut lines = Vec::new();
    if let Some(rate) = failure_rate {
        lines.push(format!(
            "  Opens when {} {over} fail, once there are {minimum_calls}.",
            percent(share(rate))
        ));
    }
    if let Some(limit) = slow_call {
        let rate = percent(share(slow_call_rate));
        lines.push(format!(
            "  Opens when {rate} {over} take {} or longer, once there are {minimum_calls}.",
            length(limit)
        ));
    }
    if let Some(failures) = consecutive_failures {
        lines.push(format!("  Opens after {failures} failures in a row."));
    }
    lines.push(format!(
        "  Open, it refuses everything for {} (up to {} when its probes fail); then {probes} good probes close it.",
        length(open_for),
        length(open_cap)
    ));
    lines
}

fn share(ratio: Ratio) -> f64 {
    f64::from(ratio.parts_per_million()) / 1e6
}

fn fleet_title(fleet: &Fleet) -> String {
    let all = fleet.rps * f64::from(fleet.processes);
    format!(
        "Fleet: {} processes with {} calls/s each, {} calls/s in all",
        fleet.processes,
        decimal(fleet.rps, 4),
        decimal(all, 4)
    )
}

fn fleet_lines(fleet: &Fleet, report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    let window = fleet.window.map(length);
    if report.budget.is_some() {
        let (share, reserve) = fleet.tokens_in_all();
        lines.push(format!("  share when an outage begins: {} per process, {share} in all", fleet.share));
        lines.push(format!("  reserve: {} per process, {reserve} in all", fleet.reserve));
    }
    let row =
        |name: String, load: Load| vec![name, decimal(load.retries_per_second, 1), decimal(load.factor, 3)];
    let first =
        window.map_or("first window, at most".into(), |window| format!("first window ({window}), at most"));
    let rows = [
        ["in a total outage", "retries/s", "load factor"].map(String::from).to_vec(),
        row("peak second, at most".into(), fleet.peak_second),
        row(first, fleet.first_window),
        row("after it".into(), fleet.after),
    ];
    lines.extend(table(&rows, &[false, true, true]));
    lines.push(match (&report.budget, fleet.spent_after) {
        (Some(BudgetFacts::Windowed { .. }), _) => {
            "  after it: what calls deposit, and so many a second of each process, as long as the outage"
                .into()
        }
        (_, Some(after)) => format!(
            "  after it: share and reserve are spent {} into the outage, if every call takes what it may",
            length(after)
        ),
        (_, None) => "  without a budget the retries go on as long as the outage".into(),
    });
    lines
}
