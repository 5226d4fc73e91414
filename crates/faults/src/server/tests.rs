//! Raw clients on real sockets: what is proved here is what is on the wire.

mod client;
mod dealing;
mod faults;
mod framing;
mod http;
mod http2;
mod tls;
