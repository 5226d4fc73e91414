//! Plays a cell: a fault server, the real client, the real runtime, and notes of
//! everything that was seen.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use anyhow::{Context as _, Result, bail};
use secrecy::SecretString;
use serde_json::Value;
use turnbuckle_diagnostics::Redactor;
use turnbuckle_faults::{Ended, FaultServer, RecordedRequest};
use turnbuckle_providers::{
    Clocks, Provider,
    anthropic::Anthropic,
    gemini::Gemini,
    openai_chat::OpenAiChat,
    openai_responses::OpenAiResponses,
    transport::{HttpTransport, ReqwestTransport},
};
use turnbuckle_runtime::{MemoryStore, PromptOutcome, Runtime, Session};
use turnbuckle_tools::{
    ToolSet,
    builtin::{self, Workspace},
};

use super::cell::{Cell, Dialect, NOTES};

/// Waits between attempts are this much shorter than the policy says; what the
/// events say is not.
const WAIT_DIVISOR: NonZeroU32 = NonZeroU32::new(200).unwrap();

/// The clock that a silent server runs into. The other clocks stay at their
/// defaults, so that a busy machine cannot run into one.
const SHORT: Duration = Duration::from_millis(1500);

/// How long the end of the last exchange may take to reach the server's record.
const SETTLED: Duration = Duration::from_secs(10);

/// What was seen of a cell.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    /// The events of the prompt, as a host reads them.
    pub(crate) events: Vec<Value>,
    pub(crate) outcome: Value,
    /// Attempts by the server's count, when the prompt had ended.
    pub(crate) attempts: usize,
    /// Every request, that of the follow-up prompt included.
    pub(crate) requests: Vec<RecordedRequest>,
    /// The outcome of a second prompt, if one followed; its request is the last.
    pub(crate) follow_up: Option<Value>,
    /// Everything that a host, a log or a person can get to see.
    pub(crate) told: String,
}

impl Seen {
    /// `completed`, `failed` or `aborted`.
    pub(crate) fn outcome_word(&self) -> &str {
        self.outcome.get("outcome").and_then(Value::as_str).unwrap_or("-")
    }

    /// The failure of the first attempt that failed.
    pub(crate) fn first_failure(&self) -> Option<&Value> {
        self.events.iter().find_map(|event| event.get("failure"))
    }
}

/// Plays the cell's prompt, and a second one if that is to end well, to see what
/// is remembered of the first.
pub(crate) async fn play(cell: &Cell) -> Result<Seen> {
    let server = FaultServer::start_anywhere(cell.script.clone()).await?;
    let folder = tempfile::tempdir().context("cannot make a workspace")?;
    std::fs::write(folder.path().join(NOTES.0), NOTES.1).context("cannot write the notes")?;
    let runtime = runtime(cell, &server, folder.path())?;
    let mut session = runtime.session(MemoryStore::new());

    let (events, outcome) = prompt(&mut session, "What do the notes say?").await?;
    let attempts = server.attempts();
    let mut told = format!("{events:?} {outcome:?}");
    if let Some(failure) = &outcome.failure {
        told.push_str(&format!(" {failure} {failure:?}"));
    }
    let outcome = serde_json::to_value(outcome)?;
    told.push_str(&outcome.to_string());

    let follow_up = match cell.completes() {
        true => Some(serde_json::to_value(prompt(&mut session, "And then?").await?.1)?),
        false => None,
    };
    told.push_str(&format!("{runtime:?} {session:?}"));
    drop(session);
    settle(&server).await;
    let requests = server.stop().await;
    Ok(Seen { events, outcome, attempts, requests, follow_up, told })
}

fn runtime(cell: &Cell, server: &FaultServer, folder: &std::path::Path) -> Result<Runtime> {
    let redactor = Arc::new(Redactor::new([SecretString::from(cell.key.clone())]));
    let clocks = clocks(cell);
    // On this machine, whatever proxy the environment names.
    let mut transport = ReqwestTransport::builder(&clocks).direct();
    if let Some(authority) = server.ca_pem() {
        transport = transport.root_certificates_pem(authority);
    }
    let transport = transport.build().context("cannot set up the transport")?;
    let provider = provider(cell, server, clocks, Arc::new(transport), redactor.clone())?;
    let workspace = Workspace::open(folder).context("cannot open the workspace")?;
    let tools = builtin::tools(&workspace).into_iter().fold(ToolSet::new(), ToolSet::with);
    Ok(Runtime::builder(provider, "a-model")
        .system(builtin::SYSTEM_PROMPT)
        .tools(tools)
        .redactor(redactor)
        .wait_divisor(WAIT_DIVISOR)
        .build())
}

/// The real client of the cell's dialect.
fn provider(
    cell: &Cell,
    server: &FaultServer,
    clocks: Clocks,
    transport: Arc<dyn HttpTransport>,
    redactor: Arc<Redactor>,
) -> Result<Arc<dyn Provider>> {
    let (url, key) = (server.base_url(), cell.key.clone());
    Ok(match cell.dialect {
        Dialect::Chat => Arc::new(
            OpenAiChat::builder(url)
                .api_key(key)
                .clocks(clocks)
                .transport(transport)
                .redactor(redactor)
                .build()?,
        ),
        Dialect::Responses => Arc::new(
            OpenAiResponses::builder()
                .base_url(url)
                .api_key(key)
                .clocks(clocks)
                .transport(transport)
                .redactor(redactor)
                .build()?,
        ),
        Dialect::Anthropic => Arc::new(
            Anthropic::builder()
                .base_url(url)
                .api_key(key)
                .clocks(clocks)
                .transport(transport)
                .redactor(redactor)
                .build()?,
        ),
        Dialect::Gemini => Arc::new(
            Gemini::builder()
                .base_url(url)
                .api_key(key)
                .clocks(clocks)
                .transport(transport)
                .redactor(redactor)
                .build()?,
        ),
    })
}

/// A server that falls silent runs into a short clock, the others into none.
fn clocks(cell: &Cell) -> Clocks {
    let clocks = Clocks::default();
    match (cell.entry.expected.code, cell.entry.expected.phase) {
        (Some("TIMEOUT"), Some("request")) => Clocks { first_event: SHORT, ..clocks },
        (Some("TIMEOUT"), _) => {
            Clocks { first_event: SHORT, byte_idle: SHORT, progress_idle: SHORT, ..clocks }
        }
        _ if cell.entry.behaviour().falls_silent() => Clocks { error_body: SHORT, ..clocks },
        _ => clocks,
    }
}

async fn prompt(session: &mut Session, text: &str) -> Result<(Vec<Value>, PromptOutcome)> {
    let mut prompt = session.prompt(text);
    let mut events = Vec::new();
    while let Some(event) = prompt.next().await {
        events.push(serde_json::to_value(event)?);
    }
    match prompt.ended() {
        Some(outcome) => Ok((events, outcome.clone())),
        None => bail!("the events ended, and the prompt did not"),
    }
}

/// Waits until the server knows how every exchange ended.
async fn settle(server: &FaultServer) {
    let under_way =
        |request: &RecordedRequest| matches!(request.ended, Ended::Open | Ended::Silence);
    let settled = async {
        while server.requests().iter().any(under_way) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    // One that is still open then is seen in the record.
    let _ = tokio::time::timeout(SETTLED, settled).await;
}
