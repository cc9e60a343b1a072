//! What is known of a call, gathered along the way and told once, when its response has ended: to the metrics, and to the
//! access log where there is one.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Request, header};
use hyper::body::Incoming;
use relent::timer::{Clock, SystemTimer};
use relent_core::{Cause, Instant, Stop, StopReason};

use crate::client::{BodyWatch, Connection, Running};
use crate::facts;
use crate::fields::Seen;
use crate::limit::InFlight;
use crate::metrics::Shard;
use crate::plan::{Plan, Target};

/// Answered to nobody: the client had left (nginx's convention).
const CLIENT_GONE: u16 = 499;
/// Longer paths are cut in the log.
const LONGEST_PATH: usize = 2048;

/// Who is told.
#[derive(Debug)]
pub(crate) struct Listeners {
    pub(crate) plan: Arc<Plan>,
    pub(crate) metrics: Arc<Shard>,
}

/// One call's record; dropped, it tells.
#[derive(Debug)]
pub(crate) struct Record {
    listeners: Arc<Listeners>,
    running: Running,
    began: Instant,
    call: facts::Call,
    line: Option<Box<facts::Line>>,
    body: Option<Arc<BodyWatch>>,
    in_flight: Option<InFlight>,
    /// The response has ended as it should.
    whole: bool,
    /// It has not, and will not.
    broken: bool,
    used: Option<u32>,
    /// Which fields the response has, once that is known.
    seen: Option<Seen>,
}

impl Record {
    /// A request has come.
    pub(crate) fn open(
        listeners: &Arc<Listeners>,
        running: Running,
        request: &Request<Incoming>,
        now: Instant,
    ) -> Record {
        let line = listeners.plan.log.is_on().then(|| Box::new(line_of(running.0.peer, request)));
        Record {
            listeners: Arc::clone(listeners),
            running,
            began: now,
            call: facts::Call {
                target: None,
                status: CLIENT_GONE,
                took: Duration::ZERO,
                attempts: 0,
                stop: None,
                ambiguous: false,
                broken: false,
            },
            line,
            body: None,
            in_flight: None,
            whole: false,
            broken: false,
            used: None,
            seen: None,
        }
    }

    pub(crate) fn routed(&mut self, target: &Target) {
        self.call.target = Some(target.place);
    }

    /// Its place among the requests in flight is free when it ends.
    pub(crate) fn hold(&mut self, place: InFlight) {
        self.in_flight = Some(place);
    }

    /// Its place goes on to what outlives the call: a tunnel.
    pub(crate) fn release(&mut self) -> Option<InFlight> {
        self.in_flight.take()
    }

    pub(crate) fn watch_body(&mut self, watch: Arc<BodyWatch>) {
        self.body = Some(watch);
    }

    pub(crate) fn body(&self) -> Option<&Arc<BodyWatch>> {
        self.body.as_ref()
    }

    /// An attempt has ended.
    pub(crate) fn attempt(&mut self, attempt: facts::Attempt) {
        if let Some(target) = self.call.target {
            self.listeners.metrics.attempt_ended(target, &attempt);
        }
        if let Some(line) = &mut self.line {
            line.attempts.push(attempt);
        }
    }

    /// Another attempt is made, because of this.
    pub(crate) fn retry(&mut self, cause: Cause, free: bool) {
        let Some(target) = self.call.target else { return };
        if free {
            self.listeners.metrics.free_repeat(target);
        } else {
            self.listeners.metrics.retry(target, cause);
        }
    }

    /// No further attempt is made.
    pub(crate) fn stopped(&mut self, stop: &Stop) {
        self.call.attempts = stop.attempts;
        self.call.stop = Some(stop.reason);
        self.call.ambiguous = stop.ambiguous;
    }

    /// An attempt succeeded.
    pub(crate) fn succeeded(&mut self, attempts: u32, ambiguous: bool) {
        self.call.attempts = attempts;
        self.call.stop = Some(StopReason::Succeeded);
        self.call.ambiguous = ambiguous;
    }

    /// This is what the client is answered.
    pub(crate) fn answered(&mut self, status: u16) {
        self.call.status = status;
    }

    pub(crate) fn error(&mut self, text: impl FnOnce() -> String) {
        if let Some(line) = &mut self.line {
            line.error = Some(text());
        }
    }

    /// The response broke off.
    pub(crate) fn broke(&mut self, text: impl FnOnce() -> String) {
        self.broken = true;
        self.error(text);
    }

    /// So many extra attempts were made here and below, for the layer above that asked.
    pub(crate) fn spent(&mut self, used: u32) {
        self.used = Some(used);
    }

    pub(crate) fn used(&self) -> Option<u32> {
        self.used
    }

    pub(crate) fn has_seen(&mut self, seen: Seen) {
        self.seen = Some(seen);
    }

    pub(crate) fn seen(&self) -> Option<Seen> {
        self.seen
    }

    pub(crate) fn connection(&self) -> &Arc<Connection> {
        &self.running.0
    }

    /// So many bytes of the response were handed on.
    pub(crate) fn sent(&mut self, bytes: usize) {
        if let Some(line) = &mut self.line {
            line.bytes_out += bytes as u64;
        }
    }

    /// The response has ended as it should.
    pub(crate) fn complete(&mut self) {
        self.whole = true;
    }

    /// Why the call ended; `None` where none of its attempts is over.
    pub(crate) fn stop(&self) -> Option<(StopReason, u32, bool)> {
        self.call.stop.map(|reason| (reason, self.call.attempts, self.call.ambiguous))
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        self.call.took = SystemTimer.now().since(self.began);
        self.call.broken = (self.broken || !self.whole) && self.call.status != CLIENT_GONE;
        let listeners = &self.listeners;
        listeners.metrics.call_ended(&self.call);
        if let Some(mut line) = self.line.take() {
            line.bytes_in = self.body.as_ref().map_or(0, |body| body.read());
            if self.call.broken && line.error.is_none() {
                line.error = Some("the client left before the end of the response".to_owned());
            }
            let target = self.call.target.map(|place| &listeners.plan.targets[place]);
            let names =
                target.map(|target| (listeners.plan.upstream_of(target), target.policy_name.as_str()));
            listeners.plan.log.write(
                &self.call,
                &line,
                names.map(|(upstream, policy)| (&**upstream, policy)),
            );
        }
    }
}

fn line_of(client: Option<SocketAddr>, request: &Request<Incoming>) -> facts::Line {
    facts::Line {
        time: SystemTimer.wall(),
        client,
        method: request.method().clone(),
        host: host_of(request.headers(), request.uri().authority().map(http::uri::Authority::as_str)),
        path: cut(request.uri().path()),
        version: request.version(),
        bytes_in: 0,
        bytes_out: 0,
        attempts: Vec::new(),
        error: None,
    }
}

fn host_of(headers: &HeaderMap, authority: Option<&str>) -> Option<String> {
    let host = authority.or_else(|| headers.get(header::HOST)?.to_str().ok())?;
    Some(cut(host))
}

fn cut(text: &str) -> String {
    let mut end = text.len().min(LONGEST_PATH);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

/// A line for what was refused before it was a request.
pub(crate) fn refused(listeners: &Listeners, client: Option<SocketAddr>, status: u16, error: String) {
    listeners.metrics.refused(status);
    if !listeners.plan.log.is_on() {
        return;
    }
    listeners.plan.log.write_unread(status, &facts::Unread { time: SystemTimer.wall(), client, error });
}
