//! The arguments of `relent proxy`.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use relent_config::{AccessLog, Endpoint, ProxyConfig};

use super::PolicyArgs;
use super::value::duration;

/// Retry on the wire: a reverse proxy before a service, in whatever language that is
///
/// Takes routes and policies from a file; or, without one, stands before one service, with the default policy and what
/// the flags change of it.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ProxyArgs {
    /// A policy file with [proxy], [upstream.NAME] and [[route]]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Where requests come in, such as 127.0.0.1:8080; port 0 takes any free one
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub(crate) listen: Option<SocketAddr>,

    /// Where they go, such as http://127.0.0.1:9000; once for each endpoint of the service
    #[arg(long, value_name = "URL", value_parser = endpoint)]
    pub(crate) upstream: Vec<Endpoint>,

    /// The service speaks HTTP/2 without TLS
    #[arg(long)]
    pub(crate) h2: bool,

    /// Where /metrics, /healthz and /config are served [default: nowhere]
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub(crate) admin: Option<SocketAddr>,

    /// A JSON line for each request: none, stdout, stderr or a path [default: the file's; without a file none]
    #[arg(long, value_name = "WHERE", value_parser = access_log)]
    pub(crate) access_log: Option<AccessLog>,

    /// Threads that serve requests [default: one per core]
    #[arg(long, value_name = "N", value_parser = workers)]
    pub(crate) workers: Option<NonZeroUsize>,

    /// How long requests in flight may go on after SIGTERM [default: 10s]
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = duration)]
    pub(crate) grace: Option<Duration>,

    #[command(flatten)]
    pub(crate) policy: PolicyArgs,
}

const EXAMPLES: &str = "\
Listens without TLS, HTTP/1.1 and HTTP/2 on the same port. SIGTERM and SIGINT end it when the requests in flight are
done, or after --grace; a second one ends it at once.

Examples:
  relent proxy --listen 127.0.0.1:8080 --upstream http://127.0.0.1:9000
  relent proxy --listen 127.0.0.1:8080 --upstream http://10.0.0.1:80 --upstream http://10.0.0.2:80 --attempts 4
  relent proxy --config relent.toml --admin 127.0.0.1:9901";

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        let mend = match text.rsplit_once(':') {
            Some(("" | "*", port)) => {
                format!("0.0.0.0:{port} for all addresses, 127.0.0.1:{port} for this machine")
            }
            Some(("localhost", port)) => format!("127.0.0.1:{port}"),
            _ => "an address and a port, such as 127.0.0.1:8080".to_owned(),
        };
        format!("it is no IP address with a port; write {mend}")
    })
}

fn endpoint(text: &str) -> Result<Endpoint, String> {
    text.parse().map_err(|error| format!("{error}; write a URL such as http://127.0.0.1:9000"))
}

fn access_log(text: &str) -> Result<AccessLog, String> {
    if text.is_empty() {
        return Err("it names no file; write none, stdout, stderr or a path".to_owned());
    }
    Ok(AccessLog::parse(text))
}

fn workers(text: &str) -> Result<NonZeroUsize, String> {
    match text.parse::<NonZeroUsize>() {
        Ok(count) if count.get() <= ProxyConfig::MOST_WORKERS => Ok(count),
        _ => Err(format!("it is no number from 1 to {}", ProxyConfig::MOST_WORKERS)),
    }
}
