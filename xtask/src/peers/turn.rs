//! Plays a turn at a peer, and notes what a host would have seen of it.

use std::{path::Path, time::Duration};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use tempfile::TempDir;
use turnbuckle_runtime::{MemoryStore, PromptOutcome, Runtime};
use turnbuckle_tools::{
    ToolSet,
    builtin::{self, Workspace},
};

use super::dialect::{Place, Spoken};

/// The file that the tool reads, and what is in it.
pub(crate) const NOTES: (&str, &str) = ("notes.txt", "the kettle sang before noon\n");

/// Enough of a model that talks noise without an end.
const OUTPUT_TOKENS: u32 = 48;

/// A turn that takes longer hangs. Generous, so that a busy machine is no fault.
const HUNG: Duration = Duration::from_secs(180);

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An answer that streams to its end.
    Text,
    /// The model reads a file, then answers.
    Tool,
    /// The stream is cut after some of the text; the next one is whole.
    Cut,
    /// The connection breaks after a while, wherever the answer is by then.
    Drop,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] = [Self::Text, Self::Tool, Self::Cut, Self::Drop];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Tool => "tool",
            Self::Cut => "cut",
            Self::Drop => "drop",
        }
    }

    /// Whether its first answer is broken.
    pub(crate) const fn is_broken(self) -> bool {
        matches!(self, Self::Cut | Self::Drop)
    }

    /// The prompt, by which a scripted peer knows what to do.
    pub(crate) fn prompt(self, spoken: &Spoken) -> String {
        format!("A {} turn over {}", self.name(), spoken.dialect.as_str())
    }
}

/// What was seen of a turn.
#[derive(Debug)]
pub(crate) struct Seen {
    /// The events, as a host reads them.
    pub(crate) events: Vec<Value>,
    pub(crate) outcome: PromptOutcome,
}

impl Seen {
    pub(crate) fn of_kind(&self, kind: &str) -> impl Iterator<Item = &Value> {
        let is_it = move |event: &&Value| event.get("type").is_some_and(|found| found == kind);
        self.events.iter().filter(is_it)
    }

    /// How many pieces of text came.
    pub(crate) fn pieces(&self) -> usize {
        let is_text = |event: &&Value| event.get("kind").is_some_and(|kind| kind == "text");
        self.of_kind("message_update").filter(is_text).count()
    }
}

/// Plays it in a workspace that is thrown away. `hands` says whether the model is
/// given tools.
pub(crate) async fn play(kind: Kind, spoken: &Spoken, place: Place, hands: bool) -> Result<Seen> {
    let folder = TempDir::new().context("cannot make a workspace")?;
    std::fs::write(folder.path().join(NOTES.0), NOTES.1).context("cannot write the notes")?;
    let runtime = runtime(spoken, place, folder.path(), hands)?;
    let mut session = runtime.session(MemoryStore::new());
    let mut prompt = session.prompt(kind.prompt(spoken));
    let mut events = Vec::new();
    let reading = async {
        while let Some(event) = prompt.next().await {
            events.push(serde_json::to_value(event)?);
        }
        anyhow::Ok(())
    };
    let read = tokio::time::timeout(HUNG, reading).await;
    read.with_context(|| format!("hung: no end within {} s", HUNG.as_secs()))??;
    match prompt.ended() {
        Some(outcome) => Ok(Seen { events, outcome: outcome.clone() }),
        None => bail!("the events ended, and the prompt did not"),
    }
}

fn runtime(spoken: &Spoken, place: Place, folder: &Path, hands: bool) -> Result<Runtime> {
    let provider = spoken.provider(place)?;
    let mut runtime = Runtime::builder(provider, "peer").max_output_tokens(OUTPUT_TOKENS);
    if hands {
        let workspace = Workspace::open(folder).context("cannot open the workspace")?;
        let tools = builtin::tools(&workspace).into_iter().fold(ToolSet::new(), ToolSet::with);
        runtime = runtime.system(builtin::SYSTEM_PROMPT).tools(tools);
    }
    Ok(runtime.build())
}
