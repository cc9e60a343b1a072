//! HTTP/2 on both sides of the proxy: clients and endpoints that speak it by the `h2` crate, and endpoints of raw frames
//! (RFC 9113 §4.1) for what that crate won't say.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use h2::client::SendRequest;
use h2::server::SendResponse;
use h2::{RecvStream, SendStream};
use http::{HeaderMap, Request, Response};
use relent_proxy::{Connector, Engine};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::mpsc;

use super::PIPE;

type Served = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Endpoints, each connection to which is served by the function: its number, from 0, and its bytes.
#[derive(Clone)]
pub(crate) struct Endpoints {
    serve: Arc<dyn Fn(usize, DuplexStream) -> Served + Send + Sync>,
    connections: Arc<AtomicUsize>,
}

impl Endpoints {
    pub(crate) fn new<F: Future<Output = ()> + Send + 'static>(
        serve: impl Fn(usize, DuplexStream) -> F + Send + Sync + 'static,
    ) -> Endpoints {
        let serve = Arc::new(move |number, io| Box::pin(serve(number, io)) as Served);
        Endpoints { serve, connections: Arc::default() }
    }

    /// An endpoint of the `h2` crate, each stream of which is handled by the function.
    pub(crate) fn streams<F: Future<Output = ()> + Send + 'static>(
        settings: h2::server::Builder,
        handle: impl Fn(Stream) -> F + Send + Sync + 'static,
    ) -> Endpoints {
        let (handle, seen) = (Arc::new(handle), Arc::new(AtomicUsize::new(0)));
        Endpoints::new(move |_, io| {
            let (settings, handle, seen) = (settings.clone(), Arc::clone(&handle), Arc::clone(&seen));
            async move {
                let Ok(mut open) = settings.handshake::<_, Bytes>(io).await else { return };
                while let Some(Ok((request, respond))) = open.accept().await {
                    let number = seen.fetch_add(1, Ordering::Relaxed);
                    tokio::spawn(handle(Stream { number, request, respond }));
                }
            }
        })
    }

    /// Connections so far.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

impl Connector for Endpoints {
    type Io = DuplexStream;

    async fn connect(&self, _endpoint: &relent_config::Endpoint) -> io::Result<DuplexStream> {
        let (proxy, own) = tokio::io::duplex(PIPE);
        let number = self.connections.fetch_add(1, Ordering::Relaxed);
        tokio::spawn((self.serve)(number, own));
        Ok(proxy)
    }
}

/// A request at an endpoint.
pub(crate) struct Stream {
    /// From 0, over all connections.
    pub(crate) number: usize,
    pub(crate) request: Request<RecvStream>,
    pub(crate) respond: SendResponse<Bytes>,
}

impl Stream {
    /// The request's body and trailers.
    pub(crate) async fn read(&mut self) -> (Vec<u8>, Option<HeaderMap>) {
        read(self.request.body_mut()).await.expect("the request is whole")
    }

    /// Answers with a status and a text.
    pub(crate) fn answer(&mut self, status: u16, text: &'static str) {
        let mut body = self.begin(status);
        // The client may have left.
        drop(body.send_data(Bytes::from_static(text.as_bytes()), true));
    }

    /// Answers with a status; what follows is the caller's.
    pub(crate) fn begin(&mut self, status: u16) -> SendStream<Bytes> {
        let head = Response::builder().status(status).body(()).unwrap();
        self.respond.send_response(head, false).expect("the proxy wants an answer")
    }
}

/// All of a body.
pub(crate) async fn read(body: &mut RecvStream) -> Result<(Vec<u8>, Option<HeaderMap>), h2::Error> {
    let mut bytes = Vec::new();
    while let Some(data) = body.data().await {
        let data = data?;
        body.flow_control().release_capacity(data.len())?;
        bytes.extend_from_slice(&data);
    }
    Ok((bytes, body.trailers().await?))
}

/// A proxy before these endpoints, which all speak `protocol`.
pub(crate) struct H2Rig {
    pub(crate) engine: Engine<Endpoints>,
    pub(crate) upstream: Endpoints,
}

impl H2Rig {
    pub(crate) fn new(policy: &str, upstream: Endpoints) -> H2Rig {
        H2Rig::of(&config(policy, "h2"), upstream)
    }

    pub(crate) fn of(text: &str, upstream: Endpoints) -> H2Rig {
        let config = relent_config::parse("rig.toml", text).unwrap();
        let engine = Engine::new(config, upstream.clone()).unwrap();
        let sweeping = engine.clone();
        tokio::spawn(async move { sweeping.sweep().await });
        H2Rig { engine, upstream }
    }

    /// A client's HTTP/2 connection.
    pub(crate) async fn connect(&self) -> H2Client {
        H2Client::over(connect(&self.engine)).await
    }

    /// The value of a metric without labels.
    pub(crate) fn metric(&self, name: &str) -> u64 {
        metric(&self.engine.metrics(), name)
    }
}

/// The sum of a metric over its labels.
pub(crate) fn metric(page: &str, name: &str) -> u64 {
    let own = |line: &&str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '{']));
    page.lines().filter(own).map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
}

/// A file with one endpoint.
pub(crate) fn config(policy: &str, protocol: &str) -> String {
    format!(
        "version = 1\n[proxy]\nlisten = \"127.0.0.1:0\"\naccess_log = \"none\"\noutcome_header = true\n\
         [policy.p]\n{policy}\n[upstream.u]\nendpoints = [\"http://10.0.0.1:80\"]\nprotocol = \"{protocol}\"\n\
         [[route]]\nupstream = \"u\"\npolicy = \"p\"\n"
    )
}

/// Bytes to and from an engine.
pub(crate) fn connect<C: Connector>(engine: &Engine<C>) -> DuplexStream {
    let (client, server) = tokio::io::duplex(PIPE);
    let engine = engine.clone();
    tokio::spawn(async move { engine.serve(server, None).await });
    client
}

/// A client's connection.
#[derive(Clone)]
pub(crate) struct H2Client {
    pub(crate) sender: SendRequest<Bytes>,
    ended: Arc<Mutex<Option<Result<(), String>>>>,
}

/// A response, read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) fields: HeaderMap,
    pub(crate) body: Result<(Vec<u8>, Option<HeaderMap>), h2::Error>,
}

impl Answer {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body.as_ref().unwrap().0).unwrap()
    }

    pub(crate) fn trailers(&self) -> &HeaderMap {
        self.body.as_ref().unwrap().1.as_ref().expect("there are trailers")
    }

    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(|value| value.to_str().unwrap())
    }
}

impl H2Client {
    pub(crate) async fn over(
        io: impl AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    ) -> H2Client {
        let (sender, connection) = h2::client::handshake(io).await.unwrap();
        let ended = Arc::new(Mutex::new(None));
        let told = Arc::clone(&ended);
        tokio::spawn(async move {
            let result = connection.await.map_err(|error| error.to_string());
            *told.lock().unwrap() = Some(result);
        });
        H2Client { sender, ended }
    }

    /// How the connection ended, if it has.
    pub(crate) fn ended(&self) -> Option<Result<(), String>> {
        self.ended.lock().unwrap().clone()
    }

    /// Begins a request; its response, and where its body goes.
    pub(crate) async fn begin(
        &self,
        request: Request<()>,
    ) -> (h2::client::ResponseFuture, SendStream<Bytes>) {
        let mut sender = self.sender.clone().ready().await.unwrap();
        sender.send_request(request, false).unwrap()
    }

    /// A request whose body is one piece of data, without a length.
    pub(crate) async fn send(&self, request: Request<()>, body: &[u8]) -> Result<Answer, h2::Error> {
        let (response, mut stream) = self.begin(request).await;
        stream.send_data(Bytes::copy_from_slice(body), true)?;
        H2Client::answer(response).await
    }

    pub(crate) async fn answer(response: h2::client::ResponseFuture) -> Result<Answer, h2::Error> {
        let (head, mut body) = response.await?.into_parts();
        Ok(Answer { status: head.status.as_u16(), fields: head.headers, body: read(&mut body).await })
    }

    pub(crate) async fn get(&self) -> Result<Answer, h2::Error> {
        self.send(request("GET"), b"").await
    }
}

pub(crate) fn request(method: &str) -> Request<()> {
    Request::builder().method(method).uri("http://a.example/x").body(()).unwrap()
}

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;

const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

impl Frame {
    pub(crate) fn bytes(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
    }

    pub(crate) async fn read<T: AsyncRead + Unpin>(io: &mut T) -> io::Result<Frame> {
        let mut head = [0; 9];
        io.read_exact(&mut head).await?;
        let [_, _, _, kind, flags, stream @ ..] = head;
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        io.read_exact(&mut payload).await?;
        Ok(Frame { kind, flags, stream: u32::from_be_bytes(stream), payload })
    }

    pub(crate) fn ends_stream(&self) -> bool {
        matches!(self.kind, HEADERS | DATA) && self.flags & END_STREAM != 0
    }

    /// A response's head, in HPACK's plainest form (RFC 7541 §6.2.2).
    pub(crate) fn answer(stream: u32, status: u16, fields: &[(&str, &str)]) -> Vec<u8> {
        let literal = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
        // `:status` is entry 8 of the static table.
        let mut block = [vec![8], literal(&status.to_string())].concat();
        for (name, value) in fields {
            block.extend([vec![0], literal(name), literal(value)].concat());
        }
        Frame::bytes(HEADERS, END_HEADERS | END_STREAM, stream, &block)
    }

    /// GOAWAY without an error.
    pub(crate) fn goaway(last: u32) -> Vec<u8> {
        Frame::bytes(GOAWAY, 0, 0, &[&last.to_be_bytes()[..], &[0; 4]].concat())
    }

    pub(crate) fn reset(stream: u32, reason: h2::Reason) -> Vec<u8> {
        Frame::bytes(RST_STREAM, 0, stream, &u32::from(reason).to_be_bytes())
    }
}

/// What a raw connection writes; `None` closes it.
pub(crate) type Writer = mpsc::UnboundedSender<Option<Vec<u8>>>;

/// Serves a raw connection: settings and pings are answered, the other frames handed to the function. Once that answers
/// `false`, the connection is dead: open, but nothing is read any more, and nothing written.
pub(crate) async fn raw(io: DuplexStream, mut on: impl FnMut(Frame, &Writer) -> bool + Send) {
    let (mut read, mut write) = tokio::io::split(io);
    let (writer, mut lines) = mpsc::unbounded_channel::<Option<Vec<u8>>>();
    let writing = async {
        while let Some(Some(bytes)) = lines.recv().await {
            if write.write_all(&bytes).await.is_err() {
                return;
            }
        }
        drop(write.shutdown().await);
    };
    let reading = async {
        let mut preface = [0; 24];
        if read.read_exact(&mut preface).await.is_err() {
            return;
        }
        let say = |bytes| drop(writer.send(Some(bytes)));
        say(Frame::bytes(SETTINGS, 0, 0, &[]));
        while let Ok(frame) = Frame::read(&mut read).await {
            match frame.kind {
                SETTINGS if frame.flags & ACK == 0 => say(Frame::bytes(SETTINGS, ACK, 0, &[])),
                PING if frame.flags & ACK == 0 => say(Frame::bytes(PING, ACK, 0, &frame.payload)),
                SETTINGS | PING => {}
                _ if on(frame, &writer) => {}
                _ => std::future::pending().await,
            }
        }
    };
    tokio::select! {
        () = writing => {}
        () = reading => {}
    }
}
