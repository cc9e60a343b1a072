use std::sync::Arc;
use relent_core::Cause;
use crate::facts;
pub(crate) struct TargetNames { pub(crate) upstream: String, pub(crate) policy: String }
#[derive(Debug)] pub(crate) struct Metrics; #[derive(Debug)] pub(crate) struct Shard;
pub(crate) trait Gauges { fn budget_balance(&self, target: usize) -> Option<u64>; fn waiting(&self, target: usize) -> u32; fn replay_bytes(&self, target: usize) -> u64; }
impl Metrics { pub(crate) fn new(_t: Vec<TargetNames>, _w: usize) -> Metrics { Metrics } pub(crate) fn shard(&self, _n: usize) -> Arc<Shard> { Arc::new(Shard) } pub(crate) fn render(&self, _g: &dyn Gauges) -> String { String::new() } }
impl Shard { pub(crate) fn call_ended(&self, _c: &facts::Call) {} pub(crate) fn attempt_ended(&self, _t: usize, _a: &facts::Attempt) {} pub(crate) fn retry(&self, _t: usize, _c: Cause) {} pub(crate) fn free_repeat(&self, _t: usize) {} pub(crate) fn refused(&self, _s: u16) {} }
