//! The calls of an answer: their names, and their arguments in pieces and whole.

use super::{Responses, number};
use crate::{
    FinishReason, TooLarge,
    adapters::openai_responses::{
        items::Kind,
        wire::{Event, Item},
    },
    answer::Answer,
    assemble::WireCall,
};

impl Responses {
    /// More of a call's arguments.
    pub(super) fn arguments(
        &mut self,
        answer: &mut Answer,
        event: Event<'_>,
        free_text: bool,
        marked: bool,
    ) -> Result<(), TooLarge> {
        let at = self.items.at(event.place())?;
        let Some(slot) = self.items.get_mut(at) else { return Ok(()) };
        slot.kind = if free_text { Kind::CustomCall } else { Kind::Call };
        let arguments = slot.half.mend(event.delta.0, marked);
        slot.has_arguments |= !arguments.is_empty();
        answer.tool_call(WireCall {
            index: Some(number(at)),
            arguments: &arguments,
            free_text,
            ..WireCall::default()
        })
    }

    /// All of a call's arguments once more. They win over the pieces, one of which a
    /// gateway may have lost.
    pub(super) fn all_arguments(
        &mut self,
        answer: &mut Answer,
        at: usize,
        arguments: &str,
        free_text: bool,
    ) -> Result<(), TooLarge> {
        let Some(slot) = self.items.get_mut(at) else { return Ok(()) };
        slot.kind = if free_text { Kind::CustomCall } else { Kind::Call };
        if arguments.is_empty() {
            return Ok(());
        }
        match std::mem::replace(&mut slot.has_arguments, true) {
            true => answer.retell_call(number(at), arguments),
            false => answer.tool_call(WireCall {
                index: Some(number(at)),
                arguments,
                free_text,
                ..WireCall::default()
            }),
        }
    }

    /// Begins a call, or names one that began without its item.
    pub(super) fn call(
        &mut self,
        answer: &mut Answer,
        at: usize,
        item: &Item<'_>,
    ) -> Result<(), TooLarge> {
        let Some(slot) = self.items.get_mut(at) else { return Ok(()) };
        if slot.named {
            return Ok(());
        }
        slot.named = !item.name.is_empty();
        // llama.cpp's first versions gave a call no id but the item's.
        let id = if item.call_id.is_empty() { &item.id } else { &item.call_id };
        answer.tool_call(WireCall {
            index: Some(number(at)),
            id: Some(&id.0),
            name: Some(&item.name.0),
            arguments: "",
            free_text: slot.kind == Kind::CustomCall,
        })
    }

    /// Calls whose end did not come.
    pub(super) fn settle(
        &mut self,
        answer: &mut Answer,
        finish: FinishReason,
    ) -> Result<(), TooLarge> {
        for (number, slot) in self.items.iter_mut() {
            if !slot.kind.is_call() {
                continue;
            }
            if !slot.has_arguments && !slot.spare_arguments.is_empty() {
                slot.has_arguments = true;
                answer.tool_call(WireCall {
                    index: Some(number),
                    arguments: &slot.spare_arguments,
                    free_text: slot.kind == Kind::CustomCall,
                    ..WireCall::default()
                })?;
            }
            // Free text does not show where it was cut.
            if finish != FinishReason::Stop && !slot.is_whole() {
                answer.cut_call(number);
            }
        }
        Ok(())
    }
}
