//! `[proxy]`: listeners, trusted peers, and what is borne.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::time::Duration;

use crate::address_range::AddressRangeError;
use crate::proxy::collide;
use crate::report::{Fault, Report};
use crate::text::{Item, Table};
use crate::{AccessLog, AddressRange, ProxyConfig};

const FIELDS: [&str; 13] = [
    "listen",
    "admin",
    "trusted_peers",
    "workers",
    "max_connections",
    "max_requests",
    "header_timeout",
    "idle_timeout",
    "body_timeout",
    "grace",
    "access_log",
    "outcome_header",
    "rate_limited_header",
];

const EXAMPLE: &str = "\"127.0.0.1:8080\"";

/// The most ranges of trusted peers: each request is held against all of them.
const MOST_PEERS: usize = 1000;

pub(super) fn read(item: &Item<'_>, report: &mut Report) -> Option<ProxyConfig> {
    if !item.is_table() {
        let brackets = if item.is_list() { " with single brackets" } else { "" };
        let mend = format!("write [proxy]{brackets}, and listen = {EXAMPLE} below it");
        report.add(Fault::new(item.span(), "`proxy` must be a table").mend(mend));
        return None;
    }
    let table = item.table("[proxy]", EXAMPLE, report)?;
    table.refuse_unknown(&FIELDS, &[], report);
    let listen = table.required("listen", EXAMPLE, report);
    let listen_at = listen.as_ref().and_then(|item| read_listener(item, report));
    let admin = table.item("admin");
    let admin_at = admin.as_ref().and_then(|item| read_listener(item, report));
    if let (Some(listen), Some(at), Some(admin), Some(admin_at)) = (&listen, listen_at, &admin, admin_at)
        && collide(at, admin_at)
    {
        let fault = Fault::new(admin.span(), "admin and listen can't have the same address and port");
        report.add(fault.related("listen is set here", listen.span()).mend("give admin another port"));
    }
    let trusted_peers =
        table.item("trusted_peers").and_then(|item| read_peers(&item, report)).unwrap_or_default();
    let placed = listen_at.map(|at| ProxyConfig { admin: admin_at, trusted_peers, ..ProxyConfig::new(at) });
    // Without a place, too: its other faults are told in the same run.
    let anywhere = ProxyConfig::new(SocketAddr::from(([127, 0, 0, 1], 0)));
    let located = placed.is_some();
    let proxy = read_bounds(&table, placed.unwrap_or(anywhere), report);
    located.then_some(proxy)
}

/// What is borne, and what is told.
fn read_bounds(table: &Table<'_>, mut proxy: ProxyConfig, report: &mut Report) -> ProxyConfig {
    let workers = read_count(table, "workers", ProxyConfig::MOST_WORKERS as u32, report);
    proxy.workers = workers.and_then(|count| NonZeroUsize::new(count as usize));
    let mut at_once = |name, field: &mut u32| {
        *field = read_count(table, name, ProxyConfig::MOST_AT_ONCE, report).unwrap_or(*field);
    };
    at_once("max_connections", &mut proxy.max_connections);
    at_once("max_requests", &mut proxy.max_requests);
    let mut length = |name, field: &mut Duration| {
        let read = table.item(name).and_then(|item| item.positive_length(report));
        *field = read.unwrap_or(*field);
    };
    length("header_timeout", &mut proxy.header_timeout);
    length("idle_timeout", &mut proxy.idle_timeout);
    length("body_timeout", &mut proxy.body_timeout);
    if let Some(grace) = table.item("grace").and_then(|item| read_grace(&item, report)) {
        proxy.grace = grace;
    }
    if let Some(log) = table.item("access_log").and_then(|item| read_access_log(&item, report)) {
        proxy.access_log = log;
    }
    let mut flag = |name, field: &mut bool| {
        *field = table.item(name).and_then(|item| item.flag(report)).unwrap_or(*field);
    };
    flag("outcome_header", &mut proxy.outcome_header);
    flag("rate_limited_header", &mut proxy.rate_limited_header);
    proxy
}

/// A whole number from 1 to `most`.
fn read_count(table: &Table<'_>, name: &str, most: u32, report: &mut Report) -> Option<u32> {
    let item = table.item(name)?;
    let count = item.whole("100", report)?;
    if (1..=most).contains(&count) {
        return Some(count);
    }
    item.refuse(format!("it is not from 1 to {most}"), format!("write a number from 1 to {most}"), report);
    None
}

/// Nobody waits longer for a process to end.
const LONGEST_GRACE: Duration = Duration::from_secs(60 * 60);

fn read_grace(item: &Item<'_>, report: &mut Report) -> Option<Duration> {
    let grace = item.length(report)?;
    if grace <= LONGEST_GRACE {
        return Some(grace);
    }
    item.refuse("it is longer than an hour", "write a length up to \"1h\"", report);
    None
}

fn read_access_log(item: &Item<'_>, report: &mut Report) -> Option<AccessLog> {
    let text = item.text("\"stdout\"", report)?;
    if !text.is_empty() {
        return Some(AccessLog::parse(text));
    }
    item.refuse("it names no file", "write \"none\", \"stdout\", \"stderr\" or a path", report);
    None
}

fn read_listener(item: &Item<'_>, report: &mut Report) -> Option<SocketAddr> {
    let text = item.text(EXAMPLE, report)?;
    if let Ok(address) = text.parse() {
        return Some(address);
    }
    let mend = match text.rsplit_once(':') {
        Some(("" | "*", port)) if port.parse::<u16>().is_ok() => {
            format!("write \"0.0.0.0:{port}\" for all addresses, or \"127.0.0.1:{port}\" for this machine")
        }
        Some(("localhost", port)) if port.parse::<u16>().is_ok() => format!("write \"127.0.0.1:{port}\""),
        _ => format!("write an address and a port, such as {EXAMPLE} or \"[::1]:8080\""),
    };
    item.refuse("it is no IP address with a port", mend, report);
    None
}

fn read_peers(item: &Item<'_>, report: &mut Report) -> Option<Vec<AddressRange>> {
    const EXAMPLE: &str = "[\"10.0.0.0/8\"]";
    let list = item.list(EXAMPLE, report)?;
    if list.len() > MOST_PEERS {
        item.refuse("it has over 1000 entries", "join them into wider ranges", report);
        return None;
    }
    // All of them, also after one that was refused.
    let ranges: Vec<_> = list.iter().map(|entry| read_range(entry, report)).collect();
    ranges.into_iter().collect()
}

fn read_range(entry: &Item<'_>, report: &mut Report) -> Option<AddressRange> {
    let error = match entry.text("\"10.0.0.0/8\"", report)?.parse() {
        Ok(range) => return Some(range),
        Err(error) => error,
    };
    let mend = match &error {
        AddressRangeError::BitsBelowPrefix(meant) => {
            format!("write \"{meant}\" for the range, or the address without a prefix")
        }
        _ => "write an address or a range, such as \"10.0.0.0/8\" or \"fd00::/8\"".to_owned(),
    };
    entry.refuse(error, mend, report);
    None
}
