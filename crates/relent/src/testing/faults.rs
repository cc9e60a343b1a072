//! Faults by chance: what a program does when its calls fail or take long, tried on purpose.

use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;
use relent_core::{Instant, Ratio, Rng};

use crate::attempt::Attempt;
use crate::timer::{SystemTimer, Timer, poll_until};

/// Errors and latency put in front of calls, each with a chance of its own: for a rehearsal of an outage, in a test or in
/// a program that runs.
///
/// It does nothing until it is turned [`on`](Faults::turn_on), and its clones are one switch. Its chance is seeded: the
/// same calls in the same order meet the same faults. A call that an error is put in front of is not made at all; one
/// that is made late is made. Stand it *below* what retries, so that retries meet the faults.
///
/// ```
/// use std::io;
/// use std::time::Duration;
/// use relent::testing::Faults;
/// use relent::{Policy, Ratio, Retry, timer::Manual};
///
/// let time = Manual::new();
/// let faults = Faults::seeded(7).timer(&time)
///     .errors(Ratio::of(1, 2), || io::Error::from(io::ErrorKind::ConnectionReset))
///     .latency(Ratio::of(1, 10), Duration::from_secs(2));
/// let retry = Retry::with_timer(Policy::default(), time.clone());
/// let ask = async || retry.run(faults.around(|_| async { Ok::<_, io::Error>(350) })).await;
///
/// assert_eq!(time.run(ask()).ok(), Some(350)); // switched off
/// faults.turn_on();
/// for _ in 0..20 {
///     let _ = time.run(ask());
/// }
/// let counts = faults.counts();
/// assert!(counts.errors > 0 && counts.calls > counts.errors);
/// ```
pub struct Faults<E, T = SystemTimer> {
    shared: Arc<Shared<E>>,
    timer: T,
}

struct Shared<E> {
    on: AtomicBool,
    rng: Mutex<Rng>,
    errors: Ratio,
    error: Option<Make<E>>,
    late: Ratio,
    latency: Duration,
    calls: AtomicU64,
    failed: AtomicU64,
    delayed: AtomicU64,
}

type Make<E> = Box<dyn Fn() -> E + Send + Sync>;

/// How many calls met a fault while it was turned on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FaultCounts {
    /// Calls that came by.
    pub calls: u64,
    /// Calls that an error was put in front of.
    pub errors: u64,
    /// Calls that were delayed.
    pub delays: u64,
}

impl<E> Faults<E> {
    /// No faults yet, switched off, in real time.
    #[must_use]
    pub fn seeded(seed: u64) -> Faults<E> {
        let shared = Shared {
            on: AtomicBool::new(false),
            rng: Mutex::new(Rng::seeded(seed)),
            errors: Ratio::ZERO,
            error: None,
            late: Ratio::ZERO,
            latency: Duration::ZERO,
            calls: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            delayed: AtomicU64::new(0),
        };
        Faults { shared: Arc::new(shared), timer: SystemTimer }
    }
}

impl<E, T> Faults<E, T> {
    /// Takes the time of latency from `timer`: virtual, in a test.
    #[must_use]
    pub fn timer<U: Clone>(self, timer: &U) -> Faults<E, U> {
        Faults { shared: self.shared, timer: timer.clone() }
    }

    /// Puts an error in front of this share of the calls.
    ///
    /// # Panics
    /// If the share is over 1, or if the faults have been cloned: tell them before.
    #[must_use]
    pub fn errors(self, share: Ratio, error: impl Fn() -> E + Send + Sync + 'static) -> Self {
        self.configure(|shared| {
            shared.errors = whole_at_most(share);
            shared.error = Some(Box::new(error));
        })
    }

    /// Delays this share of the calls by `latency`; errors that are put in front of one, too.
    ///
    /// # Panics
    /// If the share is over 1, or if the faults have been cloned: tell them before.
    #[must_use]
    pub fn latency(self, share: Ratio, latency: Duration) -> Self {
        self.configure(|shared| {
            shared.late = whole_at_most(share);
            shared.latency = latency;
        })
    }

    /// Calls meet faults from now on.
    pub fn turn_on(&self) {
        self.shared.on.store(true, Ordering::Relaxed);
    }

    /// Calls are left alone from now on; those that are delayed already stay so.
    pub fn turn_off(&self) {
        self.shared.on.store(false, Ordering::Relaxed);
    }

    /// Whether calls meet faults.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.shared.on.load(Ordering::Relaxed)
    }

    /// How many calls met which fault so far.
    #[must_use]
    pub fn counts(&self) -> FaultCounts {
        FaultCounts {
            calls: self.shared.calls.load(Ordering::Relaxed),
            errors: self.shared.failed.load(Ordering::Relaxed),
            delays: self.shared.delayed.load(Ordering::Relaxed),
        }
    }

    /// `operation`, for [`Retry::run`](crate::Retry::run), with faults in front of its attempts.
    pub fn around<F, Fut, V>(
        &self,
        mut operation: F,
    ) -> impl FnMut(Attempt) -> Faulty<Fut, E, T> + use<F, Fut, V, E, T>
    where
        F: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<V, E>>,
        T: Timer,
    {
        let faults = self.clone();
        move |attempt| faults.before(|| operation(attempt))
    }

    /// The call, with what chance puts in front of it.
    fn before<Fut>(&self, call: impl FnOnce() -> Fut) -> Faulty<Fut, E, T>
    where
        T: Timer,
    {
        let (latency, error) = self.draw();
        let until = if latency.is_zero() { None } else { Some(self.timer.now() + latency) };
        let call = if error.is_some() { None } else { Some(call()) };
        Faulty { timer: self.timer.clone(), until, error, call, sleep: None }
    }

    fn draw(&self) -> (Duration, Option<E>) {
        let shared = &*self.shared;
        if !self.is_on() {
            return (Duration::ZERO, None);
        }
        shared.calls.fetch_add(1, Ordering::Relaxed);
        // Both are drawn for every call, so that a change of one chance leaves the other's faults where they are.
        let (late, fails) = {
            let mut rng = shared.rng.lock().unwrap_or_else(PoisonError::into_inner);
            (met(shared.late, rng.next()), met(shared.errors, rng.next()))
        };
        let latency = if late { shared.latency } else { Duration::ZERO };
        let error = shared.error.as_ref().filter(|_| fails).map(|error| error());
        shared.delayed.fetch_add(u64::from(late), Ordering::Relaxed);
        shared.failed.fetch_add(u64::from(error.is_some()), Ordering::Relaxed);
        (latency, error)
    }

    fn configure(mut self, change: impl FnOnce(&mut Shared<E>)) -> Self {
        change(Arc::get_mut(&mut self.shared).expect("faults are configured before they are cloned"));
        self
    }
}

fn whole_at_most(share: Ratio) -> Ratio {
    assert!(share <= Ratio::ONE, "a share of the calls is at most 1, and this is {share}");
    share
}

/// Whether a chance of `share` is met by these random bits.
fn met(share: Ratio, bits: u64) -> bool {
    const MILLION: u128 = 1_000_000;
    let drawn = (u128::from(bits) * MILLION) >> 64;
    drawn < u128::from(share.parts_per_million())
}

impl<E, T: Clone> Clone for Faults<E, T> {
    fn clone(&self) -> Self {
        Faults { shared: Arc::clone(&self.shared), timer: self.timer.clone() }
    }
}

impl<E, T> fmt::Debug for Faults<E, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faults")
            .field("on", &self.is_on())
            .field("errors", &self.shared.errors)
            .field("late", &self.shared.late)
            .field("latency", &self.shared.latency)
            .finish_non_exhaustive()
    }
}

pin_project! {
    /// A call with what [`Faults`] put in front of it.
    #[must_use = "futures do nothing unless polled"]
    pub struct Faulty<Fut, E, T>
    where
        T: Timer,
    {
        timer: T,
        until: Option<Instant>,
        error: Option<E>,
        #[pin]
        call: Option<Fut>,
        #[pin]
        sleep: Option<T::Sleep>,
    }
}

impl<Fut, V, E, T> Future for Faulty<Fut, E, T>
where
    Fut: Future<Output = Result<V, E>>,
    T: Timer,
{
    type Output = Result<V, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if let Some(until) = *this.until {
            ready!(poll_until(this.timer, until, this.sleep, cx));
            *this.until = None;
        }
        match this.call.as_pin_mut() {
            Some(call) => call.poll(cx),
            None => Poll::Ready(Err(this.error.take().expect("a future is not polled after its end"))),
        }
    }
}

impl<Fut, E, T: Timer> fmt::Debug for Faulty<Fut, E, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faulty")
            .field("until", &self.until)
            .field("fails", &self.error.is_some())
            .finish_non_exhaustive()
    }
}

/// Puts [`Faults`] in front of the calls of the service below it.
#[cfg(feature = "tower")]
#[derive(Debug)]
pub struct FaultLayer<E, T = SystemTimer> {
    faults: Faults<E, T>,
}

#[cfg(feature = "tower")]
impl<E, T> FaultLayer<E, T> {
    /// A layer whose services are one switch with `faults`.
    ///
    /// ```
    /// use std::io;
    /// use relent::testing::{FaultLayer, Faults};
    /// use relent::{Ratio, Retry, RetryLayer};
    /// use tower::ServiceBuilder;
    ///
    /// let faults = Faults::seeded(7).errors(Ratio::of(1, 100), || io::Error::from(io::ErrorKind::ConnectionReset));
    /// let service = ServiceBuilder::new()
    ///     .layer(RetryLayer::new(Retry::default()))
    ///     .layer(FaultLayer::new(faults.clone()))
    ///     .service_fn(async |id: u64| io::Result::Ok(id));
    /// # let _ = service;
    /// faults.turn_on();
    /// ```
    #[must_use]
    pub fn new(faults: Faults<E, T>) -> FaultLayer<E, T> {
        FaultLayer { faults }
    }
}

#[cfg(feature = "tower")]
impl<E, T: Clone> Clone for FaultLayer<E, T> {
    fn clone(&self) -> Self {
        FaultLayer { faults: self.faults.clone() }
    }
}

#[cfg(feature = "tower")]
impl<S, E, T: Clone> tower_layer::Layer<S> for FaultLayer<E, T> {
    type Service = FaultService<S, E, T>;

    fn layer(&self, inner: S) -> Self::Service {
        FaultService { inner, faults: self.faults.clone() }
    }
}

/// A service with [`Faults`] in front of it.
#[cfg(feature = "tower")]
#[derive(Debug)]
pub struct FaultService<S, E, T = SystemTimer> {
    inner: S,
    faults: Faults<E, T>,
}

#[cfg(feature = "tower")]
impl<S: Clone, E, T: Clone> Clone for FaultService<S, E, T> {
    fn clone(&self) -> Self {
        FaultService { inner: self.inner.clone(), faults: self.faults.clone() }
    }
}

#[cfg(feature = "tower")]
impl<S, R, T> tower_service::Service<R> for FaultService<S, S::Error, T>
where
    S: tower_service::Service<R>,
    T: Timer,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Faulty<S::Future, S::Error, T>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let FaultService { inner, faults } = self;
        faults.before(|| inner.call(request))
    }
}
