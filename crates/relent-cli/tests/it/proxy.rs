//! `relent proxy` as a user meets it: what it refuses, a request through it, and its end.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStderr};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::{program, relent, relent_line};

#[test]
fn what_can_not_be_started_is_refused_with_the_mend() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap();
    let cases = [
        ("proxy".to_owned(), "give a file with --config, or --listen and --upstream"),
        ("proxy --listen 127.0.0.1:0".to_owned(), "give a file with --config, or --listen and --upstream"),
        ("proxy --listen :80 --upstream http://a".to_owned(), "write 0.0.0.0:80 for all addresses"),
        ("proxy --listen localhost:80 --upstream http://a".to_owned(), "write 127.0.0.1:80"),
        (
            "proxy --listen 127.0.0.1:0 --upstream https://a".to_owned(),
            "https to an upstream is not supported yet",
        ),
        (
            "proxy --listen 127.0.0.1:0 --upstream a:80".to_owned(),
            "write a URL such as http://127.0.0.1:9000",
        ),
        ("proxy --listen 127.0.0.1:0 --upstream http://a --upstream http://a".to_owned(), "is given twice"),
        ("proxy --listen 127.0.0.1:0 --upstream http://a --workers 0".to_owned(), "no number from 1 to 1024"),
        (
            "proxy --listen 127.0.0.1:0 --upstream http://a --deadline 2s".to_owned(),
            "attempt_timeout 5s is not below deadline 2s",
        ),
        ("proxy --listen 127.0.0.1:80 --upstream http://127.0.0.1:80".to_owned(), "would call itself"),
        ("proxy --config no-such-file.toml".to_owned(), "there is no such file"),
        (
            "proxy --config a.toml --upstream http://a".to_owned(),
            "--config and --upstream contradict each other",
        ),
        ("proxy --config a.toml --attempts 3".to_owned(), "--config and --attempts contradict each other"),
        (
            format!("proxy --listen {taken} --upstream http://a"),
            "choose another --listen, or end the program that has it",
        ),
        (format!("proxy --listen 127.0.0.1:0 --admin {taken} --upstream http://a"), "choose another --admin"),
        (
            "proxy --listen 127.0.0.1:0 --upstream http://a --access-log /no/such/folder/log".to_owned(),
            "can't open the access log",
        ),
    ];
    for (line, said) in cases {
        let ran = relent_line(&line);
        assert_eq!(ran.code, 2, "{line}: {ran:?}");
        assert!(ran.err.contains(said), "{line}: {}", ran.err);
    }
}

#[test]
fn a_file_for_the_library_alone_is_refused() {
    let file = std::env::temp_dir().join(format!("relent-library-{}.toml", std::process::id()));
    std::fs::write(&file, "version = 1\n[policy.api]\n").unwrap();
    let ran = relent(
        [&b"proxy"[..], b"--config"]
            .map(|arg| String::from_utf8(arg.to_vec()).unwrap().into())
            .into_iter()
            .chain([file.clone().into_os_string()]),
    );
    std::fs::remove_file(&file).unwrap();
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("has no [proxy]: add it"), "{}", ran.err);
}

/// A proxy that runs, and its stderr behind the ready lines.
struct Running {
    child: Child,
    lines: BufReader<ChildStderr>,
    listening: String,
    admin: String,
}

impl Running {
    fn before(upstream: &str, flags: &[&str]) -> Running {
        let upstream = format!("http://{upstream}");
        let base = ["proxy", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--upstream", &upstream];
        let mut child = program().args(base).args(flags).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let mut address = |begin: &str| {
            let mut line = String::new();
            lines.read_line(&mut line).unwrap();
            line.strip_prefix(begin).unwrap_or_else(|| panic!("{line}")).trim_end().to_owned()
        };
        let listening = address("relent: listening on http://");
        let admin = address("relent: admin on http://");
        Running { child, lines, listening, admin }
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(i32::try_from(self.child.id()).unwrap()), signal).unwrap();
    }

    /// Its exit code, what it said at the end, and its stdout.
    fn end(mut self) -> (Option<i32>, String, String) {
        let mut said = String::new();
        self.lines.read_to_string(&mut said).unwrap();
        let mut out = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        (self.child.wait().unwrap().code(), said, out)
    }
}

/// Everything that comes back for a request.
fn ask(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// A server that answers its requests in order, one connection each.
fn server(answers: &'static [&'static str]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for answer in answers {
            let (stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream);
            let mut line = String::new();
            while reader.read_line(&mut line).unwrap() > 2 {
                line.clear();
            }
            reader.get_mut().write_all(answer.as_bytes()).unwrap();
        }
    });
    address
}

const GET: &str = "GET /a HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";

#[test]
fn a_request_is_retried_and_the_end_is_clean() {
    let upstream = server(&[
        "HTTP/1.1 503 Busy\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\ndone",
    ]);
    let proxy = Running::before(&upstream, &["--access-log", "stdout", "--workers", "2"]);
    let answer = ask(&proxy.listening, GET);
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("done"), "{answer}");
    let metrics = ask(&proxy.admin, "GET /metrics HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    assert!(
        metrics.contains("relent_retries_total{upstream=\"default\",policy=\"default\",reason=\"503\"} 1"),
        "{metrics}"
    );
    proxy.signal(Signal::SIGTERM);
    let (code, said, out) = proxy.end();
    assert_eq!((code, said.lines().last()), (Some(0), Some("relent: ended")));
    assert!(out.contains("\"attempts\":[{\"number\":1,") && out.ends_with("}\n"), "{out}");
}

#[test]
fn what_is_in_flight_at_the_end_of_the_grace_is_cut_off() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = Running::before(&silent.local_addr().unwrap().to_string(), &["--grace", "50ms"]);
    let mut client = TcpStream::connect(&proxy.listening).unwrap();
    client.write_all(GET.as_bytes()).unwrap();
    // The request has arrived behind the proxy.
    let (mut there, _) = silent.accept().unwrap();
    there.read_exact(&mut [0]).unwrap();
    proxy.signal(Signal::SIGTERM);
    let (code, said, _) = proxy.end();
    assert_eq!(code, Some(0));
    assert!(said.contains("1 connections were cut off at the end of the grace period"), "{said}");
    assert_eq!(client.read(&mut [0]).unwrap_or(0), 0);
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut proxy = Running::before(&silent.local_addr().unwrap().to_string(), &["--grace", "1h"]);
    let mut client = TcpStream::connect(&proxy.listening).unwrap();
    client.write_all(GET.as_bytes()).unwrap();
    let (mut there, _) = silent.accept().unwrap();
    there.read_exact(&mut [0]).unwrap();
    proxy.signal(Signal::SIGINT);
    let mut line = String::new();
    proxy.lines.read_line(&mut line).unwrap();
    assert!(line.contains("ending"), "{line}");
    proxy.signal(Signal::SIGTERM);
    assert_eq!(proxy.end().0, Some(143));
}
