//! Programs of others.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use super::stand::{AT_ONCE, Stand};

/// Runs a program that has `input` to read; `None`: it is not there.
fn run(program: &str, args: &[&str], input: &[u8]) -> Option<Output> {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut child) = command.spawn() else {
        eprintln!("skipped: there is no {program}");
        return None;
    };
    let (mut stdin, input) = (child.stdin.take().unwrap(), input.to_vec());
    // It may end before it has read all.
    let writing = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    writing.join().unwrap();
    Some(output)
}

fn curl(stand: &Stand, path: &str, args: &[&str], input: &[u8]) -> Option<Output> {
    let url = stand.url(path);
    let args = [&["-sS", "--noproxy", "*", "--max-time", "60"], args, &[&url]].concat();
    let output = run("curl", &args, input)?;
    assert!(output.status.success(), "{}", told(&output));
    Some(output)
}

/// A script with the proxy's address as its argument.
fn script(program: &str, args: &[&str], stand: &Stand) {
    let address = stand.listening.to_string();
    if let Some(output) = run(program, &[args, &[&address]].concat(), b"") {
        assert!(output.status.success(), "{}", told(&output));
    }
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

/// Bytes that are not all the same.
fn long() -> Vec<u8> {
    (0..1_000_000_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

const BOTH: [&str; 2] = ["--http1.1", "--http2-prior-knowledge"];

#[test]
fn curl_gets_and_is_spared_a_failure() {
    let stand = Stand::start(AT_ONCE);
    for (place, version) in BOTH.into_iter().enumerate() {
        let Some(output) = curl(&stand, "/hello", &[version], b"") else { return };
        assert_eq!(output.stdout, b"hello");
        let Some(output) = curl(&stand, "/chunks", &[version], b"") else { return };
        assert_eq!(output.stdout, b"one two three");
        let path = format!("/flaky/hello/{place}");
        let Some(output) = curl(&stand, &path, &[version, "-w", " %{http_code} %{http_version}"], b"") else {
            return;
        };
        assert_eq!(output.stdout, format!("hello 200 {}", ["1.1", "2"][place]).into_bytes());
        assert_eq!(stand.memory.seen(&path), 2);
        let Some(output) = curl(&stand, "/hello", &[version, "-I"], b"") else { return };
        assert!(told(&output).contains("content-length: 5"), "{}", told(&output));
    }
}

#[test]
fn curl_sends_bodies_of_unknown_length() {
    let stand = Stand::start(AT_ONCE);
    for version in BOTH {
        let Some(output) = curl(&stand, "/echo", &[version, "--upload-file", "-"], &long()) else { return };
        assert!(output.stdout == long(), "{version}: {} bytes came back", output.stdout.len());
    }
}

#[test]
fn curl_waits_for_100() {
    let stand = Stand::start(AT_ONCE);
    for length in ["content-length", "chunked"] {
        let mut args = vec!["--http1.1", "-v", "-H", "Expect: 100-continue", "--expect100-timeout", "60"];
        match length {
            "chunked" => args.extend(["--upload-file", "-"]),
            _ => args.extend(["-X", "PUT", "--data-binary", "@-"]),
        }
        let Some(output) = curl(&stand, "/echo", &args, &long()) else { return };
        assert!(output.stdout == long(), "{length}: {} bytes came back", output.stdout.len());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(said.matches("< HTTP/1.1 100 Continue").count(), 1, "{length}: {said}");
    }
}

/// In HTTP/1.1 alone: before its version 8, curl breaks off a second request on an HTTP/2 connection, with any server.
#[test]
fn curl_has_many_requests_on_a_connection() {
    let stand = Stand::start(AT_ONCE);
    let args = ["--http1.1", "-w", "%{http_code} %{num_connects}\n", "-o", "/dev/null"];
    let Some(output) = curl(&stand, "/flaky/hello/[1-100]", &args, b"") else { return };
    assert_eq!(told(&output), format!("200 1\n{}", "200 0\n".repeat(99)));
    assert!((1..=100).all(|number| stand.memory.seen(&format!("/flaky/hello/{number}")) == 2));
}

#[test]
fn python_with_its_own_client() {
    const SCRIPT: &str = r#"
import http.client, sys
connection = http.client.HTTPConnection(sys.argv[1], timeout=60)

def ask(method, path, **more):
    connection.request(method, path, **more)
    answer = connection.getresponse()
    return answer.status, answer.read(), answer

assert ask("GET", "/hello")[:2] == (200, b"hello")
socket = connection.sock
assert ask("GET", "/chunks")[:2] == (200, b"one two three")
assert ask("GET", "/flaky/hello/python")[:2] == (200, b"hello")
long = bytes(range(256)) * 4000
assert ask("PUT", "/echo", body=long)[:2] == (200, long)
parts = (long[at:at + 10000] for at in range(0, len(long), 10000))
assert ask("POST", "/echo", body=parts, encode_chunked=True, headers={"Transfer-Encoding": "chunked"})[:2] == (200, long)
status, body, answer = ask("HEAD", "/hello")
assert (status, body, answer.getheader("content-length")) == (200, b"", "5")
status, body, answer = ask("GET", "/events")
assert answer.getheader("content-type") == "text/event-stream" and body.endswith(b"id: 2\ndata: two\n\n"), body
assert connection.sock is socket, "one connection was enough"
"#;
    let stand = Stand::start(AT_ONCE);
    script("python3", &["-c", SCRIPT], &stand);
}

#[test]
fn python_with_httpx() {
    const SCRIPT: &str = r#"
import sys
try:
    import httpx
except ImportError:
    print("skipped: there is no httpx")
    sys.exit()
base = "http://" + sys.argv[1]
try:
    import h2
    versions = [dict(), dict(http1=False, http2=True)]
except ImportError:
    versions = [dict()]
for version in versions:
    with httpx.Client(base_url=base, timeout=60, trust_env=False, **version) as client:
        assert client.get("/hello").text == "hello"
        assert client.get(f"/flaky/hello/httpx{len(version)}").status_code == 200
        long = bytes(range(256)) * 4000
        parts = (long[at:at + 10000] for at in range(0, len(long), 10000))
        answer = client.put("/echo", content=parts)
        assert (answer.status_code, answer.content) == (200, long)
        with client.stream("GET", "/events") as stream:
            lines = [line for line in stream.iter_lines() if line]
        assert lines == ["retry: 1", "id: 1", "data: one", "id: 2", "data: two"], lines
        print(answer.http_version)
"#;
    let stand = Stand::start(AT_ONCE);
    let address = stand.listening.to_string();
    let Some(output) = run("python3", &["-c", SCRIPT, &address], b"") else { return };
    assert!(output.status.success(), "{}", told(&output));
    eprint!("{}", told(&output));
}

#[test]
fn node_with_fetch() {
    const SCRIPT: &str = r#"
const base = "http://" + process.argv[1];
const check = (did, should) => { if (JSON.stringify(did) !== JSON.stringify(should)) throw new Error(`${did} is not ${should}`); };
(async () => {
    if (typeof fetch !== "function") { console.log("skipped: this node has no fetch"); return; }
    check(await (await fetch(base + "/hello")).text(), "hello");
    check((await fetch(base + "/flaky/hello/node")).status, 200);
    const long = new Uint8Array(1_000_000).map((_, at) => at % 251);
    let at = 0;
    const body = new ReadableStream({
        pull(stream) {
            if (at >= long.length) return stream.close();
            stream.enqueue(long.slice(at, at += 10_000));
        },
    });
    const echo = await fetch(base + "/echo", { method: "POST", body, duplex: "half" });
    check([echo.status, Buffer.compare(Buffer.from(await echo.arrayBuffer()), Buffer.from(long))], [200, 0]);
    const events = await (await fetch(base + "/events")).text();
    check(events.endsWith("id: 2\ndata: two\n\n"), true);
    const leaving = new AbortController();
    const begun = await fetch(base + "/begin", { signal: leaving.signal });
    leaving.abort();
    check(await begun.text().catch((error) => error.name), "AbortError");
    check((await Promise.all([...Array(50)].map(() => fetch(base + "/hello").then((answer) => answer.text())))).join(""), "hello".repeat(50));
})().catch((error) => { console.error(error); process.exit(1); });
"#;
    let stand = Stand::start(AT_ONCE);
    script("node", &["-e", SCRIPT], &stand);
}
