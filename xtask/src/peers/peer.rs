//! Who the peers are, where they are installed, and which turns each one shows.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use turnbuckle_providers::profiles::{self, Dialect, Profile};

use super::{
    NONE, Row, Verdict,
    cut::Relay,
    dialect::{Place, SPOKEN, Spoken},
    judge::{self, Due},
    servers::{self, KEPT, Running},
    turn::{self, Kind},
};
use crate::workspace::Workspace;

/// The variable that says where the peers are installed.
const FOLDER: &str = "TURNBUCKLE_PEERS";

/// The lines of data after which a relay cuts an answer: every dialect has shown
/// some text by then.
const CUT_AFTER: usize = 12;

/// A server that others wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Peer {
    /// A scripted server of every dialect.
    Aimock,
    /// Real inference, with a tiny random model.
    LlamaCpp,
    /// A translating gateway, in front of aimock.
    Litellm,
}

/// Where the peers are, and where what they print goes.
#[derive(Debug)]
pub(crate) struct Places {
    pub(crate) installed: PathBuf,
    pub(crate) logs: PathBuf,
}

impl Places {
    pub(crate) fn of(workspace: &Workspace) -> Result<Self> {
        let chosen = std::env::var_os(FOLDER).filter(|folder| !folder.is_empty());
        let installed = chosen.map_or_else(|| "target/peers".into(), PathBuf::from);
        let logs = workspace.target().join("xtask").join("peers");
        Ok(Self { installed: workspace.root().join(installed), logs })
    }

    pub(crate) fn aimock(&self) -> PathBuf {
        self.installed.join("npm/node_modules/@copilotkit/aimock/dist/cli.js")
    }

    pub(crate) fn llama_python(&self) -> PathBuf {
        self.installed.join("llama/bin/python")
    }

    pub(crate) fn litellm(&self) -> PathBuf {
        self.installed.join("litellm/bin/litellm")
    }
}

impl Peer {
    pub(crate) const ALL: [Self; 3] = [Self::Aimock, Self::LlamaCpp, Self::Litellm];

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Aimock => "aimock",
            Self::LlamaCpp => "llama.cpp",
            Self::Litellm => "LiteLLM",
        }
    }

    /// What an adapter knows of it.
    const fn profile(self) -> &'static Profile {
        match self {
            Self::Aimock => &profiles::CUSTOM,
            Self::LlamaCpp => &profiles::LLAMA_CPP,
            Self::Litellm => &profiles::LITELLM,
        }
    }

    /// The turns that it shows; with a reason, those that it cannot.
    const fn turns(self) -> &'static [(Kind, Option<&'static str>)] {
        match self {
            Self::Aimock => {
                &[(Kind::Text, None), (Kind::Tool, None), (Kind::Cut, None), (Kind::Drop, None)]
            }
            Self::LlamaCpp => &[
                (Kind::Text, None),
                (Kind::Tool, Some("its random model makes no tool calls")),
                (Kind::Cut, None),
            ],
            Self::Litellm => &[(Kind::Text, None), (Kind::Tool, None), (Kind::Cut, None)],
        }
    }

    /// Why it shows no turn over a dialect, where it does not speak it.
    fn silent_in(self, spoken: &Spoken) -> Option<&'static str> {
        let mute = self == Self::LlamaCpp && spoken.dialect == Dialect::Gemini;
        mute.then_some("it does not speak this dialect")
    }

    /// The file of it that is missing, if one is.
    fn missing(self, places: &Places) -> Option<PathBuf> {
        let needs = match self {
            Self::Aimock => vec![places.aimock()],
            Self::LlamaCpp => vec![places.llama_python()],
            Self::Litellm => vec![places.litellm(), places.aimock()],
        };
        needs.into_iter().find(|file| !file.exists())
    }

    /// Starts it, plays its turns one after another, and ends it.
    pub(crate) async fn play(self, places: &Places, required: bool) -> Vec<Row> {
        if let Some(file) = self.missing(places) {
            return vec![self.absent(&file, places, required)];
        }
        let running = match Running::start(self, places).await {
            Ok(running) => running,
            Err(error) => return vec![self.broken(&error.context("it did not start"))],
        };
        let mut rows = Vec::new();
        for spoken in SPOKEN {
            for (kind, cannot) in self.turns() {
                rows.push(match self.silent_in(spoken).or(*cannot) {
                    Some(reason) => self.row(spoken, *kind, Verdict::Skipped, reason.to_owned()),
                    None => self.turn(spoken, *kind, &running).await,
                });
            }
        }
        if let Err(error) = running.stop().await {
            rows.push(self.broken(&error));
        }
        rows
    }

    async fn turn(self, spoken: &Spoken, kind: Kind, running: &Running) -> Row {
        match self.try_turn(spoken, kind, running).await {
            Ok((verdict, seen)) => self.row(spoken, kind, verdict, seen),
            Err(error) => {
                let verdict = Verdict::Failed(vec![format!("{error:#}")]);
                self.row(spoken, kind, verdict, "could not be played".to_owned())
            }
        }
    }

    async fn try_turn(
        self,
        spoken: &Spoken,
        kind: Kind,
        running: &Running,
    ) -> Result<(Verdict, String)> {
        let scripted = self != Self::LlamaCpp;
        let relay = match kind {
            // It breaks nothing by itself.
            Kind::Cut if !scripted => Some(Relay::start(running.port(), CUT_AFTER).await?),
            _ => None,
        };
        let port = relay.as_ref().map_or(running.port(), |relay| relay.port);
        let place = Place { port, key: running.key().to_owned(), profile: self.profile() };
        let before = running.mark().await.context("cannot ask what it saw before")?;
        let seen = turn::play(kind, spoken, place, scripted).await?;
        let mut witness = running.since(before).await.context("cannot ask what it saw")?;
        witness.cuts = relay.as_ref().map(Relay::cuts);
        let due = Due {
            kind,
            text: scripted.then_some(KEPT),
            path: (self == Self::Aimock).then_some(spoken.path),
        };
        Ok((judge::verdict(&due, &seen, &witness), judge::summary(&seen, &witness)))
    }

    fn row(self, spoken: &Spoken, kind: Kind, verdict: Verdict, seen: String) -> Row {
        let dialect = spoken.dialect.as_str();
        Row { peer: self.title(), dialect, turn: kind.name(), verdict, seen }
    }

    fn absent(self, file: &Path, places: &Places, required: bool) -> Row {
        let file = file.strip_prefix(&places.installed).unwrap_or(file).display();
        let seen = format!("not installed: there is no {file} in the folder of the peers");
        let verdict = match required {
            true => Verdict::Failed(vec![format!("{seen}; scripts/install-peers installs it")]),
            false => Verdict::Skipped,
        };
        Row { peer: self.title(), dialect: NONE, turn: NONE, verdict, seen }
    }

    fn broken(self, error: &anyhow::Error) -> Row {
        let verdict = Verdict::Failed(vec![format!("{error:#}")]);
        let seen = servers::BROKEN.to_owned();
        Row { peer: self.title(), dialect: NONE, turn: NONE, verdict, seen }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_not_installed_is_named_and_skipped_unless_it_is_required() {
        let folder = tempfile::tempdir().unwrap();
        let nowhere = || folder.path().to_path_buf();
        let places = Places { installed: nowhere(), logs: nowhere() };
        for peer in Peer::ALL {
            let rows = peer.play(&places, false).await;
            let [Row { verdict: Verdict::Skipped, seen, .. }] = rows.as_slice() else {
                panic!("{rows:?}");
            };
            assert!(rows.iter().all(Row::is_absent));
            assert!(seen.starts_with("not installed: there is no "), "{seen}");
            let rows = peer.play(&places, true).await;
            assert!(matches!(rows.as_slice(), [Row { verdict: Verdict::Failed(_), .. }]));
        }
    }
}
