//! A server on loopback that follows a script, one act per request, and writes down what it saw. No HTTP library: what it
//! reads and writes are bytes.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;

/// What the server does with its next request.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Reads the request and answers.
    Answer(Vec<u8>),
    /// Answers when it has read the head; goes on to read the body.
    AnswerEarly(Vec<u8>),
    /// Answers when it has read the head, and closes.
    AnswerEarlyAndClose(Vec<u8>),
    /// Closes the connection as soon as it is there.
    CloseUnasked,
    /// Resets the connection when bytes have arrived, without reading them.
    ResetUnread,
    /// Resets the connection when it has read the head and so many bytes of the body.
    ResetAfter(usize),
    /// Resets the connection when it has read the request.
    Reset,
    /// Reads the request, and says nothing as long as the client stays.
    Hang,
}

impl Act {
    pub(crate) fn status(code: u16) -> Act {
        Act::Answer(reply(code, &[], "because"))
    }

    pub(crate) fn ok() -> Act {
        Act::Answer(reply(200, &[], "done"))
    }
}

/// A response with a `Content-Length`.
pub(crate) fn reply(status: u16, headers: &[(&str, &str)], body: &str) -> Vec<u8> {
    let mut text = format!("HTTP/1.1 {status} Some Reason\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    format!("{text}\r\n{body}").into_bytes()
}

/// A request as it came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Request {
    /// Which connection it came on, from 0.
    pub(crate) connection: usize,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn method(&self) -> &str {
        self.head.split(' ').next().unwrap_or_default()
    }

    /// All values of a header.
    pub(crate) fn header(&self, name: &str) -> Vec<&str> {
        let fields = self.head.lines().skip(1).filter_map(|line| line.split_once(':'));
        fields.filter(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).collect()
    }
}

/// What the server has seen so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) connections: usize,
    pub(crate) closed: usize,
    /// Requests of which anything arrived.
    pub(crate) requests: Vec<Request>,
}

#[derive(Clone)]
pub(crate) struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    unheard: Arc<Mutex<Option<TcpSocket>>>,
}

struct Shared {
    script: Mutex<VecDeque<Act>>,
    seen: watch::Sender<Seen>,
}

impl Server {
    /// Listens at once.
    pub(crate) fn start(script: impl IntoIterator<Item = Act>) -> Server {
        let server = Server::deaf(script);
        server.listen();
        server
    }

    /// Has a port, and refuses connections until [`Server::listen`].
    pub(crate) fn deaf(script: impl IntoIterator<Item = Act>) -> Server {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
        let shared = Shared {
            script: Mutex::new(script.into_iter().collect()),
            seen: watch::Sender::new(Seen::default()),
        };
        Server {
            address: socket.local_addr().unwrap(),
            shared: Arc::new(shared),
            unheard: Arc::new(Mutex::new(Some(socket))),
        }
    }

    /// From now on connections are accepted. Once is enough.
    pub(crate) fn listen(&self) {
        if let Some(socket) = self.unheard.lock().unwrap().take() {
            tokio::spawn(accept(socket.listen(64).unwrap(), Arc::clone(&self.shared)));
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/order?n=7", self.address)
    }

    pub(crate) fn authority(&self) -> String {
        self.address.to_string()
    }

    pub(crate) fn seen(&self) -> Seen {
        self.shared.seen.borrow().clone()
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.seen().requests
    }

    /// Waits for something to have happened.
    pub(crate) async fn until(&self, happened: impl FnMut(&Seen) -> bool) {
        self.shared.seen.subscribe().wait_for(happened).await.unwrap();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        let mut number = 0;
        shared.seen.send_modify(|seen| {
            number = seen.connections;
            seen.connections += 1;
        });
        tokio::spawn(async move {
            // A connection that broke is what many scripts are about.
            let _ = Connection { stream, buffer: BytesMut::new(), number, shared: Arc::clone(&shared) }
                .serve()
                .await;
            shared.seen.send_modify(|seen| seen.closed += 1);
        });
    }
}

struct Connection {
    stream: TcpStream,
    buffer: BytesMut,
    number: usize,
    shared: Arc<Shared>,
}

impl Connection {
    async fn serve(mut self) -> io::Result<()> {
        loop {
            if self.shared.next_closes() {
                return Ok(());
            }
            if self.buffer.is_empty() && self.stream.peek(&mut [0]).await? == 0 {
                return Ok(());
            }
            let act = self.shared.next();
            let place = self.shared.arrived(self.number);
            if matches!(act, Act::ResetUnread) {
                return self.reset();
            }
            let head = self.read_head().await?;
            let is_head = head.starts_with("HEAD ");
            let framing = Framing::of(&head);
            self.shared.note(place, |request| request.head = head);
            match act {
                Act::Answer(reply) => {
                    self.read_body(place, framing).await?;
                    self.write(&reply, is_head).await?;
                }
                Act::AnswerEarly(reply) => {
                    self.write(&reply, is_head).await?;
                    self.read_body(place, framing).await?;
                }
                Act::AnswerEarlyAndClose(reply) => {
                    self.write(&reply, is_head).await?;
                    self.stream.shutdown().await?;
                    // A socket closed with bytes unread would reset the answer away (RFC 9112 §9.6).
                    loop {
                        self.read_some().await?;
                        self.buffer.clear();
                    }
                }
                Act::Reset => {
                    self.read_body(place, framing).await?;
                    return self.reset();
                }
                Act::ResetAfter(length) => {
                    while self.buffer.len() < length {
                        self.read_some().await?;
                    }
                    return self.reset();
                }
                Act::Hang => {
                    self.read_body(place, framing).await?;
                    self.read_some().await?;
                }
                Act::CloseUnasked | Act::ResetUnread => unreachable!("handled above"),
            }
        }
    }

    async fn write(&mut self, reply: &[u8], is_head: bool) -> io::Result<()> {
        let end = reply.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
        self.stream.write_all(if is_head { &reply[..end] } else { reply }).await
    }

    fn reset(self) -> io::Result<()> {
        self.stream.set_zero_linger()
    }

    async fn read_some(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.buffer).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    async fn read_head(&mut self) -> io::Result<String> {
        loop {
            if let Some(end) = self.buffer.windows(4).position(|four| four == b"\r\n\r\n") {
                return Ok(String::from_utf8(self.buffer.split_to(end + 4).to_vec()).unwrap());
            }
            self.read_some().await?;
        }
    }

    async fn read_body(&mut self, place: usize, framing: Framing) -> io::Result<()> {
        let body = match framing {
            Framing::Length(length) => {
                while self.buffer.len() < length {
                    self.read_some().await?;
                }
                self.buffer.split_to(length).to_vec()
            }
            Framing::Chunked => self.read_chunks().await?,
        };
        self.shared.note(place, |request| request.body = body);
        Ok(())
    }

    async fn read_chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let line = loop {
                if let Some(end) = self.buffer.windows(2).position(|two| two == b"\r\n") {
                    break self.buffer.split_to(end + 2);
                }
                self.read_some().await?;
            };
            let length = usize::from_str_radix(std::str::from_utf8(&line).unwrap().trim(), 16).unwrap();
            while self.buffer.len() < length + 2 {
                self.read_some().await?;
            }
            body.extend_from_slice(&self.buffer[..length]);
            self.buffer.advance(length + 2);
            if length == 0 {
                return Ok(body);
            }
        }
    }
}

#[derive(Clone, Copy)]
enum Framing {
    Length(usize),
    Chunked,
}

impl Framing {
    fn of(head: &str) -> Framing {
        let request = Request { head: head.to_owned(), ..Request::default() };
        if request.header("transfer-encoding") == ["chunked"] {
            return Framing::Chunked;
        }
        Framing::Length(request.header("content-length").first().map_or(0, |length| length.parse().unwrap()))
    }
}

impl Shared {
    fn next_closes(&self) -> bool {
        let mut script = self.script.lock().unwrap();
        let closes = matches!(script.front(), Some(Act::CloseUnasked));
        if closes {
            script.pop_front();
        }
        closes
    }

    fn next(&self) -> Act {
        let over = || Act::Answer(reply(599, &[], "the script is over"));
        self.script.lock().unwrap().pop_front().unwrap_or_else(over)
    }

    fn arrived(&self, connection: usize) -> usize {
        let mut place = 0;
        self.seen.send_modify(|seen| {
            place = seen.requests.len();
            seen.requests.push(Request { connection, ..Request::default() });
        });
        place
    }

    fn note(&self, place: usize, change: impl FnOnce(&mut Request)) {
        self.seen.send_modify(|seen| change(&mut seen.requests[place]));
    }
}
