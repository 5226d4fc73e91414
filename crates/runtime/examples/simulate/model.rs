//! The provider of a run: it plays the script, and marks every text of an
//! attempt with its number.

use std::{
    collections::VecDeque,
    future::Future as _,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use async_trait::async_trait;
use tokio::time::{Instant, Sleep};
use turnbuckle_diagnostics::AttemptTiming;
use turnbuckle_errors::{ErrorCode, Failure, Usage};
use turnbuckle_providers::{
    Arguments, Assembler, AssistantMessage, AttemptContext, ChatRequest, EventStream, FinishReason,
    Native, PartialMessage, PollEvents, Provider, StreamEvent, ToolCall, WireCall,
};

use crate::{
    kind::{Kind, Part},
    sabotage::Sabotage,
    script::{Act, Attempt},
    stage::{Stage, call_mark, mark},
};

/// Virtual milliseconds from a request to the head of its response.
pub(crate) const HEAD_MS: u64 = 11;
/// Between the deltas of an answer.
const DELTA_MS: u64 = 3;
/// What every answer reports as its input.
pub(crate) const INPUT_TOKENS: u64 = 100;

/// Plays the script of the stage.
pub(crate) struct Model {
    stage: Arc<Stage>,
    /// For each kind the failure that it ends with.
    failures: Vec<Option<Failure>>,
}

impl Model {
    pub(crate) fn new(stage: Arc<Stage>) -> Self {
        let failures = Kind::ALL.iter().map(|kind| kind.failure()).collect();
        Self { stage, failures }
    }

    fn failure(&self, kind: Kind) -> Option<Failure> {
        let at = Kind::ALL.iter().position(|each| *each == kind)?;
        self.failures.get(at)?.clone()
    }
}

#[async_trait]
impl Provider for Model {
    fn id(&self) -> &str {
        "simulated"
    }

    async fn open(
        &self,
        request: &ChatRequest,
        attempt: AttemptContext,
    ) -> Result<EventStream, Failure> {
        if request.tools.is_empty() {
            return Ok(self.digest(request).await);
        }
        let (number, played, false_finish) = {
            let mut state = self.stage.lock();
            let (number, played) = state.ask(request, attempt.fresh_connection);
            (number, played, state.sabotage == Some(Sabotage::FalseFinish))
        };
        let failure = self.failure(played.kind);
        if played.kind.part() == Part::Nothing
            && let Some(failure) = failure
        {
            let takes = played.kind.takes_ms();
            tokio::time::sleep(Duration::from_millis(takes)).await;
            return Err(failure.with_details(|details| details.provider_wait_ms = Some(takes)));
        }
        tokio::time::sleep(Duration::from_millis(HEAD_MS)).await;
        let pieces = pieces(number, &played, failure, false_finish);
        let which = Which::Attempt(number);
        Ok(EventStream::new(Stream::new(which, pieces, Arc::clone(&self.stage))))
    }
}

impl Model {
    /// Only a request for a digest has no tools.
    async fn digest(&self, request: &ChatRequest) -> EventStream {
        let (kind, number) = self.stage.lock().ask_digest(request);
        tokio::time::sleep(Duration::from_millis(HEAD_MS)).await;
        let text = if kind == Kind::ContextBlank { " ".to_owned() } else { digest(number) };
        let mut pieces = VecDeque::from([Piece::Usage, Piece::Started, Piece::Text(text)]);
        pieces.push_back(Piece::Wait(DELTA_MS));
        pieces.push_back(match self.failure(Kind::CutText) {
            Some(failure) if kind == Kind::ContextCut => Piece::Fail(failure),
            _ => Piece::Finish(FinishReason::Stop),
        });
        EventStream::new(Stream::new(Which::Digest(number), pieces, Arc::clone(&self.stage)))
    }
}

/// What a digest says.
pub(crate) fn digest(number: usize) -> String {
    format!("digest {number}.")
}

/// What an answer is made of.
enum Piece {
    Wait(u64),
    Started,
    Reasoning(String),
    Text(String),
    Refusal(String),
    Call {
        index: u64,
        id: String,
        name: &'static str,
        arguments: String,
    },
    MoreOfCall {
        index: u64,
        arguments: String,
    },
    Native(String),
    Usage,
    Finish(FinishReason),
    Fail(Failure),
    /// The stream is over, and says neither that it ended nor that it failed.
    Nothing,
}

fn pieces(
    number: usize,
    attempt: &Attempt,
    failure: Option<Failure>,
    false_finish: bool,
) -> VecDeque<Piece> {
    let mark = mark(number);
    let kind = attempt.kind;
    let mut pieces = VecDeque::with_capacity(12);
    let silent = matches!(kind, Kind::Empty | Kind::ReasoningOnly | Kind::LengthSilent);
    let part = kind.part();
    if part >= Part::Start {
        pieces.push_back(Piece::Usage);
        pieces.push_back(Piece::Started);
    }
    if part >= Part::Reasoning && kind != Kind::Empty {
        pieces.push_back(Piece::Reasoning(format!("thought{mark} ")));
        pieces.push_back(Piece::Wait(DELTA_MS));
    }
    if part >= Part::Text && !silent {
        let text = format!("text{mark}a ");
        pieces.push_back(match kind {
            Kind::Refusal => Piece::Refusal(text),
            _ => Piece::Text(text),
        });
        pieces.push_back(Piece::Native(format!("{{\"signature\":\"native{mark}\"}}")));
        pieces.push_back(Piece::Wait(DELTA_MS));
    }
    if part == Part::HalfCall {
        let arguments = format!("{{\"what\":\"{}", call_mark(number, 0));
        let id = format!("call{mark}");
        pieces.push_back(Piece::Call { index: 0, id, name: Act::Change.name(), arguments });
    }
    if part == Part::Whole {
        if !silent {
            pieces.push_back(Piece::Text(format!("text{mark}b")));
        }
        for (at, act) in attempt.calls.iter().enumerate() {
            let index = u64::try_from(at).unwrap_or(u64::MAX);
            // Some servers give the same ids in every answer.
            let id = if number % 3 == 2 { format!("call_{at}") } else { format!("call{mark}{at}") };
            let arguments = format!("{{\"what\":\"{}\"", call_mark(number, at));
            pieces.push_back(Piece::Call { index, id, name: act.name(), arguments });
            pieces.push_back(Piece::Wait(1));
            if *act != Act::HalfJson {
                pieces.push_back(Piece::MoreOfCall { index, arguments: "}".to_owned() });
            }
        }
        pieces.push_back(Piece::Finish(finish(kind)));
        return pieces;
    }
    if false_finish && part >= Part::Text {
        pieces.push_back(Piece::Finish(FinishReason::Stop));
    }
    pieces.push_back(Piece::Wait(kind.takes_ms()));
    pieces.push_back(failure.map_or(Piece::Nothing, Piece::Fail));
    pieces
}

/// What a whole attempt says.
pub(crate) fn said(number: usize, attempt: &Attempt) -> AssistantMessage {
    let mut message = AssistantMessage::default();
    for piece in pieces(number, attempt, None, false) {
        match piece {
            Piece::Reasoning(delta) => message.reasoning.push_str(&delta),
            Piece::Text(delta) | Piece::Refusal(delta) => message.text.push_str(&delta),
            Piece::Native(part) => message.native = Some(native(part)),
            Piece::Call { id, name, arguments, .. } => message.tool_calls.push(ToolCall {
                id,
                name: name.to_owned(),
                arguments: Arguments::Broken(arguments),
            }),
            Piece::MoreOfCall { arguments, .. } => {
                if let Some(call) = message.tool_calls.last_mut()
                    && let Arguments::Broken(begun) = &call.arguments
                {
                    call.arguments = Arguments::Whole(format!("{begun}{arguments}"));
                }
            }
            _ => {}
        }
    }
    message
}

fn native(part: String) -> Native {
    Native { dialect: "simulated".to_owned(), model: "model".to_owned(), parts: vec![part] }
}

const fn finish(kind: Kind) -> FinishReason {
    match kind {
        Kind::Length | Kind::LengthSilent => FinishReason::Length,
        Kind::Tools => FinishReason::ToolCalls,
        Kind::Pause => FinishReason::Pause,
        Kind::Filtered => FinishReason::ContentFilter,
        _ => FinishReason::Stop,
    }
}

/// Which request a stream answers.
#[derive(Clone, Copy)]
enum Which {
    Attempt(usize),
    Digest(usize),
}

struct Stream {
    which: Which,
    pieces: VecDeque<Piece>,
    stage: Arc<Stage>,
    assembler: Assembler,
    partial: Option<PartialMessage>,
    sleep: Option<Pin<Box<Sleep>>>,
    began: Instant,
    timing: AttemptTiming,
}

impl Stream {
    fn new(which: Which, pieces: VecDeque<Piece>, stage: Arc<Stage>) -> Self {
        stage.lock().open_streams += 1;
        let mut timing = AttemptTiming::default();
        timing.headers(Duration::from_millis(HEAD_MS));
        Self {
            which,
            pieces,
            stage,
            assembler: Assembler::new(),
            partial: None,
            sleep: None,
            began: Instant::now(),
            timing,
        }
    }

    /// The event that a piece gives, if it gives one.
    fn play(&mut self, piece: Piece) -> Option<Result<StreamEvent, Failure>> {
        let mut bytes = 0;
        let event = match piece {
            Piece::Wait(ms) => {
                self.sleep = Some(Box::pin(tokio::time::sleep(Duration::from_millis(ms))));
                return None;
            }
            Piece::Started => Ok(StreamEvent::Started),
            Piece::Reasoning(delta) => {
                bytes = delta.len();
                self.assembler.reasoning(&delta).map(|()| StreamEvent::Reasoning(delta))
            }
            Piece::Text(delta) => {
                bytes = delta.len();
                self.assembler.text(&delta).map(|()| StreamEvent::Text(delta))
            }
            Piece::Refusal(delta) => {
                bytes = delta.len();
                self.assembler.refusal(&delta).map(|()| StreamEvent::Text(delta))
            }
            Piece::Call { index, id, name, arguments } => {
                bytes = arguments.len();
                let (id, name) = (Some(id.as_str()), Some(name));
                let call = WireCall {
                    index: Some(index),
                    id,
                    name,
                    arguments: &arguments,
                    ..WireCall::default()
                };
                self.assembler.tool_call(call).map(StreamEvent::ToolCall)
            }
            Piece::MoreOfCall { index, arguments } => {
                bytes = arguments.len();
                let call =
                    WireCall { index: Some(index), arguments: &arguments, ..WireCall::default() };
                self.assembler.tool_call(call).map(StreamEvent::ToolCall)
            }
            Piece::Native(part) => {
                self.assembler.native(native(part));
                return None;
            }
            Piece::Usage => {
                let usage = Usage { input_tokens: Some(INPUT_TOKENS), ..Usage::default() };
                self.assembler.usage(usage);
                self.note(|_, used| *used = true);
                return None;
            }
            Piece::Finish(reason) => {
                self.assembler.finish(reason, Some(reason.as_str()));
                self.partial = Some(self.assembler.partial());
                self.pieces.clear();
                self.note(|finished, _| *finished = true);
                let message = std::mem::take(&mut self.assembler).complete()?;
                return Some(Ok(StreamEvent::Finished(Box::new(message))));
            }
            Piece::Fail(failure) => {
                self.pieces.clear();
                return Some(Err(failure.with_details(|details| self.timing.describe(details))));
            }
            Piece::Nothing => return None,
        };
        self.timing.bytes(bytes, Duration::from_millis(HEAD_MS) + self.began.elapsed());
        self.timing.event();
        let too_large =
            |_| Failure::new(ErrorCode::ProviderProtocolMismatch, "the answer is too large");
        Some(event.map_err(too_large))
    }

    /// Notes what the runtime has taken: the last event, the usage.
    fn note(&self, change: impl FnOnce(&mut bool, &mut bool)) {
        let mut state = self.stage.lock();
        match self.which {
            Which::Attempt(number) => {
                if let Some(asked) = state.asked.get_mut(number) {
                    change(&mut asked.finished, &mut asked.used);
                }
            }
            Which::Digest(number) => {
                if let Some(digest) = state.digests.get_mut(number) {
                    change(&mut digest.finished, &mut digest.used);
                }
            }
        }
    }
}

impl PollEvents for Stream {
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<StreamEvent, Failure>>> {
        loop {
            if let Some(sleep) = &mut self.sleep {
                std::task::ready!(sleep.as_mut().poll(cx));
                self.sleep = None;
                self.timing.ended(Duration::from_millis(HEAD_MS) + self.began.elapsed());
            }
            let Some(piece) = self.pieces.pop_front() else { return Poll::Ready(None) };
            if let Some(event) = self.play(piece) {
                return Poll::Ready(Some(event));
            }
        }
    }

    fn partial(&self) -> PartialMessage {
        self.partial.clone().unwrap_or_else(|| self.assembler.partial())
    }

    fn timing(&self) -> AttemptTiming {
        self.timing
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.stage.lock().open_streams -= 1;
    }
}
