//! An endpoint that does what its script says, request after request.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use relent_proxy::Engine;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::mpsc;

use super::message::{Framing, Request, read_body, read_head};
use super::{Network, PIPE};
use crate::rig::clock::sleep;

/// What an endpoint does with a request, or with a connection.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Answers with a status and a text.
    Status(u16, &'static str),
    /// Answers with a status, these fields (each ended by CRLF) and a text.
    Fields(u16, &'static str, &'static str),
    /// Answers with these bytes.
    Bytes(Vec<u8>),
    /// Answers with these bytes, and closes.
    BytesThenClose(Vec<u8>),
    /// Reads the request, and closes without an answer.
    Close,
    /// Reads the head of the request alone, and closes.
    CloseAfterHead,
    /// Reads the head alone, answers, and closes.
    AnswerAfterHead(Vec<u8>),
    /// Waits, then does the next.
    After(Duration, Box<Act>),
    /// Answers with these bytes, then with what it is fed.
    Feed(Vec<u8>, Arc<tokio::sync::Mutex<mpsc::UnboundedReceiver<Vec<u8>>>>),
    /// Answers with these bytes, and then with all that it reads.
    Echo(Vec<u8>),
    /// Never answers.
    Silence,
    /// Takes no connection.
    Refuse,
    /// Doesn't even refuse one.
    BlackHole,
    /// Does this, and closes the connection behind it.
    ThenClose(Box<Act>),
}

impl Act {
    pub(crate) fn ok(text: &'static str) -> Act {
        Act::Status(200, text)
    }

    pub(crate) fn after(wait: Duration, act: Act) -> Act {
        Act::After(wait, Box::new(act))
    }

    /// Whether it is about connections, not requests.
    fn is_about_connections(&self) -> bool {
        matches!(self, Act::Refuse | Act::BlackHole)
    }
}

/// An endpoint; clones are the same one. The last act of its script is done for ever.
#[derive(Clone)]
pub(crate) struct Endpoint(Arc<Mutex<State>>);

struct State {
    script: VecDeque<Act>,
    seen: Vec<Request>,
    connections: usize,
    /// Another proxy, in the place of a script.
    engine: Option<Engine<Network>>,
    /// Nobody can connect, and those who have are cut off.
    cut_off: bool,
}

impl Endpoint {
    pub(crate) fn new(script: impl IntoIterator<Item = Act>) -> Endpoint {
        let script = script.into_iter().collect();
        let state = State { script, seen: Vec::new(), connections: 0, engine: None, cut_off: false };
        Endpoint(Arc::new(Mutex::new(state)))
    }

    /// Another proxy.
    pub(crate) fn engine(engine: &Engine<Network>) -> Endpoint {
        let endpoint = Endpoint::new([]);
        endpoint.0.lock().unwrap().engine = Some(engine.clone());
        endpoint
    }

    /// From now on nobody can connect; or, again, everybody.
    pub(crate) fn cut_off(&self, cut_off: bool) {
        self.0.lock().unwrap().cut_off = cut_off;
    }

    /// The requests that came so far.
    pub(crate) fn seen(&self) -> Vec<Request> {
        self.0.lock().unwrap().seen.clone()
    }

    /// Connections taken so far.
    pub(crate) fn connections(&self) -> usize {
        self.0.lock().unwrap().connections
    }

    fn next(&self, wanted: impl Fn(&Act) -> bool) -> Option<Act> {
        let script = &mut self.0.lock().unwrap().script;
        let first = script.front().filter(|act| wanted(act)).cloned();
        if first.is_some() && script.len() > 1 {
            script.pop_front();
        }
        first
    }

    pub(super) async fn connect(&self) -> io::Result<DuplexStream> {
        let (engine, cut_off) = {
            let state = self.0.lock().unwrap();
            (state.engine.clone(), state.cut_off)
        };
        if cut_off {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        if let Some(engine) = engine {
            let (proxy, own) = tokio::io::duplex(PIPE);
            let endpoint = self.clone();
            tokio::spawn(async move {
                tokio::select! {
                    () = engine.serve(own, None) => {}
                    () = endpoint.until_cut_off() => {}
                }
            });
            return Ok(proxy);
        }
        match self.next(Act::is_about_connections) {
            Some(Act::BlackHole) => std::future::pending().await,
            Some(_) => return Err(io::ErrorKind::ConnectionRefused.into()),
            None => {}
        }
        let (proxy, own) = tokio::io::duplex(PIPE);
        let number = {
            let mut state = self.0.lock().unwrap();
            state.connections += 1;
            state.connections - 1
        };
        let endpoint = self.clone();
        tokio::spawn(async move { endpoint.serve(own, number).await });
        Ok(proxy)
    }

    async fn until_cut_off(&self) {
        while !self.0.lock().unwrap().cut_off {
            sleep(Duration::from_millis(1)).await;
        }
    }

    async fn serve(&self, mut io: DuplexStream, connection: usize) {
        while let Ok(Some((line, fields))) = read_head(&mut io).await {
            let act = self.next(|act| !act.is_about_connections()).unwrap_or(Act::Close);
            let (act, wait) = match act {
                Act::After(wait, act) => (*act, Some(wait)),
                act => (act, None),
            };
            let early = matches!(act, Act::CloseAfterHead | Act::AnswerAfterHead(_));
            let framing = match (fields.one("transfer-encoding"), fields.one("content-length")) {
                _ if early => Framing::Nothing,
                (Some(_), _) => Framing::Chunked,
                (None, Some(length)) => Framing::Length(length.parse().unwrap()),
                (None, None) => Framing::Nothing,
            };
            let (body, trailers, whole) = read_body(&mut io, framing).await;
            let at = super::clock::now();
            let request = Request { line, fields, body, trailers, connection, at };
            self.0.lock().unwrap().seen.push(request);
            if !whole {
                return;
            }
            if let Some(wait) = wait {
                sleep(wait).await;
            }
            if !act_on(&mut io, act).await {
                return;
            }
        }
    }
}

/// Whether the connection goes on.
async fn act_on(io: &mut DuplexStream, act: Act) -> bool {
    let (bytes, on) = match act {
        Act::Status(status, text) => (answer(status, "", text), true),
        Act::Fields(status, fields, text) => (answer(status, fields, text), true),
        Act::Bytes(bytes) => (bytes, true),
        Act::BytesThenClose(bytes) | Act::AnswerAfterHead(bytes) => (bytes, false),
        Act::ThenClose(act) => {
            Box::pin(act_on(io, *act)).await;
            return false;
        }
        Act::Close | Act::CloseAfterHead => return false,
        Act::Feed(head, fed) => return feed(io, &head, &fed).await,
        Act::Echo(head) => {
            let (mut read, mut write) = tokio::io::split(io);
            write.write_all(&head).await.unwrap();
            drop(tokio::io::copy(&mut read, &mut write).await);
            return false;
        }
        _ => {
            // Until the proxy gives up.
            drop(io.read_u8().await);
            return false;
        }
    };
    io.write_all(&bytes).await.is_ok() && on
}

async fn feed(
    io: &mut DuplexStream,
    head: &[u8],
    fed: &tokio::sync::Mutex<mpsc::UnboundedReceiver<Vec<u8>>>,
) -> bool {
    io.write_all(head).await.unwrap();
    let mut fed = fed.lock().await;
    while let Some(bytes) = fed.recv().await {
        if io.write_all(&bytes).await.is_err() {
            return false;
        }
    }
    true
}

fn answer(status: u16, fields: &str, text: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status} Some Words\r\ncontent-length: {}\r\n{fields}\r\n{text}", text.len())
        .into_bytes()
}
