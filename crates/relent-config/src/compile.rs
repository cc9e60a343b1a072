//! From text to what is valid: policies, and facts about listeners, upstreams and routes.
//!
//! Everything is read, whatever is wrong elsewhere, so that one run names all faults. The values that come out are used
//! only if there was none.

mod policy;
mod proxy;
mod route;
mod upstream;

use std::collections::BTreeMap;
use std::ops::Range;

use toml::de::DeTable;

use crate::quoted::named;
use crate::report::{Fault, Report};
use crate::text::{Item, Table};
use crate::{Config, Route};

/// The tables and fields of a file.
const FIELDS: [&str; 5] = ["version", "proxy", "policy", "upstream", "route"];

/// The only version of the file's shape.
const VERSION: i128 = 1;

/// The most tables of one kind.
const MOST: usize = 1000;

/// Where the fields of each policy are set.
pub(crate) type Spans = BTreeMap<String, Vec<(&'static str, Range<usize>)>>;

/// Reads the whole document, and where the fields of its policies are set.
pub(crate) fn compile(root: &DeTable<'_>, report: &mut Report) -> (Config, Spans) {
    let root = Table::new(root, 0..0, "the file");
    if check_version(&root, report).is_none() {
        // The fields of another version are unknown here: only their number would be told.
        return (Config::default(), Spans::new());
    }
    root.refuse_unknown(&FIELDS, &[], report);
    let policies = named_tables(&root, "policy", "[policy.api]", report);
    let upstreams = named_tables(&root, "upstream", "[upstream.api]", report);
    let names = route::Names { policies: &policies, upstreams: &upstreams };
    let proxy = root.item("proxy").and_then(|item| proxy::read(&item, report));
    let routes = route::read_all(&root, &names, report);
    let listen = proxy.as_ref().map(|proxy| proxy.listen);
    let read = read_each(&policies, |table| policy::read(table, report));
    let spans: Spans = read.iter().map(|(name, (_, spans))| (name.clone(), spans.clone())).collect();
    let config = Config {
        policies: read.into_iter().map(|(name, (policy, _))| (name, policy)).collect(),
        upstreams: read_each(&upstreams, |table| upstream::read(table, listen, report)),
        proxy,
        routes,
        origins: BTreeMap::new(),
    };
    check_proxy_and_routes(&root, &config.routes, report);
    refuse_hedges(&config, &spans, report);
    (config, spans)
}

/// The named tables under `kind`, by name.
type Named<'t> = BTreeMap<&'t str, Table<'t>>;

fn read_each<T>(tables: &Named<'_>, mut read: impl FnMut(&Table<'_>) -> Option<T>) -> BTreeMap<String, T> {
    tables.iter().filter_map(|(name, table)| Some(((*name).to_owned(), read(table)?))).collect()
}

/// `None`: it is a version that can't be read.
fn check_version(root: &Table<'_>, report: &mut Report) -> Option<()> {
    let Some(item) = root.required("version", "1 at the top", report) else {
        return Some(());
    };
    match item.as_whole() {
        Some(VERSION) => Some(()),
        Some(_) => {
            item.refuse(
                "this relent reads version 1",
                "write version = 1, or take a relent of that version",
                report,
            );
            None
        }
        None => item.mismatch::<()>("a whole number", "1", report).or(Some(())),
    }
}

/// All tables `[kind.NAME]`; faults for what is there without a name.
fn named_tables<'t>(root: &Table<'t>, kind: &str, example: &str, report: &mut Report) -> Named<'t> {
    let mut tables = BTreeMap::new();
    let Some(item) = root.item(kind) else { return tables };
    if !item.is_table() {
        let fault = Fault::new(item.span(), format!("`{kind}` must be tables with names"));
        report.add(fault.mend(format!("write {example}")));
        return tables;
    }
    let Some(all) = item.table(kind, example, report) else { return tables };
    if too_many(&all.items().collect::<Vec<_>>(), kind, report) {
        return tables;
    }
    for inner in all.items() {
        if !inner.is_table() {
            let message = format!(
                "{} stands in [{kind}], which has no fields but tables with names",
                named(inner.name())
            );
            let mend = if inner.is_list() {
                format!("write [{kind}.NAME], with single brackets")
            } else {
                format!("put it under a name: {example}")
            };
            report.add(Fault::new(inner.key_span(), message).mend(mend));
            continue;
        }
        if Table::check_name(&inner, report).is_some() {
            let title = format!("[{kind}.{}]", inner.name());
            tables.extend(inner.table(&title, example, report).map(|table| (inner.name(), table)));
        }
    }
    tables
}

fn too_many(items: &[Item<'_>], kind: &str, report: &mut Report) -> bool {
    let first = items.iter().map(Item::span).min_by_key(|span| span.start);
    if items.len() > MOST {
        let message = format!("the file has {} tables [{kind}], and {MOST} are read at most", items.len());
        report.add(Fault::new(first.unwrap_or(0..0), message).mend("divide the file"));
    }
    items.len() > MOST
}

/// A proxy without routes could answer nothing; routes without a proxy would do nothing.
fn check_proxy_and_routes(root: &Table<'_>, routes: &[Route], report: &mut Report) {
    match (root.item("proxy"), root.item("route")) {
        (Some(proxy), None) => report.add(
            Fault::new(proxy.span(), "the proxy has no route, so it could answer nothing")
                .mend("add [[route]] with upstream = … and policy = …, or leave [proxy] out"),
        ),
        (None, Some(route)) if !routes.is_empty() => report.add(
            Fault::new(route.span(), "there are routes, but no [proxy] that would serve them")
                .mend("add [proxy] with listen = \"127.0.0.1:8080\""),
        ),
        _ => {}
    }
}

/// The proxy sends one attempt at a time: a policy that says otherwise would not be obeyed.
fn refuse_hedges(config: &Config, spans: &Spans, report: &mut Report) {
    for (name, policy) in &config.policies {
        if policy.hedge().is_none() || !config.routes.iter().any(|route| route.policy == *name) {
            continue;
        }
        let fields = spans.get(name).into_iter().flatten();
        let place = fields.filter(|(field, _)| *field == "hedge").map(|(_, span)| span.clone()).next();
        let message = format!("a route goes by {}, and the proxy does not hedge", named(name));
        report.add(
            Fault::new(place.unwrap_or(0..0), message)
                .mend("leave hedge out, or give the route a policy of its own"),
        );
    }
}
