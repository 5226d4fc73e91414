//! The events of a Messages stream.

mod deltas;

use std::ops::ControlFlow;

use serde::Deserialize;
use serde_json::value::RawValue;
use turnbuckle_errors::Protocol;

use self::deltas::{give_rest, give_whole_input};
use super::{
    DIALECT,
    blocks::{Blocks, Body},
    facts::{Finish, finish, in_band},
    wire::{self, Delta, Event, Gives, Message, WireUsage},
};
use crate::{
    Native, TooLarge,
    answer::{Answer, Dialect, Stop},
    assemble::WireCall,
    halves,
    template::Template,
};

/// Reads events into an answer. The answer is complete at `message_stop`, or once a
/// `message_delta` gave a stop reason.
#[derive(Debug)]
pub(super) struct Messages {
    /// What the last delta gave, and the index of its block.
    template: Template<(Gives, Option<u64>)>,
    /// The model that was asked.
    model: String,
    blocks: Blocks,
    calls: usize,
    usage: WireUsage,
    id: Option<String>,
    /// What `message_start` said already of the end.
    announced: String,
}

impl Messages {
    /// Every event is parsed.
    #[cfg(test)]
    pub(super) fn without_template(mut self) -> Self {
        self.template = Template::off();
        self
    }

    pub(super) fn new(model: &str) -> Self {
        Self {
            template: Template::new(&[]),
            model: model.to_owned(),
            blocks: Blocks::default(),
            calls: 0,
            usage: WireUsage::default(),
            id: None,
            announced: String::new(),
        }
    }
}

impl Dialect for Messages {
    fn event(&mut self, answer: &mut Answer, name: &str, data: &str) -> ControlFlow<Stop> {
        if let Some((found, &(gives, index))) = self.template.read(data) {
            let delta = Delta::of(gives, found.delta);
            answer.event();
            return or_stop(self.delta(answer, index, delta, data, false));
        }
        // OpenRouter ends this dialect too as it ends Chat Completions.
        if data.trim() == "[DONE]" {
            return ControlFlow::Break(Stop::Done);
        }
        answer.each_value(data, |answer, json| self.json(answer, name, json))
    }

    fn document(&mut self, answer: &mut Answer, body: &str) -> ControlFlow<Stop> {
        answer.each_value(body, |answer, json| self.json(answer, "", json))
    }
}

impl Messages {
    fn json(&mut self, answer: &mut Answer, name: &str, json: &str) -> ControlFlow<Stop> {
        let mut spare = None;
        let read: Option<(Event<'_>, _, _)> = halves::read(json, &mut spare);
        let Some((event, json, marked)) = read else { return answer.undecodable() };
        // A few gateways leave the type to the name of the event.
        let kind = if event.r#type.is_empty() { name } else { &event.r#type.0 };
        if let Some(usage) = &event.usage {
            // What came with an error is dropped with the attempt, its cost is not.
            self.usage(answer, &usage.0);
        }
        if event.is_error(kind) {
            return ControlFlow::Break(in_band(json));
        }
        // Only pieces may end in half a character.
        if marked && kind != "content_block_delta" {
            return answer.undecodable();
        }
        let only = event.only_text().filter(|_| !marked);
        let index = event.index.0;
        match kind {
            "ping" => return ControlFlow::Continue(()),
            "message_stop" => return self.message_stop(answer),
            _ => answer.event(),
        }
        let taken = match kind {
            "content_block_delta" => self.delta(answer, index, event.delta.0, json, marked),
            "content_block_start" => self.block(answer, event.index.0, event.content_block),
            "content_block_stop" => self.block_stop(answer, event.index.0).map_err(Broken::from),
            "message_start" => self.message_start(answer, event.message),
            "message_delta" => return self.finish(answer, &event.delta.0.stop_reason.0),
            _ if event.content.is_some() => {
                return match self.whole(answer, event.content) {
                    Ok(()) => self.finish(answer, &event.stop_reason.0),
                    Err(broken) => ControlFlow::Break(broken.into()),
                };
            }
            // An event of a kind that is not known yet.
            _ => Ok(()),
        };
        or_stop(taken)?;
        if let Some((gives, text)) = only {
            self.template.learn(json, text, (gives, index));
        }
        ControlFlow::Continue(())
    }

    fn usage(&mut self, answer: &mut Answer, told: &WireUsage) {
        self.usage.overlay(told);
        answer.usage(self.usage.read());
    }

    fn message_start(
        &mut self,
        answer: &mut Answer,
        message: Option<&RawValue>,
    ) -> Result<(), Broken> {
        let message: Message<'_> = message.map(object).transpose()?.flatten().unwrap_or_default();
        if answer.is_finished() {
            return Ok(());
        }
        let other = self.id.as_deref().is_some_and(|id| id != message.id.0);
        if other && !self.blocks.is_empty() {
            // Another message begins inside of this one, which then never ends. Seen on
            // a gateway that asked again without telling.
            return Err(Broken::Protocol(Protocol::EndedEarly));
        }
        self.id = Some(message.id.0.into_owned());
        self.usage(answer, &message.usage.0);
        self.announced = message.stop_reason.0.into_owned();
        // A repeated start tells its blocks again.
        if self.blocks.is_empty() {
            self.whole(answer, message.content)?;
        }
        Ok(())
    }

    /// Blocks that come whole: in a document, or in `message_start`.
    fn whole(&mut self, answer: &mut Answer, content: Option<&RawValue>) -> Result<(), Broken> {
        for (place, block) in content.map(wire::blocks).unwrap_or_default().into_iter().enumerate()
        {
            let index = u64::try_from(place).ok();
            self.begin(answer, index, block)?;
            self.block_stop(answer, index)?;
        }
        Ok(())
    }

    fn block(
        &mut self,
        answer: &mut Answer,
        index: Option<u64>,
        block: Option<&RawValue>,
    ) -> Result<(), Broken> {
        let Some(block) = block else { return Ok(()) };
        if answer.is_finished() || self.blocks.repeats(index, block) {
            return Ok(());
        }
        self.begin(answer, index, block)
    }

    fn begin(
        &mut self,
        answer: &mut Answer,
        index: Option<u64>,
        begun: &RawValue,
    ) -> Result<(), Broken> {
        let Some(block) = object::<wire::Block<'_>>(begun)? else { return Ok(()) };
        answer.progress();
        let body = match &*block.r#type.0 {
            "text" => {
                let from = answer.so_far().text_so_far().len();
                answer.text(&*block.text.0)?;
                Body::Text(from..answer.so_far().text_so_far().len())
            }
            "thinking" => {
                let from = answer.so_far().reasoning_so_far().len();
                answer.reasoning(&*block.thinking.0)?;
                Body::Thinking(from..answer.so_far().reasoning_so_far().len())
            }
            "tool_use" => {
                let slot = self.calls;
                self.calls += 1;
                answer.tool_call(WireCall {
                    index: u64::try_from(slot).ok(),
                    id: Some(&block.id.0),
                    // Without a name an id that is known would name an earlier call.
                    name: Some(if block.name.is_empty() { "unnamed" } else { &block.name.0 }),
                    ..WireCall::default()
                })?;
                Body::Call { slot, whole: block.whole_input().into_owned() }
            }
            _ => Body::Server(String::new()),
        };
        Ok(self.blocks.begin(index, begun, &block, body)?)
    }

    fn block_stop(&mut self, answer: &mut Answer, index: Option<u64>) -> Result<(), TooLarge> {
        let Some(block) = self.blocks.find(index) else { return Ok(()) };
        block.stopped = true;
        give_whole_input(answer, &mut block.body)?;
        if !give_rest(answer, block)? {
            self.blocks.lose();
        }
        Ok(())
    }

    fn message_stop(&mut self, answer: &mut Answer) -> ControlFlow<Stop> {
        // Alone it ends nothing; and where no reason was given, a block that is still
        // open shows that the server gave up.
        let given_up = self.announced.is_empty() && !self.blocks.all_stopped();
        if answer.is_finished() || answer.events() == 0 || given_up {
            return ControlFlow::Break(Stop::Done);
        }
        let announced = std::mem::take(&mut self.announced);
        self.end(answer, &announced)?;
        ControlFlow::Break(Stop::Done)
    }

    fn finish(&mut self, answer: &mut Answer, word: &str) -> ControlFlow<Stop> {
        if word.is_empty() {
            return ControlFlow::Continue(());
        }
        self.end(answer, word)
    }

    fn end(&mut self, answer: &mut Answer, word: &str) -> ControlFlow<Stop> {
        let reason = match finish(word) {
            Finish::Reason(reason) => reason,
            // A whole answer that is then called broken is broken: an error wins.
            Finish::Failed(stop) => return ControlFlow::Break(stop),
        };
        if answer.is_finished() {
            return ControlFlow::Continue(());
        }
        let mut in_place = true;
        for block in self.blocks.iter_mut() {
            let given = give_whole_input(answer, &mut block.body);
            match given.and_then(|()| give_rest(answer, block)) {
                Ok(placed) => in_place &= placed,
                Err(too_large) => return ControlFlow::Break(too_large.into()),
            }
        }
        if !in_place {
            self.blocks.lose();
        }
        if let Some(parts) = self.blocks.native(answer.so_far(), reason) {
            answer.native(Native {
                dialect: DIALECT.to_owned(),
                model: std::mem::take(&mut self.model),
                parts,
            });
        }
        answer.finish(reason, word);
        ControlFlow::Continue(())
    }
}

/// What an object inside an event says; `None` if it is no object. One that cannot
/// be read would be a part of the answer that is lost in silence.
fn object<'a, T: Deserialize<'a>>(json: &'a RawValue) -> Result<Option<T>, Broken> {
    if !json.get().starts_with('{') {
        return Ok(None);
    }
    let read = serde_json::from_str(json.get());
    read.map(Some).map_err(|_| Broken::Protocol(Protocol::Undecodable))
}

/// Why an event cannot be part of the answer.
#[derive(Debug, Clone, Copy)]
enum Broken {
    TooLarge(TooLarge),
    Protocol(Protocol),
}

impl From<TooLarge> for Broken {
    fn from(too_large: TooLarge) -> Self {
        Self::TooLarge(too_large)
    }
}

impl From<Broken> for Stop {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::TooLarge(too_large) => too_large.into(),
            Broken::Protocol(broken) => Self::protocol(broken),
        }
    }
}

fn or_stop(taken: Result<(), Broken>) -> ControlFlow<Stop> {
    match taken {
        Ok(()) => ControlFlow::Continue(()),
        Err(broken) => ControlFlow::Break(broken.into()),
    }
}

#[cfg(test)]
mod tests;
