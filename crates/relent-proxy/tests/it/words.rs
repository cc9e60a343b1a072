//! What is said on the way in and out: fields, marks, the log, refusals.

use crate::rig::{Act, Endpoint, PLAIN, Rig};

#[tokio::test(start_paused = true)]
async fn p64_only_the_last_attempts_fields_arrive() {
    let rig = Rig::new(
        PLAIN,
        [Act::Fields(503, "set-cookie: a\r\nx-a: 1\r\n", ""), Act::Fields(200, "set-cookie: b\r\n", "")],
    );
    let response = rig.get("/").await;
    assert_eq!((response.field("set-cookie"), response.field("x-a")), (Some("b"), None));
}

#[tokio::test(start_paused = true)]
async fn p66_p67_orders_of_strangers_are_ignored_and_go_no_further() {
    let rig = Rig::new(PLAIN, [Act::Status(503, "")]);
    let orders = "x-envoy-max-retries: 1000\r\nx-envoy-retry-on: 5xx\r\nx-envoy-upstream-rq-timeout-ms: 1\r\n\
                  x-envoy-upstream-rq-per-try-timeout-ms: 1\r\nx-envoy-retriable-status-codes: 404\r\n";
    rig.send(&format!("GET / HTTP/1.1\r\nhost: a\r\n{orders}\r\n")).await;
    let seen = rig.seen();
    assert_eq!(seen.len(), 3);
    for name in [
        "x-envoy-max-retries",
        "x-envoy-retry-on",
        "x-envoy-upstream-rq-timeout-ms",
        "x-envoy-upstream-rq-per-try-timeout-ms",
        "x-envoy-retriable-status-codes",
    ] {
        assert!(seen.iter().all(|seen| seen.field(name).is_none()), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn orders_of_trusted_peers_are_obeyed_and_go_no_further() {
    for (peer, expected) in [("10.1.2.3:4000", 6), ("11.1.2.3:4000", 3)] {
        let rig =
            Rig::of("trusted_peers = [\"10.0.0.0/8\"]", PLAIN, "", [Endpoint::new([Act::Status(503, "")])]);
        let mut client = rig.connect_from(peer.parse().unwrap());
        client.send("GET / HTTP/1.1\r\nhost: a\r\nx-envoy-max-retries: 5\r\n\r\n").await;
        client.response().await;
        let seen = rig.seen();
        assert_eq!(seen.len(), expected, "{peer}");
        assert!(seen.iter().all(|seen| seen.field("x-envoy-max-retries").is_none()));
    }
}

#[tokio::test(start_paused = true)]
async fn p68_after_the_last_attempt_the_endpoints_own_answer_arrives() {
    let rig = Rig::new(PLAIN, [Act::Status(503, "one"), Act::Status(503, "two"), Act::Status(503, "three")]);
    assert_eq!(rig.get("/").await.text(), "three");
}

#[tokio::test(start_paused = true)]
async fn p70_the_log_has_every_attempt() {
    let endpoints = [Endpoint::new([Act::Status(503, "busy"), Act::ok("done")]), Endpoint::new([Act::Close])];
    let rig = Rig::logged(PLAIN, "", endpoints);
    rig.send("PUT /a?secret=1 HTTP/1.1\r\nhost: api.example\r\ncontent-length: 5\r\n\r\nhello").await;
    let line = rig.line().await;
    assert_eq!(
        (&line["status"], &line["method"], &line["path"]),
        (&200.into(), &"PUT".into(), &"/a".into()),
        "{line}"
    );
    assert_eq!(
        (&line["host"], &line["bytes_in"], &line["bytes_out"]),
        (&"api.example".into(), &5.into(), &4.into())
    );
    assert_eq!((&line["stop"], &line["ambiguous"]), (&"Succeeded".into(), &true.into()));
    let attempts = line["attempts"].as_array().unwrap();
    let told: Vec<_> = attempts
        .iter()
        .map(|attempt| {
            (
                attempt["number"].as_u64().unwrap(),
                attempt["endpoint"].as_str().unwrap(),
                attempt["wrote"].as_bool().unwrap(),
            )
        })
        .collect();
    assert_eq!(told, [(1, "10.0.0.1:80", true), (2, "10.0.0.2:80", true), (3, "10.0.0.1:80", true)]);
    assert_eq!(
        (&attempts[0]["status"], &attempts[1]["failure"], &attempts[2]["status"]),
        (&503.into(), &"reset".into(), &200.into())
    );
    assert_eq!(attempts[1]["wait_ms"], 100.0);
}

#[tokio::test(start_paused = true)]
async fn p74_a_floor_is_kept() {
    let policy =
        "attempts = 4\nbackoff = { base = \"100ms\", floor = \"100ms\", cap = \"1s\" }\nbudget = \"none\"\n";
    let rig = Rig::new(policy, [Act::Status(503, "")]);
    rig.get("/").await;
    let seen = rig.seen();
    let waits: Vec<_> = seen.windows(2).map(|pair| pair[1].at.since(pair[0].at)).collect();
    assert!(waits.len() == 3 && waits.iter().all(|wait| wait.as_millis() >= 100), "{waits:?}");
}

#[tokio::test(start_paused = true)]
async fn what_ends_at_a_hop_ends_here() {
    let rig = Rig::new(
        PLAIN,
        [Act::Fields(200, "connection: x-own\r\nx-own: 1\r\nkeep-alive: timeout=5\r\nx-end: 1\r\n", "")],
    );
    let response = rig
        .send("GET / HTTP/1.1\r\nhost: a\r\nconnection: close, x-mine\r\nx-mine: 1\r\nproxy-connection: x\r\nkeep-alive: 1\r\nx-through: 1\r\n\r\n")
        .await;
    let seen = &rig.seen()[0];
    for name in ["connection", "x-mine", "proxy-connection", "keep-alive"] {
        assert_eq!(seen.field(name), None, "{name}");
    }
    assert_eq!((seen.field("x-through"), seen.field("host")), (Some("1"), Some("a")));
    assert_eq!(
        (response.field("x-own"), response.field("keep-alive"), response.field("x-end")),
        (None, None, Some("1"))
    );
}

#[tokio::test(start_paused = true)]
async fn targets_arrive_in_the_form_of_the_hop() {
    let rig = Rig::new(PLAIN, [Act::ok("")]);
    for (target, line, host) in [
        ("/a%2Fb/../c?x=%20#", "GET /a%2Fb/../c?x=%20", "a"),
        ("http://other.example/x?y", "GET /x?y", "other.example"),
        ("http://other.example", "GET /", "other.example"),
    ] {
        rig.send(&format!("GET {} HTTP/1.1\r\nhost: a\r\n\r\n", target.trim_end_matches('#'))).await;
        let seen = rig.seen().pop().unwrap();
        assert_eq!(
            (seen.line.as_str(), seen.field("host")),
            (format!("{line} HTTP/1.1").as_str(), Some(host))
        );
    }
    rig.send("OPTIONS * HTTP/1.1\r\nhost: a\r\n\r\n").await;
    assert_eq!(rig.seen().pop().unwrap().line, "OPTIONS * HTTP/1.1");
    let response = rig.send("CONNECT a:80 HTTP/1.1\r\nhost: a:80\r\n\r\n").await;
    assert_eq!(response.status, 501);
}

#[tokio::test(start_paused = true)]
async fn what_is_no_request_is_refused_and_logged() {
    let rows = [
        ("GET / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\ncontent-length: 5\r\n\r\nhello", 400),
        ("GET / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: gzip\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nhost: a\r\nx: 1\r\n folded\r\n\r\n", 400),
        ("GET / HTTP/1.1\nhost: a\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nhost: a\r\nx: \0\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nhost: a\r\nx : 1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nhost: a\r\n: 1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\n\r\n", 400),
        ("G\0T / HTTP/1.1\r\nhost: a\r\n\r\n", 400),
        ("hello\r\n\r\n", 400),
    ];
    for (request, expected) in rows {
        let rig = Rig::logged(PLAIN, "", [Endpoint::new([Act::ok("never")])]);
        let mut client = rig.connect();
        client.send(request).await;
        let response = client.response().await;
        assert_eq!((response.status, rig.seen().len()), (expected, 0), "{request:?}");
        let line = rig.line().await;
        assert_eq!(line["status"], expected, "{request:?}: {line}");
        assert!(line["error"].as_str().is_some_and(|error| !error.is_empty()), "{line}");
        assert_eq!(client.rest().await, b"", "the connection is closed");
    }
}

#[tokio::test(start_paused = true)]
async fn a_head_that_is_too_large_is_refused() {
    let rig = Rig::logged(PLAIN, "", [Endpoint::new([Act::ok("never")])]);
    let mut client = rig.connect();
    let (read, mut write) = tokio::io::split(client.io);
    let request = format!("GET / HTTP/1.1\r\nhost: a\r\nx: {}\r\n\r\n", "y".repeat(70_000));
    tokio::spawn(
        async move { drop(tokio::io::AsyncWriteExt::write_all(&mut write, request.as_bytes()).await) },
    );
    client = crate::rig::Client::read_only(read);
    let response = client.response().await;
    assert_eq!((response.status, rig.seen().len()), (431, 0));
    assert_eq!(rig.line().await["status"], 431);
}

#[tokio::test(start_paused = true)]
async fn a_good_request_before_a_bad_one_is_answered_first() {
    let rig = Rig::new(PLAIN, [Act::ok("good")]);
    let mut client = rig.connect();
    client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\nGET / HTTP/1.1\r\nhost: a\nx: y\r\n\r\n").await;
    assert_eq!(client.response().await.text(), "good");
    assert_eq!(client.response().await.status, 400);
    assert_eq!((client.rest().await.len(), rig.seen().len()), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn pipelined_requests_are_answered_in_order() {
    let rig = Rig::new(PLAIN, [Act::ok("1"), Act::ok("2"), Act::ok("3")]);
    let mut client = rig.connect();
    client
        .send("GET /1 HTTP/1.1\r\nhost: a\r\n\r\nPOST /2 HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\nhiGET /3 HTTP/1.1\r\nhost: a\r\n\r\n")
        .await;
    for expected in ["1", "2", "3"] {
        assert_eq!(client.response().await.text(), expected);
    }
    assert_eq!(rig.seen()[1].text(), "hi");
}

#[tokio::test(start_paused = true)]
async fn what_no_route_is_for_is_not_found() {
    let text = "version = 1\n[proxy]\nlisten = \"127.0.0.1:0\"\n[policy.p]\n[upstream.u]\nendpoints = [\"http://10.0.0.1:80\"]\n\
                [[route]]\nhost = \"api.example\"\npath = \"/api\"\nmethods = [\"GET\"]\nupstream = \"u\"\npolicy = \"p\"\n";
    let rig = Rig::from_text(text, [Endpoint::new([Act::ok("")])]);
    for (method, host, path, expected) in [
        ("GET", "api.example", "/api/x", 200),
        ("GET", "API.example:8080", "/api?x", 200),
        ("GET", "other.example", "/api", 404),
        ("GET", "api.example", "/apiary", 404),
        ("PUT", "api.example", "/api", 404),
    ] {
        let response = rig.send(&format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\n\r\n")).await;
        assert_eq!(response.status, expected, "{method} {host} {path}");
    }
}
