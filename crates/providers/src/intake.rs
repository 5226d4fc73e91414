//! The answer of one attempt from its head to its end, without a socket: what a
//! stream and a recorded body have in common.

use std::{ops::ControlFlow, sync::Arc, time::Duration};

use bytes::Bytes;
use turnbuckle_diagnostics::AttemptTiming;
use turnbuckle_errors::{Fact, Failure, Phase, Redact};

use crate::{
    CompletedMessage, PartialMessage,
    answer::{Dialect, Stop},
    body::BodyDecoder,
    facts::{MAX_ERROR_BODY_BYTES, Seen, status_fact},
    transport::{ResponseHead, TransportError},
};

/// Takes the pieces of a 2xx body and says how it ended.
pub(crate) struct Intake<D> {
    head: ResponseHead,
    pub(crate) decoder: BodyDecoder<D>,
    pub(crate) timing: AttemptTiming,
    redact: Arc<dyn Redact>,
    provider: Option<&'static str>,
    end: Option<End>,
}

/// How an answer ends, once its last events are taken.
pub(crate) enum End {
    Complete,
    /// What happened, and what broke the connection.
    Failed(Option<Fact>, Option<TransportError>),
}

impl<D: Dialect> Intake<D> {
    /// Begins with a head that came after `waited`.
    pub(crate) fn new(
        head: ResponseHead,
        dialect: D,
        redact: Arc<dyn Redact>,
        waited: Duration,
    ) -> Self {
        let mut timing = AttemptTiming::default();
        timing.headers(waited);
        let decoder = BodyDecoder::new(dialect, head.header("content-type"));
        Self { head, decoder, timing, redact, provider: None, end: None }
    }

    /// Names the kind of server, by its profile.
    pub(crate) const fn at_provider(mut self, provider: &'static str) -> Self {
        self.provider = Some(provider);
        self
    }

    /// More of the body came, `at` after the attempt began.
    pub(crate) fn bytes(&mut self, bytes: &[u8], at: Duration) {
        self.timing.bytes(bytes.len(), at);
        let flow = self.counted(|decoder| decoder.feed(bytes));
        match flow {
            ControlFlow::Continue(()) => {}
            ControlFlow::Break(Stop::Failed(fact)) => self.end_by(End::Failed(Some(fact), None)),
            ControlFlow::Break(Stop::Done) => {
                let end = self.complete_or(None);
                self.end_by(end);
            }
        }
    }

    /// The body ended, or its connection broke.
    pub(crate) fn body_ended(&mut self, broken: Option<TransportError>) {
        let flow = self.counted(BodyDecoder::end);
        let end = match flow {
            ControlFlow::Break(Stop::Failed(fact)) => End::Failed(Some(fact), broken),
            // What breaks after the finish reason takes nothing from the answer.
            _ => self.complete_or(broken),
        };
        self.end_by(end);
    }

    pub(crate) fn end_by(&mut self, end: End) {
        self.end = Some(end);
    }

    /// We cancelled it: nothing that was received is given out any more.
    pub(crate) fn abort(&mut self) {
        self.decoder.answer.clear_events();
        self.end_by(End::Failed(Some(Fact::Aborted), None));
    }

    /// Whether it ended well while the body may still go on.
    pub(crate) const fn is_complete(&self) -> bool {
        matches!(self.end, Some(End::Complete))
    }

    pub(crate) const fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    /// The outcome, once, if the answer has ended.
    pub(crate) fn conclude(&mut self) -> Option<Result<CompletedMessage, Failure>> {
        let (fact, broken) = match self.end.take()? {
            End::Complete => match self.decoder.complete() {
                Some(message) => return Some(Ok(message)),
                None => (Some(Fact::Protocol(self.decoder.shortfall())), None),
            },
            End::Failed(fact, broken) => (fact, broken),
        };
        let seen = Seen {
            phase: Phase::Stream,
            provider: self.provider,
            head: Some(&self.head),
            fact,
            broken: broken.as_ref(),
            usage: self.decoder.answer.reported_usage(),
            timing: &self.timing,
            redact: &*self.redact,
        };
        Some(Err(seen.into_failure()))
    }

    fn complete_or(&self, broken: Option<TransportError>) -> End {
        match broken {
            _ if self.decoder.answer.is_finished() => End::Complete,
            Some(broken) => End::Failed(None, Some(broken)),
            None => End::Failed(Some(Fact::Protocol(self.decoder.shortfall())), None),
        }
    }

    fn counted(
        &mut self,
        decode: impl FnOnce(&mut BodyDecoder<D>) -> ControlFlow<Stop>,
    ) -> ControlFlow<Stop> {
        let before = self.decoder.answer.events();
        let flow = decode(&mut self.decoder);
        for _ in before..self.decoder.answer.events() {
            self.timing.event();
        }
        flow
    }
}

/// How a recorded body ended.
#[derive(Debug)]
#[non_exhaustive]
pub enum BodyEnding {
    /// Cleanly.
    Clean,
    /// The connection broke.
    Broken(TransportError),
}

/// What came of a body that failed: the failure, and what had been received.
pub type FailedAnswer = Box<(Failure, PartialMessage)>;

/// Decodes a body that is already here, by the code that reads the socket; only
/// the clocks have no part in it.
pub(crate) fn decode_recorded(
    head: ResponseHead,
    pieces: impl IntoIterator<Item = Bytes>,
    ending: BodyEnding,
    dialect: impl Dialect,
    redact: Arc<dyn Redact>,
) -> Result<CompletedMessage, FailedAnswer> {
    let broken = match ending {
        BodyEnding::Clean => None,
        BodyEnding::Broken(error) => Some(error),
    };
    if !head.is_success() {
        return Err(Box::new((
            refusal(&head, pieces, broken.as_ref(), &*redact),
            PartialMessage::default(),
        )));
    }
    let mut intake = Intake::new(head, dialect, redact, Duration::ZERO);
    for piece in pieces {
        intake.bytes(&piece, Duration::ZERO);
        while intake.decoder.answer.take_event().is_some() {}
        if intake.has_ended() {
            break;
        }
    }
    if !intake.has_ended() {
        intake.body_ended(broken);
    }
    match intake.conclude() {
        Some(Ok(message)) => Ok(message),
        Some(Err(failure)) => Err(Box::new((failure, intake.decoder.answer.partial()))),
        // `body_ended` always ends it.
        None => Err(Box::new((
            Failure::new(turnbuckle_errors::ErrorCode::Internal, "a body without an end"),
            PartialMessage::default(),
        ))),
    }
}

fn refusal(
    head: &ResponseHead,
    pieces: impl IntoIterator<Item = Bytes>,
    broken: Option<&TransportError>,
    redact: &dyn Redact,
) -> Failure {
    let mut timing = AttemptTiming::default();
    timing.headers(Duration::ZERO);
    let body: Vec<u8> = pieces.into_iter().flatten().take(MAX_ERROR_BODY_BYTES).collect();
    timing.bytes(body.len(), Duration::ZERO);
    let seen = Seen {
        phase: Phase::Request,
        provider: None,
        head: Some(head),
        fact: Some(status_fact(head, &body)),
        broken,
        usage: None,
        timing: &timing,
        redact,
    };
    seen.into_failure()
}
