//! The pieces of a block: each goes to the consumer and to its block, so that the
//! message can be put together again.

use std::borrow::Cow;

use turnbuckle_errors::Protocol;

use super::{Broken, Messages};
use crate::{
    TooLarge,
    adapters::anthropic::{
        blocks::{Block, Body},
        wire::{Delta, RawDelta},
    },
    answer::Answer,
    assemble::WireCall,
    halves,
};

impl Messages {
    /// More of a block.
    pub(super) fn delta(
        &mut self,
        answer: &mut Answer,
        index: Option<u64>,
        delta: Delta<'_>,
        json: &str,
        marked: bool,
    ) -> Result<(), Broken> {
        if answer.is_finished() {
            return Ok(());
        }
        let kind = match &*delta.r#type.0 {
            // Read by its fields where a gateway leaves the type out.
            "" if !delta.text.is_empty() => "text_delta",
            "" if !delta.thinking.is_empty() => "thinking_delta",
            "" if !delta.partial_json.is_empty() => "input_json_delta",
            kind => kind,
        };
        let Some(block) = self.blocks.find(index) else {
            return self.stray(answer, kind, &delta, marked);
        };
        match (kind, &mut block.body) {
            ("text_delta", Body::Text(range)) => {
                let contiguous = range.end == answer.so_far().text_so_far().len();
                answer.text(block.half.mend(delta.text.0, marked))?;
                range.end = answer.so_far().text_so_far().len();
                block.grown = true;
                if !contiguous {
                    self.blocks.lose();
                }
            }
            ("thinking_delta", Body::Thinking(range)) => {
                let contiguous = range.end == answer.so_far().reasoning_so_far().len();
                answer.reasoning(block.half.mend(delta.thinking.0, marked))?;
                range.end = answer.so_far().reasoning_so_far().len();
                block.grown = true;
                if !contiguous {
                    self.blocks.lose();
                }
            }
            ("input_json_delta", Body::Call { slot, whole }) => {
                if !delta.partial_json.is_empty() {
                    block.grown = true;
                    // What comes in pieces is the same input again.
                    whole.clear();
                    let piece = block.half.mend(delta.partial_json.0, marked);
                    give_input(answer, *slot, &piece)?;
                }
            }
            ("input_json_delta", Body::Server(input)) => {
                block.grown = true;
                let piece = block.half.mend(delta.partial_json.0, marked);
                input.push_str(&piece);
                answer.progress();
                self.blocks.keep(piece.len())?;
            }
            // What is sent back byte for byte cannot be mended.
            ("signature_delta" | "citations_delta", _) if marked => self.blocks.lose(),
            ("signature_delta", Body::Thinking(_)) => {
                block.grown = true;
                block.sign(&delta.signature.0);
                answer.progress();
                self.blocks.keep(delta.signature.0.len())?;
            }
            ("citations_delta", Body::Text(_)) => {
                if let Some(citation) = delta.citation {
                    block.grown = true;
                    block.cite(citation);
                    self.blocks.keep(citation.get().len())?;
                }
            }
            ("text_delta" | "thinking_delta", Body::Server(_))
            | ("signature_delta" | "citations_delta", _) => self.blocks.lose(),
            ("text_delta" | "thinking_delta" | "input_json_delta", _) => {
                return self.stray(answer, kind, &delta, marked);
            }
            _ if marked => self.blocks.lose(),
            _ => {
                // A delta of a kind that is not known yet.
                if let Some(delta) =
                    serde_json::from_str::<RawDelta<'_>>(json).ok().and_then(|event| event.delta)
                {
                    block.grown = true;
                    let kept = block.merge(delta);
                    answer.progress();
                    self.blocks.keep(delta.get().len())?;
                    if !kept {
                        self.blocks.lose();
                    }
                }
            }
        }
        Ok(())
    }

    /// A delta of a block that never began, or that is no block of its kind: what can
    /// be shown is shown. Arguments without a call mean that a call was lost.
    fn stray(
        &mut self,
        answer: &mut Answer,
        kind: &str,
        delta: &Delta<'_>,
        marked: bool,
    ) -> Result<(), Broken> {
        self.blocks.lose();
        let alone = |text: &str| halves::alone(Cow::Borrowed(text), marked).into_owned();
        match kind {
            "text_delta" => answer.text(alone(&delta.text.0))?,
            "thinking_delta" => answer.reasoning(alone(&delta.thinking.0))?,
            "input_json_delta" if !delta.partial_json.is_empty() => {
                return Err(Broken::Protocol(Protocol::Undecodable));
            }
            _ => {}
        }
        Ok(())
    }
}

/// Gives out an input that came whole and not in pieces.
pub(super) fn give_whole_input(answer: &mut Answer, body: &mut Body) -> Result<(), TooLarge> {
    match body {
        Body::Call { slot, whole } if !whole.is_empty() => {
            let input: Cow<'_, str> = std::mem::take(whole).into();
            give_input(answer, *slot, &input)
        }
        _ => Ok(()),
    }
}

/// Half a character at the end of a block stays alone. Says whether it could be put
/// next to what it belongs to.
pub(super) fn give_rest(answer: &mut Answer, block: &mut Block) -> Result<bool, TooLarge> {
    let rest = block.half.rest();
    if rest.is_empty() {
        return Ok(true);
    }
    match &mut block.body {
        Body::Text(range) => {
            let contiguous = range.end == answer.so_far().text_so_far().len();
            answer.text(rest)?;
            range.end = answer.so_far().text_so_far().len();
            return Ok(contiguous);
        }
        Body::Thinking(range) => {
            let contiguous = range.end == answer.so_far().reasoning_so_far().len();
            answer.reasoning(rest)?;
            range.end = answer.so_far().reasoning_so_far().len();
            return Ok(contiguous);
        }
        Body::Call { slot, .. } => give_input(answer, *slot, rest)?,
        Body::Server(input) => input.push_str(rest),
    }
    Ok(true)
}

fn give_input(answer: &mut Answer, slot: usize, input: &str) -> Result<(), TooLarge> {
    answer.tool_call(WireCall {
        index: u64::try_from(slot).ok(),
        arguments: input,
        ..WireCall::default()
    })
}
