//! The policy file of relent: reads it, checks it, and says where and how to mend it.
//!
//! [`load`] a file, or [`parse`] a text; out come valid [`Policy`](relent_core::Policy) values by name, and facts for
//! the proxy. Whatever is wrong with the file is reported at once, each fault with its place and its mend; a file with a
//! fault gives nothing.
//!
//! ```
//! use std::time::Duration;
//!
//! let config = relent_config::parse(
//!     "relent.toml",
//!     r#"
//! version = 1
//!
//! [policy.api]
//! attempts = 4
//! backoff = { base = "50ms", cap = "1s" }
//! attempt_timeout = "500ms"
//! deadline = "2s"
//! "#,
//! )?;
//! let policy = config.policy("api")?;
//! assert_eq!((policy.attempts(), policy.deadline()), (4, Some(Duration::from_secs(2))));
//!
//! let errors = relent_config::parse("relent.toml", "version = 1\n[policy.api]\ndeadline = \"2s\"\n").unwrap_err();
//! assert_eq!(
//!     errors.to_string(),
//!     r#"relent.toml:3:12: attempt_timeout 5s is not below deadline 2s
//!   |
//! 3 | deadline = "2s"
//!   |            ^^^^
//!   = note: attempt_timeout is not set, and its default is 5s
//!   = mend: set attempt_timeout below 2s, or to "none", or raise deadline above 5s"#
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! gRPC's own service config is read by [`grpc`].
//!
//! # Fields of a policy
//!
//! Under `[policy.NAME]`, all of them optional; [`relent_core::defaults`] has the defaults.
//!
//! | field | default | what it says |
//! |---|---|---|
//! | `attempts` | `3` | attempts in all, the first included |
//! | `backoff.base` | `"100ms"` | the first wait, before jitter |
//! | `backoff.cap` | `"10s"` | the hard ceiling of every wait |
//! | `backoff.growth` | `"exponential"` | how it grows: `"linear"` (base × 1, 2, 3, …), `"fibonacci"` (base × 1, 1, 2, 3, 5, …) or `{ steps = ["1s", "5s"] }`, the waits one by one |
//! | `backoff.multiplier` | `2` | what the wait grows by |
//! | `backoff.jitter` | `"full"` | `"none"`, `"full"`, `"equal"`, `"decorrelated"`, `"decorrelated-bounded"`, `{ proportional = 0.2 }` or `{ additive = 0.2 }` |
//! | `backoff.floor` | `"0s"` | the least wait; at most the base |
//! | `attempt_timeout` | `"5s"` | the bound of one attempt, or `"none"` |
//! | `deadline` | `"15s"` | the bound of the whole call, waits included, or `"none"` |
//! | `give_up_after` | `"none"` | how long after its first failure a call may still start an attempt |
//! | `min_attempt_time` | `"1ms"` | what an attempt needs at least, to be worth starting |
//! | `throttled_base` | `"1s"` | the hint that a throttling answer without one counts as |
//! | `throttled.base` | `"1s"` | the same as `throttled_base`; one of them may stand there |
//! | `throttled.cap` | none | what that grows to, by the multiplier, where one call is throttled again and again |
//! | `throttled.attempts` | attempts | attempts in all, where the last one was throttled |
//! | `attempts_on` | `{}` | attempts in all, where the last one failed for this cause: `{ connect = 2, 503 = 2 }` |
//! | `max_hint` | `"30s"` | the longest hint that is waited out |
//! | `budget` | as below | `"none"`; a peer's by name: `"finagle"`, `"linkerd"`, `"grpc"`, `"envoy"`, `"aws-standard"`, `"aws-2026"`; or a table of one kind |
//! | `budget.ratio` | `0.1` | retries per successful call |
//! | `budget.window` | `"10s"` | the sliding window of that |
//! | `budget.deposit` | `"success"` | when a call deposits: `"success"` or `"request"` |
//! | `budget.reserve` | max(3, attempts − 1) | tokens for when the share is empty |
//! | `budget.reserve_per_second` | `0.1` | how fast successful calls refill the reserve |
//! | `budget.windowed` | – | Finagle's kind: `{ ratio = 0.2, min_per_second = 10, ttl = "10s" }` |
//! | `budget.throttle` | – | gRPC's kind: `{ max_tokens = 10, token_ratio = 0.1 }` |
//! | `budget.concurrency` | – | Envoy's kind: `{ ratio = 0.2, minimum = 3 }` |
//! | `budget.adaptive` | – | Google SRE's kind: `{ factor = 2, window = "2m" }` |
//! | `budget.cost` | – | the AWS SDKs' kind: `{ capacity = 500, retry = 5, timeout = 10, throttled = 5, first_try = 1 }` |
//! | `breaker` | `"none"` | or `{ retries_only = { failure_rate = 0.5, window = "10s", minimum_calls = 20 } }`, or a classic one |
//! | `breaker.classic` | – | stops all calls for a while; its defaults are `{ failure_rate = 0.5, window = "10s", minimum_calls = 20, open_for = "5s", open_multiplier = 2, open_cap = "60s", open_jitter = 0.1, probes = 3 }`; also `calls = 100` in place of the window, `slow_call = "2s"` and with it `slow_call_rate = 0.8`, `consecutive_failures = 5`, `failure_rate = "none"` ([`ClassicConfig`](relent_core::ClassicConfig)) |
//! | `hedge` | `"none"` | or `{ delay = "80ms", most = 1 }`, or `{ quantile = 0.95, least = "1ms", most = 1 }`; not for the proxy |
//! | `hold` | `"call"` | whose retries the hint of a 429 holds back; or `"target"` |
//! | `max_waiting` | `10000` | calls in backoff at once, per target |
//! | `repeat` | `"idempotent-methods"` | what may be sent again: `"never"`, `"idempotent-methods"`, `"key-honoured"` or `"always"` |
//! | `repeat_reason` | – | why repeating does no harm; required by `"always"`, and for it alone |
//! | `retry_on` | `["connect", "reset", "timeout", 500, 502, 503, 504, 429, "unavailable", "resource-exhausted"]` | what is retried: conditions, HTTP statuses, gRPC status codes |
//! | `nested` | `"credit"` | what layers below are told of this layer's attempts: `"credit"`, `"pass-through"` or `"allow"` |
//! | `replay_limit` | `"64KiB"` | bytes of a request body kept for a repeat, per call |
//! | `replay_total` | `"64MiB"` | bytes kept for repeats in all |
//!
//! # Fields of the proxy
//!
//! | field | default | what it says |
//! |---|---|---|
//! | `proxy.listen` | required | where requests come in |
//! | `proxy.admin` | nowhere | where metrics and health are served |
//! | `proxy.trusted_peers` | `[]` | address ranges whose overrides are obeyed |
//! | `proxy.workers` | one per core | threads that serve requests |
//! | `proxy.max_connections` | `10000` | client connections at once; beyond it nothing is accepted |
//! | `proxy.max_requests` | `10000` | requests in flight at once; beyond it they are answered with 503 |
//! | `proxy.header_timeout` | `"10s"` | how long a client may take to send the head of a request |
//! | `proxy.idle_timeout` | `"75s"` | how long a client's connection is kept without a request |
//! | `proxy.body_timeout` | `"60s"` | how long a body may stand still, either way |
//! | `proxy.grace` | `"10s"` | how long requests in flight may go on at the end; `"0s"`: not at all |
//! | `proxy.access_log` | `"stdout"` | `"none"`, `"stdout"`, `"stderr"`, or a path: a JSON line for each request |
//! | `proxy.outcome_header` | `false` | whether responses tell how the call went, in `relent-outcome` |
//! | `proxy.rate_limited_header` | `false` | whether `x-envoy-ratelimited` is sent where `relent-stop` is |
//! | `upstream.NAME.endpoints` | required | `http` URLs, each a host and a port |
//! | `upstream.NAME.protocol` | `"http1"` | or `"h2"` |
//! | `upstream.NAME.idle_timeout` | `"30s"` | of pooled connections |
//! | `upstream.NAME.connect_timeout` | `"1s"` | how long a connection may take to come about |
//! | `upstream.NAME.trust` | `true` | whether its stop marks and credit reports are believed |
//! | `upstream.NAME.stamp` | `true` | whether its requests carry attempt number, credit and time left |
//! | `route.path` | `"/"` | a prefix in whole segments; the first route that matches wins |
//! | `route.host` | any | the host of the request |
//! | `route.methods` | any | the methods |
//! | `route.upstream` | required | the name of an upstream |
//! | `route.policy` | required | the name of a policy |
//!
//! Lengths of time are written `"250ms"`, `"1.5s"`, `"1m30s"` ([`parse_duration`]), sizes `"64KiB"` ([`parse_size`]),
//! shares `0.1`, exactly as they are meant: nothing is rounded, clamped or guessed. A file of every field:
//!
//! ```toml
#![doc = include_str!("../samples/relent.toml")]
//! ```

#![warn(missing_docs)]

mod address_range;
mod compile;
mod config;
mod decimal;
mod diagnostic;
mod duration;
mod endpoint;
pub mod grpc;
mod host;
mod load;
mod nearest;
mod proxy;
mod quoted;
mod report;
mod route;
mod settings;
mod size;
mod source;
mod text;
mod upstream;

pub use address_range::{AddressRange, AddressRangeError};
pub use config::{Config, UnknownPolicy};
pub use diagnostic::{ConfigErrors, Diagnostic, Place, Snippet};
pub use duration::{DurationError, format_duration, parse_duration};
pub use endpoint::{Endpoint, EndpointError};
pub use host::{Host, HostError};
pub use load::{LONGEST_FILE, load, parse};
pub use nearest::nearest;
pub use proxy::{AccessLog, ProxyConfig};
pub use route::{Matcher, Route};
pub use settings::{Origin, Setting};
pub use size::{SizeError, format_size, parse_size};
pub use upstream::{Protocol, Upstream};
