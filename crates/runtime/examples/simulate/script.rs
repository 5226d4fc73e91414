//! A script: what the provider, the tools, the user and the machine do in one
//! run. It reads and prints as one line, so that a failing run can be told.
//!
//! `429 tools:look+change answer abort@2500 / cut-text lost@7` is two prompts:
//! the first is cancelled after 2500 ms, and the machine stops in the second,
//! once seven writes and syncs were done, and forgets what was not synced.

use std::fmt::{self, Write as _};

use anyhow::{Context as _, Result, bail};

use crate::kind::Kind;

/// What happens in one run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Script {
    /// At least one.
    pub(crate) prompts: Vec<PromptScript>,
    pub(crate) crash: Option<Crash>,
    pub(crate) policy: Policy,
}

/// Which policy the runtime has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Policy {
    #[default]
    Default,
    /// Waits above the cap are cut to it.
    Clamp,
    /// A step goes on until it succeeds or is cancelled.
    Always,
}

/// What happens in one prompt. Attempts beyond these are answered.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct PromptScript {
    pub(crate) attempts: Vec<Attempt>,
    /// When the user says something, and whether it waits for the answer.
    pub(crate) said: Vec<(u64, bool)>,
    /// When the user cancels, in milliseconds since the prompt began.
    pub(crate) abort_ms: Option<u64>,
    /// When the process is killed.
    pub(crate) kill_ms: Option<u64>,
    /// Whether, after a restart, the model is asked again and nothing new is said.
    pub(crate) goes_on: bool,
}

/// How one attempt goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Attempt {
    pub(crate) kind: Kind,
    /// The calls of [`Kind::Tools`].
    pub(crate) calls: Vec<Act>,
}

impl From<Kind> for Attempt {
    fn from(kind: Kind) -> Self {
        let calls = if kind == Kind::Tools { vec![Act::Look, Act::Change] } else { Vec::new() };
        Self { kind, calls }
    }
}

/// How the journal goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Crash {
    pub(crate) loss: Loss,
    /// How many writes and syncs it does before.
    pub(crate) after: usize,
}

/// What is left of the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Loss {
    /// The process dies; everything that was written is there.
    Kept,
    /// The machine dies; what was not synced is gone.
    Lost,
    /// Nobody dies; the disk is full.
    Full,
}

macro_rules! acts {
    ($($variant:ident = $name:literal,)+) => {
        /// What a tool call does.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub(crate) enum Act { $($variant,)+ }

        impl Act {
            pub(crate) const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// Its name in a script, and the name of the tool.
            pub(crate) const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }
        }
    };
}

acts! {
    // Reads.
    Look = "look",
    SlowLook = "slow-look",
    FailingLook = "failing-look",
    BreakingLook = "breaking-look",
    // Changes.
    Change = "change",
    SlowChange = "slow-change",
    // Takes a while to end after a cancellation.
    StubbornChange = "stubborn-change",
    BreakingChange = "breaking-change",
    Edit = "edit",
    MissedEdit = "missed-edit",
    // Programs, which are asked for.
    Allowed = "allowed",
    Denied = "denied",
    Unanswered = "unanswered",
    // Calls that are none.
    Unknown = "unknown",
    HalfJson = "half-json",
}

impl Act {
    fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|act| act.name() == name)
    }

    /// Whether the call reaches its tool.
    pub(crate) const fn is_run(self) -> bool {
        !matches!(self, Self::Denied | Self::Unanswered | Self::Unknown | Self::HalfJson)
    }

    /// Whether it may change something, so that the journal must know before.
    pub(crate) const fn changes(self) -> bool {
        matches!(
            self,
            Self::Change
                | Self::SlowChange
                | Self::StubbornChange
                | Self::BreakingChange
                | Self::Edit
                | Self::MissedEdit
                | Self::Allowed
        )
    }

    /// Whether it does what was asked.
    pub(crate) const fn works(self) -> bool {
        matches!(
            self,
            Self::Look
                | Self::SlowLook
                | Self::Change
                | Self::SlowChange
                | Self::StubbornChange
                | Self::Edit
                | Self::Allowed
        )
    }

    /// How long the tool works, in milliseconds.
    pub(crate) const fn takes_ms(self) -> u64 {
        match self {
            Self::SlowLook | Self::SlowChange => 3_000,
            Self::StubbornChange => 40,
            Self::Look | Self::FailingLook => 5,
            _ => 2,
        }
    }
}

impl Script {
    /// One prompt, with these attempts.
    pub(crate) fn of(kinds: &[Kind]) -> Self {
        let attempts = kinds.iter().copied().map(Attempt::from).collect();
        let prompt = PromptScript { attempts, ..PromptScript::default() };
        Self { prompts: vec![prompt], ..Self::default() }
    }

    /// Reads what [`Script`] prints.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let mut script = Self::default();
        let mut prompt = PromptScript::default();
        for word in text.split_whitespace() {
            match word.split_once('@') {
                None if word == "clamp" => script.policy = Policy::Clamp,
                None if word == "always" => script.policy = Policy::Always,
                None if word == "go-on" => prompt.goes_on = true,
                None if word == "/" => script.prompts.push(std::mem::take(&mut prompt)),
                Some((what, number)) => {
                    let at: u64 = number.parse().with_context(|| format!("no number in {word}"))?;
                    let after = usize::try_from(at).unwrap_or(usize::MAX);
                    let crash = |loss| Some(Crash { loss, after });
                    match what {
                        "steer" => prompt.said.push((at, false)),
                        "follow" => prompt.said.push((at, true)),
                        "abort" => prompt.abort_ms = Some(at),
                        "kill" => prompt.kill_ms = Some(at),
                        "kept" => script.crash = crash(Loss::Kept),
                        "lost" => script.crash = crash(Loss::Lost),
                        "full" => script.crash = crash(Loss::Full),
                        _ => bail!("nothing is called {what}"),
                    }
                }
                None => prompt.attempts.push(Attempt::parse(word)?),
            }
        }
        script.prompts.push(prompt);
        Ok(script)
    }
}

impl Attempt {
    fn parse(word: &str) -> Result<Self> {
        let (name, calls) = word.split_once(':').unwrap_or((word, ""));
        let kind = Kind::named(name).with_context(|| format!("no attempt is called {name}"))?;
        let mut attempt = Self { kind, calls: Vec::new() };
        for call in calls.split('+').filter(|call| !call.is_empty()) {
            let act = Act::named(call).with_context(|| format!("no tool is called {call}"))?;
            attempt.calls.push(act);
        }
        if (kind == Kind::Tools) == attempt.calls.is_empty() {
            bail!("calls belong to `tools`, as in tools:look+change");
        }
        Ok(attempt)
    }
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = String::new();
        for (at, prompt) in self.prompts.iter().enumerate() {
            if at > 0 {
                line.push_str(" /");
            }
            for attempt in &prompt.attempts {
                write!(line, " {attempt}")?;
            }
            for (at, follows) in &prompt.said {
                write!(line, " {}@{at}", if *follows { "follow" } else { "steer" })?;
            }
            if let Some(at) = prompt.abort_ms {
                write!(line, " abort@{at}")?;
            }
            if let Some(at) = prompt.kill_ms {
                write!(line, " kill@{at}")?;
            }
            if prompt.goes_on {
                line.push_str(" go-on");
            }
        }
        if let Some(Crash { loss, after }) = self.crash {
            let loss = match loss {
                Loss::Kept => "kept",
                Loss::Lost => "lost",
                Loss::Full => "full",
            };
            write!(line, " {loss}@{after}")?;
        }
        line.push_str(match self.policy {
            Policy::Default => "",
            Policy::Clamp => " clamp",
            Policy::Always => " always",
        });
        f.write_str(line.trim_start())
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name())?;
        for (at, act) in self.calls.iter().enumerate() {
            write!(f, "{}{}", if at == 0 { ':' } else { '+' }, act.name())?;
        }
        Ok(())
    }
}
