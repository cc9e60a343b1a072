//! A proxy on sockets of its own before a service.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use relent_proxy::Proxy;

use super::upstream::{Memory, Upstream};
use crate::rig::clock::Watch;
use crate::rig::h2::metric;

/// After this, what has not come does not come.
pub(super) const GIVE_UP: Duration = Duration::from_secs(60);

/// Retries that follow at once, without jitter or budget.
pub(super) const AT_ONCE: &str =
    "attempts = 3\nbackoff = { base = \"1ms\", cap = \"1ms\", jitter = \"none\" }\nbudget = \"none\"\n";

/// Both; dropped, they end.
pub(super) struct Stand {
    proxy: Option<Proxy>,
    /// `None`: stopped.
    pub(super) upstream: Option<Upstream>,
    pub(super) memory: Arc<Memory>,
    pub(super) listening: SocketAddr,
    admin: SocketAddr,
}

impl Stand {
    pub(super) fn start(policy: &str) -> Stand {
        let memory = Arc::default();
        let upstream = Upstream::start("127.0.0.1:0".parse().unwrap(), &memory);
        let text = format!(
            "version = 1\n[proxy]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\nworkers = 2\n\
             access_log = \"none\"\noutcome_header = true\n[policy.p]\n{policy}\n\
             [upstream.u]\nendpoints = [\"http://{}\"]\nidle_timeout = \"500ms\"\n\
             [[route]]\nupstream = \"u\"\npolicy = \"p\"\n",
            upstream.address
        );
        let proxy = relent_proxy::start(relent_config::parse("stand.toml", &text).unwrap()).unwrap();
        let (listening, admin) = (proxy.listening(), proxy.admin().unwrap());
        Stand { proxy: Some(proxy), upstream: Some(upstream), memory, listening, admin }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.listening)
    }

    /// The sum of a metric over its labels.
    pub(super) fn metric(&self, name: &str) -> u64 {
        metric(&self.metrics(), name)
    }

    /// The metrics page.
    pub(super) fn metrics(&self) -> String {
        get(self.admin, "/metrics").1
    }

    /// Asks again and again until it is so.
    pub(super) fn until(&self, what: &str, mut so: impl FnMut(&Stand) -> bool) {
        let watch = Watch::start();
        while !so(self) {
            assert!(watch.elapsed() < GIVE_UP, "{what}\n{}", self.metrics());
            std::thread::yield_now();
        }
    }
}

impl Drop for Stand {
    fn drop(&mut self) {
        if let Some(proxy) = self.proxy.take() {
            proxy.drain();
            proxy.join();
        }
    }
}

/// A status and a body.
pub(super) fn get(address: SocketAddr, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(GIVE_UP)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: a.example\r\nconnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head[9..12].parse().unwrap(), body.to_owned())
}
