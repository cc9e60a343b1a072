//! `[[route]]`: matchers, and the upstream and policy that they lead to.

use std::collections::BTreeSet;
use std::ops::Range;

use super::{Named, too_many};
use crate::config::offer;
use crate::host::HostError;
use crate::report::{Fault, Report};
use crate::text::{Item, Table};
use crate::{Host, Matcher, Route};

const FIELDS: [&str; 5] = ["path", "host", "methods", "upstream", "policy"];

/// RFC 9110 §9.3 and RFC 5789. Others are taken as they are written; CONNECT makes a tunnel, which is no call.
const METHODS: [&str; 8] = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"];

/// The mend of a route that never matches.
const FIRST: &str = "put this one first, or leave it out";

/// The longest path prefix, and the most methods.
const LONGEST: usize = 2000;
const MOST_METHODS: usize = 20;

/// What routes may name.
pub(super) struct Names<'n, 't> {
    pub(super) policies: &'n Named<'t>,
    pub(super) upstreams: &'n Named<'t>,
}

/// Reads all routes, in order.
pub(super) fn read_all(root: &Table<'_>, names: &Names<'_, '_>, report: &mut Report) -> Vec<Route> {
    let Some(item) = root.item("route") else { return Vec::new() };
    if item.is_table() {
        report.add(
            Fault::new(item.span(), "`route` must be a list of tables")
                .mend("write [[route]], with double brackets"),
        );
        return Vec::new();
    }
    let Some(list) = item.list("[{ path = \"/\", upstream = \"api\", policy = \"api\" }]", report) else {
        return Vec::new();
    };
    if too_many(&list, "route", report) {
        return Vec::new();
    }
    let mut routes = Vec::new();
    // The matchers that are whole, each with its place: a route with another fault still hides those after it.
    let mut matchers: Vec<(Matcher, Range<usize>)> = Vec::new();
    for item in list {
        let Some(table) = item.table("[[route]]", "{ upstream = \"api\", policy = \"api\" }", report) else {
            continue;
        };
        table.refuse_unknown(&FIELDS, &[], report);
        let matcher = read_matcher(&table, report);
        let upstream = read_name(&table, "upstream", names.upstreams, report);
        let policy = read_name(&table, "policy", names.policies, report);
        let Some(matcher) = matcher else { continue };
        refuse_hidden(&matcher, &table, &matchers, report);
        matchers.push((matcher.clone(), table.span()));
        if let (Some(upstream), Some(policy)) = (upstream, policy) {
            routes.push(Route { matcher, upstream, policy });
        }
    }
    routes
}

fn read_name(table: &Table<'_>, kind: &str, names: &Named<'_>, report: &mut Report) -> Option<String> {
    let known = names.keys().copied();
    let example = names.keys().next().map_or_else(|| "\"api\"".to_owned(), |name| format!("\"{name}\""));
    let item = table.required(kind, &example, report)?;
    let name = item.text(&example, report)?;
    if names.contains_key(name) {
        return Some(name.to_owned());
    }
    // Not looked for where it would not be shown: a file may have a thousand routes to a thousand names.
    let near = if report.keeps(&item.span()) { offer(name, known) } else { None };
    let mend = near.unwrap_or_else(|| format!("add [{kind}.NAME], the file has none"));
    item.refuse(format!("there is no [{kind}] of this name"), mend, report);
    None
}

fn read_matcher(table: &Table<'_>, report: &mut Report) -> Option<Matcher> {
    let path = table.item("path").map(|item| read_path(&item, report));
    let host = table.item("host").map(|item| read_host(&item, report));
    let methods = table.item("methods").map(|item| read_methods(&item, report));
    Some(Matcher {
        path: path.unwrap_or(Some("/".to_owned()))?,
        host: transpose(host)?,
        methods: transpose(methods)?,
    })
}

/// `None` stays none, what was refused ends it.
fn transpose<T>(read: Option<Option<T>>) -> Option<Option<T>> {
    read.map_or(Some(None), |value| value.map(Some))
}

fn read_path(item: &Item<'_>, report: &mut Report) -> Option<String> {
    let path = item.text("\"/api/\"", report)?;
    let (wrong, mend) = match path {
        _ if path.len() > LONGEST => ("it is over 2000 bytes", "shorten it: it is a prefix".to_owned()),
        "" => ("it is empty", "write \"/\" for every path, or leave it out".to_owned()),
        _ if !path.starts_with('/') => ("it does not start with a slash", mended_path(&format!("/{path}"))),
        _ if path.contains('*') => {
            ("it is a pattern, and a path here is a prefix", mended_path(&path.replace('*', "")))
        }
        _ if path.contains(['?', '#']) => (
            "it has a query or a fragment, which take no part",
            mended_path(path.split(['?', '#']).next().unwrap_or("/")),
        ),
        _ if path.split('/').any(|segment| matches!(segment, "." | "..")) => {
            ("it has a segment . or ..", "write the path without it".to_owned())
        }
        _ if !path.bytes().all(|b| b.is_ascii_graphic()) => (
            "it has characters that no path on the wire has",
            "percent-encode them, as in \"/caf%C3%A9\"".to_owned(),
        ),
        _ => return Some(path.to_owned()),
    };
    item.refuse(wrong, mend, report);
    None
}

fn mended_path(path: &str) -> String {
    let good = path.bytes().all(|b| b.is_ascii_graphic()) && !path.contains(['*', '?', '#', '"', '\\']);
    if good { format!("write \"{path}\"") } else { "write a prefix such as \"/api/\"".to_owned() }
}

fn read_host(item: &Item<'_>, report: &mut Report) -> Option<Host> {
    let text = item.text("\"api.example\"", report)?;
    let error = match text.parse() {
        Ok(host) => return Some(host),
        Err(error) => error,
    };
    let without_port =
        text.rsplit_once(':').map(|(host, _)| host).filter(|host| host.parse::<Host>().is_ok());
    let mend = match (&error, without_port) {
        (_, Some(host)) => format!("write \"{host}\": the port takes no part"),
        (HostError::NotAscii, _) => "write it in its xn-- form".to_owned(),
        (HostError::Pattern, _) => "write a route for each host, or leave it out for all".to_owned(),
        (HostError::NoBrackets, _) => format!("write \"[{text}]\""),
        _ => "write a host such as \"api.example\"".to_owned(),
    };
    item.refuse(error, mend, report);
    None
}

fn read_methods(item: &Item<'_>, report: &mut Report) -> Option<Vec<String>> {
    let list = item.list("[\"GET\"]", report)?;
    if list.is_empty() || list.len() > MOST_METHODS {
        let wrong = if list.is_empty() {
            "it is empty, so the route could never match"
        } else {
            "it has over 20 entries"
        };
        item.refuse(wrong, "write methods = [\"GET\"], or leave it out for every method", report);
        return None;
    }
    let mut seen = BTreeSet::new();
    let mut good = true;
    for entry in &list {
        let Some(method) = read_method(entry, report) else {
            good = false;
            continue;
        };
        if !seen.insert(method) {
            entry.refuse("it is listed twice", "leave one out, or correct one", report);
            good = false;
        }
    }
    good.then(|| seen.into_iter().map(str::to_owned).collect())
}

fn read_method<'t>(entry: &Item<'t>, report: &mut Report) -> Option<&'t str> {
    let method = entry.text("\"GET\"", report)?;
    let upper = method.to_ascii_uppercase();
    // RFC 9110 §5.6.2: a token.
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    let (wrong, mend) = match method {
        _ if method.is_empty() || method.len() > 32 || !method.bytes().all(token) => {
            ("it is no method", "write one such as \"GET\"".to_owned())
        }
        "CONNECT" => ("it makes a tunnel, which can't be retried", "leave it out".to_owned()),
        _ if upper != method && METHODS.contains(&upper.as_str()) => {
            ("methods are told apart by case", format!("write \"{upper}\""))
        }
        _ => return Some(method),
    };
    entry.refuse(wrong, mend, report);
    None
}

/// A route that those before it leave nothing to: a slip, since the first that matches wins.
fn refuse_hidden(
    matcher: &Matcher,
    table: &Table<'_>,
    before: &[(Matcher, Range<usize>)],
    report: &mut Report,
) {
    let mut left: Option<Vec<&String>> = matcher.methods.as_ref().map(|own| own.iter().collect());
    for (earlier, span) in before.iter().filter(|(earlier, _)| earlier.covers_place(matcher)) {
        match (&earlier.methods, &mut left) {
            (None, _) => left = Some(Vec::new()),
            // Sorted by `read_methods`.
            (Some(taken), Some(left)) => left.retain(|method| taken.binary_search(method).is_err()),
            (Some(_), None) => {}
        }
        if left.as_ref().is_some_and(Vec::is_empty) {
            report.add(hidden(matcher, table.span(), earlier, span.clone()));
            return;
        }
    }
}

/// The fault of a route that `earlier` takes the last requests from.
fn hidden(matcher: &Matcher, at: Range<usize>, earlier: &Matcher, span: Range<usize>) -> Fault {
    let takes = |method| earlier.methods.as_ref().is_none_or(|taken| taken.contains(method));
    let (message, which, mend) = if earlier == matcher {
        ("this route has the same matcher as an earlier one", "the earlier one", "leave one out")
    } else if earlier.methods.is_none() || matcher.methods.iter().flatten().all(takes) {
        ("this route can never match: an earlier one takes all its requests", "that one", FIRST)
    } else {
        ("this route can never match: earlier ones take all its requests", "the last of them", FIRST)
    };
    Fault::new(at, message).related(which, span).mend(mend)
}
