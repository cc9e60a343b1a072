//! A proxy between raw clients and scripted endpoints: no sockets, and no time but the paused one.

mod client;
pub(crate) mod clock;
mod endpoint;
pub(crate) mod h2;
pub(crate) mod message;

pub(crate) use client::Client;
pub(crate) use endpoint::{Act, Endpoint};
pub(crate) use message::{Request, Response};

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};

use relent_proxy::{Connector, Engine};
use tokio::io::DuplexStream;

/// Bytes on their way in one direction.
pub(crate) const PIPE: usize = 64 * 1024;

/// The endpoints that can be reached, by authority.
#[derive(Clone, Default)]
pub(crate) struct Network(Arc<Mutex<HashMap<String, Endpoint>>>);

impl Connector for Network {
    type Io = DuplexStream;

    async fn connect(&self, endpoint: &relent_config::Endpoint) -> io::Result<DuplexStream> {
        let there = self.0.lock().unwrap().get(&endpoint.authority()).cloned();
        match there {
            Some(endpoint) => endpoint.connect().await,
            None => Err(io::ErrorKind::ConnectionRefused.into()),
        }
    }
}

/// A proxy with its endpoints.
pub(crate) struct Rig {
    pub(crate) engine: Engine<Network>,
    pub(crate) endpoints: Vec<Endpoint>,
    lines: Option<Mutex<Receiver<Vec<u8>>>>,
}

/// How the endpoint at this place is reached.
fn authority(place: usize) -> String {
    format!("10.0.0.{}:80", place + 1)
}

/// The access log, line by line.
pub(crate) struct Pipe(pub(crate) std::sync::mpsc::Sender<Vec<u8>>);

impl io::Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            drop(self.0.send(line.to_vec()));
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// No jitter and no budget, so that what happens follows from the script alone.
pub(crate) const PLAIN: &str = r#"
attempts = 3
backoff = { base = "100ms", cap = "1s", jitter = "none" }
budget = "none"
"#;

impl Rig {
    /// One endpoint with this script, under a policy with these lines.
    pub(crate) fn new(policy: &str, script: impl IntoIterator<Item = Act>) -> Rig {
        Rig::with(policy, "", [Endpoint::new(script)])
    }

    /// These endpoints, under a policy with these lines; `upstream` has lines for the upstream.
    pub(crate) fn with(policy: &str, upstream: &str, endpoints: impl IntoIterator<Item = Endpoint>) -> Rig {
        Rig::of("", policy, upstream, endpoints)
    }

    /// The same with lines for the proxy itself.
    pub(crate) fn of(
        proxy: &str,
        policy: &str,
        upstream: &str,
        endpoints: impl IntoIterator<Item = Endpoint>,
    ) -> Rig {
        Rig::build(proxy, policy, upstream, endpoints, None)
    }

    /// The same as `with`, its access log to be read by [`line`](Rig::line).
    pub(crate) fn logged(policy: &str, upstream: &str, endpoints: impl IntoIterator<Item = Endpoint>) -> Rig {
        let (sender, lines) = std::sync::mpsc::channel();
        let mut rig = Rig::build("", policy, upstream, endpoints, Some(Pipe(sender)));
        rig.lines = Some(Mutex::new(lines));
        rig
    }

    /// A whole file, whose endpoints are 10.0.0.1:80 and so on.
    pub(crate) fn from_text(text: &str, endpoints: impl IntoIterator<Item = Endpoint>) -> Rig {
        Rig::start(text, endpoints.into_iter().collect(), None)
    }

    fn build(
        proxy: &str,
        policy: &str,
        upstream: &str,
        endpoints: impl IntoIterator<Item = Endpoint>,
        log: Option<Pipe>,
    ) -> Rig {
        let endpoints: Vec<Endpoint> = endpoints.into_iter().collect();
        let urls: Vec<_> =
            (0..endpoints.len()).map(|place| format!("\"http://{}\"", authority(place))).collect();
        let text = format!(
            "version = 1\n[proxy]\nlisten = \"127.0.0.1:0\"\n{proxy}\n\
             [policy.p]\n{policy}\n[upstream.u]\nendpoints = [{}]\n{upstream}\n\
             [[route]]\nupstream = \"u\"\npolicy = \"p\"\n",
            urls.join(", ")
        );
        Rig::start(&text, endpoints, log)
    }

    fn start(text: &str, endpoints: Vec<Endpoint>, log: Option<Pipe>) -> Rig {
        let network = Network::default();
        for (place, endpoint) in endpoints.iter().enumerate() {
            network.0.lock().unwrap().insert(authority(place), endpoint.clone());
        }
        let mut config = relent_config::parse("rig.toml", text).unwrap();
        let settings = config.proxy.as_mut().unwrap();
        settings.access_log = relent_config::AccessLog::None;
        settings.outcome_header = true;
        let engine = match log {
            Some(log) => Engine::with_log(config, network, log),
            None => Engine::new(config, network),
        };
        let engine = engine.unwrap();
        let sweeping = engine.clone();
        tokio::spawn(async move { sweeping.sweep().await });
        Rig { engine, endpoints, lines: None }
    }

    /// Lets everything run that can without time passing.
    pub(crate) async fn settle(&self) {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    }

    /// The next line of the access log.
    pub(crate) async fn line(&self) -> serde_json::Value {
        self.settle().await;
        let lines = self.lines.as_ref().expect("the rig has a log").lock().unwrap();
        let bytes = lines.recv_timeout(std::time::Duration::from_secs(60)).expect("a line is written");
        serde_json::from_slice(&bytes).unwrap()
    }

    /// The lines of the metrics page that begin so.
    pub(crate) fn metric(&self, name: &str) -> String {
        let page = self.engine.metrics();
        let lines: Vec<_> = page
            .lines()
            .filter(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '{'])))
            .collect();
        lines.join("\n")
    }

    /// A connection to the proxy.
    pub(crate) fn connect(&self) -> Client {
        self.connect_as(None)
    }

    /// The same from a peer with an address.
    pub(crate) fn connect_from(&self, peer: SocketAddr) -> Client {
        self.connect_as(Some(peer))
    }

    fn connect_as(&self, peer: Option<SocketAddr>) -> Client {
        let (client, server) = tokio::io::duplex(PIPE);
        let engine = self.engine.clone();
        tokio::spawn(async move { engine.serve(server, peer).await });
        Client::new(client)
    }

    /// One request on a connection of its own.
    pub(crate) async fn send(&self, request: &str) -> Response {
        let mut client = self.connect();
        client.send(request).await;
        client.response().await
    }

    pub(crate) async fn get(&self, path: &str) -> Response {
        self.send(&format!("GET {path} HTTP/1.1\r\nhost: a.example\r\n\r\n")).await
    }

    pub(crate) async fn post(&self, fields: &str, body: &str) -> Response {
        let length = body.len();
        self.send(&format!(
            "POST / HTTP/1.1\r\nhost: a.example\r\ncontent-length: {length}\r\n{fields}\r\n{body}"
        ))
        .await
    }

    /// The requests that the first endpoint has seen.
    pub(crate) fn seen(&self) -> Vec<Request> {
        self.endpoints[0].seen()
    }
}
