//! Plays one behaviour on one HTTP/1.1 connection.

use std::{fmt::Write as _, time::Duration};

use super::{
    reply::{Head, Reply, Sink},
    wire::{Gone, Wire},
};
use crate::{
    behaviour::{HangUp, How, Http1},
    record::Ended,
};

/// What a chunk may say beside its size; no client needs it.
const EXTENSION: &str = ";served-by=\"faults\"";

/// The wait between two responses that say nothing.
const NOISE_PAUSE: Duration = Duration::from_millis(20);

/// One request, what is done with it, and where its end is noted.
pub(super) struct Exchange<'a> {
    pub(super) reply: Reply<'a>,
    pub(super) keep_alive: bool,
}

impl Exchange<'_> {
    /// Plays it; the connection comes back when it can carry another request.
    pub(super) async fn play(&self, wire: Wire) -> Option<Wire> {
        let oddities = &self.reply.behaviour.http1;
        let keep_alive = self.keep_alive && !oddities.contains(&Http1::UntilClose);
        let mut response = Response { wire, keep_alive, framing: Framing::Chunked, oddities };
        let played = self.reply.respond(&mut response).await;
        let mut wire = response.wire;
        match played {
            Ok(Some(how)) => {
                self.break_off(wire, how).await;
                None
            }
            Ok(None) if keep_alive => match self.reply.behaviour.hang_up {
                None => Some(wire),
                Some(HangUp::OnReuse) => {
                    wire.doom();
                    Some(wire)
                }
                // A GOAWAY is refused where the script is checked.
                Some(HangUp::AtOnce | HangUp::GoAway) => {
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
            How::BadRecord => {
                ticket.ended(Ended::Fin);
                wire.bad_record().await;
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
            | How::BadFrame
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
struct Response<'a> {
    wire: Wire,
    keep_alive: bool,
    framing: Framing,
    oddities: &'a [Http1],
}

enum Framing {
    Chunked,
    Length,
    UntilClose,
}

impl Response<'_> {
    fn has(&self, oddity: Http1) -> bool {
        self.oddities.contains(&oddity)
    }

    /// The head as it goes out, with what is odd about it.
    fn write_head(&self, head: &Head) -> Vec<u8> {
        let mut text = String::from_utf8_lossy(&write_head(head, self.keep_alive)).into_owned();
        for oddity in self.oddities {
            match oddity {
                Http1::UntilClose => {
                    text = text.replacen("HTTP/1.1", "HTTP/1.0", 1);
                    let framed = |line: &&str| {
                        !line.starts_with("content-length:") && !line.starts_with("transfer-")
                    };
                    text = text.split_inclusive("\r\n").filter(framed).collect();
                }
                Http1::NoStatusLine => text = text.replacen("HTTP/1.1 ", "ESMTP ready ", 1),
                Http1::HugeHeader(bytes) => {
                    let huge = format!("\r\nx-huge: {}\r\n", "a".repeat(*bytes));
                    text = text.replacen("\r\n", &huge, 1);
                }
                Http1::TwoLengths => {
                    text = text.replace("transfer-encoding: chunked\r\n", "");
                    let two = "\r\ncontent-length: 5\r\ncontent-length: 7\r\n";
                    text = text.replacen("\r\n", two, 1);
                }
                _ => {}
            }
        }
        text.into_bytes()
    }

    /// What comes before the head, and takes its place where it never ends.
    async fn before_head(&mut self) -> Result<(), Gone> {
        for oddity in self.oddities {
            match oddity {
                Http1::Informational(status) => {
                    let early =
                        format!("HTTP/1.1 {status} \r\nlink: </style.css>; rel=preload\r\n\r\n");
                    self.wire.send(early.as_bytes()).await?;
                }
                Http1::InformationalForEver => loop {
                    self.wire.send(b"HTTP/1.1 102 Processing\r\n\r\n").await?;
                    self.wire.wait(NOISE_PAUSE).await?;
                },
                Http1::EndlessHead => {
                    self.wire.send(b"HTTP/1.1 200 OK\r\n").await?;
                    loop {
                        self.wire.send(b"x-more: and more, and more, and more\r\n").await?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl Sink for Response<'_> {
    async fn head(&mut self, head: Head) -> Result<(), Gone> {
        self.framing = match head.length {
            _ if self.has(Http1::UntilClose) => Framing::UntilClose,
            _ if self.has(Http1::TwoLengths) => Framing::Length,
            Some(_) => Framing::Length,
            None => Framing::Chunked,
        };
        self.before_head().await?;
        let bytes = self.write_head(&head);
        let slow = self.oddities.iter().find_map(|oddity| match oddity {
            Http1::SlowHead(pause) => Some(*pause),
            _ => None,
        });
        let Some(pause) = slow else { return self.wire.send(&bytes).await };
        for byte in bytes.chunks(1) {
            self.wire.send(byte).await?;
            self.wire.wait(pause).await?;
        }
        Ok(())
    }

    async fn torn_head(&mut self, head: Head) -> Result<(), Gone> {
        let bytes = self.write_head(&head);
        let half = bytes.get(..bytes.len() / 2).unwrap_or_default();
        self.wire.send(half).await
    }

    async fn data(&mut self, bytes: &[u8], announced: usize) -> Result<(), Gone> {
        match self.framing {
            Framing::Length | Framing::UntilClose => self.wire.send(bytes).await,
            Framing::Chunked => {
                let extension = if self.has(Http1::ChunkExtensions) { EXTENSION } else { "" };
                self.wire.send(&chunk(bytes, announced, extension)).await
            }
        }
    }

    async fn end(&mut self, trailers: &[(&str, &str)]) -> Result<(), Gone> {
        if matches!(self.framing, Framing::Chunked) {
            let trailers = trailers.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
            let end = format!("0\r\n{}\r\n", trailers.collect::<String>());
            self.wire.send(end.as_bytes()).await?;
        }
        for oddity in self.oddities {
            if let Http1::BytesBeyond(bytes) = oddity {
                self.wire.send(&vec![b'x'; *bytes]).await?;
            }
        }
        Ok(())
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
fn chunk(bytes: &[u8], announced: usize, extension: &str) -> Vec<u8> {
    let mut chunk = format!("{announced:x}{extension}\r\n").into_bytes();
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
