//! The client's side of a connection: its bytes, its requests' bodies, and what is known of it.

mod body;
mod connection;
mod io;
mod pulse;

pub(crate) use body::{BodyFault, BodyWatch, RequestBody};
pub(crate) use connection::{Connection, Connections, Order, Patience, Running};
pub(crate) use io::{ClientIo, Speaks};
pub(crate) use pulse::Pulse;
