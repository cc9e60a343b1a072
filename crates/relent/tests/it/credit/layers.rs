//! Layers of handles around a leaf, mixed as one likes.

use std::cell::Cell;
use std::pin::Pin;

use relent::timer::Manual;
use relent::{Nested, Retry};

use crate::rig::{Busy, Transient, handle, unbounded};

/// One layer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layer {
    driver: Driver,
    attempts: u32,
    nested: Nested,
    only_if_unprocessed: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Driver {
    Async,
    Blocking,
}

impl Layer {
    pub(super) const fn new(driver: Driver, attempts: u32) -> Layer {
        Layer { driver, attempts, nested: Nested::Credit, only_if_unprocessed: false }
    }

    pub(super) const fn attempts(mut self, attempts: u32) -> Layer {
        self.attempts = attempts;
        self
    }

    pub(super) const fn nested(mut self, nested: Nested) -> Layer {
        self.nested = nested;
        self
    }

    pub(super) const fn only_if_unprocessed(mut self) -> Layer {
        self.only_if_unprocessed = true;
        self
    }
}

/// Puts `layers` (the outermost first) around a leaf that always fails, and counts how often it is called.
pub(super) fn calls_at_a_dead_leaf(layers: &[Layer]) -> u32 {
    let time = Manual::new();
    let handles: Vec<_> = layers
        .iter()
        .map(|layer| (*layer, handle(unbounded(layer.attempts).nested(layer.nested), &time)))
        .collect();
    let calls = Cell::new(0);
    let world = World { time: &time, calls: &calls };
    assert_eq!(time.run(world.call(&handles)), Err(Busy(7)));
    assert_eq!(time.sleepers(), 0);
    calls.get()
}

struct World<'a> {
    time: &'a Manual,
    calls: &'a Cell<u32>,
}

type Call<'a> = Pin<Box<dyn Future<Output = Result<(), Busy>> + 'a>>;

impl World<'_> {
    fn call<'a>(&'a self, layers: &'a [(Layer, Retry<Transient, Manual>)]) -> Call<'a> {
        Box::pin(async move {
            let Some(((layer, retry), below)) = layers.split_first() else {
                self.calls.set(self.calls.get() + 1);
                return Err(Busy(7));
            };
            let blocking = |_| self.time.run(self.call(below));
            let outcome = match (layer.driver, layer.only_if_unprocessed) {
                (Driver::Async, false) => retry.run(|_| self.call(below)).await,
                (Driver::Async, true) => retry.run(|_| self.call(below)).only_if_unprocessed().await,
                (Driver::Blocking, false) => retry.run_blocking(blocking),
                (Driver::Blocking, true) => retry.run_blocking_only_if_unprocessed(blocking),
            };
            outcome.map_err(Busy::from)
        })
    }
}
