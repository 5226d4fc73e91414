//! Where a history is cut. Pure.

use serde::{Deserialize, Serialize};
use turnbuckle_providers::Message;

use super::meter::weight;

/// The first line of every digest, so that the model, and the next compaction, know
/// one when they see it.
const MARK: &str =
    "[What was said before this grew too long for the model. This text takes its place.]";

/// Of the size that is aimed at, this part is for the messages that stay.
const TAIL_SHARE: u64 = 2;

/// And this part is for what the user said before them.
const USERS_SHARE: u64 = 4;

/// What has to go at least, as a part of the whole: less is not worth a request.
const WORTH_SHARE: u64 = 8;

/// Which messages stay when a history is made smaller. The rest gives way to a
/// digest, which comes first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Cut {
    /// How many messages there were.
    pub of: usize,
    /// The first of the messages that stay to the end, by its place.
    pub keep_from: usize,
    /// What the user said before it and stays whole, by its places.
    #[serde(default)]
    pub keep_users: Vec<usize>,
}

impl Cut {
    /// The best cut for a history that should weigh `target` bytes afterwards;
    /// `None` if too little would go.
    ///
    /// The last message stays, with its tool results, and what the user said last.
    pub(super) fn plan(messages: &[&Message], target: u64) -> Option<Self> {
        let keep_from = tail_start(messages, target / TAIL_SHARE);
        let (older, recent) = messages.split_at_checked(keep_from)?;
        let task_stays = recent.iter().any(|message| matches!(message, Message::User(_)));
        let keep_users = recent_users(older, target / USERS_SHARE, !task_stays);
        let all: u64 = messages.iter().copied().map(weight).sum();
        let kept: u64 =
            keep_users.iter().filter_map(|at| older.get(*at).copied()).map(weight).sum();
        let gone = older.iter().copied().map(weight).sum::<u64>().saturating_sub(kept);
        let worth_it = gone > 0 && gone >= all / WORTH_SHARE;
        worth_it.then_some(Self { of: messages.len(), keep_from, keep_users })
    }

    /// The history with `digest` in the place of what goes; `None` if this cut was not
    /// made for `messages`, or would take a tool result from its call.
    pub(crate) fn apply(&self, messages: &[&Message], digest: &str) -> Option<Vec<Message>> {
        let (older, recent) = messages.split_at_checked(self.keep_from)?;
        let fits = messages.len() == self.of
            && !matches!(recent.first(), None | Some(Message::Tool(_)))
            && self.keep_users.is_sorted_by(|a, b| a < b);
        if !fits {
            return None;
        }
        let mut kept = vec![Message::User(format!("{MARK}\n\n{digest}").into())];
        for at in &self.keep_users {
            match older.get(*at) {
                Some(user @ Message::User(_)) => kept.push((*user).clone()),
                _ => return None,
            }
        }
        kept.extend(recent.iter().map(|message| (*message).clone()));
        Some(kept)
    }
}

/// Where the messages begin that stay to the end: as many as `room` holds, at least
/// one, and never a tool result without its call.
fn tail_start(messages: &[&Message], room: u64) -> usize {
    let mut start = messages.len();
    let (mut kept, mut open) = (0_u64, 0_u64);
    for (at, message) in messages.iter().enumerate().rev() {
        open += weight(message);
        if matches!(message, Message::Tool(_)) {
            continue;
        }
        let first = start == messages.len();
        if !first && kept + open > room {
            break;
        }
        start = at;
        kept += open;
        open = 0;
    }
    start
}

/// The places of what the user said last, as far as `room` holds it; with `must`
/// the very last one however large it is. An earlier digest is none of it.
fn recent_users(older: &[&Message], mut room: u64, must: bool) -> Vec<usize> {
    let mut places = Vec::new();
    for (at, message) in older.iter().enumerate().rev() {
        match message {
            Message::User(said) if !said.text.starts_with(MARK) => {}
            _ => continue,
        }
        let size = weight(message);
        let needed = must && places.is_empty();
        if size > room && !needed {
            break;
        }
        room = room.saturating_sub(size);
        places.push(at);
    }
    places.reverse();
    places
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use turnbuckle_providers::{Arguments, AssistantMessage, ToolCall, ToolResult};

    use super::*;

    fn user(bytes: usize) -> Message {
        Message::User("u".repeat(bytes).into())
    }

    /// A message that asks for `calls` tools, with their results.
    fn work(calls: usize, bytes: usize) -> Vec<Message> {
        let id = |n: usize| format!("call-{n}");
        let asked = (0..calls).map(|n| ToolCall {
            id: id(n),
            name: "f".into(),
            arguments: Arguments::parse(String::new()),
        });
        let message = AssistantMessage {
            text: "a".repeat(bytes),
            tool_calls: asked.collect(),
            ..AssistantMessage::default()
        };
        let results = (0..calls).map(|n| {
            Message::Tool(ToolResult {
                call_id: id(n),
                name: "f".into(),
                text: "r".repeat(bytes),
                images: Vec::new(),
                ok: true,
            })
        });
        [Message::Assistant(message)].into_iter().chain(results).collect()
    }

    fn plan(history: &[Message], target: u64) -> Option<(usize, Vec<usize>)> {
        let messages: Vec<&Message> = history.iter().collect();
        Cut::plan(&messages, target).map(|cut| (cut.keep_from, cut.keep_users))
    }

    #[test]
    fn the_cut_falls_between_steps_and_the_task_stays() {
        // 0: task, 1–3 step, 4–6 step, 7–9 step.
        let mut history = vec![user(100)];
        (0..3).for_each(|_| history.extend(work(2, 100)));
        // Room for one step beside the newest.
        assert_eq!(plan(&history, 1600), Some((4, vec![0])));
        // Room for none: the last step stays all the same.
        assert_eq!(plan(&history, 10), Some((7, vec![0])));
        // Room for all.
        assert_eq!(plan(&history, 1_000_000), None);
    }

    #[test]
    fn what_the_user_said_last_stays_as_far_as_there_is_room() {
        let mut history = Vec::new();
        for bytes in [10, 300, 20, 30] {
            history.push(user(bytes));
            history.extend(work(0, 500));
        }
        history.push(user(40));
        // The tail holds the last prompt; of the others the newest two fit.
        assert_eq!(plan(&history, 600), Some((8, vec![4, 6])));
    }

    #[test]
    fn one_message_alone_cannot_be_made_smaller() {
        assert_eq!(plan(&[user(1_000_000)], 10), None);
        assert_eq!(plan(&[], 10), None);
        // Nor is it worth it where nearly all of it has to stay.
        let mut history = vec![user(100)];
        history.extend(work(0, 20));
        history.extend(work(1, 10_000));
        assert_eq!(plan(&history, 10), None);
    }

    #[test]
    fn an_earlier_digest_is_digested_again_and_never_kept_as_what_the_user_said() {
        let mut history = vec![user(5)];
        (0..4).for_each(|_| history.extend(work(1, 100)));
        let messages: Vec<&Message> = history.iter().collect();
        let first = Cut::plan(&messages, 400).unwrap();
        let mut smaller = first.apply(&messages, &"d".repeat(300)).unwrap();
        (0..4).for_each(|_| smaller.extend(work(1, 100)));
        let (keep_from, keep_users) = plan(&smaller, 400).unwrap();
        assert!(keep_from > 1);
        assert_eq!(keep_users, [1], "the task, and not the digest before it");
    }

    #[test]
    fn a_cut_for_another_history_is_refused() {
        let mut history = vec![user(5)];
        history.extend(work(2, 5));
        let messages: Vec<&Message> = history.iter().collect();
        let cut = |of, keep_from, keep_users: &[usize]| Cut {
            of,
            keep_from,
            keep_users: keep_users.to_vec(),
        };
        assert!(cut(4, 1, &[0]).apply(&messages, "d").is_some());
        for wrong in [
            cut(5, 1, &[0]),
            cut(4, 2, &[0]),
            cut(4, 4, &[]),
            cut(4, 9, &[]),
            cut(4, 1, &[1]),
            cut(4, 1, &[0, 0]),
        ] {
            assert_eq!(wrong.apply(&messages, "d"), None, "{wrong:?}");
        }
    }

    proptest! {
        /// Whatever the history and the target: calls keep their results, the newest
        /// words of the user stay, and something goes.
        #[test]
        fn a_cut_never_orphans_a_call_and_keeps_the_task(
            steps in prop::collection::vec((any::<bool>(), 0_usize..4, 0_usize..400), 1..20),
            target in 0_u64..8_000,
        ) {
            let mut history = vec![user(7)];
            for (said, calls, bytes) in steps {
                if said { history.push(user(bytes)); }
                history.extend(work(calls, bytes));
            }
            let messages: Vec<&Message> = history.iter().collect();
            let Some(cut) = Cut::plan(&messages, target) else { return Ok(()) };
            let smaller = cut.apply(&messages, "d").unwrap();
            let mut due = 0_usize;
            for message in &smaller {
                match message {
                    Message::Tool(_) => { prop_assert!(due > 0); due -= 1; }
                    Message::Assistant(asked) => { prop_assert_eq!(due, 0); due = asked.tool_calls.len(); }
                    _ => prop_assert_eq!(due, 0),
                }
            }
            prop_assert_eq!(due, 0);
            let newest = messages.iter().rev().find(|message| matches!(message, Message::User(_)));
            prop_assert!(smaller.iter().any(|message| Some(&message) == newest));
            prop_assert_eq!(smaller.last(), history.last());
            prop_assert!(smaller.len() <= history.len());
        }
    }
}
