//! Compiles and runs the Rust of the pages beside it, as documentation tests. A page that is not listed here fails a test.

/// The policy, step by step.
#[cfg(doctest)]
#[doc = include_str!("../policy.md")]
mod policy {}

/// Time that goes along with the work.
#[cfg(doctest)]
#[doc = include_str!("../deadlines.md")]
mod deadlines {}

/// Which failures are retried.
#[cfg(doctest)]
#[doc = include_str!("../classification.md")]
mod classification {}

/// What calls came to.
#[cfg(doctest)]
#[doc = include_str!("../observability.md")]
mod observability {}

/// A second attempt beside a slow one.
#[cfg(doctest)]
#[doc = include_str!("../hedging.md")]
mod hedging {}

/// When a target is left alone.
#[cfg(doctest)]
#[doc = include_str!("../breaker.md")]
mod breaker {}

/// gRPC, tonic and service configs.
#[cfg(doctest)]
#[doc = include_str!("../grpc.md")]
mod grpc {}

/// How long a wait is.
#[cfg(doctest)]
#[doc = include_str!("../backoff.md")]
mod backoff {}

/// Who pays for retries.
#[cfg(doctest)]
#[doc = include_str!("../budgets.md")]
mod budgets {}

/// By situation.
#[cfg(doctest)]
#[doc = include_str!("../recipes.md")]
mod recipes {}

/// Beside other libraries.
#[cfg(doctest)]
#[doc = include_str!("../compare.md")]
mod compare {}

/// From other libraries.
#[cfg(doctest)]
mod migrate {
    /// What differs, wherever one comes from.
    #[doc = include_str!("../migrate.md")]
    mod overview {}

    /// backon.
    #[doc = include_str!("../migrate/backon.md")]
    mod backon {}

    /// tokio-retry.
    #[doc = include_str!("../migrate/tokio-retry.md")]
    mod tokio_retry {}

    /// backoff.
    #[doc = include_str!("../migrate/backoff.md")]
    mod backoff {}

    /// tower's retry.
    #[doc = include_str!("../migrate/tower.md")]
    mod tower {}

    /// reqwest-retry.
    #[doc = include_str!("../migrate/reqwest-retry.md")]
    mod reqwest_retry {}

    /// Two libraries of Go.
    #[doc = include_str!("../migrate/go.md")]
    mod go {}
}

/// Tests of code that retries.
#[cfg(doctest)]
#[doc = include_str!("../testing.md")]
mod testing {}

/// A common loop in Go beside relent.
#[cfg(doctest)]
#[doc = include_str!("../compare-go-loop.md")]
mod compare_go_loop {}

/// The stops of a call.
#[cfg(doctest)]
#[doc = include_str!("../life-of-a-call.md")]
mod life_of_a_call {}

/// The proxy.
#[cfg(doctest)]
#[doc = include_str!("../proxy.md")]
mod proxy {}

/// Why it is as it is.
#[cfg(doctest)]
#[doc = include_str!("../design/why.md")]
mod why {}
