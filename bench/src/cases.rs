//! What is measured: each case prepares its state, and then does one thing.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use relent_core::{
    Backoff, Context, FreeRepeats, Instant, NoCredit, Policy, Repeat, Rng, Session, Step, Used, WaitingRoom,
};

pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    /// Everything that is not to be counted; the result does what is.
    pub(crate) prepare: fn() -> Box<dyn FnMut()>,
}

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "session-success",
        what: "the engine alone: a call whose first try succeeds",
        prepare: success,
    },
    Case { name: "delay", what: "one wait with full jitter, retry 7", prepare: delay },
];

fn success() -> Box<dyn FnMut()> {
    let policy = Policy::exponential(Duration::from_millis(100), Duration::from_secs(10))
        .no_budget()
        .build()
        .expect("base and cap are in order");
    let waiting = Arc::new(WaitingRoom::new());
    let free_repeats = FreeRepeats::default();
    Box::new(move || {
        let context = Context {
            policy: &policy,
            budget: None,
            breaker: None,
            waiting: &waiting,
            free_repeats: &free_repeats,
            credit: &NoCredit,
            hold: None,
            latencies: None,
            random: &|| 7,
        };
        let mut session = Session::new(&policy, Repeat::Yes, Instant::NEVER, Instant::ZERO);
        if let Step::Launch(launch) = session.begin(&context, Instant::ZERO) {
            session.succeeded(&context, launch.id, Used::Unsaid, None);
        }
        assert!(black_box(session).is_over());
    })
}

fn delay() -> Box<dyn FnMut()> {
    let backoff = Backoff::exponential(Duration::from_millis(100), Duration::from_secs(10));
    let mut rng = Rng::seeded(7);
    Box::new(move || {
        black_box(backoff.draw(black_box(7), Duration::ZERO, rng.next()));
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::{Counts, counted};

    #[test]
    fn the_first_try_and_the_delay_allocate_nothing() {
        for case in CASES {
            let mut work = (case.prepare)();
            assert_eq!(counted(&mut work).1, Counts::default(), "{}", case.name);
        }
    }
}
