//! A response body of a 2xx, whatever it turns out to be: an event stream, a
//! whole JSON answer, or a web page.

use std::ops::ControlFlow;

use turnbuckle_errors::{ErrorBody, Protocol};

use crate::{
    CompletedMessage, MAX_ANSWER_BYTES,
    answer::{Answer, Dialect, Stop},
    sse::{Frame, SseDecoder, Stopped},
};

/// White space before the first sign of what a body is; beyond it, a stream.
const MAX_BLANK_BYTES: usize = 64 * 1024;

/// Decodes one response body into one [`Answer`].
#[derive(Debug)]
pub(crate) struct BodyDecoder<D> {
    dialect: D,
    pub(crate) answer: Answer,
    kind: Kind,
    says_html: bool,
    is_json: bool,
}

#[derive(Debug)]
enum Kind {
    /// Nothing but white space came so far.
    Unknown(Vec<u8>),
    Stream(SseDecoder),
    /// Collected until its end.
    Json(Vec<u8>),
}

impl<D: Dialect> BodyDecoder<D> {
    /// For a body whose head had this content type. It is believed only where
    /// the bytes themselves do not tell: gateways mislabel both ways.
    pub(crate) fn new(dialect: D, content_type: Option<&str>) -> Self {
        let says_html =
            content_type.is_some_and(|kind| kind.to_ascii_lowercase().contains("text/html"));
        Self {
            dialect,
            answer: Answer::default(),
            kind: Kind::Unknown(Vec::new()),
            says_html,
            is_json: false,
        }
    }

    /// Takes the next bytes.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> ControlFlow<Stop> {
        match &mut self.kind {
            Kind::Stream(decoder) => {
                let (dialect, answer) = (&mut self.dialect, &mut self.answer);
                settle(decoder.feed(bytes, &mut |frame| on_frame(dialect, answer, frame)))
            }
            Kind::Json(body) => {
                if body.len() + bytes.len() > MAX_ANSWER_BYTES {
                    return ControlFlow::Break(Stop::protocol(Protocol::AnswerTooLarge));
                }
                body.extend_from_slice(bytes);
                ControlFlow::Continue(())
            }
            Kind::Unknown(blank) => {
                blank.extend_from_slice(bytes);
                let first = first_sign(blank);
                if first.is_none() && blank.len() <= MAX_BLANK_BYTES {
                    return ControlFlow::Continue(());
                }
                let so_far = std::mem::take(blank);
                self.kind = match first {
                    Some(b'<') => return ControlFlow::Break(Stop::protocol(Protocol::Html)),
                    Some(b'{' | b'[') => Kind::Json(Vec::new()),
                    _ if self.says_html => {
                        return ControlFlow::Break(Stop::protocol(Protocol::Html));
                    }
                    _ => Kind::Stream(SseDecoder::default()),
                };
                self.is_json = matches!(self.kind, Kind::Json(_));
                self.feed(&so_far)
            }
        }
    }

    /// The body has ended, well or not: whatever waited is decoded. What cannot be
    /// decoded here was cut, so it says nothing of its own.
    pub(crate) fn end(&mut self) -> ControlFlow<Stop> {
        let (dialect, answer) = (&mut self.dialect, &mut self.answer);
        let last = match std::mem::replace(&mut self.kind, Kind::Unknown(Vec::new())) {
            Kind::Unknown(_) => ControlFlow::Continue(()),
            Kind::Stream(mut decoder) => {
                settle(decoder.end(&mut |frame| on_frame(dialect, answer, frame)))
            }
            Kind::Json(body) => match dialect.document(answer, text_of(&body)) {
                // An error as bare JSON, and then the end marker of a stream.
                undecodable if is_undecodable(&undecodable) => settle(
                    SseDecoder::default()
                        .feed(&body, &mut |frame| on_frame(dialect, answer, frame)),
                ),
                read => read,
            },
        };
        match last {
            undecodable if is_undecodable(&undecodable) => ControlFlow::Continue(()),
            other => other,
        }
    }

    /// The whole message, once, if the provider said that it ended.
    pub(crate) fn complete(&mut self) -> Option<CompletedMessage> {
        if let Some(native) = self.dialect.native(&self.answer) {
            self.answer.native(native);
        }
        self.answer.complete()
    }

    /// Whether the answer itself has begun: any event, or the start of a JSON body.
    pub(crate) const fn has_begun(&self) -> bool {
        self.answer.events() > 0 || self.is_json
    }

    /// What a body that ended without its terminal event did wrong.
    pub(crate) const fn shortfall(&self) -> Protocol {
        // Whole JSON, but nobody's answer.
        if self.answer.is_foreign() {
            return Protocol::Undecodable;
        }
        if self.has_begun() { Protocol::EndedEarly } else { Protocol::EmptyBody }
    }
}

fn is_undecodable(flow: &ControlFlow<Stop>) -> bool {
    *flow == ControlFlow::Break(Stop::protocol(Protocol::Undecodable))
}

fn on_frame(
    dialect: &mut impl Dialect,
    answer: &mut Answer,
    frame: Frame<'_>,
) -> ControlFlow<Stop> {
    match frame {
        Frame::Event { data: "", .. } => ControlFlow::Continue(()),
        Frame::Event { name: "error", data } | Frame::ErrorLine(data) => {
            ControlFlow::Break(Stop::in_band(ErrorBody::parse(data)))
        }
        // Signs of life, whatever their data is.
        Frame::Event { name: "ping" | "heartbeat" | "keepalive" | "keep-alive", .. } => {
            ControlFlow::Continue(())
        }
        Frame::Event { name, data } => dialect.event(answer, name, data),
    }
}

fn settle(result: Result<(), Stopped<Stop>>) -> ControlFlow<Stop> {
    match result {
        Ok(()) => ControlFlow::Continue(()),
        Err(Stopped::ByReceiver(stop)) => ControlFlow::Break(stop),
        Err(Stopped::TooLong) => ControlFlow::Break(Stop::protocol(Protocol::LineTooLong)),
    }
}

/// The first byte that is neither white space nor a byte-order mark; `None` while
/// that is open.
fn first_sign(body: &[u8]) -> Option<u8> {
    let rest = body.trim_ascii_start();
    let rest = match rest.strip_prefix(b"\xef\xbb\xbf") {
        Some(after) => after.trim_ascii_start(),
        None if b"\xef\xbb\xbf".starts_with(rest) => return None,
        None => rest,
    };
    rest.first().copied()
}

/// The valid start of a JSON body; JSON that is not UTF-8 is torn.
fn text_of(body: &[u8]) -> &str {
    let body = body.trim_ascii_start();
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    match std::str::from_utf8(body) {
        Ok(text) => text,
        Err(error) => body
            .split_at_checked(error.valid_up_to())
            .and_then(|(valid, _)| std::str::from_utf8(valid).ok())
            .unwrap_or_default(),
    }
}
