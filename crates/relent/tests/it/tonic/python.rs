//! Python's grpcio on the other side: its retries against a server's words, and the layer's against its server.
//!
//! With the interpreter that `RELENT_PYTHON` names, or `python3`; where that has no grpcio the tests are left out.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use relent::adapter::tonic::{TonicRetryLayer, previous_attempts, stopped, with_pushback};
use relent::grpc::Pushback;
use relent::http::DeadlineLayer;
use relent::{Deadline, Retry, StopReason};
use tokio::net::TcpListener;
use tokio_stream::Stream;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Code, Status};
use tower::Layer;

use super::stage::{Prices, always, ask_for, fail, ok};

/// An interpreter that has grpcio.
fn python() -> Option<PathBuf> {
    let python = std::env::var_os("RELENT_PYTHON").map_or_else(|| PathBuf::from("python3"), PathBuf::from);
    let mut command = Command::new(&python);
    command.args(["-c", "import grpc"]).stdout(Stdio::null()).stderr(Stdio::null());
    if command.status().is_ok_and(|status| status.success()) {
        return Some(python);
    }
    eprintln!("skipped: {} has no grpcio", python.display());
    None
}

fn script(python: &Path, name: &str) -> Command {
    let mut command = Command::new(python);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/tonic").join(name));
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

struct Incoming(TcpListener);

impl Stream for Incoming {
    type Item = std::io::Result<tokio::net::TcpStream>;

    fn poll_next(
        self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        self.0.poll_accept(cx).map(|accepted| Some(accepted.map(|(stream, _)| stream)))
    }
}

fn unavailable() -> Status {
    Status::unavailable("not now")
}

/// What a handler says through relent is what grpcio does.
#[tokio::test]
async fn grpcio_is_a_client() {
    let Some(python) = python() else { return };
    let prices = Prices::new(|_, request| match (&request.get_ref()[..], previous_attempts(request)) {
        (b"flaky", 0 | 1) => fail(unavailable()),
        (b"flaky", 2) => ok("the third"),
        (b"stop", _) => fail(with_pushback(unavailable(), Pushback::Stop)),
        (b"wait", 0) => fail(with_pushback(unavailable(), Pushback::After(Duration::from_millis(30)))),
        (b"wait", _) => ok("waited"),
        (b"deadline", _) if Deadline::current().is_some() => ok("told"),
        _ => fail(Status::internal("not that")),
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let serving = Server::builder().layer(DeadlineLayer::new()).add_service(prices.clone());
    tokio::spawn(serving.serve_with_incoming(Incoming(listener)));

    let run = move || script(&python, "client.py").arg(address).output().unwrap();
    let output = tokio::task::spawn_blocking(run).await.unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<_> = said.lines().collect();
    assert_eq!(lines, ["flaky the third", "stop UNAVAILABLE not now", "wait waited", "deadline told"]);
    let asked: Vec<_> = prices.seen().into_iter().map(|(_, text)| text).collect();
    assert_eq!(asked, ["flaky", "flaky", "flaky", "stop", "wait", "wait", "deadline"]);
}

/// A server of grpcio's, ended with its input.
struct Grpcio {
    child: Child,
    channel: Channel,
}

impl Grpcio {
    fn start(python: &Path) -> Grpcio {
        let mut child = script(python, "server.py").spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = format!("http://127.0.0.1:{}", line.trim());
        Grpcio { child, channel: Endpoint::from_shared(address).unwrap().connect_lazy() }
    }
}

impl Drop for Grpcio {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// The layer understands what grpcio's server says.
#[tokio::test]
async fn grpcio_is_a_server() {
    let Some(python) = python() else { return };
    let server = Grpcio::start(&python);
    let retry = Retry::new(always().build().unwrap());
    let layer = TonicRetryLayer::new(retry);
    let client = layer.layer(server.channel.clone());

    for (question, answer) in [
        ("flaky", "with a deadline, after 2"),
        ("wait", "with a deadline, after 1"),
        ("plain", "with a deadline, after 0"),
    ] {
        assert_eq!(ask_for(client.clone(), question).await.unwrap().into_inner(), answer);
    }
    let status = ask_for(client.clone(), "stop").await.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::Unavailable, "not again, after 0"));
    assert_eq!(stopped(&status).unwrap().reason, StopReason::StoppedByPeer);

    // A head without a status commits, unless the first frame is waited for.
    let status = ask_for(client, "head").await.unwrap_err();
    assert_eq!((status.message(), stopped(&status).is_none()), ("after the head", true));
    let peeking = layer.peek_first_frame(Duration::from_secs(60)).layer(server.channel.clone());
    let answer = ask_for(peeking, "head").await.unwrap().into_inner();
    assert_eq!(answer, "with a deadline, after 1");
}
