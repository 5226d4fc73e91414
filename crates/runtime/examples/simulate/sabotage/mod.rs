//! Faults that no runtime should have. They are planted around it to prove that
//! each would be seen: a check that cannot fail checks nothing.

mod tamper;

use turnbuckle_providers::Message;
use turnbuckle_runtime::{Event, EventKind, RecoveryPolicy, recovery::OverCap};

use crate::{
    kind::{Means, WORDING},
    stage::{Asked, mark},
};

macro_rules! faults {
    ($($(#[$told:meta])* $variant:ident = $name:literal,)+) => {
        /// One planted fault.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub(crate) enum Sabotage { $($(#[$told])* $variant,)+ }

        impl Sabotage {
            pub(crate) const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// Its name on the command line.
            pub(crate) const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }
        }
    };
}

faults! {
    /// The host reads a delta of text twice.
    RepeatText = "repeat-text",
    /// The last event never comes.
    LoseEnd = "lose-end",
    /// A step never ends.
    LoseTurnEnd = "lose-turn-end",
    /// A message never ends.
    LoseMessageEnd = "lose-message-end",
    /// A tool never ends.
    LoseToolEnd = "lose-tool-end",
    /// A wait never ends.
    LoseRetryStarted = "lose-retry-started",
    /// The host is not told that what it saw is void.
    LoseRestart = "lose-restart",
    /// A number is left out.
    SkipSeq = "skip-seq",
    /// A request holds the text of a failed attempt.
    LeakPartial = "leak-partial",
    /// A request holds the wording of an error.
    LeakWording = "leak-wording",
    /// Two results change places.
    SwapResults = "swap-results",
    /// A cut stream is taken for a whole one.
    FalseFinish = "false-finish",
    /// The policy pays for more than is promised.
    Generous = "generous",
    /// A wait that the server asks for is cut short.
    Impatient = "impatient",
    /// A change runs twice.
    RunTwice = "run-twice",
    /// The journal is not told that a change begins.
    ForgetStart = "forget-start",
    /// The journal loses an answer.
    ForgetAnswer = "forget-answer",
    /// The user's cancellation is not heard.
    Deaf = "deaf",
    /// It takes long until a cancelled prompt ends.
    SlowEnd = "slow-end",
    /// A compaction never ends.
    LoseCompactionEnd = "lose-compaction-end",
    /// A history is never made smaller.
    NeverSmaller = "never-smaller",
    /// A smaller history lacks its newest part.
    WrongPart = "wrong-part",
    /// What the user says into a prompt is not known to have been said.
    LoseMail = "lose-mail",
    /// A prompt that should go on is refused.
    RefuseGoOn = "refuse-go-on",
    /// The first event never comes.
    LoseStart = "lose-start",
    /// The error is not told.
    LoseError = "lose-error",
    /// Two calls share an id.
    SameIds = "same-ids",
    /// A message says nothing.
    Blank = "blank",
    /// A crash loses steps that had ended.
    LoseSteps = "lose-steps",
    /// A connection that broke is used again.
    StaleConnection = "stale-connection",
    /// A request does not say which session it belongs to.
    OtherSession = "other-session",
    /// A request goes out before the one before is closed.
    TwoAtOnce = "two-at-once",
    /// A request goes out before its wait is over.
    Early = "early",
    /// A tool begins after the user cancelled.
    ToolAfterAbort = "tool-after-abort",
    /// A call is not run.
    SkipTool = "skip-tool",
    /// Another tool is run.
    WrongTool = "wrong-tool",
    /// Something runs on after the end.
    LeaveTask = "leave-task",
    /// What attempts cost is not told.
    HideUsage = "hide-usage",
    /// Retries are not told.
    HideRetries = "hide-retries",
    /// A failure names another attempt.
    Miscount = "miscount",
    /// A step repeats more than it may, and waits longer.
    RetryForEver = "retry-for-ever",
}

impl Sabotage {
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|fault| fault.name() == name)
    }

    /// What of this event the host gets to see, and how often.
    pub(crate) fn pass(self, event: &mut Event) -> usize {
        let lost = match (self, &event.kind) {
            (Self::RepeatText, EventKind::MessageUpdate { .. }) => return 2,
            (Self::LoseStart, EventKind::AgentStart)
            | (Self::LoseCompactionEnd, EventKind::CompactionEnd { .. })
            | (Self::LoseError, EventKind::Error { .. })
            | (Self::LoseEnd, EventKind::AgentEnd { .. })
            | (Self::LoseTurnEnd, EventKind::TurnEnd)
            | (Self::LoseMessageEnd, EventKind::MessageEnd { .. })
            | (Self::LoseToolEnd, EventKind::ToolExecutionEnd { .. })
            | (Self::LoseRetryStarted, EventKind::RetryStarted { .. })
            | (Self::LoseRestart, EventKind::MessageRestart { .. }) => true,
            (Self::SkipSeq, _) => {
                event.seq += u64::from(event.seq > 4);
                false
            }
            _ => false,
        };
        usize::from(!lost)
    }

    /// Does to a request what no runtime should do.
    pub(crate) fn spoil(self, messages: &mut Vec<Message>, asked: &[Asked]) {
        let failed =
            |asked: &&Asked| !matches!(asked.attempt.kind.means(), Means::Done | Means::GoesOn);
        match self {
            Self::LeakPartial => {
                if let Some(at) = asked.iter().rposition(|asked| failed(&asked)) {
                    messages.push(Message::User(format!("text{}a ", mark(at)).into()));
                }
            }
            Self::LeakWording if asked.last().is_some_and(|asked| failed(&asked)) => {
                messages.push(Message::User(WORDING.into()));
            }
            Self::WrongPart => {
                let is_digest = |message: &Message| matches!(message, Message::User(user) if user.text.contains("digest "));
                if messages.first().is_some_and(is_digest) {
                    messages.truncate(1);
                }
            }
            Self::Blank => messages.push(Message::User(" ".into())),
            Self::SameIds => {
                for message in messages {
                    match message {
                        Message::Assistant(message) => {
                            message.tool_calls.iter_mut().for_each(|call| call.id = "id".into());
                        }
                        Message::Tool(result) => result.call_id = "id".into(),
                        _ => {}
                    }
                }
            }
            Self::SwapResults => {
                let is_result = |message: &Message| matches!(message, Message::Tool(_));
                let first = messages.iter().position(is_result);
                let last = messages.iter().rposition(is_result);
                if let (Some(first), Some(last)) = (first, last) {
                    messages.swap(first, last);
                }
            }
            _ => {}
        }
    }

    /// The policy of a runtime that has this fault.
    pub(crate) fn policy(self) -> RecoveryPolicy {
        let mut policy = RecoveryPolicy::default();
        match self {
            Self::Generous => policy.stream.retries += 1,
            Self::Impatient => {
                policy.capacity.server_cap = std::time::Duration::from_secs(1);
                policy.over_cap = OverCap::Clamp;
            }
            _ => {}
        }
        policy
    }
}
