//! Which endpoint an attempt goes to: round robin, but not where this call has been, while there is another.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The endpoints that a call has been to.
#[derive(Debug, Default)]
pub(crate) struct Tried {
    /// In the order of the attempts; empty for the most.
    endpoints: Vec<usize>,
    /// Those that broke off after bytes of the request were sent: it may have been the request that broke them.
    broken: Vec<usize>,
}

impl Tried {
    /// An attempt there has failed.
    pub(crate) fn failed(&mut self, endpoint: usize, broke_off: bool) {
        remember(&mut self.endpoints, endpoint);
        if broke_off {
            remember(&mut self.broken, endpoint);
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
    pub(super) fn pick(&self, all: usize, tried: &Tried) -> usize {
        let turn = self.0.load(Ordering::Relaxed);
        self.0.store(turn.wrapping_add(1), Ordering::Relaxed);
        if tried.is_suspect() {
            return tried.broken[turn % tried.broken.len()];
        }
        let from_here = (0..all).map(|step| (turn.wrapping_add(step)) % all);
        let mut fresh = from_here.filter(|endpoint| !tried.endpoints.contains(endpoint));
        fresh.next().unwrap_or(turn % all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tried(failed: &[(usize, bool)]) -> Tried {
        let mut tried = Tried::default();
        failed.iter().for_each(|(endpoint, broke_off)| tried.failed(*endpoint, *broke_off));
        tried
    }

    #[test]
    fn calls_take_turns() {
        let rotation = Rotation::default();
        let picked: Vec<_> = (0..5).map(|_| rotation.pick(3, &Tried::default())).collect();
        assert_eq!(picked, [0, 1, 2, 0, 1]);
    }

    #[test]
    fn a_tried_endpoint_is_avoided_while_another_exists() {
        let rotation = Rotation::default();
        for _ in 0..10 {
            assert_eq!(rotation.pick(3, &tried(&[(0, false), (2, false)])), 1);
        }
        assert_eq!(rotation.pick(1, &tried(&[(0, false)])), 0);
        assert!(!tried(&[(0, false), (1, false)]).leaves_any(2));
        assert!(tried(&[(0, false), (0, false)]).leaves_any(2));
    }

    #[test]
    fn a_request_that_breaks_endpoints_reaches_two_of_them_at_most() {
        let suspect = tried(&[(3, true), (1, true)]);
        let rotation = Rotation::default();
        for _ in 0..10 {
            assert!([1, 3].contains(&rotation.pick(5, &suspect)));
        }
        assert!(!suspect.leaves_any(5));
        assert!(tried(&[(3, true), (3, true)]).leaves_any(5));
    }
}
