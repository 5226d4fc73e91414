//! What is on the wire, seen by clients that hide nothing: a TCP socket, TLS fed by
//! hand, and the frames of HTTP/2. Each test names the fault whose bytes it proves.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may panic"
)]

mod client;
mod ends;
mod events;
mod framing;
mod http2;
mod tls;
