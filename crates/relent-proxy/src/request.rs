//! A client's request on its way through: as it was understood, and as it is sent on.

mod inbound;
mod outbound;
mod overrides;

pub(crate) use inbound::{Inbound, Upgrade};
pub(crate) use outbound::Pristine;
