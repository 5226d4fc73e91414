//! Faults that no runtime should have, planted on purpose: what cannot be found
//! broken is not checked.

use std::time::Duration;

use serde_json::Value;
use turnbuckle_runtime::RecoveryPolicy;

use super::stage::Seen;

/// One planted fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Plant {
    /// A cut stream is tried once more than is promised.
    Generous,
    /// A cut stream is tried again sooner than is promised.
    Hasty,
    /// The host reads a delta of text twice.
    RepeatText,
    /// The host is not told that what it read is void.
    LoseRestart,
    /// A request repeats what a failed attempt said.
    LeakPartial,
    /// A tool runs twice.
    RunTwice,
}

impl Plant {
    /// The policy of a runtime with this fault, if that is where it sits.
    pub(super) fn policy(self) -> Option<RecoveryPolicy> {
        let mut policy = RecoveryPolicy::default();
        match self {
            Self::Generous => policy.stream.retries = 2,
            Self::Hasty => policy.stream.delay = Duration::from_millis(100),
            _ => return None,
        }
        Some(policy)
    }

    /// Changes what was seen, as if the runtime had done it.
    pub(super) fn tamper(self, seen: &mut Seen) {
        match self {
            Self::Generous | Self::Hasty => {}
            Self::RepeatText => {
                each_prompt(seen, |events| {
                    if let Some(at) = position(events, "message_update")
                        && let Some(delta) = events.get(at).cloned()
                    {
                        events.insert(at, delta);
                    }
                });
            }
            Self::LoseRestart => {
                each_prompt(seen, |events| {
                    if let Some(at) = position(events, "message_restart") {
                        events.remove(at);
                    }
                });
            }
            Self::LeakPartial => {
                let void = seen.prompts.iter().find_map(|told| void_text(&told.events));
                if let (Some(text), Some(last)) = (void, seen.requests.last_mut())
                    && let Some(body) = last.body.as_object_mut()
                {
                    body.insert("so_far".to_owned(), text.into());
                }
            }
            Self::RunTwice => {
                if let Some(ran) = seen.files.get_mut("ran.txt") {
                    *ran = ran.repeat(2);
                }
            }
        }
    }
}

/// Changes the events of each prompt, and numbers them anew.
fn each_prompt(seen: &mut Seen, change: impl Fn(&mut Vec<Value>)) {
    for told in &mut seen.prompts {
        change(&mut told.events);
        for (seq, event) in (1..).zip(&mut told.events) {
            if let Some(fields) = event.as_object_mut() {
                fields.insert("seq".to_owned(), Value::from(seq));
            }
        }
    }
}

fn position(events: &[Value], kind: &str) -> Option<usize> {
    events.iter().position(|event| event.get("type").is_some_and(|it| it == kind))
}

/// What was told of a message before it was void.
fn void_text(events: &[Value]) -> Option<String> {
    let (before, _) = events.split_at_checked(position(events, "message_restart")?)?;
    let deltas = before.iter().filter_map(|event| event.get("delta")?.as_str());
    Some(deltas.collect::<String>()).filter(|text| text.contains(' '))
}
