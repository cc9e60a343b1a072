//! What relent says to the next hop with each attempt, and hears from it: names and text forms on the wire.
//!
//! The adapters do all of this by themselves. The functions are here for authors of other drivers, on both sides: a
//! client stamps and hears, a server is told and answers.
//!
//! Whatever can't be read counts as absent, and so does a field that comes twice; nothing here fails.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::header::{Entry, HeaderMap, HeaderName, HeaderValue};
use relent_core::{Cause, Failure, Launch, StopReason, StopScope, Used, Verdict};

use super::fields;
use super::time_fields::TimeUnit;

/// Attempt credit: `left=2` with a request, `used=1` with a response (a structured-field dictionary).
pub const ATTEMPTS: HeaderName = HeaderName::from_static("relent-attempts");
/// "Do not retry this", with a scope: `scope=host, reason=budget`.
pub const STOP: HeaderName = HeaderName::from_static("relent-stop");
/// The attempt's number, from 1.
pub const ATTEMPT_COUNT: HeaderName = HeaderName::from_static("x-envoy-attempt-count");
/// The time that the sender gives this attempt, in milliseconds.
pub const EXPECTED_TIMEOUT: HeaderName = HeaderName::from_static("x-envoy-expected-rq-timeout-ms");
/// Envoy's own stop mark.
pub const RATE_LIMITED: HeaderName = HeaderName::from_static("x-envoy-ratelimited");

/// Takes from a request what only the hop before could mean: its attempt credit.
pub fn forget(headers: &mut HeaderMap) {
    headers.remove(ATTEMPTS);
}

/// Writes number, time and credit of an attempt upon a copy of the pristine request. Each is set, never appended; a time
/// that the caller wrote himself is only ever lowered, and where nothing useful is left, none is told.
///
/// ```
/// use http::HeaderMap;
/// use relent::http::wire;
///
/// let mut headers = HeaderMap::new();
/// headers.insert(wire::ATTEMPTS, "left=2".parse()?);
/// assert_eq!((wire::granted(&headers), wire::used(&headers)), (Some(2), None));
/// wire::report(&mut headers, 1);
/// assert_eq!((wire::granted(&headers), wire::used(&headers)), (None, Some(1)));
/// # Ok::<(), http::header::InvalidHeaderValue>(())
/// ```
pub fn stamp(headers: &mut HeaderMap, launch: &Launch) {
    stamp_with(headers, launch, None);
}

fn stamp_with(headers: &mut HeaderMap, launch: &Launch, whole: Option<&HeaderValue>) {
    headers.insert(ATTEMPT_COUNT, number(launch.number));
    if let Some(time) = launch.time_below() {
        stamp_time(headers, time, whole);
    }
    if let Some(left) = launch.left {
        headers.insert(ATTEMPTS, self::left(left));
    }
}

fn stamp_time(headers: &mut HeaderMap, time: Duration, whole: Option<&HeaderValue>) {
    if let Entry::Vacant(vacant) = headers.entry(EXPECTED_TIMEOUT) {
        // 0 would mean "no bound" to some.
        if let time @ 1.. = whole_milliseconds(time) {
            vacant.insert(whole.cloned().unwrap_or_else(|| digits(time)));
        }
        return;
    }
    let told = time_given(headers).unwrap_or(Duration::MAX);
    match whole_milliseconds(time.min(told)) {
        0 => headers.remove(EXPECTED_TIMEOUT),
        time => headers.insert(EXPECTED_TIMEOUT, digits(time)),
    };
}

/// Stamps attempts that mostly have the same time, as under one policy: its text is made once.
#[derive(Debug, Default)]
pub struct Stamp {
    usual: Option<(Duration, HeaderValue)>,
}

impl Stamp {
    /// For attempts that mostly have this much time.
    #[must_use]
    pub fn new(usual: Option<Duration>) -> Stamp {
        let usual = usual.map(|time| (time, whole_milliseconds(Launch::time_below_of(time))));
        Stamp { usual: usual.filter(|(_, below)| *below > 0).map(|(time, below)| (time, digits(below))) }
    }

    /// As [`stamp`] does it.
    pub fn stamp(&self, headers: &mut HeaderMap, launch: &Launch) {
        let usual = self.usual.as_ref().filter(|(time, _)| launch.time == Some(*time));
        stamp_with(headers, launch, usual.map(|(_, text)| text));
    }
}

/// The attempt credit that the hop before grants, in a request.
#[must_use]
pub fn granted(headers: &HeaderMap) -> Option<u32> {
    fields::number(headers, &ATTEMPTS, "left")
}

/// The time that the hop before gives, in a request. 0 is no time that anybody means.
#[must_use]
pub fn time_given(headers: &HeaderMap) -> Option<Duration> {
    TimeUnit::Milliseconds.read(headers, &EXPECTED_TIMEOUT)
}

/// The attempt's number that the hop before says, in a request.
#[must_use]
pub fn attempt_number(headers: &HeaderMap) -> Option<u32> {
    let mut values = headers.get_all(ATTEMPT_COUNT).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    value.to_str().ok()?.parse().ok()
}

/// Answers the hop before, in a response: so many extra attempts were made here and below.
pub fn report(headers: &mut HeaderMap, used: u32) {
    headers.insert(ATTEMPTS, dictionary("used=", used));
}

/// Tells the hop before, in a response, not to retry: what this process itself found (its budget is spent, its breaker
/// open) holds for this host.
pub fn refuse(headers: &mut HeaderMap, why: StopReason) {
    let mark = match why {
        StopReason::BudgetExhausted => "scope=host, reason=budget",
        StopReason::BreakerOpen => "scope=host, reason=breaker",
        _ => return,
    };
    headers.insert(STOP, HeaderValue::from_static(mark));
}

/// Extra attempts that the next hop reports, in a response.
#[must_use]
pub fn used(headers: &HeaderMap) -> Option<u32> {
    fields::number(headers, &ATTEMPTS, "used")
}

/// The next hop's "do not retry this", in a response. A mark whose scope can't be read is one still: whoever sent it wanted no retry.
#[must_use]
pub fn stop_mark(headers: &HeaderMap) -> Option<StopScope> {
    if headers.contains_key(STOP) {
        return Some(match fields::member(headers, &STOP, "scope") {
            Some(b"service") => StopScope::Service,
            Some(b"chain") => StopScope::Chain,
            _ => StopScope::Host,
        });
    }
    headers.contains_key(RATE_LIMITED).then_some(StopScope::Service)
}

/// Takes from a response what was meant for this hop. A stop mark for the whole chain is passed up.
pub fn consume(headers: &mut HeaderMap) {
    headers.remove(ATTEMPTS);
    if headers.contains_key(STOP) && stop_mark(headers) != Some(StopScope::Chain) {
        headers.remove(STOP);
    }
}

/// What is known of a target's reports of attempt credit.
///
/// From one that has reported before, silence means everything that it was told.
#[derive(Debug, Default)]
pub struct Reporter(AtomicBool);

impl Reporter {
    /// The report in a response.
    pub fn heard(&self, headers: &HeaderMap) -> Used {
        match used(headers) {
            Some(extra) => {
                // Read first: the line stays shared once the target is known.
                if !self.0.load(Ordering::Relaxed) {
                    self.0.store(true, Ordering::Relaxed);
                }
                Used::Reported(extra)
            }
            None => self.silent(),
        }
    }

    /// A response without a report.
    pub fn silent(&self) -> Used {
        if self.0.load(Ordering::Relaxed) { Used::Missing } else { Used::Unsaid }
    }

    /// What is to be assumed of an attempt that ended without a response. What never reached the target used nothing.
    pub fn unheard(&self, failure: &Failure) -> Used {
        let reached = failure.kind() != Cause::Connect && failure.verdict() != Verdict::Unprocessed;
        if reached { self.silent() } else { Used::Unsaid }
    }
}

/// Rounded down.
fn whole_milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The usual attempt numbers are there already.
fn number(attempt: u32) -> HeaderValue {
    static READY: [HeaderValue; 6] = [
        HeaderValue::from_static("0"),
        HeaderValue::from_static("1"),
        HeaderValue::from_static("2"),
        HeaderValue::from_static("3"),
        HeaderValue::from_static("4"),
        HeaderValue::from_static("5"),
    ];
    READY.get(attempt as usize).cloned().unwrap_or_else(|| digits(attempt.into()))
}

/// A number in one allocation, where `HeaderValue::from` makes two.
fn digits(mut number: u64) -> HeaderValue {
    let mut text = [0; 20];
    let mut start = text.len();
    loop {
        start -= 1;
        text[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    HeaderValue::from_bytes(&text[start..]).expect("digits make a header value")
}

/// The usual credits are there already.
fn left(credit: u32) -> HeaderValue {
    static READY: [HeaderValue; 4] = [
        HeaderValue::from_static("left=0"),
        HeaderValue::from_static("left=1"),
        HeaderValue::from_static("left=2"),
        HeaderValue::from_static("left=3"),
    ];
    READY.get(credit as usize).cloned().unwrap_or_else(|| dictionary("left=", credit))
}

/// A dictionary of one number.
fn dictionary(key: &str, number: u32) -> HeaderValue {
    HeaderValue::try_from(format!("{key}{number}")).expect("letters and digits make a header value")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(fields: &[(&HeaderName, &'static str)]) -> HeaderMap {
        fields.iter().map(|(name, value)| ((*name).clone(), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn a_stamp_of_the_usual_time_is_the_same_stamp() {
        use relent_core::{Context, FreeRepeats, Instant, NoCredit, Opening, Policy, Repeat, WaitingRoom};

        let (waiting, free_repeats, bits) =
            (std::sync::Arc::new(WaitingRoom::new()), FreeRepeats::default(), || 7);
        for deadline in [Duration::from_secs(1), Duration::from_secs(100)] {
            let policy = Policy::default();
            let context = Context {
                policy: &policy,
                budget: None,
                breaker: None,
                waiting: &waiting,
                free_repeats: &free_repeats,
                credit: &NoCredit,
                hold: None,
                latencies: None,
                random: &bits,
            };
            let opening =
                Opening::begin(&context, Repeat::Yes, Instant::ZERO + deadline, Instant::ZERO).unwrap();
            let (mut plain, mut usual) = (HeaderMap::new(), HeaderMap::new());
            stamp(&mut plain, &opening.launch());
            Stamp::new(policy.attempt_timeout()).stamp(&mut usual, &opening.launch());
            assert_eq!(plain, usual);
            assert_eq!(plain.len(), 3);
        }
    }

    #[test]
    fn numbers_are_written_as_they_are() {
        for number in [0, 7, 10, 4750, u64::MAX] {
            assert_eq!(digits(number), number.to_string());
        }
        assert_eq!((number(3), number(12)), (digits(3), digits(12)));
    }

    #[test]
    fn times_are_rounded_down() {
        assert_eq!(whole_milliseconds(Duration::from_micros(1999)), 1);
        assert_eq!(whole_milliseconds(Duration::from_micros(999)), 0);
        assert_eq!(whole_milliseconds(Duration::from_millis(250)), 250);
        assert_eq!(whole_milliseconds(Duration::MAX), u64::MAX);
    }

    #[test]
    fn stop_marks_of_every_scope() {
        for (field, scope) in [
            ("scope=host, reason=budget", StopScope::Host),
            ("reason=breaker, scope=service", StopScope::Service),
            ("scope=chain", StopScope::Chain),
            ("reason=budget", StopScope::Host),
            ("scope=galaxy", StopScope::Host),
            ("%&/", StopScope::Host),
        ] {
            assert_eq!(stop_mark(&headers(&[(&STOP, field)])), Some(scope), "{field}");
        }
        assert_eq!(stop_mark(&headers(&[(&RATE_LIMITED, "true")])), Some(StopScope::Service));
        assert_eq!(stop_mark(&headers(&[])), None);
    }

    #[test]
    fn only_a_mark_for_the_chain_is_passed_up() {
        for (field, passed) in [("scope=host", false), ("scope=service", false), ("scope=chain", true)] {
            let mut headers = headers(&[(&STOP, field), (&ATTEMPTS, "used=1")]);
            consume(&mut headers);
            assert_eq!((headers.contains_key(STOP), headers.contains_key(ATTEMPTS)), (passed, false));
        }
    }
}
