//! Which endpoint an attempt goes to: round robin, but not where this call has been, nor where the server asked for a pause,
//! while there is another.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The endpoints that a call has been to.
#[derive(Debug, Default)]
pub(crate) struct Tried {
    /// In the order of the attempts; empty for the most.
    endpoints: Vec<usize>,
    /// Those that broke off after bytes of the request were sent: it may have been the request that broke them.
    broken: Vec<usize>,
    /// Those to which no connection came about.
    unreachable: Vec<usize>,
}

/// How an attempt at an endpoint ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// No connection came about.
    Unreachable,
    /// It broke off after bytes of the request were sent.
    BrokeOff,
    /// It answered, or let its time pass.
    Otherwise,
}

impl Tried {
    /// An attempt there has failed.
    pub(crate) fn failed(&mut self, endpoint: usize, ended: Ended) {
        remember(&mut self.endpoints, endpoint);
        match ended {
            Ended::BrokeOff => remember(&mut self.broken, endpoint),
            Ended::Unreachable => remember(&mut self.unreachable, endpoint),
            Ended::Otherwise => self.unreachable.retain(|other| *other != endpoint),
        }
    }

    /// Whether an endpoint of `all` is left that has not been tried, and may be.
    pub(crate) fn leaves_any(&self, all: usize) -> bool {
        self.endpoints.len() < all && !self.is_suspect()
    }

    /// Whether two endpoints have broken off over this request: it must not walk through the whole fleet.
    fn is_suspect(&self) -> bool {
        self.broken.len() > 1
    }
}

fn remember(list: &mut Vec<usize>, endpoint: usize) {
    if !list.contains(&endpoint) {
        list.push(endpoint);
    }
}

/// Whose turn it is, in one worker: no locked instruction is needed.
#[derive(Debug, Default)]
pub(super) struct Rotation(AtomicUsize);

impl Rotation {
    /// `held`: whether the server at an endpoint asked for a pause that is not over. Only retries ask.
    pub(super) fn pick(&self, all: usize, tried: &Tried, held: impl Fn(usize) -> bool) -> usize {
        let turn = self.0.load(Ordering::Relaxed);
        self.0.store(turn.wrapping_add(1), Ordering::Relaxed);
        if tried.is_suspect() {
            return tried.broken[turn % tried.broken.len()];
        }
        if tried.endpoints.is_empty() {
            return turn % all;
        }
        let from_here = (0..all).map(|step| turn.wrapping_add(step) % all);
        // Of two that are as good the one whose turn it is: the least by these is the first of the least.
        let misgivings = |endpoint: &usize| {
            let seen = tried.endpoints.contains(endpoint);
            (held(*endpoint), seen, tried.unreachable.contains(endpoint))
        };
        from_here.min_by_key(misgivings).unwrap_or(turn % all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use Ended::{BrokeOff, Otherwise, Unreachable};

    fn tried(failed: &[(usize, Ended)]) -> Tried {
        let mut tried = Tried::default();
        failed.iter().for_each(|(endpoint, ended)| tried.failed(*endpoint, *ended));
        tried
    }

    fn nobody(_: usize) -> bool {
        false
    }

    #[test]
    fn calls_take_turns() {
        let rotation = Rotation::default();
        let picked: Vec<_> = (0..5).map(|_| rotation.pick(3, &Tried::default(), nobody)).collect();
        assert_eq!(picked, [0, 1, 2, 0, 1]);
    }

    #[test]
    fn a_tried_endpoint_is_avoided_while_another_exists() {
        let rotation = Rotation::default();
        for _ in 0..10 {
            assert_eq!(rotation.pick(3, &tried(&[(0, Otherwise), (2, Otherwise)]), nobody), 1);
        }
        assert_eq!(rotation.pick(1, &tried(&[(0, Otherwise)]), nobody), 0);
        assert!(!tried(&[(0, Otherwise), (1, Otherwise)]).leaves_any(2));
        assert!(tried(&[(0, Otherwise), (0, Otherwise)]).leaves_any(2));
    }

    #[test]
    fn a_request_that_breaks_endpoints_reaches_two_of_them_at_most() {
        let suspect = tried(&[(3, BrokeOff), (1, BrokeOff)]);
        let rotation = Rotation::default();
        for _ in 0..10 {
            assert!([1, 3].contains(&rotation.pick(5, &suspect, nobody)));
        }
        assert!(!suspect.leaves_any(5));
        assert!(tried(&[(3, BrokeOff), (3, BrokeOff)]).leaves_any(5));
    }

    #[test]
    fn once_all_were_tried_one_that_answered_is_better_than_one_that_can_t_be_reached() {
        let rotation = Rotation::default();
        for _ in 0..10 {
            assert_eq!(
                rotation.pick(3, &tried(&[(0, Unreachable), (1, Otherwise), (2, Unreachable)]), nobody),
                1
            );
        }
        let back = tried(&[(0, Unreachable), (0, Otherwise), (1, Unreachable)]);
        assert_eq!(rotation.pick(2, &back, nobody), 0);
    }

    #[test]
    fn retries_go_round_an_endpoint_that_asked_for_a_pause_and_first_tries_don_t() {
        let rotation = Rotation::default();
        let held = |endpoint: usize| endpoint == 1;
        let first: Vec<_> = (0..3).map(|_| rotation.pick(3, &Tried::default(), held)).collect();
        assert_eq!(first, [0, 1, 2]);
        for _ in 0..10 {
            assert_eq!(rotation.pick(3, &tried(&[(0, Otherwise)]), held), 2);
        }
        assert_eq!(rotation.pick(2, &tried(&[(0, Otherwise)]), |_| true), 1, "held all, so the fresh one");
    }
}
