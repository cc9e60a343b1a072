//! The cases. Each sets its own world up once, outside what is counted per call.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use backon::{BackoffBuilder, Retryable};
use relent::{Policy, Retry, RetryLayer, Verdict};
use tower::{Layer, Service, ServiceExt};

/// One case.
pub struct Case {
    pub name: &'static str,
    pub run: Box<dyn Fn(u64)>,
}

#[derive(Clone, Debug)]
pub struct Bad;

#[inline(never)]
pub fn work(x: u64) -> Result<u64, Bad> {
    if black_box(x) == u64::MAX { Err(Bad) } else { Ok(x) }
}

pub async fn operation(x: u64) -> Result<u64, Bad> {
    work(x)
}

/// Every case, the yardstick first.
pub fn all() -> Vec<Case> {
    let mut cases = success();
    cases.extend(tower_cases());
    cases.extend(delays());
    cases.extend(crate::breakers::all());
    cases
}

pub fn case(name: &'static str, run: impl Fn(u64) + 'static) -> Case {
    Case { name, run: Box::new(run) }
}

pub fn block_on<F: Future>(future: F) -> F::Output {
    thread_local! {
        static RUNTIME: tokio::runtime::Runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    }
    RUNTIME.with(|runtime| runtime.block_on(future))
}

pub fn untimed() -> relent::PolicyBuilder {
    Policy::builder().no_attempt_timeout().no_deadline()
}

pub fn retry(policy: relent::PolicyBuilder) -> Retry<fn(&Bad) -> Verdict> {
    let transient: fn(&Bad) -> Verdict = |_| Verdict::Transient;
    Retry::new(policy.build().expect("a valid policy")).classify(transient)
}

#[macro_export]
macro_rules! each {
    ($n:ident, $i:ident, $e:expr) => {
        for $i in 0..$n {
            let _ = (&$i, black_box($e));
        }
    };
}

fn success() -> Vec<Case> {
    let relent = |name, policy: fn() -> relent::PolicyBuilder| {
        let handle = retry(policy());
        case(name, move |n| block_on(async { each!(n, i, handle.run(|_| operation(i)).await) }))
    };
    let blocking = retry(untimed().no_budget());
    vec![
        case("bare await", |n| block_on(async { each!(n, i, operation(i).await) })),
        relent("relent run, no budget", || untimed().no_budget()),
        relent("relent run, budget", untimed),
        relent("relent run, default timeouts, no budget", || Policy::builder().no_budget()),
        relent("relent run, defaults", Policy::builder),
        relent("relent run, retries-only breaker", || {
            untimed().no_budget().breaker(relent::RetriesOnlyConfig::DEFAULT)
        }),
        case("relent run_blocking, no budget", move |n| each!(n, i, blocking.run_blocking(|_| work(i)))),
        case("backon exponential + jitter", |n| {
            block_on(async {
                each!(n, i, (|| operation(i)).retry(backon::ExponentialBuilder::default().with_jitter()).await)
            })
        }),
        case("tokio-retry exponential + jitter", |n| {
            block_on(async {
                each!(n, i, {
                    let delays = tokio_retry::strategy::ExponentialBackoff::from_millis(10)
                        .map(tokio_retry::strategy::jitter)
                        .take(3);
                    tokio_retry::Retry::start(delays, || operation(i)).await
                })
            })
        }),
        case("tokio timeout", |n| {
            block_on(async { each!(n, i, tokio::time::timeout(Duration::from_secs(10), operation(i)).await) })
        }),
    ]
}

/// The policy that tower's users write: retry errors while a budget allows.
#[derive(Clone)]
pub struct Budgeted(pub Arc<tower::retry::budget::TpsBudget>);

impl tower::retry::Policy<u64, u64, Bad> for Budgeted {
    type Future = std::future::Ready<()>;

    fn retry(&mut self, _: &mut u64, result: &mut Result<u64, Bad>) -> Option<Self::Future> {
        use tower::retry::budget::Budget;
        if result.is_ok() {
            self.0.deposit();
            None
        } else {
            self.0.withdraw().then(|| std::future::ready(()))
        }
    }

    fn clone_request(&mut self, request: &u64) -> Option<u64> {
        Some(*request)
    }
}

fn tower_cases() -> Vec<Case> {
    let relent = |name, policy: fn() -> relent::PolicyBuilder| {
        case(name, move |n| {
            let mut service = RetryLayer::new(retry(policy())).layer(tower::service_fn(operation));
            block_on(async { each!(n, i, service.ready().await.expect("ready").call(i).await.is_ok()) })
        })
    };
    vec![
        relent("relent tower layer, no budget", || untimed().no_budget()),
        relent("relent tower layer, budget", untimed),
        case("tower Retry + TpsBudget", |n| {
            let policy = Budgeted(Arc::new(tower::retry::budget::TpsBudget::default()));
            let mut service = tower::retry::Retry::new(policy, tower::service_fn(operation));
            block_on(async { each!(n, i, service.ready().await.expect("ready").call(i).await) })
        }),
        case("tower Timeout", |n| {
            let mut service = tower::timeout::Timeout::new(tower::service_fn(operation_boxed), Duration::from_secs(10));
            block_on(async { each!(n, i, service.ready().await.expect("ready").call(i).await.is_ok()) })
        }),
    ]
}

async fn operation_boxed(x: u64) -> Result<u64, std::fmt::Error> {
    work(x).map_err(|Bad| std::fmt::Error)
}

fn delays() -> Vec<Case> {
    let backoff = *Policy::default().backoff();
    vec![
        case("delay: relent, full jitter", move |n| {
            let mut rng = relent_core::Rng::seeded(1);
            each!(n, i, backoff.draw(black_box((i & 7) as u32 + 1), Duration::ZERO, rng.next()));
        }),
        case("delay: backon next, jitter", |n| {
            let mut delays = backon::ExponentialBuilder::default().with_jitter().without_max_times().build();
            each!(n, i, delays.next());
        }),
        case("delay: backon build + next, jitter", |n| {
            each!(n, i, backon::ExponentialBuilder::default().with_jitter().build().next());
        }),
    ]
}
