//! The events of a Responses stream.

mod calls;

use std::ops::ControlFlow;

use serde_json::value::RawValue;
use turnbuckle_errors::Protocol;

use super::{
    DIALECT,
    facts::{ending, failed, in_band},
    items::{Items, Kind, MAX_ITEMS, Slot},
    wire::{Around, Event, Item, Place, Response},
};
use crate::{
    Native, TooLarge,
    answer::{Answer, Dialect, Stop},
    assemble::WireCall,
    halves,
    loose::Object,
    template::{Template, Varying},
};

/// The place of the item's id in [`VARYING`].
const ITEM_ID: usize = 2;

/// Copilot gives an item a new id with every event.
const VARYING: &[Varying] = &[
    Varying::Number(&["sequence_number"]),
    Varying::Text(&["obfuscation"]),
    Varying::Text(&["item_id"]),
];

/// Reads events into an answer. It is complete with `response.completed` or
/// `response.incomplete`, and by nothing else.
#[derive(Debug)]
pub(super) struct Responses {
    /// Taken out while an event is read by it.
    template: Option<Box<Template<Around>>>,
    /// The model that was asked; only it can read its own opaque parts.
    model: String,
    items: Items,
}

impl Responses {
    /// Every event is parsed.
    #[cfg(test)]
    pub(super) fn without_template(mut self) -> Self {
        self.template = None;
        self
    }

    pub(super) fn new(model: &str) -> Self {
        Self {
            template: Some(Box::new(Template::new(VARYING))),
            model: model.to_owned(),
            items: Items::default(),
        }
    }
}

impl Dialect for Responses {
    fn event(&mut self, answer: &mut Answer, name: &str, data: &str) -> ControlFlow<Stop> {
        if let Some(flow) = self.repeated(answer, data) {
            return flow;
        }
        // OpenRouter ends its streams as Chat Completions does.
        if data.trim() == "[DONE]" {
            return ControlFlow::Break(Stop::Done);
        }
        answer.each_value(data, |answer, json| self.json(answer, name, json))
    }

    fn document(&mut self, answer: &mut Answer, body: &str) -> ControlFlow<Stop> {
        answer.each_value(body, |answer, json| self.json(answer, "", json))
    }
}

impl Responses {
    /// An event that differs from the one before it in its text alone.
    fn repeated(&mut self, answer: &mut Answer, json: &str) -> Option<ControlFlow<Stop>> {
        let mut template = self.template.take()?;
        let flow = template.read(json).map(|(found, around)| {
            let item_id = found.value(ITEM_ID);
            self.told(answer, around.kind, around.with(found.delta, item_id), false)
        });
        self.template = Some(template);
        flow
    }

    fn json(&mut self, answer: &mut Answer, name: &str, json: &str) -> ControlFlow<Stop> {
        let mut spare = None;
        let event: Option<(Event<'_>, _, _)> = halves::read(json, &mut spare);
        // An item goes back byte for byte, so that it cannot be mended.
        let readable = event.filter(|(event, _, marked)| !marked || event.has_no_item());
        let Some((mut event, json, marked)) = readable else { return answer.undecodable() };
        // Some gateways name the event in the framing alone.
        let named = std::mem::take(&mut event.r#type).0;
        let kind = if named.is_empty() { name } else { &*named };
        match kind {
            "response.completed" => self.last(answer, json, event.response, Some("completed")),
            "response.incomplete" => self.last(answer, json, event.response, Some("incomplete")),
            "response.failed" | "response.cancelled" | "response.error" => {
                let response = read(event.response).unwrap_or_default();
                answer.usage(response.reported_usage());
                ControlFlow::Break(failed(json, &response))
            }
            _ if event.object.0 == "response" => match serde_json::from_str(json) {
                Ok(raw) => self.last(answer, json, Some(raw), None),
                Err(_) => ControlFlow::Break(Stop::protocol(Protocol::Undecodable)),
            },
            kind if event.is_error(kind) && !is_of_a_server_tool(kind) => {
                ControlFlow::Break(in_band(json))
            }
            kind => {
                let only = event.only_text(kind).filter(|_| !named.is_empty() && !marked);
                self.told(answer, kind, event, marked)?;
                if let (Some((around, text)), Some(template)) = (only, &mut self.template) {
                    template.learn(json, text, around);
                }
                ControlFlow::Continue(())
            }
        }
    }

    fn told(
        &mut self,
        answer: &mut Answer,
        kind: &str,
        event: Event<'_>,
        marked: bool,
    ) -> ControlFlow<Stop> {
        answer.event();
        // What comes after the end is no part of the message.
        match answer.is_finished() {
            true => ControlFlow::Continue(()),
            false => or_stop(self.piece(answer, kind, event, marked)),
        }
    }

    /// A piece of an item. Event types that are not listed say nothing that we read:
    /// progress, annotations, and the inner life of the server's own tools.
    fn piece(
        &mut self,
        answer: &mut Answer,
        kind: &str,
        event: Event<'_>,
        marked: bool,
    ) -> Result<(), TooLarge> {
        match kind {
            "response.output_text.delta" | "response.refusal.delta" => {
                let part = event.content_part();
                let slot = self.slot(&event, Kind::Message)?;
                slot.content.take(part);
                let text = slot.half.mend(event.delta.0, marked);
                match kind {
                    "response.refusal.delta" => answer.refusal(text),
                    _ => answer.text(text),
                }
            }
            "response.function_call_arguments.delta" => {
                self.arguments(answer, event, false, marked)
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_summary.delta" => {
                let part = event.summary_part();
                let slot = self.slot(&event, Kind::Reasoning)?;
                slot.summary.take(part);
                answer.reasoning(slot.half.mend(event.delta.0, marked))
            }
            // `response.reasoning.delta` is what vLLM called it at first.
            "response.reasoning_text.delta" | "response.reasoning.delta" => {
                let part = event.content_part();
                let slot = self.slot(&event, Kind::Reasoning)?;
                slot.content.take(part);
                answer.reasoning(slot.half.mend(event.delta.0, marked))
            }
            "response.custom_tool_call_input.delta" => self.arguments(answer, event, true, marked),
            "response.output_item.added" => self.began(answer, &event),
            "response.output_item.done" => self.ended(answer, &event),
            _ => self.whole(answer, kind, event, marked),
        }
    }

    /// The end of a part, with all of its text; it counts where no delta came before.
    fn whole(
        &mut self,
        answer: &mut Answer,
        kind: &str,
        event: Event<'_>,
        marked: bool,
    ) -> Result<(), TooLarge> {
        let (content, summary) = (event.content_part(), event.summary_part());
        if kind.ends_with(".done") {
            self.rest(answer)?;
        }
        match kind {
            "response.output_text.done" if !event.text.is_empty() => {
                let new = self.slot(&event, Kind::Message)?.content.take(content);
                if new { answer.text(halves::alone(event.text.0, marked)) } else { Ok(()) }
            }
            "response.refusal.done" if !event.refusal.is_empty() => {
                let new = self.slot(&event, Kind::Message)?.content.take(content);
                if new { answer.refusal(halves::alone(event.refusal.0, marked)) } else { Ok(()) }
            }
            "response.reasoning_text.done" | "response.reasoning.done"
                if !event.text.is_empty() =>
            {
                let new = self.slot(&event, Kind::Reasoning)?.content.take(content);
                if new { answer.reasoning(halves::alone(event.text.0, marked)) } else { Ok(()) }
            }
            "response.reasoning_summary_text.done" if !event.text.is_empty() => {
                let new = self.slot(&event, Kind::Reasoning)?.summary.take(summary);
                if new { answer.reasoning(halves::alone(event.text.0, marked)) } else { Ok(()) }
            }
            "response.function_call_arguments.done" => {
                let at = self.items.at(event.place())?;
                self.all_arguments(answer, at, &event.arguments(), false)
            }
            "response.custom_tool_call_input.done" => {
                let at = self.items.at(event.place())?;
                let input = halves::alone(event.input.0, marked);
                self.all_arguments(answer, at, &input, true)
            }
            _ => Ok(()),
        }
    }

    /// Half a character at the end of an item stays alone.
    fn rest(&mut self, answer: &mut Answer) -> Result<(), TooLarge> {
        for (number, slot) in self.items.iter_mut() {
            let rest = slot.half.rest();
            match slot.kind {
                _ if rest.is_empty() => {}
                Kind::Message | Kind::Other => answer.text(rest)?,
                Kind::Reasoning => answer.reasoning(rest)?,
                Kind::Call | Kind::CustomCall => answer.tool_call(WireCall {
                    index: Some(number),
                    arguments: rest,
                    free_text: slot.kind == Kind::CustomCall,
                    ..WireCall::default()
                })?,
            }
        }
        Ok(())
    }

    fn began(&mut self, answer: &mut Answer, event: &Event<'_>) -> Result<(), TooLarge> {
        let Some((item, _)) = read_item(event.item) else { return Ok(()) };
        let mut place = event.place();
        if place.id.is_empty() {
            place.id = &item.id.0;
        }
        let at = self.items.begin(place)?;
        let Some(slot) = self.items.get_mut(at) else { return Ok(()) };
        slot.describe(&item);
        if slot.kind.is_call() {
            slot.spare_arguments = match slot.kind {
                Kind::CustomCall => item.input.0.clone().into_owned(),
                _ => item.arguments().into_owned(),
            };
            self.call(answer, at, &item)?;
        }
        Ok(())
    }

    fn ended(&mut self, answer: &mut Answer, event: &Event<'_>) -> Result<(), TooLarge> {
        self.rest(answer)?;
        let Some((item, raw)) = read_item(event.item) else { return Ok(()) };
        let mut place = event.place();
        if place.id.is_empty() {
            place.id = &item.id.0;
        }
        let at = self.items.at(place)?;
        self.take(answer, at, item, raw)
    }

    /// Takes what did not come before out of a whole item.
    fn take(
        &mut self,
        answer: &mut Answer,
        at: usize,
        item: Item<'_>,
        raw: &RawValue,
    ) -> Result<(), TooLarge> {
        self.items.keep(at, &item, raw)?;
        let Some(slot) = self.items.get_mut(at) else { return Ok(()) };
        slot.describe(&item);
        if slot.kind.is_call() {
            let free_text = slot.kind == Kind::CustomCall;
            let arguments = if free_text { item.input.0.clone() } else { item.arguments() };
            self.call(answer, at, &item)?;
            self.all_arguments(answer, at, &arguments, free_text)?;
            if item.status.0 == "incomplete" {
                answer.cut_call(number(at));
            }
            return Ok(());
        }
        let reasoning = slot.kind == Kind::Reasoning;
        if slot.kind == Kind::Other {
            return Ok(());
        }
        for (n, Object(part)) in item.summary.0.into_iter().enumerate() {
            if slot.summary.take_at(n) {
                answer.reasoning(part.text.0)?;
            }
        }
        for (n, Object(part)) in item.content.0.into_iter().enumerate() {
            if !slot.content.take_at(n) {
                continue;
            }
            match reasoning || part.r#type.0 == "reasoning_text" {
                true => answer.reasoning(part.text.0)?,
                false => answer.text(part.text.0)?,
            }
            answer.refusal(part.refusal.0)?;
        }
        Ok(())
    }

    /// The last event, or a whole document.
    fn last(
        &mut self,
        answer: &mut Answer,
        json: &str,
        raw: Option<&RawValue>,
        event: Option<&str>,
    ) -> ControlFlow<Stop> {
        let Some(response) = read(raw) else {
            return ControlFlow::Break(Stop::protocol(Protocol::Undecodable));
        };
        answer.usage(response.reported_usage());
        if response.is_error() {
            return ControlFlow::Break(failed(json, &response));
        }
        answer.event();
        if answer.is_finished() {
            return ControlFlow::Continue(());
        }
        let end = ending(&response, event);
        or_stop(self.rest(answer))?;
        or_stop(self.leftovers(answer, &response))?;
        // A document that is not over, for instance `in_progress`, ends nothing.
        let Some((finish, word)) = end else { return ControlFlow::Continue(()) };
        or_stop(self.settle(answer, finish))?;
        if let Some(parts) = std::mem::take(&mut self.items).native_parts() {
            let model = std::mem::take(&mut self.model);
            answer.native(Native { dialect: DIALECT.to_owned(), model, parts });
        }
        answer.finish(finish, &word);
        ControlFlow::Continue(())
    }

    /// Items that only the last event tells. ChatGPT's tells none at all, and what it
    /// tells under new ids came before: text counts only where none was streamed.
    fn leftovers(&mut self, answer: &mut Answer, response: &Response<'_>) -> Result<(), TooLarge> {
        if response.output.0.len() > MAX_ITEMS {
            return Err(TooLarge);
        }
        let texts = [Kind::Message, Kind::Reasoning];
        let streamed = texts.map(|kind| self.items.any(kind).then_some(kind));
        for (position, raw) in response.output.0.iter().enumerate() {
            let Some((item, raw)) = read_item(Some(raw)) else { continue };
            match self.items.known(&item, position) {
                Some(at) if self.items.is_whole(at) => {}
                Some(at) => self.take(answer, at, item, raw)?,
                None if streamed.contains(&Some(Kind::of(&item.r#type.0))) => {}
                None => {
                    let place = Place { index: Some(number(position)), id: &item.id.0 };
                    let at = self.items.append(place)?;
                    self.take(answer, at, item, raw)?;
                }
            }
        }
        Ok(())
    }

    fn slot(&mut self, event: &Event<'_>, kind: Kind) -> Result<&mut Slot, TooLarge> {
        let at = self.items.at(event.place())?;
        let slot = self.items.get_mut(at).ok_or(TooLarge)?;
        if slot.kind == Kind::Other {
            slot.kind = kind;
        }
        Ok(slot)
    }
}

/// The progress of a tool that the server runs. That it failed is told to the model,
/// and fails nothing here.
fn is_of_a_server_tool(kind: &str) -> bool {
    kind.contains("_call.") || kind.starts_with("response.mcp_list_tools.")
}

fn read<'a>(raw: Option<&'a RawValue>) -> Option<Response<'a>> {
    match raw {
        Some(raw) => serde_json::from_str::<Object<Response<'a>>>(raw.get()).ok().map(|it| it.0),
        // A bare `{"type":"response.completed"}`.
        None => Some(Response::default()),
    }
}

fn read_item(raw: Option<&RawValue>) -> Option<(Item<'_>, &RawValue)> {
    let raw = raw?;
    let Object(item) = serde_json::from_str::<Object<Item<'_>>>(raw.get()).ok()?;
    Some((item, raw))
}

/// The number of an item, as the index of its call.
fn number(at: usize) -> u64 {
    u64::try_from(at).unwrap_or(u64::MAX)
}

fn or_stop(result: Result<(), TooLarge>) -> ControlFlow<Stop> {
    match result {
        Ok(()) => ControlFlow::Continue(()),
        Err(too_large) => ControlFlow::Break(too_large.into()),
    }
}

#[cfg(test)]
mod tests;
