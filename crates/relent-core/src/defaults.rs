//! Every default of relent, in one place: quoted by the library, the policy file, the program and the docs.

use core::time::Duration;

use crate::Ratio;

/// Attempts in all, the first included.
pub const ATTEMPTS: u32 = 3;
/// The first wait, before jitter.
pub const BASE: Duration = Duration::from_millis(100);
/// The hard ceiling of every backoff.
pub const CAP: Duration = Duration::from_secs(10);
/// What the wait grows by.
pub const MULTIPLIER: Ratio = Ratio::of(2, 1);
/// The bound of one attempt.
pub const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(5);
/// The bound of the whole call, waits included.
pub const DEADLINE: Duration = Duration::from_secs(15);
/// What an attempt needs at least, to be worth starting before the deadline.
pub const MIN_ATTEMPT_TIME: Duration = Duration::from_millis(1);
/// The hint that a throttling answer without one counts as.
pub const THROTTLED_BASE: Duration = Duration::from_secs(1);
/// The longest hint that is waited out; a longer one ends the call.
pub const MAX_HINT: Duration = Duration::from_secs(30);
/// The share of successful calls that may be spent on retries.
pub const BUDGET_RATIO: Ratio = Ratio::percent(10);
/// The sliding window over which that share is kept.
pub const BUDGET_WINDOW: Duration = Duration::from_secs(10);
/// The least reserve; the default is the greater of this and attempts − 1.
pub const BUDGET_RESERVE: u32 = 3;
/// How fast successful calls may refill the reserve, in tokens per second.
pub const RESERVE_PER_SECOND: Ratio = Ratio::percent(10);
/// Hedges per call at most, where hedging is asked for.
pub const HEDGES: u32 = 1;
/// The least delay of a hedge at a measured quantile.
pub const HEDGE_LEAST: Duration = Duration::from_millis(1);
/// Calls in backoff at once, per target.
pub const MAX_WAITING: u32 = 10_000;
/// Bytes of a request body that are kept for a repeat, per call.
pub const REPLAY_LIMIT: u64 = 64 * 1024;
/// Bytes kept for repeats in all, per handle.
pub const REPLAY_TOTAL: u64 = 64 * 1024 * 1024;
/// Bytes of a failed response that are kept over a wait.
pub const KEPT_RESPONSE: u64 = 16 * 1024;
/// The failure rate at which the retries-only breaker refuses retries.
pub const BREAKER_FAILURE_RATE: Ratio = Ratio::percent(50);
/// The window of the retries-only breaker.
pub const BREAKER_WINDOW: Duration = Duration::from_secs(10);
/// Calls in the window before the retries-only breaker judges.
pub const BREAKER_MINIMUM_CALLS: u32 = 20;
/// The share of slow calls at which the classic breaker opens, where slow calls are asked for.
pub const BREAKER_SLOW_CALL_RATE: Ratio = Ratio::percent(80);
/// The largest window of calls of a classic breaker: what it keeps of them grows with every change between good and bad.
pub const BREAKER_MOST_CALLS: u32 = 100_000;
/// How long the classic breaker stays open at first.
pub const BREAKER_OPEN_FOR: Duration = Duration::from_secs(5);
/// What its open time grows by when its probes fail.
pub const BREAKER_OPEN_MULTIPLIER: Ratio = Ratio::of(2, 1);
/// The longest that it stays open, before jitter.
pub const BREAKER_OPEN_CAP: Duration = Duration::from_secs(60);
/// The share of its open time that is added at random, at most.
pub const BREAKER_OPEN_JITTER: Ratio = Ratio::percent(10);
/// Probes that have to be good before it closes.
pub const BREAKER_PROBES: u32 = 3;
/// Probes that have said nothing for so long are given up for lost, so that others may go.
pub const PROBE_LEASE: Duration = Duration::from_secs(60);
/// Free repeats of stale connections and unprocessed streams, per second and pool.
pub const FREE_REPEATS_PER_SECOND: u32 = 10;
/// Free repeats that may come at once, per pool.
pub const FREE_REPEATS_BURST: u32 = 100;
