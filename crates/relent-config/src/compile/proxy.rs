//! `[proxy]`: listeners and trusted peers.

use std::net::SocketAddr;

use crate::address_range::AddressRangeError;
use crate::proxy::collide;
use crate::report::{Fault, Report};
use crate::text::Item;
use crate::{AddressRange, ProxyConfig};

const FIELDS: [&str; 3] = ["listen", "admin", "trusted_peers"];

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
    Some(ProxyConfig { listen: listen_at?, admin: admin_at, trusted_peers })
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
