//! The text of a line.

use std::fmt::Write;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::Version;
use relent_core::Cause;
use serde_json::{Map, Value, json};

use crate::facts::{self, Attempt, Outcome};
use crate::upstream::Upstream;

pub(super) fn of_call(call: &facts::Call, line: &facts::Line, target: Option<(&Upstream, &str)>) -> Vec<u8> {
    let mut object = begin(line.time, line.client);
    object.insert("method".into(), json!(line.method.as_str()));
    object.insert("host".into(), json!(line.host));
    object.insert("path".into(), json!(line.path));
    object.insert("protocol".into(), json!(protocol(line.version)));
    object.insert("status".into(), json!(call.status));
    if let Some((upstream, policy)) = target {
        object.insert("upstream".into(), json!(upstream.name));
        object.insert("policy".into(), json!(policy));
    }
    object.insert("duration_ms".into(), milliseconds(call.took));
    object.insert("bytes_in".into(), json!(line.bytes_in));
    object.insert("bytes_out".into(), json!(line.bytes_out));
    let attempts =
        line.attempts.iter().map(|attempt| of_attempt(attempt, target.map(|(upstream, _)| upstream)));
    object.insert("attempts".into(), attempts.collect());
    if let Some(stop) = call.stop {
        object.insert("stop".into(), json!(stop.name()));
        object.insert("ambiguous".into(), json!(call.ambiguous));
    }
    if call.broken {
        object.insert("broken".into(), json!(true));
    }
    if let Some(error) = &line.error {
        object.insert("error".into(), json!(error));
    }
    finish(object)
}

pub(super) fn of_unread(status: u16, unread: &facts::Unread) -> Vec<u8> {
    let mut object = begin(unread.time, unread.client);
    object.insert("status".into(), json!(status));
    object.insert("attempts".into(), json!([]));
    object.insert("error".into(), json!(unread.error));
    finish(object)
}

fn of_attempt(attempt: &Attempt, upstream: Option<&Upstream>) -> Value {
    let mut object = Map::new();
    object.insert("number".into(), json!(attempt.number));
    let authority = attempt.endpoint.and_then(|place| upstream?.authorities.get(place)?.to_str().ok());
    if let Some(authority) = authority {
        object.insert("endpoint".into(), json!(authority));
    }
    match attempt.outcome {
        Outcome::Status(status) => object.insert("status".into(), json!(status)),
        Outcome::Failed(cause) => object.insert("failure".into(), json!(failure(cause))),
        Outcome::GivenUp => object.insert("failure".into(), json!("cancelled")),
    };
    object.insert("wrote".into(), json!(attempt.wrote));
    object.insert("reused".into(), json!(attempt.reused));
    object.insert("wait_ms".into(), milliseconds(attempt.waited));
    object.insert("ms".into(), milliseconds(attempt.took));
    Value::Object(object)
}

fn begin(time: SystemTime, client: Option<SocketAddr>) -> Map<String, Value> {
    let mut object = Map::new();
    object.insert("time".into(), json!(rfc3339(time)));
    if let Some(client) = client {
        object.insert("client".into(), json!(client.to_string()));
    }
    object
}

fn finish(object: Map<String, Value>) -> Vec<u8> {
    let mut line = Value::Object(object).to_string().into_bytes();
    line.push(b'\n');
    line
}

fn failure(cause: Cause) -> &'static str {
    match cause {
        Cause::Connect => "connect",
        Cause::Reset => "reset",
        Cause::Timeout => "timeout",
        _ => "other",
    }
}

fn protocol(version: Version) -> &'static str {
    match version {
        Version::HTTP_2 => "h2c",
        Version::HTTP_10 => "http/1.0",
        _ => "http/1.1",
    }
}

/// With three decimals.
fn milliseconds(length: Duration) -> Value {
    let micros = u32::try_from(length.as_micros()).unwrap_or(u32::MAX);
    json!(f64::from(micros) / 1000.0)
}

/// UTC, to the millisecond.
fn rfc3339(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, seconds) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = civil(days);
    let mut text = String::with_capacity(24);
    // Writing to a string does not fail.
    let _ = write!(
        text,
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:03}Z",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60,
        since.subsec_millis()
    );
    text
}

/// Year, month and day of so many days since 1970: the year is taken to begin in March, so that the leap day ends it.
fn civil(days: u64) -> (u64, u64, u64) {
    const FROM_MARCH_OF_YEAR_0: u64 = 719_468;
    const ERA: u64 = 146_097;
    let days = days + FROM_MARCH_OF_YEAR_0;
    let (era, of_era) = (days / ERA, days % ERA);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year_of_era + later, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_the_calendars() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(11_017), (2000, 3, 1));
        assert_eq!(civil(20_788), (2026, 12, 1));
        let mut before = (1969, 12, 31);
        for day in 0..100_000 {
            let now = civil(day);
            let next = now.0 == before.0 && now.1 == before.1 && now.2 == before.2 + 1;
            let turns = now.2 == 1 && (now.1 == before.1 + 1 || (now.1 == 1 && now.0 == before.0 + 1));
            assert!(next || turns, "{before:?} {now:?}");
            before = now;
        }
    }
}
