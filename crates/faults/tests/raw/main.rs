//! What is on the wire, seen by clients that hide nothing: a TCP socket, TLS fed by
//! hand, and the frames of HTTP/2. Each test names the fault whose bytes it proves.

mod client;
mod ends;
mod events;
mod framing;
mod http2;
mod tls;
