//! The proxy from outside: raw clients before it, scripted endpoints behind it, in memory and on paused time.
//!
//! Tests named by a number are cases that broke other proxies.

mod rig;

mod bodies;
mod counts;
mod hosts;
mod matrix;
mod safety;
mod time;
mod words;
