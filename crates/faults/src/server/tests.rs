//! Raw clients on real sockets: what is proved here is what is on the wire.

mod client;
mod faults;
mod http;
