//! The proxy over real sockets, as programs in common use speak to it: curl, Python, Node, a browser. Nothing here looks
//! at a clock but to give up. A program that this machine doesn't have is named, and its test left out.

mod browser;
mod cancelled;
mod programs;
mod restarts;
mod stand;
mod upstream;
mod websocket;
