//! Plays one behaviour on one connection.

use std::fmt::Write as _;

use super::{
    shared::Ticket,
    wire::{Gone, Wire},
};
use crate::{
    behaviour::{Answer, Behaviour, ErrorReply, How, Insert, Point},
    content::Content,
    dialect::{Ask, Dialect, Turn},
    plan::{self, Op},
    record::Ended,
};

/// What a huge line is made of, a piece at a time.
static FILLER: [u8; 64 * 1024] = [b'a'; 64 * 1024];

const NOT_JSON: &str = "{\"choices\":[{\"delta\":{\"content\":\"this is not";

/// One request, what is done with it, and where its end is noted.
pub(crate) struct Exchange<'a> {
    pub(crate) dialect: &'static dyn Dialect,
    pub(crate) behaviour: &'a Behaviour,
    pub(crate) content: &'a Content,
    pub(crate) ask: &'a Ask,
    pub(crate) turn: Turn,
    /// The key the client sent.
    pub(crate) key: Option<&'a str>,
    pub(crate) keep_alive: bool,
    pub(crate) ticket: Ticket<'a>,
}

impl Exchange<'_> {
    /// Plays it; the connection comes back when it can carry another request.
    pub(crate) async fn play(&self, mut wire: Wire) -> Option<Wire> {
        match self.respond(&mut wire).await {
            Ok(Some(how)) => self.break_off(wire, how).await,
            Ok(None) if self.keep_alive => Some(wire),
            Ok(None) => {
                wire.fin().await;
                None
            }
            Err(gone) => {
                self.ticket.ended(match gone {
                    Gone::ClientLeft => Ended::ClientLeft,
                    Gone::Stopped => Ended::Stopped,
                });
                None
            }
        }
    }

    /// Answers up to the end of the response, or up to the break it returns.
    async fn respond(&self, wire: &mut Wire) -> Result<Option<How>, Gone> {
        wire.wait(self.behaviour.headers_delay).await?;
        if let Some(cut) = self.behaviour.cut.filter(|cut| cut.point == Point::BeforeStatus) {
            wire.wait(cut.after).await?;
            return Ok(Some(cut.how));
        }
        if self.behaviour.carries_content() && self.ask.stream {
            self.stream(wire).await
        } else {
            self.whole_body(wire).await
        }
    }

    async fn stream(&self, wire: &mut Wire) -> Result<Option<How>, Gone> {
        let frames = self.dialect.frames(self.content, self.ask, self.turn);
        let ops = match plan::stream(self.behaviour, frames) {
            Ok(ops) => ops,
            // A script is checked when it is made, so this is a step whose
            // answer depends on the request in a way the check did not see.
            Err(error) => return self.confess(wire, &error.to_string()).await,
        };
        wire.send(&self.head("text/event-stream; charset=utf-8", None)).await?;
        for op in ops {
            match op {
                Op::Break(How::CleanEnd) => return self.end_of_stream(wire, Ended::CleanEnd).await,
                Op::Break(how) => return Ok(Some(how)),
                op => self.perform(wire, op).await?,
            }
        }
        self.end_of_stream(wire, Ended::Complete).await
    }

    async fn perform(&self, wire: &mut Wire, op: Op) -> Result<(), Gone> {
        match op {
            Op::Event(bytes) => wire.send(&chunk(&bytes)).await,
            Op::Torn { whole, sent } => {
                let mut bytes = format!("{whole:x}\r\n").into_bytes();
                bytes.extend_from_slice(&sent);
                wire.send(&bytes).await
            }
            Op::Malformed => wire.send(&chunk(format!("data: {NOT_JSON}\n\n").as_bytes())).await,
            Op::Error(reply) => {
                let frame = self.dialect.error_frame(&self.filled(&reply));
                wire.send(&chunk(&frame)).await
            }
            Op::HugeLine(bytes) => self.huge_line(wire, bytes).await,
            Op::Wait(delay) => wire.wait(delay).await,
            Op::Break(_) => Ok(()),
        }
    }

    async fn huge_line(&self, wire: &mut Wire, bytes: usize) -> Result<(), Gone> {
        let (before, after) = self.dialect.open_line(self.ask, self.turn);
        wire.send(&chunk(&before)).await?;
        let mut left = bytes;
        while left > 0 {
            let piece = FILLER.get(..left).unwrap_or(&FILLER);
            wire.send(&chunk(piece)).await?;
            left -= piece.len();
        }
        wire.send(&chunk(&after)).await
    }

    /// Notes the end first, so that whoever saw it on the wire finds it in
    /// the record.
    async fn end_of_stream(&self, wire: &mut Wire, ended: Ended) -> Result<Option<How>, Gone> {
        self.ticket.ended(ended);
        wire.send(b"0\r\n\r\n").await?;
        Ok(None)
    }

    async fn whole_body(&self, wire: &mut Wire) -> Result<Option<How>, Gone> {
        let (content_type, bytes) = match self.inserted_body() {
            Some(bytes) => ("application/json".to_owned(), bytes),
            None => self.plain_answer(),
        };
        let body = plan::body(self.behaviour, bytes);
        let mut bytes = self.head(&content_type, Some(body.announced));
        bytes.extend_from_slice(&body.bytes);
        let Some(cut) = body.cut else {
            self.ticket.ended(Ended::Complete);
            wire.send(&bytes).await?;
            return Ok(None);
        };
        if cut.how == How::CleanEnd {
            // The length announced is the length sent, so this is its end.
            wire.wait(cut.after).await?;
            self.ticket.ended(Ended::CleanEnd);
            wire.send(&bytes).await?;
            return Ok(None);
        }
        wire.send(&bytes).await?;
        wire.wait(cut.after).await?;
        Ok(Some(cut.how))
    }

    fn plain_answer(&self) -> (String, Vec<u8>) {
        let value = match &self.behaviour.answer {
            Answer::Raw { content_type, body } => return (content_type.clone(), body.clone()),
            Answer::Error(reply) => self.dialect.error(&self.filled(reply)),
            Answer::Dialect => {
                let mut document = self.dialect.document(self.content, self.ask, self.turn);
                if self.behaviour.omit_terminal {
                    self.dialect.unfinish(&mut document);
                }
                document
            }
        };
        ("application/json".to_owned(), value.to_string().into_bytes())
    }

    /// What a document becomes when a foreign event was to be said in it.
    fn inserted_body(&self) -> Option<Vec<u8>> {
        self.behaviour.inserts.iter().find_map(|(_, insert)| match insert {
            Insert::Error(reply) => {
                Some(self.dialect.error(&self.filled(reply)).to_string().into_bytes())
            }
            Insert::Malformed => Some(NOT_JSON.into()),
            Insert::HugeLine(_) => None,
        })
    }

    /// The reply with the client's key where it says `{key}`.
    fn filled(&self, reply: &ErrorReply) -> ErrorReply {
        let mut reply = reply.clone();
        reply.message = reply.message.replace("{key}", self.key.unwrap_or("(none)"));
        reply
    }

    /// The response head; `length` is `None` for a chunked body.
    fn head(&self, content_type: &str, length: Option<usize>) -> Vec<u8> {
        let mut headers: Vec<(&str, String)> = vec![
            ("content-type", content_type.to_owned()),
            ("x-request-id", format!("req_fault_{}", self.turn.attempt)),
        ];
        if let Answer::Error(reply) = &self.behaviour.answer {
            headers
                .extend(reply.headers.iter().map(|(name, value)| (name.as_str(), value.clone())));
        }
        for (name, value) in &self.behaviour.headers {
            headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
            headers.push((name, value.clone()));
        }
        head(self.behaviour.effective_status(), &headers, length, self.keep_alive)
    }

    async fn confess(&self, wire: &mut Wire, message: &str) -> Result<Option<How>, Gone> {
        let reply = ErrorReply::new(500, "fault_script_error", message);
        let body = self.dialect.error(&reply).to_string();
        let mut bytes = head(
            500,
            &[("content-type", "application/json".to_owned())],
            Some(body.len()),
            self.keep_alive,
        );
        bytes.extend_from_slice(body.as_bytes());
        self.ticket.ended(Ended::Complete);
        wire.send(&bytes).await?;
        Ok(None)
    }

    async fn break_off(&self, wire: Wire, how: How) -> Option<Wire> {
        match how {
            How::Reset => {
                self.ticket.ended(Ended::Reset);
                wire.reset().await;
            }
            How::Fin | How::CleanEnd => {
                self.ticket.ended(Ended::Fin);
                wire.fin().await;
            }
            How::Silence => {
                self.ticket.ended(Ended::Silence);
                if wire.silence().await == Gone::ClientLeft {
                    self.ticket.ended(Ended::LeftInSilence);
                }
            }
        }
        None
    }
}

/// A response head with its blank line.
pub(super) fn head(
    status: u16,
    headers: &[(&str, String)],
    length: Option<usize>,
    keep_alive: bool,
) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {status} {}\r\n", reason(status));
    for (name, value) in headers {
        // Writing to a String cannot fail.
        let _ = write!(head, "{name}: {value}\r\n");
    }
    let _ = match length {
        Some(length) => write!(head, "content-length: {length}\r\n"),
        None => write!(head, "transfer-encoding: chunked\r\n"),
    };
    if !keep_alive {
        head.push_str("connection: close\r\n");
    }
    head.push_str("\r\n");
    head.into_bytes()
}

fn chunk(bytes: &[u8]) -> Vec<u8> {
    let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
    chunk.extend_from_slice(bytes);
    chunk.extend_from_slice(b"\r\n");
    chunk
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
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
