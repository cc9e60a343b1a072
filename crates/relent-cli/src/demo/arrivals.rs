//! The calls that users make: an open Poisson stream, the same for every lane.
//!
//! Open means that a call comes whether earlier ones succeeded or not, as users of a service do.

use std::time::Duration;

use super::dice::{Dice, Stream};
use super::scenario::Scenario;

/// One thing that a user wants done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    /// Its number, from 0.
    pub(crate) id: u32,
    /// When it comes.
    pub(crate) at: Duration,
    /// A payment (POST) or a look at an order (GET).
    pub(crate) payment: bool,
}

impl Call {
    /// Where its requests go.
    pub(crate) fn path(&self) -> String {
        let kind = if self.payment { "payments" } else { "orders" };
        format!("/{kind}/{}", self.id)
    }
}

/// The call that a request's path names.
pub(crate) fn call_of(path: &str) -> Option<u32> {
    path.rsplit('/').next()?.parse().ok()
}

/// All calls of a run, in order of time.
pub(crate) fn schedule(scenario: &Scenario) -> Vec<Call> {
    let dice = Dice::seeded(scenario.seed);
    let gap = Duration::from_secs_f64(1.0 / scenario.rate);
    let mut at = Duration::ZERO;
    let mut calls = Vec::new();
    for id in 0..u32::MAX {
        at += dice.exponential(gap, Stream::Arrival, id, 0);
        if at >= scenario.length {
            break;
        }
        let payment = dice.roll(Stream::Payment, id, 0) < scenario.payments;
        calls.push(Call { id, at, payment });
    }
    calls
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_gives_one_schedule_at_the_wanted_rate() {
        let shown = Scenario::shown(3);
        let calls = schedule(&shown);
        assert_eq!(calls, schedule(&shown));
        assert_ne!(calls, schedule(&Scenario::shown(4)));
        assert!(calls.is_sorted_by_key(|call| call.at));
        assert!(calls.iter().enumerate().all(|(i, call)| call.id as usize == i));
        // 4000 expected; five standard deviations are 316.
        assert!((3684..=4316).contains(&calls.len()), "{}", calls.len());
        let payments = calls.iter().filter(|call| call.payment).count() as f64 / calls.len() as f64;
        assert!((0.075..0.125).contains(&payments), "{payments}");
    }

    #[test]
    fn a_path_names_its_call() {
        let call = Call { id: 42, at: Duration::ZERO, payment: true };
        assert_eq!(call.path(), "/payments/42");
        assert_eq!(call_of("/payments/42"), Some(42));
        assert_eq!(call_of("/orders/"), None);
    }
}
