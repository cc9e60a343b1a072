//! One `methodConfig`: which methods it is for, and the policy that it comes to.

use std::ops::Range;
use std::time::Duration;

use relent_core::{
    GrpcCode, HedgeConfig, Jitter, Policy, PolicyBuilder, Ratio, RepeatRule, RetryOn, ThrottleConfig,
};

use super::json::{Field, Node};
use super::value::{code, unread};
use crate::format_duration;
use crate::report::{Fault, Report};

/// gRPC's own bound, whatever the config says.
const MOST_ATTEMPTS: u32 = 5;

const FIELDS: [&str; 5] = ["name", "waitForReady", "timeout", "retryPolicy", "hedgingPolicy"];
const RETRY: [&str; 6] = [
    "maxAttempts",
    "initialBackoff",
    "maxBackoff",
    "backoffMultiplier",
    "retryableStatusCodes",
    "perAttemptRecvTimeout",
];
const HEDGING: [&str; 3] = ["maxAttempts", "hedgingDelay", "nonFatalStatusCodes"];

/// A service or a method that a config is for; neither: all others.
pub(super) struct Name {
    pub(super) service: String,
    pub(super) method: Option<String>,
    pub(super) span: Range<usize>,
}

/// What is told on the way.
pub(super) struct Told<'r> {
    pub(super) report: &'r mut Report,
    pub(super) notes: &'r mut Report,
}

impl Told<'_> {
    fn note(&mut self, span: &Range<usize>, message: impl Into<String>) {
        self.notes.add(Fault::new(span.clone(), message));
    }
}

/// Names and policy; `None` for a policy with a fault.
pub(super) fn read(
    fields: &[Field<'_>],
    throttle: Option<ThrottleConfig>,
    told: &mut Told<'_>,
) -> (Vec<Name>, Option<Policy>) {
    let mut names = Vec::new();
    let (mut timeout, mut retry, mut hedging) = (None, None, None);
    let before = told.report.total();
    for field in fields {
        match &*field.name {
            "name" => names = read_names(field, told),
            "timeout" => timeout = field.length_above_zero("\"1s\"", told.report).map(|t| (t, field)),
            "retryPolicy" => retry = Some(field),
            "hedgingPolicy" => hedging = Some(field),
            "waitForReady" => told.note(
                &field.key,
                "waitForReady is the channel's business, and is left aside: here a call without a connection fails, and is retried",
            ),
            _ => unread(field, &FIELDS, told.notes, told.report),
        }
    }
    if let (Some(retry), Some(hedging)) = (retry, hedging) {
        let fault =
            Fault::new(hedging.key.clone(), "a method has a retryPolicy or a hedgingPolicy, not both");
        told.report
            .add(fault.related("retryPolicy stands here", retry.key.clone()).mend("leave one of them"));
    }
    let builder = match (retry, hedging) {
        (Some(field), None) => retry_policy(field, told),
        (None, Some(field)) => hedging_policy(field, told),
        _ => Some(Policy::builder().attempts(1)),
    };
    let builder = builder.map(|builder| whole(builder, timeout.as_ref().map(|(t, _)| *t), throttle));
    let at = retry.or(hedging).or(timeout.map(|(_, field)| field));
    let policy = builder.filter(|_| told.report.total() == before).and_then(|builder| {
        let built = builder.build();
        if let (Err(error), Some(at)) = (&built, at) {
            told.report.add(Fault::new(at.key.clone(), error.to_string()));
        }
        built.ok()
    });
    (names, policy)
}

/// What holds for every call of gRPC: no timeout of an attempt, a deadline only where one is said, the throttle if any.
fn whole(
    builder: PolicyBuilder,
    timeout: Option<Duration>,
    throttle: Option<ThrottleConfig>,
) -> PolicyBuilder {
    let builder = builder.no_attempt_timeout();
    let builder = match timeout {
        Some(timeout) => builder.deadline(timeout),
        None => builder.no_deadline(),
    };
    match throttle {
        Some(throttle) => builder.budget(throttle),
        None => builder.no_budget(),
    }
}

fn read_names(field: &Field<'_>, told: &mut Told<'_>) -> Vec<Name> {
    const EXAMPLE: &str = "[{ \"service\": \"package.Service\" }]";
    let nodes = field.list(EXAMPLE, told.report).unwrap_or_default();
    if nodes.is_empty() {
        told.note(&field.key, "a methodConfig without names is for no method");
    }
    nodes.iter().filter_map(|node| read_name(node, told)).collect()
}

fn read_name(node: &Node<'_>, told: &mut Told<'_>) -> Option<Name> {
    let super::json::Kind::Object(fields) = &node.kind else {
        told.report.add(
            Fault::new(node.span.clone(), "a name must be an object")
                .mend("write { \"service\": \"package.Service\" }"),
        );
        return None;
    };
    let (mut service, mut method) = (String::new(), None);
    for field in fields {
        match &*field.name {
            "service" => service = field.text("\"package.Service\"", told.report)?.to_owned(),
            "method" => method = Some(field.text("\"Method\"", told.report)?.to_owned()),
            _ => unread(field, &["service", "method"], told.notes, told.report),
        }
    }
    // An empty method is one that is not said.
    let method = method.filter(|method| !method.is_empty());
    if service.is_empty() && method.is_some() {
        told.report
            .add(Fault::new(node.span.clone(), "a method without its service").mend("add \"service\""));
        return None;
    }
    Some(Name { service, method, span: node.span.clone() })
}

fn retry_policy(field: &Field<'_>, told: &mut Told<'_>) -> Option<PolicyBuilder> {
    let (mut attempts, mut initial, mut max, mut multiplier, mut codes) = (None, None, None, None, None);
    for part in field.object(told.report)? {
        let report = &mut *told.report;
        match &*part.name {
            "maxAttempts" => attempts = max_attempts(part, told),
            "initialBackoff" => initial = part.length_above_zero("\"0.1s\"", report),
            "maxBackoff" => max = part.length_above_zero("\"1s\"", report),
            "backoffMultiplier" => multiplier = part.ratio("2", report),
            "retryableStatusCodes" => codes = status_codes(part, Empty::Refused, report),
            "perAttemptRecvTimeout" => told.note(
                &part.key,
                "perAttemptRecvTimeout is an experiment of gRPC, and is left aside: set attempt_timeout on the policy",
            ),
            _ => unread(part, &RETRY, told.notes, report),
        }
    }
    missing(field, &RETRY[..5], told.report);
    let (attempts, initial, max, multiplier, codes) = (attempts?, initial?, max?, multiplier?, codes?);
    if max < initial {
        told.note(
            &field.key,
            format!("maxBackoff is below initialBackoff: every wait is about {}", format_duration(max)),
        );
    }
    let jitter = Jitter::Proportional(Ratio::percent(20));
    let builder = Policy::exponential(initial.min(max), max).multiplier(multiplier).jitter(jitter);
    Some(repeating(builder, attempts, codes))
}

fn hedging_policy(field: &Field<'_>, told: &mut Told<'_>) -> Option<PolicyBuilder> {
    let (mut attempts, mut delay, mut codes) = (None, Some(Duration::ZERO), Some(RetryOn::nothing()));
    for part in field.object(told.report)? {
        let report = &mut *told.report;
        match &*part.name {
            "maxAttempts" => attempts = max_attempts(part, told),
            "hedgingDelay" => delay = part.length("\"0.1s\"", report),
            "nonFatalStatusCodes" => codes = status_codes(part, Empty::Taken, report),
            _ => unread(part, &HEDGING, told.notes, report),
        }
    }
    missing(field, &HEDGING[..1], told.report);
    let (attempts, delay, codes) = (attempts?, delay?, codes?);
    // After a failure that is not fatal the next attempt starts at once. What no server has seen is never fatal.
    let builder = Policy::constant(Duration::ZERO).hedge(HedgeConfig::after(delay).most(attempts - 1));
    Some(repeating(builder, attempts, codes.connect()))
}

/// To list codes for a method is the operator's word that it may be repeated (gRFC A6). A quota that is full is retried on
/// the same curve as all else.
fn repeating(builder: PolicyBuilder, attempts: u32, codes: RetryOn) -> PolicyBuilder {
    let builder = builder.attempts(attempts).retry_on(codes).repeat(RepeatRule::Always);
    builder.throttled_base(Duration::ZERO)
}

fn max_attempts(field: &Field<'_>, told: &mut Told<'_>) -> Option<u32> {
    let attempts = field.whole(2, "4", told.report)?;
    if attempts > MOST_ATTEMPTS {
        told.note(
            &field.value.span,
            format!("gRPC treats {attempts} attempts as {MOST_ATTEMPTS}, and so does this policy"),
        );
    }
    Some(attempts.min(MOST_ATTEMPTS))
}

enum Empty {
    Refused,
    Taken,
}

fn status_codes(field: &Field<'_>, empty: Empty, report: &mut Report) -> Option<RetryOn> {
    let nodes = field.list("[\"UNAVAILABLE\"]", report)?;
    if let (true, Empty::Refused) = (nodes.is_empty(), empty) {
        field.refuse("nothing would be retried", "write \"retryableStatusCodes\": [\"UNAVAILABLE\"]", report);
        return None;
    }
    let mut set = Some(RetryOn::nothing());
    for node in nodes {
        let Some(code) = code(node, report) else {
            set = None;
            continue;
        };
        set = set.and_then(|set| set.grpc(code).ok());
        // What gRPC calls UNAVAILABLE too: no connection, or one that broke.
        if code == GrpcCode::Unavailable {
            set = set.map(|set| set.connect().reset());
        }
    }
    set
}

fn missing(field: &Field<'_>, names: &[&str], report: &mut Report) {
    let super::json::Kind::Object(parts) = &field.value.kind else { return };
    for name in names.iter().filter(|name| !parts.iter().any(|part| part.name == **name)) {
        let fault = Fault::new(field.key.clone(), format!("{name} is missing in `{}`", field.name));
        report.add(fault.mend(format!("add \"{name}\": gRPC refuses the whole config without it")));
    }
}
