//! The proxy from outside: raw clients before it, scripted endpoints behind it, in memory and on paused time.

mod rig;

mod matrix;
