//! `[upstream.NAME]`: endpoints and connections.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::ops::Range;

use crate::endpoint::EndpointError;
use crate::host::HostError;
use crate::proxy::collide;
use crate::report::{Fault, Report};
use crate::text::{Item, Table};
use crate::{Endpoint, Protocol, Upstream};

const FIELDS: [&str; 6] = ["endpoints", "protocol", "idle_timeout", "connect_timeout", "trust", "stamp"];

const EXAMPLE: &str = "[\"http://127.0.0.1:9000\"]";

const PROTOCOLS: [(&str, Protocol); 2] = [("http1", Protocol::Http1), ("h2", Protocol::Http2)];

/// Reads one upstream; `listen` is where the proxy itself is.
pub(super) fn read(table: &Table<'_>, listen: Option<SocketAddr>, report: &mut Report) -> Option<Upstream> {
    table.refuse_unknown(&FIELDS, &[], report);
    let endpoints = table.required("endpoints", EXAMPLE, report);
    let endpoints = endpoints.and_then(|item| read_endpoints(&item, listen, report));
    let protocol = table.item("protocol").and_then(|item| read_protocol(&item, report));
    let idle_timeout = table.item("idle_timeout").and_then(|item| item.positive_length(report));
    let connect_timeout = table.item("connect_timeout").and_then(|item| item.positive_length(report));
    let trust = table.item("trust").and_then(|item| item.flag(report));
    let stamp = table.item("stamp").and_then(|item| item.flag(report));
    Some(Upstream {
        endpoints: endpoints?,
        protocol: protocol.unwrap_or_default(),
        idle_timeout: idle_timeout.unwrap_or(Upstream::IDLE_TIMEOUT),
        connect_timeout: connect_timeout.unwrap_or(Upstream::CONNECT_TIMEOUT),
        trust: trust.unwrap_or(true),
        stamp: stamp.unwrap_or(true),
    })
}

fn read_protocol(item: &Item<'_>, report: &mut Report) -> Option<Protocol> {
    // The nearest word to "http2" is "http1".
    let meant = match item.as_text().map(str::to_ascii_lowercase).as_deref() {
        Some("http2" | "http/2" | "http/2.0" | "h2c") => "h2",
        Some("http" | "http/1" | "http/1.1" | "h1") => "http1",
        _ => return item.choice(&PROTOCOLS, report),
    };
    item.refuse("it is none of the words known here", format!("write \"{meant}\""), report);
    None
}

fn read_endpoints(item: &Item<'_>, listen: Option<SocketAddr>, report: &mut Report) -> Option<Vec<Endpoint>> {
    let list = item.list(EXAMPLE, report)?;
    let wrong = match list.len() {
        0 => "it is empty, so there is nowhere to send a request",
        1..=Upstream::MOST_ENDPOINTS => "",
        _ => "it has over 1000 entries",
    };
    if !wrong.is_empty() {
        item.refuse(wrong, format!("write endpoints = {EXAMPLE}"), report);
        return None;
    }
    let mut endpoints = Vec::with_capacity(list.len());
    let mut seen: HashMap<Endpoint, Range<usize>> = HashMap::new();
    for entry in &list {
        let Some(endpoint) = read_endpoint(entry, listen, report) else { continue };
        if let Some(first) = seen.insert(endpoint.clone(), entry.span()) {
            let fault = Fault::new(entry.span(), format!("{endpoint} is listed twice"));
            report.add(
                fault.related("first here", first).mend("leave one out: each endpoint is tried in its turn"),
            );
        }
        endpoints.push(endpoint);
    }
    Some(endpoints)
}

fn read_endpoint(entry: &Item<'_>, listen: Option<SocketAddr>, report: &mut Report) -> Option<Endpoint> {
    let text = entry.text("\"http://127.0.0.1:9000\"", report)?;
    let endpoint: Endpoint = match text.parse() {
        Ok(endpoint) => endpoint,
        Err(error) => {
            let mend = mend(text, &error);
            entry.refuse(error, mend, report);
            return None;
        }
    };
    let address = endpoint.address().map(|address| SocketAddr::new(address, endpoint.port()));
    if let (Some(address), Some(listen)) = (address, listen)
        && collide(address, listen)
    {
        entry.refuse(
            "the proxy itself listens there, and would call itself",
            "name the service's own port",
            report,
        );
        return None;
    }
    Some(endpoint)
}

fn mend(text: &str, error: &EndpointError) -> String {
    // Whatever is mended has to be right: it is parsed before it is proposed.
    let try_to = |mended: String| mended.parse::<Endpoint>().is_ok().then(|| format!("write \"{mended}\""));
    let after_scheme = text.split_once("://").map_or(text, |(_, rest)| rest);
    let mended = match error {
        EndpointError::NoScheme => try_to(format!("http://{text}")),
        EndpointError::Https => Some("take a port that speaks plain http".to_owned()),
        EndpointError::OtherScheme => try_to(format!("http://{after_scheme}")),
        EndpointError::UserInfo => {
            after_scheme.rsplit_once('@').and_then(|(_, rest)| try_to(format!("http://{rest}")))
        }
        EndpointError::Path => {
            let authority = after_scheme.split(['/', '?', '#']).next().unwrap_or("");
            try_to(format!("http://{authority}"))
        }
        EndpointError::Host(HostError::NotAscii) => Some("write the host in its xn-- form".to_owned()),
        EndpointError::Host(HostError::NoBrackets) => Some("write \"http://[::1]:9000\"".to_owned()),
        _ => None,
    };
    mended.unwrap_or_else(|| "write a URL with host and port, such as \"http://127.0.0.1:9000\"".to_owned())
}
