//! The decorrelated walks, followed by their distribution: s(k) = min(cap, U[base, 3·s(k−1)]) and its bounded kin.
//!
//! The probability mass between base and cap lies in cells of equal ratio, with a heap of its own at the cap. One step
//! sends the mass of each cell through the engine's law and collects it by its survival function, so nothing is lost and a
//! step costs one pass. A cell stands for its middle, which makes an error of the order of (cell width)², some 10⁻⁵.

use relent_core::{Backoff, Jitter};

/// Cells between base and cap.
const CELLS: usize = 2048;
/// The mean's relative change in one step below which the walk has forgotten where it began.
const STEADY: f64 = 1e-9;

/// Where a decorrelated walk may be.
#[derive(Debug)]
pub(super) struct Walk {
    base: f64,
    cap: f64,
    bounded: bool,
    edges: Vec<f64>,
    cells: Vec<f64>,
    heap: f64,
    first: bool,
    steady: bool,
}

impl Walk {
    /// The walk of this backoff, if its jitter is one and there is room to walk.
    pub(super) fn of(backoff: &Backoff) -> Option<Walk> {
        let bounded = match backoff.jitter() {
            Jitter::Decorrelated => false,
            Jitter::DecorrelatedBounded => true,
            _ => return None,
        };
        let (base, cap) = (backoff.base().as_nanos() as f64, backoff.cap().as_nanos() as f64);
        if base == 0.0 || base >= cap {
            return None;
        }
        // The CELLS-th root: as many square roots as CELLS has halves. (No libm: its pages would stay with the proxy.)
        let step = (0..CELLS.trailing_zeros()).fold(cap / base, |ratio, _| ratio.sqrt());
        let mut edges: Vec<f64> =
            std::iter::successors(Some(base), |edge| Some(edge * step)).take(CELLS + 1).collect();
        // To the digit: a bound just under the cap must not be cut at an edge just over it.
        edges[CELLS] = cap;
        Some(Walk {
            base,
            cap,
            bounded,
            edges,
            cells: vec![0.0; CELLS],
            heap: 0.0,
            first: true,
            steady: false,
        })
    }

    /// One wait further.
    pub(super) fn step(&mut self) {
        let mean = self.mean();
        let sources = self.sources();
        self.first = false;
        // Survival at each edge, from the cap down: P(next > x) = Σ mass · (high − x) / (high − base) over high > x.
        let (mut weight, mut weighted_high, mut pending) = (0.0, 0.0, sources.len());
        let mut above = 0.0;
        for n in (0..=CELLS).rev() {
            let x = self.edges[n];
            while pending > 0 && sources[pending - 1].0 > x {
                pending -= 1;
                let (high, mass) = sources[pending];
                weight += mass / (high - self.base);
                weighted_high += mass * high / (high - self.base);
            }
            let survival = (weighted_high - x * weight).clamp(above, 1.0);
            if n == CELLS {
                self.heap = survival;
            } else {
                self.cells[n] = survival - above;
            }
            above = survival;
        }
        self.steady = (self.mean() - mean).abs() <= STEADY * mean;
    }

    /// The upper bounds of the next draw and the mass that goes to each, in ascending order.
    fn sources(&self) -> Vec<(f64, f64)> {
        let high = |s: f64| if self.bounded { (3.0 * s).min(self.cap) } else { 3.0 * s };
        if self.first {
            return vec![(high(self.base), 1.0)];
        }
        let cells = (0..CELLS).map(|n| (high(self.middle(n)), self.cells[n]));
        cells.chain([(high(self.cap), self.heap)]).collect()
    }

    fn middle(&self, cell: usize) -> f64 {
        f64::midpoint(self.edges[cell], self.edges[cell + 1])
    }

    /// The mean of the last wait, in nanoseconds.
    pub(super) fn mean(&self) -> f64 {
        let cells: f64 = (0..CELLS).map(|n| self.cells[n] * self.middle(n)).sum();
        cells + self.heap * self.cap
    }

    /// How probably the last wait was the cap.
    pub(super) fn at_cap(&self) -> f64 {
        self.heap
    }

    /// Whether further steps change nothing.
    pub(super) fn is_steady(&self) -> bool {
        self.steady
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use relent_core::Policy;

    use super::*;

    fn walk(jitter: Jitter, base: u64, cap: u64) -> Walk {
        let (base, cap) = (Duration::from_millis(base), Duration::from_millis(cap));
        Walk::of(Policy::exponential(base, cap).jitter(jitter).no_deadline().build().unwrap().backoff())
            .unwrap()
    }

    #[test]
    fn no_probability_is_lost() {
        for jitter in [Jitter::Decorrelated, Jitter::DecorrelatedBounded] {
            let mut walk = walk(jitter, 1, 3_600_000);
            for _ in 0..300 {
                walk.step();
                let total: f64 = walk.cells.iter().sum::<f64>() + walk.heap;
                assert!((total - 1.0).abs() < 1e-6, "{jitter:?}: {total}");
            }
        }
    }

    #[test]
    fn the_first_wait_is_uniform() {
        // U[100, 300] cut at 200: half of it is the cap, the other half has a mean of 150.
        let mut walk = walk(Jitter::Decorrelated, 100, 200);
        walk.step();
        assert!((walk.at_cap() - 0.5).abs() < 1e-9);
        assert!((walk.mean() - 175e6).abs() < 1e3);
    }
}
