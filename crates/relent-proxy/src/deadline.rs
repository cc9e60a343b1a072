//! By when a call has to be over: what the hop before says, from the moment its request's head was here. The policy's own
//! deadline is the session's to add; the nearer of the two holds.

use relent_core::Instant;

use crate::request::Inbound;

pub(crate) fn of(inbound: &Inbound, now: Instant) -> Instant {
    match inbound.time {
        Some(time) => now + time,
        None => Instant::NEVER,
    }
}
