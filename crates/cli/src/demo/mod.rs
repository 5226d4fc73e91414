//! `turnbuckle demo`: one real prompt, no key, no network.
//!
//! An embedded provider plays a script over a real socket: it is rate-limited
//! once, and cuts the last answer in the middle. The runtime, the tools and the
//! file are the same that a real run uses.

mod timeline;

use std::{
    io::{self, Write as _},
    path::Path,
    process::ExitCode,
    sync::Arc,
};

use anstyle::{AnsiColor, Style};
use tokio_util::sync::CancellationToken;
use turnbuckle_diagnostics::Redactor;
use turnbuckle_errors::Failure;
use turnbuckle_faults::{FaultServer, RecordedRequest, Script};
use turnbuckle_providers::openai_chat::OpenAiChat;
use turnbuckle_runtime::{Event, MemoryStore, PromptOutcome, Runtime, Session};
use turnbuckle_tools::{
    DenyAll, PermissionMode, ToolSet,
    builtin::{self, Workspace},
};

use self::timeline::Timeline;
use crate::{
    args::{DemoArgs, Format},
    output::{Output, Text},
    refusal::{invalid, tell},
    run::{exit_code, show},
    signals::cancel_on_signal,
};

const HEAD: Style = Style::new().bold();
const ADDED: Style = AnsiColor::Green.on_default();
const REMOVED: Style = AnsiColor::Red.on_default();

const FILE: &str = "greeting.txt";
const BEFORE: &str = "Hello, wrold!\nThis file is as short as it looks.\n";
const PROMPT: &str = "Fix the typo in greeting.txt.";

pub(crate) async fn demo(args: &DemoArgs) -> ExitCode {
    match play(args).await {
        Ok(code) => code,
        Err(failure) => tell(&failure, Format::Text),
    }
}

async fn play(args: &DemoArgs) -> Result<ExitCode, Failure> {
    let wrong = |error: &dyn std::fmt::Display| invalid(&format!("the demo cannot begin: {error}"));
    let workspace =
        tempfile::Builder::new().prefix("turnbuckle-demo-").tempdir().map_err(|e| wrong(&e))?;
    std::fs::write(workspace.path().join(FILE), BEFORE).map_err(|e| wrong(&e))?;
    let script = Script::named("demo").map_err(|e| wrong(&e))?;
    let server = FaultServer::start_anywhere(script).await.map_err(|e| wrong(&e))?;
    let mut session = session(workspace.path(), &server)?;

    let cancel = CancellationToken::new();
    cancel_on_signal(cancel.clone());
    let _ = opening();
    let stage = Stage { text: Text::new(), timeline: Timeline::begin() };
    let (outcome, shown) = show(&mut session, PROMPT.to_owned(), cancel, stage).await;
    let record = server.stop().await;
    let after = std::fs::read_to_string(workspace.path().join(FILE)).unwrap_or_default();
    let told = shown.and_then(|stage| closing(&stage.timeline, &outcome, &record, &after));
    if args.keep {
        let kept = workspace.keep();
        let _ = writeln!(anstream::stdout(), "\nThe workspace is kept at {}", kept.display());
    }
    Ok(exit_code(&outcome, told.err().as_ref()))
}

fn session(workspace: &Path, server: &FaultServer) -> Result<Session, Failure> {
    let workspace = Workspace::open(workspace).map_err(|error| invalid(&error.to_string()))?;
    let redact = Arc::new(Redactor::default());
    let provider = OpenAiChat::builder(server.base_url()).redactor(redact.clone()).build()?;
    // Everything may run unasked, since the workspace is thrown away.
    let tools = builtin::tools(&workspace)
        .into_iter()
        .fold(ToolSet::new(), ToolSet::with)
        .with_permissions(PermissionMode::Auto, Arc::new(DenyAll))
        .with_redactor(redact.clone());
    let runtime = Runtime::builder(Arc::new(provider), "demo-model")
        .system(builtin::SYSTEM_PROMPT)
        .tools(tools)
        .redactor(redact)
        .build();
    Ok(runtime.session(MemoryStore::new()))
}

/// The answer as `run` shows it, and notes for the timeline beside it.
struct Stage {
    text: Text,
    timeline: Timeline,
}

impl Output for Stage {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        self.timeline.note(event);
        self.text.event(event)
    }

    fn end(&mut self, outcome: &PromptOutcome) -> io::Result<()> {
        self.text.end(outcome)
    }
}

fn opening() -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    writeln!(
        out,
        "{HEAD}Turnbuckle demo{HEAD:#}: a real prompt against a provider that breaks on purpose."
    )?;
    writeln!(
        out,
        "No key, no network: the provider runs inside this program, on a loopback port.\n"
    )?;
    writeln!(out, "{HEAD}Prompt{HEAD:#}  {PROMPT}\n")?;
    writeln!(out, "{HEAD}Answer{HEAD:#}")?;
    out.flush()
}

fn closing(
    timeline: &Timeline,
    outcome: &PromptOutcome,
    record: &[RecordedRequest],
    after: &str,
) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    writeln!(out, "\n{HEAD}What happened{HEAD:#}")?;
    for line in timeline.lines() {
        writeln!(out, "  {line}")?;
    }
    writeln!(out, "\n{HEAD}The edited file{HEAD:#}")?;
    for line in timeline.diff().lines() {
        let style = match line.chars().next() {
            Some('+') => ADDED,
            Some('-') => REMOVED,
            _ => Style::new(),
        };
        writeln!(out, "  {style}{line}{style:#}")?;
    }
    writeln!(out, "\n{HEAD}In short{HEAD:#}")?;
    writeln!(out, "  {}", timeline.summary(outcome))?;
    writeln!(out, "  {}", checked(outcome, record))?;
    if after == BEFORE {
        writeln!(out, "  The file was not changed.")?;
    }
    writeln!(out, "\n{HEAD}What to run next{HEAD:#}")?;
    for (command, why) in NEXT {
        writeln!(out, "  {command:<58}  {why}")?;
    }
    out.flush()
}

const NEXT: [(&str, &str); 4] = [
    ("cargo xtask test-faults", "every fault through the real client"),
    (
        "cargo run --release -- run \"explain this folder\"",
        "your own prompt (needs OPENAI_API_KEY)",
    ),
    ("cargo run --release -- faults list", "what the provider can break"),
    ("cargo run --release -- faults serve --script cut_once", "point any client at it"),
];

/// What the provider's own record says, which the runtime cannot embellish.
fn checked(outcome: &PromptOutcome, record: &[RecordedRequest]) -> String {
    let asked = record.iter().filter(|request| request.step.is_some()).count();
    let last = record.last().map(|request| request.body.to_string()).unwrap_or_default();
    // The broken part and the whole answer begin alike.
    let beginning: String = outcome.text.chars().take(12).collect();
    let clean = beginning.is_empty() || !last.contains(&beginning);
    let part = if clean {
        "none of them held a part of the broken answer"
    } else {
        "one held a part of the broken answer"
    };
    format!("The provider counted {asked} requests; {part}.")
}
