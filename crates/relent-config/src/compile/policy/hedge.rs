//! `hedge = { … }` and `hold = …`.

use relent_core::{HedgeConfig, HedgeDelay, Hold, defaults};

use super::draft::Draft;
use super::handles::{field, note};
use crate::report::Report;
use crate::text::Item;

const FIELDS: [&str; 4] = ["delay", "quantile", "least", "most"];

const EXAMPLE: &str = "{ delay = \"80ms\" }, { quantile = 0.95 } or \"none\"";

pub(super) const HOLDS: [(&str, Hold); 2] = [("call", Hold::Call), ("target", Hold::Target)];

pub(super) fn read(draft: &mut Draft, item: &Item<'_>, report: &mut Report) -> Option<()> {
    if item.as_text() == Some("none") {
        return Some(());
    }
    let table = item.table("hedge", EXAMPLE, report)?;
    table.refuse_unknown(&FIELDS, &[], report);
    for (name, key) in [
        ("delay", "hedge.delay"),
        ("quantile", "hedge.quantile"),
        ("least", "hedge.delay"),
        ("most", "hedge.most"),
    ] {
        note(draft, &table, name, key);
    }
    let mut hedge = None;
    let mut good = field(&table, "delay", |item| {
        item.length(report).map(|delay| hedge = Some(HedgeConfig::after(delay)))
    });
    good &= field(&table, "quantile", |item| {
        item.ratio("0.95", report).map(|quantile| hedge = Some(HedgeConfig::at_quantile(quantile)))
    });
    match (table.item("delay"), table.item("quantile")) {
        (Some(_), Some(quantile)) => {
            quantile.refuse("a hedge has one delay", "leave out delay or quantile", report);
            return None;
        }
        (None, None) => {
            item.refuse("it does not say when a hedge starts", format!("write hedge = {EXAMPLE}"), report);
            return None;
        }
        _ => {}
    }
    let mut hedge = hedge?;
    good &= field(&table, "least", |item| {
        let least = item.length(report)?;
        if let HedgeDelay::After(_) = hedge.delay {
            item.refuse("it is the least of a measured delay", "leave it out, or take quantile", report);
            return None;
        }
        hedge = hedge.least(least);
        Some(())
    });
    hedge.most = defaults::HEDGES;
    good &= field(&table, "most", |item| item.whole("1", report).map(|most| hedge.most = most));
    draft.set(|builder| builder.hedge(hedge));
    good.then_some(())
}
