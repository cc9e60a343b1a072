//! Clients that leave, twenty thousand times: in an attempt, in a wait, in a response's body, and before anything.

use std::process::Command;
use std::sync::Arc;

use h2::Reason;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use super::stand::{Stand, get};
use crate::rig::h2::{H2Client, request};

/// Set in the process that has the test for itself: other tests' descriptors can't be told from its own.
const ALONE: &str = "RELENT_TEST_ALONE";
const NAME: &str = "sockets::cancelled::cancelled_requests_leave_nothing_behind";

const TASKS: usize = 40;
const ROUNDS: usize = 504;

#[test]
fn cancelled_requests_leave_nothing_behind() {
    if std::env::var_os(ALONE).is_none() {
        let own = std::env::current_exe().unwrap();
        let output =
            Command::new(own).args(["--exact", NAME, "--nocapture"]).env(ALONE, "1").output().unwrap();
        let told = String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned();
        assert!(output.status.success() && told.contains("1 passed"), "{told}");
        return;
    }
    let waiting = "attempts = 3\nbackoff = { base = \"1h\", cap = \"1h\", jitter = \"none\" }\nbudget = \"none\"\n\
                   deadline = \"none\"\nattempt_timeout = \"none\"\n";
    let stand = Stand::start(waiting);
    assert_eq!(get(stand.listening, "/hello").0, 200);
    stand.until("at rest", |stand| stand.metric("relent_client_connections") == 0);
    let before = descriptors();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
    runtime.block_on(everybody(&stand));
    drop(runtime);
    for gauge in [
        "relent_requests_in_flight",
        "relent_client_connections",
        "relent_calls_waiting",
        "relent_replay_bytes",
    ] {
        stand.until(gauge, |stand| stand.metric(gauge) == 0);
    }
    // Idle connections to the service end by themselves.
    stand.until("as many descriptors as before", |_| descriptors() <= before);
    assert_eq!(get(stand.listening, "/hello"), (200, "hello".to_owned()));
    // Five of eight left without an answer, two inside of one; the others before they had asked, or not.
    let page = stand.metrics();
    let gone = page.lines().find(|line| line.starts_with("relent_calls_total") && line.contains("\"gone\""));
    let gone: usize = gone.and_then(|line| line.rsplit(' ').next()).unwrap().parse().unwrap();
    assert!(gone >= TASKS * ROUNDS * 5 / 8, "{page}");
    assert_eq!(stand.metric("relent_broken_responses_total"), (TASKS * ROUNDS * 2 / 8) as u64, "{page}");
}

#[cfg(target_os = "linux")]
fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[cfg(not(target_os = "linux"))]
fn descriptors() -> usize {
    0
}

async fn everybody(stand: &Stand) {
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..TASKS {
        let proxy = stand.listening;
        let silent = (format!("/silent/{task}"), stand.memory.watch(&format!("/silent/{task}")));
        let busy = (format!("/busy/{task}"), stand.memory.watch(&format!("/busy/{task}")));
        tasks.spawn(async move {
            let shared = H2Client::over(TcpStream::connect(proxy).await.unwrap()).await;
            for round in 0..ROUNDS {
                match round % 8 {
                    0 => leave(proxy, &silent.0, Some(&silent.1)).await,
                    1 => leave(proxy, &busy.0, Some(&busy.1)).await,
                    2 => leave(proxy, "/begin", None).await,
                    3 => leave_at_once(proxy, round % 3).await,
                    4 | 5 => reset(&shared, &silent.0, Some(&silent.1)).await,
                    6 => reset(&shared, &busy.0, Some(&busy.1)).await,
                    _ => reset(&shared, "/begin", None).await,
                }
            }
        });
    }
    while let Some(task) = tasks.join_next().await {
        task.unwrap();
    }
}

/// Leaves when the request has arrived, or its response's head.
async fn leave(proxy: std::net::SocketAddr, path: &str, arrived: Option<&Arc<Notify>>) {
    let mut stream = TcpStream::connect(proxy).await.unwrap();
    let request = format!("PUT {path} HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhello");
    stream.write_all(request.as_bytes()).await.unwrap();
    match arrived {
        Some(arrived) => arrived.notified().await,
        None => assert_eq!(stream.read_u8().await.unwrap(), b'H'),
    }
}

/// Leaves with the whole request, a part of its body, or a part of its head on the way.
async fn leave_at_once(proxy: std::net::SocketAddr, what: usize) {
    let mut stream = TcpStream::connect(proxy).await.unwrap();
    let request = &b"PUT /silent HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhello"[..];
    let length = [request.len(), request.len() - 2, 30][what];
    stream.write_all(&request[..length]).await.unwrap();
}

/// The same on a connection that goes on.
async fn reset(client: &H2Client, path: &str, arrived: Option<&Arc<Notify>>) {
    let mut head = request("PUT");
    *head.uri_mut() = format!("http://a{path}").parse().unwrap();
    let (response, mut body) = client.begin(head).await;
    body.send_data(bytes::Bytes::from_static(b"hello"), true).unwrap();
    match arrived {
        Some(arrived) => {
            arrived.notified().await;
            body.send_reset(Reason::CANCEL);
        }
        None => {
            let response = response.await.unwrap();
            body.send_reset(Reason::CANCEL);
            drop(response);
        }
    }
}
