//! gRPC's service config, read as policies by method.
//!
//! What a service config says of retries, hedging, deadlines and throttling becomes [`Policy`] values that do the same in
//! relent. What can't be kept, or is not about retries, is told in [`notes`](ServiceConfig::notes); nothing is dropped in
//! silence. A config that gRPC refuses is refused here too, with the place and the mend.
//!
//! ```
//! use std::time::Duration;
//!
//! let config = relent_config::grpc::parse(
//!     "service-config.json",
//!     r#"{
//!   "methodConfig": [{
//!     "name": [{ "service": "shop.Prices" }],
//!     "timeout": "2s",
//!     "retryPolicy": {
//!       "maxAttempts": 4,
//!       "initialBackoff": "0.1s",
//!       "maxBackoff": "1s",
//!       "backoffMultiplier": 2,
//!       "retryableStatusCodes": ["UNAVAILABLE"]
//!     }
//!   }],
//!   "retryThrottling": { "maxTokens": 10, "tokenRatio": 0.1 }
//! }"#,
//! )?;
//! let policy = config.policy("/shop.Prices/Get").expect("it has one");
//! assert_eq!((policy.attempts(), policy.deadline()), (4, Some(Duration::from_secs(2))));
//! assert_eq!(config.policy("/shop.Orders/Place"), None);
//! assert_eq!(config.notes().count(), 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | in the service config | in the policy |
//! |---|---|
//! | `maxAttempts` | `attempts`, at most 5, as gRPC has it |
//! | `initialBackoff`, `maxBackoff`, `backoffMultiplier` | `base`, `cap`, `multiplier`; jitter ±20 %, but never over the cap |
//! | `retryableStatusCodes` | `retry_on`; UNAVAILABLE is also `connect` and `reset`. `repeat = "always"`: a list is the word that its methods may be repeated |
//! | `hedgingPolicy` | `hedge`: all attempts but the first; failures that are not fatal are retried at once |
//! | `timeout` | `deadline`; without it none |
//! | `retryThrottling` | the `throttle` budget of every policy; without it none. One bucket is meant for the whole server: share one budget among the handles |
//! | (nothing) | no attempt timeout; `max_hint` as relent has it, so that a longer pushback ends the call |

mod json;
mod method;
mod value;

use std::path::Path;

use relent_core::{Policy, Ratio, ThrottleConfig};

use self::json::{Field, Kind, Node};
use self::method::{Name, Told};
use self::value::unread;
use crate::diagnostic::{ConfigErrors, Diagnostic};
use crate::load::{bounded, text_at};
use crate::report::{Fault, Report};
use crate::source::Source;

/// Policies by method, as a service config has them.
#[derive(Debug)]
pub struct ServiceConfig {
    methods: Vec<MethodPolicy>,
    throttle: Option<ThrottleConfig>,
    notes: Vec<Diagnostic>,
}

/// The policy of a method, of all other methods of a service, or of all other services.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MethodPolicy {
    service: Option<String>,
    method: Option<String>,
    policy: Policy,
}

impl MethodPolicy {
    /// The service; `None` for the policy of all that have none of their own.
    pub fn service(&self) -> Option<&str> {
        self.service.as_deref()
    }

    /// The method; `None` for the policy of all that have none of their own in this service.
    pub fn method(&self) -> Option<&str> {
        self.method.as_deref()
    }

    /// How it is retried.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }
}

impl ServiceConfig {
    /// Every name with its policy, in the order of the file.
    pub fn methods(&self) -> std::slice::Iter<'_, MethodPolicy> {
        self.methods.iter()
    }

    /// The policy of a method, by the path of its requests (`/package.Service/Method`): its own, its service's, or that
    /// of all others.
    pub fn policy(&self, path: &str) -> Option<&Policy> {
        let (service, method) = path.strip_prefix('/')?.rsplit_once('/')?;
        let of = |service: Option<&str>, method: Option<&str>| {
            let same = |entry: &&MethodPolicy| entry.service() == service && entry.method() == method;
            self.methods.iter().find(same)
        };
        let found = of(Some(service), Some(method)).or_else(|| of(Some(service), None));
        found.or_else(|| of(None, None)).map(MethodPolicy::policy)
    }

    /// The throttle, which is one for all methods of the server.
    pub fn throttle(&self) -> Option<ThrottleConfig> {
        self.throttle
    }

    /// What of the file is not kept, or not as it is written, each with its place.
    pub fn notes(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.notes.iter()
    }
}

/// Reads and checks the service config at `path`.
///
/// # Errors
/// [`ConfigErrors`]: all that is wrong with it, each with its place and its mend; or that it can't be read.
pub fn load(path: impl AsRef<Path>) -> Result<ServiceConfig, ConfigErrors> {
    text_at(path.as_ref(), parse)
}

/// Reads and checks the text of a service config; `name` stands for its path in what is reported.
///
/// # Errors
/// [`ConfigErrors`]: all that is wrong with it, each with its place and its mend.
pub fn parse(name: &str, text: &str) -> Result<ServiceConfig, ConfigErrors> {
    bounded(name, text)?;
    let source = Source::new(name, text);
    let (mut report, mut notes) = (Report::default(), Report::default());
    let mut config = ServiceConfig { methods: Vec::new(), throttle: None, notes: Vec::new() };
    match json::read(source.text()) {
        Ok(Node { kind: Kind::Object(fields), .. }) => {
            config.read(&fields, &mut Told { report: &mut report, notes: &mut notes });
        }
        Ok(node) => {
            report.add(
                Fault::new(node.span, "a service config is an object")
                    .mend("write { \"methodConfig\": […] }"),
            );
        }
        Err(fault) => report.add(*fault),
    }
    if let Err(told) = notes.finish((), &source) {
        config.notes = told.diagnostics;
    }
    report.finish(config, &source)
}

const FIELDS: [&str; 2] = ["methodConfig", "retryThrottling"];

impl ServiceConfig {
    fn read(&mut self, fields: &[Field<'_>], told: &mut Told<'_>) {
        let field = |name: &str| fields.iter().find(|field| field.name == name);
        for field in fields.iter().filter(|field| !FIELDS.contains(&&*field.name)) {
            unread(field, &FIELDS, told.notes, told.report);
        }
        self.throttle = field("retryThrottling").and_then(|field| throttling(field, told));
        let Some(list) = field("methodConfig") else { return };
        let mut seen: Vec<Name> = Vec::new();
        for node in list.list("[{ … }]", told.report).unwrap_or_default() {
            let Kind::Object(fields) = &node.kind else {
                told.report.add(
                    Fault::new(node.span.clone(), "a methodConfig is an object")
                        .mend("write { \"name\": […] }"),
                );
                continue;
            };
            let (names, policy) = method::read(fields, self.throttle, told);
            for name in names {
                self.add(name, policy.as_ref(), &mut seen, told);
            }
        }
        let retried = self.methods.iter().any(|entry| entry.policy.attempts() > 1);
        if retried && self.throttle.is_none() {
            let message =
                "without retryThrottling nothing bounds retries in an outage: the policies have no budget";
            told.notes.add(Fault::new(list.key.clone(), message).mend("add \"retryThrottling\""));
        }
    }

    fn add(&mut self, name: Name, policy: Option<&Policy>, seen: &mut Vec<Name>, told: &mut Told<'_>) {
        let same = |other: &&Name| other.service == name.service && other.method == name.method;
        if let Some(first) = seen.iter().find(same) {
            let fault = Fault::new(name.span, "this name is there already").mend("leave one of them");
            told.report.add(fault.related("the first one", first.span.clone()));
            return;
        }
        if let Some(policy) = policy {
            let service = Some(name.service.clone()).filter(|service| !service.is_empty());
            self.methods.push(MethodPolicy { service, method: name.method.clone(), policy: policy.clone() });
        }
        seen.push(name);
    }
}

fn throttling(field: &Field<'_>, told: &mut Told<'_>) -> Option<ThrottleConfig> {
    let (mut max_tokens, mut token_ratio) = (None, None);
    let parts = field.object(told.report)?;
    for part in parts {
        match &*part.name {
            "maxTokens" => {
                max_tokens = part.whole(1, "10", told.report);
                if max_tokens.is_some_and(|tokens| tokens > ThrottleConfig::MOST_TOKENS) {
                    part.refuse("it is over 1000", "write \"maxTokens\": 1000, or less", told.report);
                    max_tokens = None;
                }
            }
            "tokenRatio" => token_ratio = ratio_of_tokens(part, told),
            _ => unread(part, &["maxTokens", "tokenRatio"], told.notes, told.report),
        }
    }
    for name in ["maxTokens", "tokenRatio"] {
        if !parts.iter().any(|part| part.name == name) {
            let fault = Fault::new(field.key.clone(), format!("{name} is missing in `retryThrottling`"));
            told.report.add(fault.mend(format!("add \"{name}\"")));
        }
    }
    Some(ThrottleConfig { max_tokens: max_tokens?, token_ratio: token_ratio? })
}

/// gRPC keeps three decimal places.
fn ratio_of_tokens(field: &Field<'_>, told: &mut Told<'_>) -> Option<Ratio> {
    let number = field.number("0.1", told.report)?;
    let kept = match number.split_once('.') {
        Some((whole, decimals)) if decimals.len() > 3 && decimals.bytes().all(|b| b.is_ascii_digit()) => {
            let kept = format!("{whole}.{}", &decimals[..3]);
            if decimals[3..].bytes().any(|b| b != b'0') {
                let message =
                    format!("gRPC keeps three decimal places of tokenRatio, and so does this: {kept}");
                told.notes.add(Fault::new(field.value.span.clone(), message));
            }
            kept
        }
        _ => number.to_owned(),
    };
    match kept.parse() {
        Ok(ratio) if ratio > Ratio::ZERO => Some(ratio),
        Ok(_) => {
            field.refuse("to three decimal places it is zero", "write \"tokenRatio\": 0.1", told.report);
            None
        }
        Err(error) => {
            field.refuse(&error.to_string(), "write \"tokenRatio\": 0.1", told.report);
            None
        }
    }
}
