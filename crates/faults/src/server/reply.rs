//! One answer, by whatever protocol it is carried.

use std::time::{Duration, SystemTime};

use super::{coding::Coder, shared::Ticket, wire::Gone};
use crate::{
    behaviour::{Answer, Behaviour, ErrorReply, Gzip, How, Http1, Insert, Noise, Point},
    content::Content,
    dialect::{Ask, Dialect, Turn},
    plan::{self, Op},
    record::Ended,
    shape,
};

/// What a huge line is made of, a piece at a time.
static FILLER: [u8; 64 * 1024] = [b'a'; 64 * 1024];

const EVENT_STREAM: &str = "text/event-stream; charset=utf-8";

const TRAILERS: &[(&str, &str)] = &[("x-served-by", "faults"), ("server-timing", "total;dur=1")];

const NOT_JSON: &str = "{\"choices\":[{\"delta\":{\"content\":\"this is not";

/// What a `content-length` that lies adds to the truth.
const MORE_THAN_THERE_IS: usize = 1024;

/// Carries one response.
pub(super) trait Sink {
    async fn head(&mut self, head: Head) -> Result<(), Gone>;

    /// Sends bytes of the body; `announced` is more than their number where
    /// the client is to be left waiting for the rest.
    async fn data(&mut self, bytes: &[u8], announced: usize) -> Result<(), Gone>;

    /// Sends half of a head, where the protocol has halves.
    async fn torn_head(&mut self, head: Head) -> Result<(), Gone>;

    /// Ends the body, with these trailers.
    async fn end(&mut self, trailers: &[(&str, &str)]) -> Result<(), Gone>;

    async fn wait(&mut self, delay: Duration) -> Result<(), Gone>;
}

/// Status and headers of a response.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    /// The length announced; `None` where the body says itself where it ends.
    pub(super) length: Option<usize>,
}

/// One request and what is to be answered.
pub(super) struct Reply<'a> {
    pub(super) dialect: &'static dyn Dialect,
    pub(super) behaviour: &'a Behaviour,
    pub(super) content: &'a Content,
    pub(super) ask: &'a Ask,
    pub(super) turn: Turn,
    /// The key the client sent.
    pub(super) key: Option<&'a str>,
    /// This request under another host name, for a redirect.
    pub(super) elsewhere: String,
    pub(super) ticket: Ticket<'a>,
}

impl Reply<'_> {
    /// Answers up to the end of the response, or up to the break it returns.
    pub(super) async fn respond<S: Sink>(&self, sink: &mut S) -> Result<Option<How>, Gone> {
        sink.wait(self.behaviour.headers_delay).await?;
        if let Some(cut) = self.behaviour.cut.filter(|cut| cut.point == Point::BeforeStatus) {
            sink.wait(cut.after).await?;
            return Ok(Some(cut.how));
        }
        if let Some(cut) = self.behaviour.cut.filter(|cut| cut.point == Point::InsideHeaders) {
            sink.torn_head(self.head(EVENT_STREAM, None)).await?;
            sink.wait(cut.after).await?;
            return Ok(Some(cut.how));
        }
        let streams = self.ask.stream && !self.behaviour.document;
        if self.behaviour.carries_content() && streams {
            self.stream(sink).await
        } else {
            self.whole_body(sink).await
        }
    }

    async fn stream<S: Sink>(&self, sink: &mut S) -> Result<Option<How>, Gone> {
        let frames = self.dialect.frames(self.content, self.ask, self.turn);
        let shaped = shape::events(self.behaviour, self.dialect.api(), frames);
        let bytes = shaped.iter().flatten().map(|frame| frame.bytes.len()).sum();
        let ops = match shaped.and_then(|frames| plan::stream(self.behaviour, frames)) {
            Ok(ops) => ops,
            // A script is checked when it is made, so this is a step whose
            // answer depends on the request in a way the check did not see.
            Err(error) => return self.confess(sink, &error.to_string()).await,
        };
        sink.head(self.head(EVENT_STREAM, self.length(bytes))).await?;
        let mut coder = Coder::new(self.behaviour.gzip);
        for op in ops {
            match op {
                Op::Break(How::CleanEnd) => {
                    self.ticket.ended(Ended::CleanEnd);
                    return self.end(sink).await;
                }
                Op::Break(how) => return Ok(Some(how)),
                op => self.perform(sink, &mut coder, op).await?,
            }
        }
        self.send(sink, &coder.finish()).await?;
        // Noted first, so that whoever saw the end on the wire finds it in
        // the record.
        self.ticket.ended(Ended::Complete);
        self.end(sink).await
    }

    /// The length announced for a stream: none, the true one, or one that it is to
    /// fall short of.
    fn length(&self, bytes: usize) -> Option<usize> {
        if self.behaviour.http1.contains(&Http1::ExactLength) {
            return Some(bytes);
        }
        let short = self.behaviour.cut.is_some_and(|cut| cut.how == How::ShortBody);
        let inserted: usize = self.behaviour.inserts.iter().map(|(_, insert)| insert.size()).sum();
        // Compression never doubles what it is given here.
        short.then_some(2 * (bytes + inserted) + MORE_THAN_THERE_IS)
    }

    async fn perform<S: Sink>(&self, sink: &mut S, coder: &mut Coder, op: Op) -> Result<(), Gone> {
        match op {
            Op::Event(bytes) => self.send(sink, &coder.encode(&bytes)).await,
            Op::Torn { whole, sent } => {
                let missing = whole.saturating_sub(sent.len());
                let coded = coder.encode(&sent);
                sink.data(&coded, coded.len() + missing).await
            }
            Op::Malformed => {
                self.send(sink, &coder.encode(format!("data: {NOT_JSON}\n\n").as_bytes())).await
            }
            Op::Error(reply) => {
                let frame = self.dialect.error_frame(&self.filled(&reply));
                self.send(sink, &coder.encode(&frame)).await
            }
            Op::HugeLine(bytes) => self.huge_line(sink, coder, bytes).await,
            Op::CorruptGzip => self.send(sink, &coder.corrupt()).await,
            Op::Only(api, bytes) if api == self.dialect.api() => {
                self.send(sink, &coder.encode(&bytes)).await
            }
            Op::Only(..) => Ok(()),
            Op::Noise(noise) => self.send(sink, &coder.encode(&self.noise(noise))).await,
            Op::Endless(noise, pause) => {
                let said = self.noise(noise);
                // Ends with the client, or with the server.
                loop {
                    self.send(sink, &coder.encode(&said)).await?;
                    sink.wait(pause).await?;
                }
            }
            Op::Wait(delay) => sink.wait(delay).await,
            Op::Break(_) => Ok(()),
        }
    }

    /// Sends pieces that are all they announce. An empty one would end the body.
    async fn send<S: Sink>(&self, sink: &mut S, bytes: &[u8]) -> Result<(), Gone> {
        for piece in bytes.chunks(self.behaviour.drip.unwrap_or(usize::MAX)) {
            sink.data(piece, piece.len()).await?;
        }
        Ok(())
    }

    async fn end<S: Sink>(&self, sink: &mut S) -> Result<Option<How>, Gone> {
        let trailers: &[_] = if self.behaviour.trailers { TRAILERS } else { &[] };
        sink.end(trailers).await.map(|()| None)
    }

    /// The bytes of an event that says nothing.
    fn noise(&self, noise: Noise) -> Vec<u8> {
        match noise {
            Noise::Comment => b": keep-alive\n\n".to_vec(),
            Noise::Ping => self.dialect.ping().into(),
            Noise::Delta => {
                let (mut event, after) = self.dialect.open_line(self.ask, self.turn);
                event.extend_from_slice(b"more and ");
                event.extend(after);
                event
            }
        }
    }

    async fn huge_line<S: Sink>(
        &self,
        sink: &mut S,
        coder: &mut Coder,
        bytes: usize,
    ) -> Result<(), Gone> {
        let (before, after) = self.dialect.open_line(self.ask, self.turn);
        self.send(sink, &coder.encode(&before)).await?;
        let mut left = bytes;
        while left > 0 {
            let piece = FILLER.get(..left).unwrap_or(&FILLER);
            self.send(sink, &coder.encode(piece)).await?;
            left -= piece.len();
        }
        self.send(sink, &coder.encode(&after)).await
    }

    async fn whole_body<S: Sink>(&self, sink: &mut S) -> Result<Option<How>, Gone> {
        let (content_type, bytes) = match self.inserted_body() {
            Some(bytes) => ("application/json".to_owned(), bytes),
            None => self.plain_answer(),
        };
        let mut bytes = Coder::new(self.behaviour.gzip).all(&bytes);
        let corrupt =
            self.behaviour.inserts.iter().any(|(_, insert)| *insert == Insert::CorruptGzip);
        let middle = bytes.len() / 2;
        if let Some(byte) = bytes.get_mut(middle).filter(|_| corrupt) {
            *byte ^= 0xff;
        }
        let whole = bytes.len();
        let body = plan::body(self.behaviour, bytes);
        let how = body.cut.map(|cut| cut.how);
        let length = match how {
            Some(How::ShortBody) => Some(whole + MORE_THAN_THERE_IS),
            // Only a chunked body can hold a malformed chunk.
            Some(How::BadChunk) => None,
            _ => Some(body.announced),
        };
        let head = self.head(&content_type, length);
        let Some(cut) = body.cut else {
            self.ticket.ended(Ended::Complete);
            sink.head(head).await?;
            self.send(sink, &body.bytes).await?;
            return self.end(sink).await;
        };
        if cut.how == How::CleanEnd {
            // The length announced is the length sent, so this is its end.
            sink.wait(cut.after).await?;
            self.ticket.ended(Ended::CleanEnd);
            sink.head(head).await?;
            self.send(sink, &body.bytes).await?;
            return self.end(sink).await;
        }
        sink.head(head).await?;
        self.send(sink, &body.bytes).await?;
        sink.wait(cut.after).await?;
        Ok(Some(cut.how))
    }

    fn plain_answer(&self) -> (String, Vec<u8>) {
        let value = match &self.behaviour.answer {
            Answer::Raw { content_type, body } => return (content_type.clone(), body.clone()),
            Answer::Redirect { .. } => {
                let page = format!("see {}\n", self.elsewhere).into_bytes();
                return ("text/plain".to_owned(), page);
            }
            Answer::Error(reply) => self.dialect.error(&self.filled(reply)),
            // A failed handshake has no request to answer.
            Answer::Dialect | Answer::Handshake(_) => {
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
            _ => None,
        })
    }

    /// The reply with the client's key where it says `{key}`.
    fn filled(&self, reply: &ErrorReply) -> ErrorReply {
        let mut reply = reply.clone();
        reply.message = reply.message.replace("{key}", self.key.unwrap_or("(none)"));
        reply
    }

    /// The value with a time of now in it, where it says `{now+SECONDS}`.
    fn dated(&self, value: &str) -> String {
        let Some((before, rest)) = value.split_once("{now+") else { return value.to_owned() };
        let Some((seconds, after)) = rest.split_once('}') else { return value.to_owned() };
        let later = SystemTime::now() + Duration::from_secs(seconds.parse().unwrap_or(0));
        format!("{before}{}{after}", httpdate::fmt_http_date(later))
    }

    fn head(&self, content_type: &str, length: Option<usize>) -> Head {
        let mut headers = vec![
            ("content-type".to_owned(), content_type.to_owned()),
            ("x-request-id".to_owned(), format!("req_fault_{}", self.turn.attempt)),
        ];
        if self.behaviour.gzip.is_some_and(|gzip| gzip != Gzip::Unlabelled) {
            headers.push(("content-encoding".to_owned(), "gzip".to_owned()));
        }
        match &self.behaviour.answer {
            Answer::Error(reply) => headers.extend(
                reply.headers.iter().map(|(name, value)| (name.clone(), self.dated(value))),
            ),
            Answer::Redirect { .. } => {
                headers.push(("location".to_owned(), self.elsewhere.clone()));
            }
            _ => {}
        }
        for (name, value) in &self.behaviour.headers {
            headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
            headers.push((name.clone(), self.dated(value)));
        }
        headers.retain(|(name, _)| !self.behaviour.left_out.contains(name));
        Head { status: self.behaviour.effective_status(), headers, length }
    }

    async fn confess<S: Sink>(&self, sink: &mut S, message: &str) -> Result<Option<How>, Gone> {
        let reply = ErrorReply::new(500, "fault_script_error", message);
        let body = self.dialect.error(&reply).to_string();
        self.ticket.ended(Ended::Complete);
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        sink.head(Head { status: 500, headers, length: Some(body.len()) }).await?;
        self.send(sink, body.as_bytes()).await?;
        self.end(sink).await
    }
}
