//! One answer, by whatever protocol it is carried.

use super::{coding::Coder, shared::Ticket, wire::Gone};
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

/// What a `content-length` that lies adds to the truth.
const MORE_THAN_THERE_IS: usize = 1024;

/// Carries one response.
pub(super) trait Sink {
    async fn head(&mut self, head: Head) -> Result<(), Gone>;

    /// Sends bytes of the body; `announced` is more than their number where
    /// the client is to be left waiting for the rest.
    async fn data(&mut self, bytes: &[u8], announced: usize) -> Result<(), Gone>;

    async fn end(&mut self) -> Result<(), Gone>;

    async fn wait(&mut self, delay: std::time::Duration) -> Result<(), Gone>;
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
        if self.behaviour.carries_content() && self.ask.stream {
            self.stream(sink).await
        } else {
            self.whole_body(sink).await
        }
    }

    async fn stream<S: Sink>(&self, sink: &mut S) -> Result<Option<How>, Gone> {
        let frames = self.dialect.frames(self.content, self.ask, self.turn);
        let bytes: usize = frames.iter().map(|frame| frame.bytes.len()).sum();
        let ops = match plan::stream(self.behaviour, frames) {
            Ok(ops) => ops,
            // A script is checked when it is made, so this is a step whose
            // answer depends on the request in a way the check did not see.
            Err(error) => return self.confess(sink, &error.to_string()).await,
        };
        sink.head(self.head("text/event-stream; charset=utf-8", self.lie(bytes))).await?;
        let mut coder = Coder::new(self.behaviour.gzip);
        for op in ops {
            match op {
                Op::Break(How::CleanEnd) => {
                    self.ticket.ended(Ended::CleanEnd);
                    return sink.end().await.map(|()| None);
                }
                Op::Break(how) => return Ok(Some(how)),
                op => self.perform(sink, &mut coder, op).await?,
            }
        }
        send(sink, &coder.finish()).await?;
        // Noted first, so that whoever saw the end on the wire finds it in
        // the record.
        self.ticket.ended(Ended::Complete);
        sink.end().await.map(|()| None)
    }

    /// The length announced for a stream that is to fall short of it.
    fn lie(&self, bytes: usize) -> Option<usize> {
        let short = self.behaviour.cut.is_some_and(|cut| cut.how == How::ShortBody);
        let inserted: usize = self.behaviour.inserts.iter().map(|(_, insert)| insert.size()).sum();
        // Compression never doubles what it is given here.
        short.then_some(2 * (bytes + inserted) + MORE_THAN_THERE_IS)
    }

    async fn perform<S: Sink>(&self, sink: &mut S, coder: &mut Coder, op: Op) -> Result<(), Gone> {
        match op {
            Op::Event(bytes) => send(sink, &coder.encode(&bytes)).await,
            Op::Torn { whole, sent } => {
                let missing = whole.saturating_sub(sent.len());
                let coded = coder.encode(&sent);
                sink.data(&coded, coded.len() + missing).await
            }
            Op::Malformed => {
                send(sink, &coder.encode(format!("data: {NOT_JSON}\n\n").as_bytes())).await
            }
            Op::Error(reply) => {
                let frame = self.dialect.error_frame(&self.filled(&reply));
                send(sink, &coder.encode(&frame)).await
            }
            Op::HugeLine(bytes) => self.huge_line(sink, coder, bytes).await,
            Op::CorruptGzip => send(sink, &coder.corrupt()).await,
            Op::Wait(delay) => sink.wait(delay).await,
            Op::Break(_) => Ok(()),
        }
    }

    async fn huge_line<S: Sink>(
        &self,
        sink: &mut S,
        coder: &mut Coder,
        bytes: usize,
    ) -> Result<(), Gone> {
        let (before, after) = self.dialect.open_line(self.ask, self.turn);
        send(sink, &coder.encode(&before)).await?;
        let mut left = bytes;
        while left > 0 {
            let piece = FILLER.get(..left).unwrap_or(&FILLER);
            send(sink, &coder.encode(piece)).await?;
            left -= piece.len();
        }
        send(sink, &coder.encode(&after)).await
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
            send(sink, &body.bytes).await?;
            return sink.end().await.map(|()| None);
        };
        if cut.how == How::CleanEnd {
            // The length announced is the length sent, so this is its end.
            sink.wait(cut.after).await?;
            self.ticket.ended(Ended::CleanEnd);
            sink.head(head).await?;
            send(sink, &body.bytes).await?;
            return sink.end().await.map(|()| None);
        }
        sink.head(head).await?;
        send(sink, &body.bytes).await?;
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
            Insert::HugeLine(_) | Insert::CorruptGzip => None,
        })
    }

    /// The reply with the client's key where it says `{key}`.
    fn filled(&self, reply: &ErrorReply) -> ErrorReply {
        let mut reply = reply.clone();
        reply.message = reply.message.replace("{key}", self.key.unwrap_or("(none)"));
        reply
    }

    fn head(&self, content_type: &str, length: Option<usize>) -> Head {
        let mut headers = vec![
            ("content-type".to_owned(), content_type.to_owned()),
            ("x-request-id".to_owned(), format!("req_fault_{}", self.turn.attempt)),
        ];
        if self.behaviour.gzip.is_some() {
            headers.push(("content-encoding".to_owned(), "gzip".to_owned()));
        }
        match &self.behaviour.answer {
            Answer::Error(reply) => headers.extend(reply.headers.iter().cloned()),
            Answer::Redirect { .. } => {
                headers.push(("location".to_owned(), self.elsewhere.clone()));
            }
            _ => {}
        }
        for (name, value) in &self.behaviour.headers {
            headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
            headers.push((name.clone(), value.clone()));
        }
        Head { status: self.behaviour.effective_status(), headers, length }
    }

    async fn confess<S: Sink>(&self, sink: &mut S, message: &str) -> Result<Option<How>, Gone> {
        let reply = ErrorReply::new(500, "fault_script_error", message);
        let body = self.dialect.error(&reply).to_string();
        self.ticket.ended(Ended::Complete);
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        sink.head(Head { status: 500, headers, length: Some(body.len()) }).await?;
        send(sink, body.as_bytes()).await?;
        sink.end().await.map(|()| None)
    }
}

/// Sends a piece that is all it announces. An empty one would end the body.
async fn send<S: Sink>(sink: &mut S, bytes: &[u8]) -> Result<(), Gone> {
    if bytes.is_empty() {
        return Ok(());
    }
    sink.data(bytes, bytes.len()).await
}
