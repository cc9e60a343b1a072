//! One call, driven by hand: which question is asked when, what is taken, and what comes back.

mod breaker;
mod classic;
mod deadline;
mod free_repeat;
mod giving_back;
mod hedging;
mod hint;
mod holds;
mod opening;
mod order;
mod shorten;
mod spy;
mod stale_input;
mod walk;
