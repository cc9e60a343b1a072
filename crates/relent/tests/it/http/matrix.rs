//! What is repeated, and what is not: every cell of methods × failures × repeat rules, through both clients.

use http::Method;
use relent::timer::Manual;
use relent::{Event, RepeatRule, StopReason};

use super::client::{BOTH, Call, Outcome, Through, passing, policy, retry, through_tower};
use super::connection::OneConnection;
use super::server::{Act, Server, reply};

/// A row: who asks, under which rule, and whether whatever he does may be repeated.
#[derive(Clone, Debug)]
struct Row {
    method: Method,
    key: Option<&'static str>,
    rule: RepeatRule,
    harmless: bool,
}

fn rows() -> Vec<Row> {
    let row = |method, key, rule, harmless| Row { method, key, rule, harmless };
    let mut rows = Vec::new();
    for method in [Method::GET, Method::HEAD, Method::OPTIONS, Method::TRACE, Method::PUT, Method::DELETE] {
        rows.push(row(method.clone(), None, RepeatRule::IdempotentMethods, true));
        rows.push(row(method, None, RepeatRule::KeyHonoured, true));
    }
    for method in [Method::POST, Method::PATCH] {
        rows.push(row(method.clone(), None, RepeatRule::IdempotentMethods, false));
        rows.push(row(method.clone(), Some("k-7"), RepeatRule::IdempotentMethods, false));
        rows.push(row(method.clone(), None, RepeatRule::KeyHonoured, false));
        rows.push(row(method.clone(), Some("k-7"), RepeatRule::KeyHonoured, true));
        rows.push(row(method, None, RepeatRule::Always, true));
    }
    rows
}

impl Row {
    fn call(&self, server: &Server) -> Call {
        let body = match self.method {
            Method::PUT | Method::POST | Method::PATCH => "amount=5",
            _ => "",
        };
        Call::new(self.method.clone(), server.url()).key(self.key).body(body)
    }

    /// All attempts say the same, key and body included.
    fn assert_same(&self, server: &Server) {
        for request in server.requests().iter().filter(|request| !request.head.is_empty()) {
            assert_eq!(request.method(), self.method.as_str());
            assert_eq!(request.header("idempotency-key"), Vec::from_iter(self.key));
        }
        let last = server.requests().pop().unwrap();
        assert_eq!(last.body, self.call(server).body, "{self:?}");
    }
}

/// Runs one cell: a failure, then a server that is well again.
async fn cell(through: Through, row: &Row, failure: Act) -> (Outcome, Server) {
    let time = Manual::new();
    let server = Server::start([failure, Act::ok()]);
    let retry = retry(policy().repeat(row.rule), &time);
    let outcome = passing(&time, through.call(retry, row.call(&server))).await;
    (outcome, server)
}

fn assert_repeated(outcome: &Outcome, server: &Server, row: &Row, requests: usize) {
    let body = if row.method == Method::HEAD { "" } else { "done" };
    assert_eq!((outcome.status, &outcome.body[..]), (Some(200), body.as_bytes()), "{row:?}");
    assert_eq!(server.requests().len(), requests, "{row:?}");
    row.assert_same(server);
}

fn assert_refused(outcome: &Outcome, server: &Server, row: &Row, ambiguous: bool) {
    assert_eq!(outcome.reason, Some(StopReason::UnsafeToRepeat), "{row:?}");
    assert_eq!((outcome.attempts, outcome.ambiguous), (1, ambiguous), "{row:?}");
    assert_eq!(server.requests().len(), 1, "{row:?}");
}

#[tokio::test]
async fn a64_connect_refused_is_repeated_whatever_the_method() {
    for (through, row) in
        BOTH.into_iter().flat_map(|through| rows().into_iter().map(move |row| (through, row)))
    {
        let time = Manual::new();
        let server = Server::deaf([Act::ok()]);
        let heard = server.clone();
        let retry = retry(policy().repeat(row.rule), &time).on_event(move |event| {
            if matches!(event, Event::Failed { .. }) {
                heard.listen();
            }
        });
        let outcome = passing(&time, through.call(retry, row.call(&server))).await;
        assert_repeated(&outcome, &server, &row, 1);
    }
}

#[tokio::test]
async fn a64_a65_a_connection_gone_before_the_first_byte_is_repeated_whatever_the_method() {
    for row in rows() {
        let time = Manual::new();
        let server = Server::start([Act::CloseUnasked, Act::ok()]);
        let retry = retry(policy().repeat(row.rule), &time);
        let client = OneConnection::stale(&server).await;
        let outcome = passing(&time, through_tower(client, retry, row.call(&server))).await;
        assert_repeated(&outcome, &server, &row, 1);
        assert_eq!(server.seen().connections, 2);
    }
}

/// Whether the request was on its way when the connection closed is a matter of luck, and hyper-util's and reqwest's errors
/// don't tell. Either way nothing is done twice, and what isn't known is said not to be.
#[tokio::test]
async fn a65_p58_a_connection_closed_at_once_never_does_harm() {
    for (through, row) in
        BOTH.into_iter().flat_map(|through| rows().into_iter().map(move |row| (through, row)))
    {
        let (outcome, server) = cell(through, &row, Act::CloseUnasked).await;
        if row.harmless || outcome.status.is_some() {
            assert_repeated(&outcome, &server, &row, 1);
        } else {
            assert_eq!((outcome.reason, outcome.ambiguous), (Some(StopReason::UnsafeToRepeat), true));
            assert_eq!(server.requests().len(), 0);
        }
    }
}

#[tokio::test]
async fn a64_a_reset_after_bytes_were_sent_is_repeated_only_where_that_is_harmless() {
    for (through, row) in
        BOTH.into_iter().flat_map(|through| rows().into_iter().map(move |row| (through, row)))
    {
        for failure in [Act::ResetUnread, Act::Reset] {
            let (outcome, server) = cell(through, &row, failure).await;
            if row.harmless {
                assert_repeated(&outcome, &server, &row, 2);
            } else {
                assert_refused(&outcome, &server, &row, true);
                assert_eq!(outcome.status, None);
            }
        }
    }
}

#[tokio::test]
async fn a64_an_attempt_timeout_is_repeated_only_where_that_is_harmless() {
    for (through, row) in
        BOTH.into_iter().flat_map(|through| rows().into_iter().map(move |row| (through, row)))
    {
        let time = Manual::new();
        let server = Server::start([Act::Hang, Act::ok()]);
        let second = std::time::Duration::from_secs(1);
        let retry = retry(policy().attempt_timeout(second).repeat(row.rule), &time);
        let patience = async {
            server.until(|seen| seen.requests.len() == 1).await;
            time.advance(second);
        };
        let (outcome, ()) = tokio::join!(through.call(retry, row.call(&server)), patience);
        if row.harmless {
            assert_repeated(&outcome, &server, &row, 2);
        } else {
            assert_refused(&outcome, &server, &row, true);
            assert_eq!(outcome.status, None);
        }
    }
}

#[tokio::test]
async fn a64_statuses_are_repeated_only_where_that_is_harmless() {
    let after = &[("retry-after", "1")];
    for (through, row) in
        BOTH.into_iter().flat_map(|through| rows().into_iter().map(move |row| (through, row)))
    {
        for (code, hint, ambiguous) in [
            (500, None, false),
            (502, None, true),
            (503, None, false),
            (504, None, true),
            (429, Some(after), false),
            (503, Some(after), false),
        ] {
            let failure = reply(code, hint.map_or(&[][..], |hint| &hint[..]), "because");
            let (outcome, server) = cell(through, &row, Act::Answer(failure)).await;
            if row.harmless {
                assert_repeated(&outcome, &server, &row, 2);
                continue;
            }
            // P4, P5, P68: the refused retry hands on what the server said.
            assert_refused(&outcome, &server, &row, ambiguous);
            assert_eq!((outcome.status, &outcome.body[..]), (Some(code), &b"because"[..]));
        }
    }
}

#[tokio::test]
async fn b10_not_every_5xx_is_worth_another_attempt() {
    for (through, code) in BOTH.into_iter().flat_map(|through| [501, 505].map(|code| (through, code))) {
        let row = Row { method: Method::GET, key: None, rule: RepeatRule::Always, harmless: true };
        let (outcome, server) = cell(through, &row, Act::status(code)).await;
        assert_eq!((outcome.status, outcome.reason), (Some(code), Some(StopReason::NotRetryable)));
        assert_eq!(server.requests().len(), 1, "{code}");
    }
}

#[tokio::test]
async fn under_never_nothing_is_sent_again() {
    for through in BOTH {
        let row = Row { method: Method::GET, key: Some("k"), rule: RepeatRule::Never, harmless: false };
        let (outcome, server) = cell(through, &row, Act::status(503)).await;
        assert_refused(&outcome, &server, &row, false);
        let (outcome, server) = cell(through, &row, Act::Reset).await;
        assert_refused(&outcome, &server, &row, true);
    }
}

#[tokio::test]
async fn p2_b10_b14_b21_a_post_is_not_retried_where_a_get_is() {
    for (method, requests) in [(Method::GET, 2), (Method::POST, 1)] {
        let row = Row { method, key: None, rule: RepeatRule::IdempotentMethods, harmless: false };
        let (_, server) = cell(Through::Tower, &row, Act::status(503)).await;
        assert_eq!(server.requests().len(), requests);
    }
}
