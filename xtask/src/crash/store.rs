//! Stores that fail, under the real runtime, client and tools.

use std::{
    fs::OpenOptions,
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use anyhow::{Context as _, Result};
use async_trait::async_trait;
use fastrand::Rng;
use turnbuckle_providers::openai_chat::OpenAiChat;
use turnbuckle_runtime::{JsonlStore, Record, Runtime, Session, SessionStore, StoreError};
use turnbuckle_tools::{
    DenyAll, PermissionMode, ToolSet,
    builtin::{self, Workspace},
};

use super::{
    end::End,
    process::{Place, Run, session_file},
};

/// The name of the first session of a place, which no program chose.
const ID: &str = "first";

/// The real store, and what happens to it.
struct Faulty {
    inner: JsonlStore,
    /// How long the file was at its last sync.
    synced: Arc<AtomicU64>,
    appends: u64,
    syncs: u64,
    end: End,
}

impl Faulty {
    fn fails(&self, action: &'static str, kind: io::ErrorKind) -> StoreError {
        StoreError::Io { action, path: self.inner.path().to_owned(), source: kind.into() }
    }
}

#[async_trait]
impl SessionStore for Faulty {
    async fn append(&mut self, record: &Record) -> Result<(), StoreError> {
        self.appends += 1;
        match self.end {
            End::ReadOnly { appends } if self.appends > appends => {
                Err(self.fails("writing", io::ErrorKind::ReadOnlyFilesystem))
            }
            _ => self.inner.append(record).await,
        }
    }

    async fn sync(&mut self) -> Result<(), StoreError> {
        self.syncs += 1;
        match self.end {
            End::Unsynced { syncs } if self.syncs > syncs => {
                return Err(self.fails("syncing", io::ErrorKind::Other));
            }
            _ => self.inner.sync().await?,
        }
        self.synced.store(length(self.inner.path()), Ordering::Relaxed);
        Ok(())
    }
}

fn length(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// Plays a prompt over a store that fails, or is forgotten in the middle.
pub(super) async fn run(place: &Place, go_on: bool, end: End) -> Result<Run> {
    let (mut session, synced, path) = open(place, go_on, end).await?;
    let mut prompt = session.prompt(if go_on { "go on" } else { "begin" });
    let mut run = Run::default();
    let most = match end {
        End::Forgot { events, .. } => events,
        _ => usize::MAX,
    };
    while run.events.len() < most {
        let Some(event) = prompt.next().await else { break };
        run.events.push(serde_json::to_value(event).context("an event is no JSON")?);
    }
    run.ended_early = prompt.ended().is_none_or(|outcome| !outcome.ok);
    // The machine is gone: no record follows.
    drop(prompt);
    drop(session);
    if let (End::Forgot { seed, .. }, true) = (end, run.ended_early) {
        forget(&path, synced.load(Ordering::Relaxed), seed)?;
    }
    Ok(run)
}

/// What a file system may leave of what was written after the last sync: nothing,
/// a part, or zeros in its place.
fn forget(path: &Path, synced: u64, seed: u64) -> Result<()> {
    let mut rng = Rng::with_seed(seed);
    // A file in which nothing was written is not there.
    if !path.exists() {
        return Ok(());
    }
    let file = OpenOptions::new().write(true).open(path).context("cannot open the session")?;
    let written = length(path).max(synced);
    let (kept, zeros) = match rng.u32(0..3) {
        0 => (synced, false),
        1 => (rng.u64(synced..=written), false),
        _ => (rng.u64(synced..=written), true),
    };
    file.set_len(kept).context("cannot cut the session")?;
    if zeros {
        file.set_len(written).context("cannot fill the session with zeros")?;
    }
    Ok(())
}

async fn open(place: &Place, go_on: bool, end: End) -> Result<(Session, Arc<AtomicU64>, PathBuf)> {
    let runtime = runtime(place)?;
    let folder = place.state.join("sessions");
    let synced = Arc::new(AtomicU64::new(0));
    let faulty = |inner: JsonlStore| {
        let path = inner.path().to_owned();
        (Faulty { inner, synced: Arc::clone(&synced), appends: 0, syncs: 0, end }, path)
    };
    if !go_on {
        let (store, path) = faulty(JsonlStore::create(&folder, ID)?);
        return Ok((runtime.session(store).in_workspace(&place.workspace), synced, path));
    }
    let file = session_file(&place.state).context("there is no session to go on with")?;
    let id =
        file.file_stem().and_then(|stem| stem.to_str()).context("a session has an odd name")?;
    let (inner, journal) = JsonlStore::open(&folder, id)?;
    let (store, path) = faulty(inner);
    // What was there at the opening is not forgotten: the process before it ended
    // long ago, and mending is synced.
    synced.store(length(&path), Ordering::Relaxed);
    Ok((runtime.resume_from(store, journal.records).await?, synced, path))
}

fn runtime(place: &Place) -> Result<Runtime> {
    let provider = OpenAiChat::builder(&place.base_url).build()?;
    let workspace = Workspace::open(&place.workspace).context("cannot open the workspace")?;
    let tools = builtin::tools(&workspace).into_iter().fold(ToolSet::new(), ToolSet::with);
    let tools = tools.with_permissions(PermissionMode::Auto, Arc::new(DenyAll));
    Ok(Runtime::builder(Arc::new(provider), "default")
        .system(builtin::SYSTEM_PROMPT)
        .tools(tools)
        .build())
}
