//! Plays a script: a fault server, the real client, the real runtime and tools, and
//! notes of everything that was seen.

use std::{collections::BTreeMap, fs, num::NonZeroU32, path::Path, sync::Arc, time::Duration};

use anyhow::{Context as _, Result, bail};
use secrecy::SecretString;
use serde_json::Value;
use tokio::time::Instant;
use turnbuckle_diagnostics::Redactor;
use turnbuckle_faults::{Ended, FaultServer, Needs, RecordedRequest, Script, catalogue};
use turnbuckle_providers::Clocks;
use turnbuckle_runtime::{EventKind, MemoryStore, Runtime, Session};
use turnbuckle_tools::{
    DenyAll, PermissionMode, ToolSet,
    builtin::{self, Workspace},
};

use super::{
    client::{self, Client},
    dialect::Dialect,
    due,
    plant::Plant,
};

/// The file that the tool reads, and what is in it.
pub(crate) const NOTES: (&str, &str) = ("notes.txt", "the kettle sang before noon\n");

/// Waits between attempts are this much shorter than the policy says; what the
/// events say is not.
const WAIT_DIVISOR: NonZeroU32 = NonZeroU32::new(200).unwrap();

/// The clock that a silent server runs into. The other clocks stay at their
/// defaults, so that a busy machine cannot run into one.
const SHORT: Duration = Duration::from_millis(2500);

/// More prompts than any script makes that ends.
const MOST_PROMPTS: usize = 60;

/// How long the end of the last exchange may take to reach the server's record. A pool
/// that was dropped goes on to connect for the 20 s of its clock.
const SETTLED: Duration = Duration::from_secs(30);

/// What is played.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) dialect: Dialect,
    pub(crate) script: Script,
    /// Sent as the key. No host may ever see it.
    pub(crate) key: String,
    pub(crate) until: Until,
}

/// How long a session goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// For so many prompts.
    Prompts(usize),
    /// Until every step of the script was met, and for one prompt more.
    Played,
}

/// What was seen.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) prompts: Vec<Told>,
    /// Attempts by the server's count.
    pub(crate) dealt: usize,
    /// Connections by the server's count: all, and those left at the end.
    pub(crate) connections: (usize, usize),
    pub(crate) requests: Vec<RecordedRequest>,
    /// The files of the workspace at the end.
    pub(crate) files: BTreeMap<String, String>,
    /// Whether the key was in anything that a host, a log or a person can get to see.
    pub(crate) key_told: bool,
    pub(crate) took: Duration,
}

/// What a host is told of one prompt.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    pub(crate) events: Vec<Value>,
    /// When each event came, from the start of the session.
    pub(crate) at: Vec<Duration>,
    pub(crate) outcome: Value,
}

impl Told {
    /// `completed`, `failed` or `aborted`.
    pub(crate) fn outcome_word(&self) -> &str {
        self.outcome.get("outcome").and_then(Value::as_str).unwrap_or("-")
    }

    /// How many events of this kind there are.
    pub(crate) fn count(&self, kind: &str) -> usize {
        self.events.iter().filter(|event| kind_of(event) == kind).count()
    }

    pub(crate) fn attempts(&self) -> usize {
        let told = self.outcome.get("attempts").and_then(Value::as_u64);
        told.and_then(|told| usize::try_from(told).ok()).unwrap_or(0)
    }
}

impl Seen {
    /// How many attempts ended in this phase because a clock had run out.
    pub(crate) fn expired(&self, phase: &str) -> usize {
        let events = self.prompts.iter().flat_map(|told| &told.events);
        let ends = events.filter(|event| matches!(kind_of(event), "retry_scheduled" | "error"));
        let is = |event: &Value, pointer, word: &str| {
            event.pointer(pointer).and_then(Value::as_str) == Some(word)
        };
        let timeout = |event: &&Value| {
            is(event, "/failure/code", "TIMEOUT") && is(event, "/failure/details/phase", phase)
        };
        ends.filter(timeout).count()
    }

    /// The failure of the first attempt that failed.
    pub(crate) fn first_failure(&self) -> Option<&Value> {
        let mut events = self.prompts.iter().flat_map(|told| &told.events);
        events.find_map(|event| event.get("failure"))
    }
}

/// Plays a session, one prompt after another.
pub(crate) async fn play(part: &Part, plant: Option<Plant>) -> Result<Seen> {
    let due = due::foretell(&part.script, part.until, &due::Chance::default());
    if due.endless {
        bail!("the script never ends: let its last step answer with text and call no tool");
    }
    let began = Instant::now();
    let server = FaultServer::start_anywhere(part.script.clone()).await?;
    let folder = tempfile::tempdir().context("cannot make a workspace")?;
    fs::write(folder.path().join(NOTES.0), NOTES.1).context("cannot write the notes")?;
    let runtime = runtime(part, &server, folder.path(), plant)?;
    let mut session = runtime.session(MemoryStore::new());

    let mut seen = Seen {
        prompts: Vec::new(),
        dealt: 0,
        connections: (0, 0),
        requests: Vec::new(),
        files: BTreeMap::new(),
        key_told: false,
        took: Duration::ZERO,
    };
    // A request that is sent on a dead connection can make it more prompts than foretold.
    for number in 1..=MOST_PROMPTS {
        let enough = match part.until {
            Until::Prompts(prompts) => number > prompts,
            Until::Played => server.attempts() > part.script.steps().len(),
        };
        if enough {
            break;
        }
        let text = format!("Question {number}: what now?");
        let (told, key_told) = prompt(&mut session, &text, began, &part.key).await?;
        seen.prompts.push(told);
        seen.key_told |= key_told;
    }
    seen.dealt = server.attempts();
    seen.key_told |= format!("{runtime:?} {session:?}").contains(&part.key);
    drop((session, runtime));
    settle(&server).await;
    seen.connections = (server.connections(), server.open_connections());
    seen.requests = server.stop().await;
    seen.files = files(folder.path())?;
    seen.took = began.elapsed();
    if let Some(plant) = plant {
        plant.tamper(&mut seen);
    }
    Ok(seen)
}

fn runtime(
    part: &Part,
    server: &FaultServer,
    folder: &Path,
    plant: Option<Plant>,
) -> Result<Runtime> {
    let redactor = Arc::new(Redactor::new([SecretString::from(part.key.clone())]));
    let provider = client::provider(Client {
        dialect: part.dialect,
        url: server.base_url(),
        authority: server.ca_pem(),
        key: &part.key,
        clocks: clocks(&part.script),
        redactor: redactor.clone(),
    })?;
    let workspace = Workspace::open(folder).context("cannot open the workspace")?;
    let tools = builtin::tools(&workspace).into_iter().fold(ToolSet::new(), ToolSet::with);
    let mut builder = Runtime::builder(provider, "a-model")
        .system(builtin::SYSTEM_PROMPT)
        .tools(tools.with_permissions(PermissionMode::Auto, Arc::new(DenyAll)))
        .redactor(redactor)
        // What a history made smaller leaves out is for the simulator to play.
        .without_compaction()
        .wait_divisor(WAIT_DIVISOR);
    if let Some(policy) = plant.and_then(Plant::policy) {
        builder = builder.policy(policy);
    }
    Ok(builder.build())
}

/// Whether a server that falls silent runs into one.
pub(crate) fn waits_for_a_clock(script: &Script) -> bool {
    clocks(script) != Clocks::default()
}

/// A server that falls silent runs into a short clock, the others into none.
fn clocks(script: &Script) -> Clocks {
    let mut clocks = Clocks::default();
    for entry in script.steps().iter().filter_map(|step| catalogue::find(step.name()?)) {
        let own = entry.behaviour();
        // A status that tells of a timeout is an answer.
        if !own.carries_content() && entry.needs() != Needs::Tls && !own.falls_silent() {
            continue;
        }
        match (entry.expected.code, entry.expected.phase) {
            (Some("TIMEOUT"), Some("request")) => clocks.first_event = SHORT,
            (Some("TIMEOUT"), _) => {
                clocks.first_event = SHORT;
                clocks.byte_idle = SHORT;
                // Later, so that it is not this one that cuts what is merely silent.
                clocks.progress_idle = SHORT + SHORT / 2;
            }
            _ if own.falls_silent() => clocks.error_body = SHORT,
            _ => {}
        }
    }
    clocks
}

/// What was told of one prompt, and whether the key was in any of it.
async fn prompt(
    session: &mut Session,
    text: &str,
    began: Instant,
    key: &str,
) -> Result<(Told, bool)> {
    let mut prompt = session.prompt(text);
    let (mut events, mut at) = (Vec::new(), Vec::new());
    let mut key_told = false;
    while let Some(event) = prompt.next().await {
        at.push(began.elapsed());
        // Of the text of an answer there may be very much.
        key_told |= match &event.kind {
            EventKind::MessageUpdate { delta, .. } => delta.contains(key),
            _ => format!("{event:?}").contains(key),
        };
        let event = serde_json::to_value(event)?;
        key_told |= kind_of(&event) != "message_update" && event.to_string().contains(key);
        events.push(event);
    }
    let Some(outcome) = prompt.ended().cloned() else {
        bail!("the events ended, and the prompt did not");
    };
    let mut told = format!("{outcome:?}");
    if let Some(failure) = &outcome.failure {
        told.push_str(&format!("{failure} {failure:?}"));
    }
    let outcome = serde_json::to_value(outcome)?;
    told.push_str(&outcome.to_string());
    key_told |= told.contains(key);
    Ok((Told { events, at, outcome }, key_told))
}

fn kind_of(event: &Value) -> &str {
    event.get("type").and_then(Value::as_str).unwrap_or_default()
}

/// Waits until the server knows how every exchange ended, and its connections are
/// closed.
async fn settle(server: &FaultServer) {
    let under_way =
        |request: &RecordedRequest| matches!(request.ended, Ended::Open | Ended::Silence);
    let settled = async {
        while server.open_connections() > 0 || server.requests().iter().any(under_way) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    // What is still open then is seen in the record.
    let _ = tokio::time::timeout(SETTLED, settled).await;
}

fn files(folder: &Path) -> Result<BTreeMap<String, String>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).context("cannot list the workspace")? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = fs::read(&path).with_context(|| format!("cannot read {name}"))?;
        files.insert(name, String::from_utf8_lossy(&text).into_owned());
    }
    Ok(files)
}
