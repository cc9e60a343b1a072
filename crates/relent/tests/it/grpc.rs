//! gRPC without a network: a service that answers by a script, on paused time; with tonic and a socket where those features
//! are on.

mod commit;
mod deadlines;
mod pushback;
mod rules;
mod server;
mod throttle;
