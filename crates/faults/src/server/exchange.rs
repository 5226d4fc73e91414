//! Plays one behaviour on one HTTP/1.1 connection.

use std::{fmt::Write as _, time::Duration};

use super::{
    reply::{Head, Reply, Sink},
    wire::{Gone, Wire},
};
use crate::{
    behaviour::{HangUp, How},
    record::Ended,
};

/// One request, what is done with it, and where its end is noted.
pub(super) struct Exchange<'a> {
    pub(super) reply: Reply<'a>,
    pub(super) keep_alive: bool,
}

impl Exchange<'_> {
    /// Plays it; the connection comes back when it can carry another request.
    pub(super) async fn play(&self, wire: Wire) -> Option<Wire> {
        let mut response =
            Response { wire, keep_alive: self.keep_alive, framing: Framing::Chunked };
        let played = self.reply.respond(&mut response).await;
        let mut wire = response.wire;
        match played {
            Ok(Some(how)) => {
                self.break_off(wire, how).await;
                None
            }
            Ok(None) if self.keep_alive => match self.reply.behaviour.hang_up {
                None => Some(wire),
                Some(HangUp::OnReuse) => {
                    wire.doom();
                    Some(wire)
                }
                Some(HangUp::AtOnce) => {
                    wire.fin().await;
                    None
                }
            },
            Ok(None) => {
                wire.fin().await;
                None
            }
            Err(gone) => {
                self.reply.ticket.ended(gone.into());
                None
            }
        }
    }

    async fn break_off(&self, mut wire: Wire, how: How) {
        let ticket = &self.reply.ticket;
        match how {
            How::Reset => {
                ticket.ended(Ended::Reset);
                wire.reset().await;
            }
            How::BadChunk => {
                ticket.ended(Ended::Fin);
                if wire.send(b"zz\r\nthis is no chunk\r\n").await.is_ok() {
                    wire.fin().await;
                }
            }
            How::FinWithoutNotify => {
                ticket.ended(Ended::Fin);
                wire.fin_without_notify().await;
            }
            How::Silence => {
                ticket.ended(Ended::Silence);
                if wire.silence().await == Gone::ClientLeft {
                    ticket.ended(Ended::LeftInSilence);
                }
            }
            // The ways of HTTP/2 are refused where the script is checked.
            How::Fin
            | How::CleanEnd
            | How::ShortBody
            | How::RstStream(_)
            | How::GoAway(_)
            | How::GoAwayAccepted(_) => {
                ticket.ended(Ended::Fin);
                wire.fin().await;
            }
        }
    }
}

/// The response as HTTP/1.1.
struct Response {
    wire: Wire,
    keep_alive: bool,
    framing: Framing,
}

enum Framing {
    Chunked,
    Length,
}

impl Sink for Response {
    async fn head(&mut self, head: Head) -> Result<(), Gone> {
        self.framing = if head.length.is_some() { Framing::Length } else { Framing::Chunked };
        self.wire.send(&write_head(&head, self.keep_alive)).await
    }

    async fn data(&mut self, bytes: &[u8], announced: usize) -> Result<(), Gone> {
        match self.framing {
            Framing::Length => self.wire.send(bytes).await,
            Framing::Chunked => self.wire.send(&chunk(bytes, announced)).await,
        }
    }

    async fn end(&mut self) -> Result<(), Gone> {
        match self.framing {
            Framing::Length => Ok(()),
            Framing::Chunked => self.wire.send(b"0\r\n\r\n").await,
        }
    }

    async fn wait(&mut self, delay: Duration) -> Result<(), Gone> {
        self.wire.wait(delay).await
    }
}

/// A response head with its blank line.
pub(super) fn write_head(head: &Head, keep_alive: bool) -> Vec<u8> {
    let mut text = format!("HTTP/1.1 {} {}\r\n", head.status, reason(head.status));
    for (name, value) in &head.headers {
        // Writing to a String cannot fail.
        let _ = write!(text, "{name}: {value}\r\n");
    }
    let _ = match head.length {
        Some(length) => write!(text, "content-length: {length}\r\n"),
        None => write!(text, "transfer-encoding: chunked\r\n"),
    };
    if !keep_alive {
        text.push_str("connection: close\r\n");
    }
    text.push_str("\r\n");
    text.into_bytes()
}

/// A chunk, with its end if it is whole.
fn chunk(bytes: &[u8], announced: usize) -> Vec<u8> {
    let mut chunk = format!("{announced:x}\r\n").into_bytes();
    chunk.extend_from_slice(bytes);
    if announced == bytes.len() {
        chunk.extend_from_slice(b"\r\n");
    }
    chunk
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        413 => "Content Too Large",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        // The phrase may be empty; no client reads it.
        _ => "",
    }
}
