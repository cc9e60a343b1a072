//! The timelines, through the proxy: an endpoint acts out what the attempts come to, and what was done is read from the
//! access log and from what the client was told.

use std::collections::VecDeque;
use std::io;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use relent::timer::{Clock, SystemTimer};
use relent::{
    Cause, Failure, Hint, Instant, Repeat, RepeatRule, Stop, StopReason, StopScope, Verdict, WaitOrigin,
};
use relent_proxy::{Connector, Engine};
use relent_testkit::{ScriptedAttempt, ScriptedCall, ScriptedOutcome, Stage, Timeline, Trace};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use crate::rig::clock::sleep;
use crate::rig::h2::{self, Frame};
use crate::rig::{Client, PIPE, Pipe, Response, message};

/// What no endpoint can act out, or no client see; each with its reason. None of them is followed.
const NOT_ON_THE_WIRE: [(&str, &str); 12] = [
    ("a56_rejected_locally", "no endpoint answers that nothing was sent to it"),
    ("answer_beats_the_clock", "what leaves at the end of the attempt's time arrives after it"),
    ("deadline_passed_before", "no time at all is nothing that the layer above can tell"),
    ("hint_below_the_backoff", "Retry-After counts whole seconds"),
    ("hint_is_spread", SEED),
    ("hint_spread_is_cut_to_the_deadline", SEED),
    ("jitter_decorrelated", SEED),
    ("jitter_equal", SEED),
    ("jitter_full", SEED),
    ("jitter_full_with_floor", SEED),
    ("pushback_is_exact", "the proxy hears no exact hints: those are gRPC's"),
    ("throttled_wait_grows", "Retry-After can't say a hint of milliseconds"),
];
const SEED: &str = "the proxy's jitter has no seed";

/// Those whose attempts end without having been processed after a time: HTTP/2 alone can say that (GOAWAY).
const NOT_IN_HTTP1: &str = "free_repeat";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wire {
    Http1,
    Http2,
}

#[test]
fn every_timeline_that_http1_can_tell_is_followed() {
    check(Wire::Http1);
}

#[test]
fn every_timeline_that_http2_can_tell_is_followed() {
    check(Wire::Http2);
}

fn check(wire: Wire) {
    let timelines = Timeline::all().unwrap();
    let mut strayed = String::new();
    for timeline in &timelines {
        let name = timeline.path.rsplit('/').next().unwrap().trim_end_matches(".txt");
        let listed = NOT_ON_THE_WIRE.iter().any(|(own, _)| *own == name)
            || (wire == Wire::Http1 && name.starts_with(NOT_IN_HTTP1));
        let trace = play(timeline, wire);
        let followed = trace.as_ref().is_ok_and(|trace| trace.lines() == timeline.expected);
        match trace {
            _ if listed && followed => strayed += &format!("\n{name} is followed, and need not be listed\n"),
            _ if listed || followed => {}
            Ok(trace) => {
                let line = timeline.line_of_difference(&trace);
                strayed += &format!("\n{}:{line}: over {wire:?} the proxy did:\n{trace}", timeline.path);
            }
            Err(why) => strayed += &format!("\n{}: can't be played: {why}\n", timeline.path),
        }
    }
    for (listed, _) in NOT_ON_THE_WIRE {
        let exists = timelines.iter().any(|timeline| timeline.path.ends_with(&format!("/{listed}.txt")));
        assert!(exists, "there is no timeline {listed}");
    }
    assert!(strayed.is_empty(), "{strayed}");
}

fn play(timeline: &Timeline, wire: Wire) -> Result<Trace, &'static str> {
    for attempt in timeline.calls.iter().flat_map(|call| &call.attempts) {
        Act::of(attempt, wire)?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    Ok(runtime.unwrap().block_on(calls(timeline, wire)))
}

/// What an attempt comes to, on the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Act {
    /// Takes no connection.
    Refuse,
    /// Goes away, and leaves the stream out.
    GoAway,
    /// Breaks off without an answer.
    Reset,
    Answer(u16, Vec<(&'static str, String)>),
}

impl Act {
    fn of(attempt: &ScriptedAttempt, wire: Wire) -> Result<Act, &'static str> {
        let (failure, used) = match attempt.outcome {
            ScriptedOutcome::Succeeds => return Ok(Act::Answer(200, Vec::new())),
            ScriptedOutcome::Fails { failure, used } => (failure, used),
        };
        let status = match (failure.verdict(), failure.kind()) {
            (Verdict::Unprocessed, _) if failure == failure.free() && wire == Wire::Http1 => {
                return Err("HTTP/1.1 has no word for it");
            }
            (Verdict::Unprocessed, _) if failure == failure.free() => return Ok(Act::GoAway),
            (Verdict::Unprocessed, _) => return Ok(Act::Refuse),
            (Verdict::Transient, Cause::Reset) => return Ok(Act::Reset),
            (Verdict::Transient, Cause::Status(status)) => status,
            (Verdict::Transient, _) => 503,
            (Verdict::Throttled { .. }, _) => 429,
            (Verdict::Permanent, _) => 400,
            _ => return Err("no endpoint says so"),
        };
        let mut fields = Vec::new();
        if let Some(seconds) = hint(&failure)? {
            fields.push(("retry-after", seconds.to_string()));
        }
        if failure == failure.stop(StopScope::Host) {
            fields.push(("relent-stop", "scope=host".to_owned()));
        }
        if used > 0 {
            fields.push(("relent-attempts", format!("used={used}")));
        }
        Ok(Act::Answer(status, fields))
    }
}

/// What the server asks for, in seconds.
fn hint(failure: &Failure) -> Result<Option<u64>, &'static str> {
    let same = |seconds: &u64| *failure == failure.hint(Hint::at_least(Duration::from_secs(*seconds)));
    match (0..=3600).find(same) {
        // A failure can't be asked for its hint.
        None if format!("{failure:?}").contains("hint: Some") => {
            Err("Retry-After has no form for such a hint")
        }
        seconds => Ok(seconds),
    }
}

/// Where the attempts of a call go.
#[derive(Clone)]
struct Stand {
    wire: Wire,
    script: Arc<Mutex<VecDeque<ScriptedAttempt>>>,
    /// Requests that arrived.
    seen: Arc<Mutex<usize>>,
}

impl Connector for Stand {
    type Io = DuplexStream;

    async fn connect(&self, _endpoint: &relent_config::Endpoint) -> io::Result<DuplexStream> {
        let next = self.script.lock().unwrap().front().copied();
        if let Some(attempt) = next
            && Act::of(&attempt, self.wire) == Ok(Act::Refuse)
        {
            self.script.lock().unwrap().pop_front();
            sleep(attempt.takes).await;
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        let (proxy, own) = tokio::io::duplex(PIPE);
        let stand = self.clone();
        match self.wire {
            Wire::Http1 => tokio::spawn(async move { stand.serve(own).await }),
            Wire::Http2 => tokio::spawn(h2::raw(own, move |frame, writer| {
                stand.stream(frame, writer);
                true
            })),
        };
        Ok(proxy)
    }
}

impl Stand {
    /// An attempt is here.
    fn next(&self) -> (Duration, Act) {
        *self.seen.lock().unwrap() += 1;
        match self.script.lock().unwrap().pop_front() {
            Some(attempt) => {
                (attempt.takes, Act::of(&attempt, self.wire).expect("it was looked through before"))
            }
            // One that the script doesn't know fails for good.
            None => (Duration::ZERO, Act::Answer(400, Vec::new())),
        }
    }

    async fn serve(&self, mut io: DuplexStream) {
        while let Ok(Some((_, fields))) = message::read_head(&mut io).await {
            let length = fields.one("content-length").map_or(0, |length| length.parse().unwrap());
            message::read_body(&mut io, message::Framing::Length(length)).await;
            let (takes, act) = self.next();
            tokio::select! {
                () = sleep(takes) => {}
                // The proxy gave the attempt up.
                _ = io.read_u8() => return,
            }
            let Act::Answer(status, fields) = act else { return };
            let fields: String = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
            let head = format!("HTTP/1.1 {status} Some Words\r\ncontent-length: 0\r\n{fields}\r\n");
            io.write_all(head.as_bytes()).await.unwrap();
        }
    }

    fn stream(&self, frame: Frame, writer: &h2::Writer) {
        if !frame.ends_stream() {
            return;
        }
        let ((takes, act), writer) = (self.next(), writer.clone());
        tokio::spawn(async move {
            sleep(takes).await;
            let bytes = match act {
                Act::Answer(status, fields) => {
                    let fields: Vec<_> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
                    Frame::answer(frame.stream, status, &fields)
                }
                Act::GoAway => Frame::goaway(frame.stream.saturating_sub(2)),
                _ => Frame::reset(frame.stream, ::h2::Reason::CANCEL),
            };
            // The proxy may be gone.
            drop(writer.send(Some(bytes)));
        });
    }
}

/// A proxy under the timeline's policy, and its access log.
fn engine(timeline: &Timeline, stand: &Stand) -> (Engine<Stand>, Receiver<Vec<u8>>) {
    let protocol = if stand.wire == Wire::Http2 { "h2" } else { "http1" };
    let mut config = relent_config::parse("rig.toml", &h2::config("", protocol)).unwrap();
    let mut policy = timeline.policy.rebuild().replay_limit(KEPT as u64);
    if timeline.repeat == Repeat::No {
        policy = policy.repeat(RepeatRule::Never);
    }
    config.policies.insert("p".to_owned(), policy.build().unwrap());
    let (sender, lines) = std::sync::mpsc::channel();
    (Engine::with_log(config, stand.clone(), Pipe(sender)).unwrap(), lines)
}

/// Bytes of a body that are kept for a repeat.
const KEPT: usize = 16;

async fn calls(timeline: &Timeline, wire: Wire) -> Trace {
    let start = SystemTimer.now();
    let stand = Stand { wire, script: Arc::default(), seen: Arc::default() };
    let (engine, lines) = engine(timeline, &stand);
    let stage = Stage::new(timeline, start);
    let mut left = timeline.above.left;
    for call in &timeline.calls {
        sleep((start + call.at.unwrap_or_default()).since(SystemTimer.now())).await;
        *stand.script.lock().unwrap() = call.attempts.clone().into();
        *stand.seen.lock().unwrap() = 0;
        let began = SystemTimer.now();
        stage.begin(call, began);
        let request = request(timeline, call, left, began.since(start));
        let mut client = Client::new(h2::connect(&engine));
        client.send(&request).await;
        let response = client.response().await;
        let ended = SystemTimer.now();
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        let line = lines.recv_timeout(Duration::from_secs(60)).expect("every call has its line");
        let line = serde_json::from_slice(&line).unwrap();
        let stop = stop(&response);
        // The layer above has back what a call spent that succeeded.
        if let (Some(left), false) = (&mut left, stop.reason == StopReason::Succeeded) {
            let used = response.field("relent-attempts").and_then(|text| text.strip_prefix("used="));
            *left -= used.expect("it is told what was used").parse::<u32>().unwrap();
        }
        write_down(&stage, timeline, call, began, &line, *stand.seen.lock().unwrap());
        stage.stop(ended, &stop);
    }
    stage.trace()
}

fn request(timeline: &Timeline, call: &ScriptedCall, left: Option<u32>, now: Duration) -> String {
    let keeps = |attempt: &ScriptedAttempt| match attempt.outcome {
        ScriptedOutcome::Fails { failure, .. } => failure != failure.not_replayable(),
        ScriptedOutcome::Succeeds => true,
    };
    let mut fields = String::new();
    if let Some(left) = left {
        fields += &format!("relent-attempts: left={left}\r\n");
    }
    if let Some(deadline) = timeline.above.deadline {
        let time = deadline.saturating_sub(now).as_millis();
        fields += &format!("x-envoy-expected-rq-timeout-ms: {time}\r\n");
    }
    let (method, body) = match timeline.repeat {
        Repeat::Yes if call.attempts.iter().all(keeps) => ("GET", String::new()),
        Repeat::Yes => ("PUT", "x".repeat(2 * KEPT)),
        _ => ("POST", String::new()),
    };
    let length = body.len();
    format!("{method} / HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\n{fields}\r\n{body}")
}

/// How the call ended, as its client was told.
fn stop(response: &Response) -> Stop {
    use StopReason::*;
    const ALL: [StopReason; 13] = [
        Succeeded,
        NotRetryable,
        StoppedByPeer,
        UnsafeToRepeat,
        NotReplayable,
        AttemptsExhausted,
        CreditExhausted,
        HintTooLong,
        DeadlineTooClose,
        TooManyWaiting,
        BreakerOpen,
        BudgetExhausted,
        DeadlineExceeded,
    ];
    let mut words = response.outcome().split(", ");
    let name = words.next().and_then(|word| word.strip_prefix("stop=")).expect("the outcome is told");
    let attempts = words.next().and_then(|word| word.strip_prefix("attempts=")).unwrap().parse().unwrap();
    let hint = response.field("retry-after").map(|seconds| Duration::from_secs(seconds.parse().unwrap()));
    let reason =
        ALL.into_iter().find(|reason| reason.name() == name).unwrap_or_else(|| panic!("{response:?}"));
    Stop { reason, attempts, ambiguous: words.next() == Some("ambiguous"), hint }
}

/// Writes down what the access log says of a call's attempts.
fn write_down(
    stage: &Stage,
    timeline: &Timeline,
    call: &ScriptedCall,
    began: Instant,
    line: &serde_json::Value,
    seen: usize,
) {
    let length = |value: &serde_json::Value| Duration::from_micros((value.as_f64().unwrap() * 1000.0) as u64);
    let attempts = line["attempts"].as_array().unwrap();
    assert_eq!(attempts.iter().filter(|attempt| attempt["wrote"] == true).count(), seen, "{line}");
    let mut now = began;
    let mut before: Option<Failure> = None;
    for (place, attempt) in attempts.iter().enumerate() {
        let waited = length(&attempt["wait_ms"]);
        if let Some(failure) = before.filter(|failure| *failure != failure.free() || !waited.is_zero()) {
            stage.wait(now, now + waited, origin(timeline, &failure, waited));
        }
        now = now + waited;
        let _ = stage.launch(u32::try_from(attempt["number"].as_u64().unwrap()).unwrap(), now);
        now = now + length(&attempt["ms"]);
        before = match call.attempts.get(place).map(|scripted| scripted.outcome) {
            Some(ScriptedOutcome::Fails { failure, .. }) => Some(failure),
            _ => Some(Failure::timed_out()),
        };
    }
}

/// Whose word a wait is: the server's, if it is as long as that.
fn origin(timeline: &Timeline, failure: &Failure, waited: Duration) -> WaitOrigin {
    let asked = match (hint(failure), failure.verdict()) {
        (Ok(Some(seconds)), _) => Some(Duration::from_secs(seconds)),
        (_, Verdict::Throttled { .. }) => Some(timeline.policy.throttled_base()),
        _ => None,
    };
    if asked == Some(waited) { WaitOrigin::Server } else { WaitOrigin::Backoff }
}
