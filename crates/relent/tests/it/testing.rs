//! What `relent::testing` promises to others' tests.

mod faults;
#[cfg(feature = "http")]
mod http_script;
mod recorder;
mod script;
