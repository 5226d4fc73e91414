//! One session: begun, brought to an end, gone on with, brought to an end again,
//! and gone on with to its answer.

use std::{ops::AddAssign, path::Path};

use anyhow::{Context as _, Result};
use fastrand::Rng;
use serde_json::Value;
use turnbuckle_faults::FaultServer;

use super::{
    end::{End, Kind},
    judge::{self, Committed},
    process::{self, Place, Run, session_file},
    script::{ANSWER, LOG, script},
    store,
};

/// How much of the turn is left when a session ends, on average.
const PARTS: [f64; 2] = [1.0, 0.5];

/// An end, and what was found after it.
#[derive(Debug, Clone)]
pub(super) struct Ended {
    pub(super) kind: Kind,
    /// Where it struck: while a message streamed, while a change was under way whose
    /// outcome is unknown now, or elsewhere.
    pub(super) in_text: u64,
    pub(super) in_tools: u64,
    pub(super) between: u64,
    /// Whether it left half a record behind.
    pub(super) torn: u64,
    /// The messages and results that were committed before it.
    pub(super) committed: u64,
    pub(super) lost: u64,
    /// The changes that tools made.
    pub(super) effects: u64,
    pub(super) doubled: u64,
    /// The requests that were made.
    pub(super) requests: u64,
    pub(super) invalid: u64,
    pub(super) complaints: Vec<String>,
}

impl Default for Ended {
    fn default() -> Self {
        Self {
            kind: Kind::Killed,
            in_text: 0,
            in_tools: 0,
            between: 0,
            torn: 0,
            committed: 0,
            lost: 0,
            effects: 0,
            doubled: 0,
            requests: 0,
            invalid: 0,
            complaints: Vec::new(),
        }
    }
}

impl AddAssign for Ended {
    fn add_assign(&mut self, other: Self) {
        self.in_text += other.in_text;
        self.in_tools += other.in_tools;
        self.between += other.between;
        self.torn += other.torn;
        self.committed += other.committed;
        self.lost += other.lost;
        self.effects += other.effects;
        self.doubled += other.doubled;
        self.requests += other.requests;
        self.invalid += other.invalid;
        self.complaints.extend(other.complaints);
    }
}

/// Plays the session of this number to its end.
pub(super) async fn play(binary: &Path, seed: u64, number: u64) -> Result<Vec<Ended>> {
    let mut rng = Rng::with_seed(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(number));
    let server = FaultServer::start_anywhere(script()?).await?;
    let folder = tempfile::tempdir().context("cannot make a folder")?;
    let workspace = folder.path().join("workspace");
    std::fs::create_dir(&workspace).context("cannot make a workspace")?;
    std::fs::write(workspace.join("notes"), "some notes\n").context("cannot write the notes")?;
    let place = Place {
        binary: binary.to_owned(),
        base_url: server.base_url(),
        workspace: workspace.canonicalize().context("the workspace is gone")?,
        state: folder.path().join("state"),
    };
    let mut ends: Vec<Ended> = Vec::new();
    let mut committed: Option<Committed> = None;
    for part in PARTS {
        let end = End::choose(&mut rng, part);
        let asked = server.attempts();
        let run = bring_about(&place, end).await.with_context(|| format!("{end:?}"))?;
        if let (Some(before), Some(last)) = (committed.take(), ends.last_mut()) {
            let complaints = went_on(&place, &server, &before, asked);
            last.lost += u64::try_from(complaints.len()).unwrap_or(u64::MAX);
            last.complaints.extend(complaints);
        }
        if run.ended_early {
            let (ended, left) = look(&place, end, &run)?;
            ends.push(ended);
            committed = Some(left);
        }
    }
    let Some(last) = ends.last_mut() else { return Ok(ends) };
    let asked = server.attempts();
    let run = process::run(&place, begun(&place)?, None).await?;
    if let Some(before) = committed {
        let complaints = went_on(&place, &server, &before, asked);
        last.lost += u64::try_from(complaints.len()).unwrap_or(u64::MAX);
        last.complaints.extend(complaints);
    }
    last.complaints.extend(answered(&run));
    finish(&place, server, last).await?;
    for ended in &mut ends {
        let name = format!("session {number}, {}", ended.kind.name());
        ended
            .complaints
            .iter_mut()
            .for_each(|complaint| *complaint = format!("{name}: {complaint}"));
    }
    Ok(ends)
}

async fn bring_about(place: &Place, end: End) -> Result<Run> {
    let go_on = begun(place)?;
    match end {
        End::Killed { .. } | End::KilledInTool { .. } | End::Torn { .. } | End::Full { .. } => {
            process::run(place, go_on, Some(end)).await
        }
        End::Forgot { .. } | End::ReadOnly { .. } | End::Unsynced { .. } => {
            store::run(place, go_on, end).await
        }
    }
}

/// Whether there is a session to go on with. A file that ended before its first
/// record was whole is none, and is put out of the way.
fn begun(place: &Place) -> Result<bool> {
    let Some(file) = session_file(&place.state) else { return Ok(false) };
    if !Committed::of(std::fs::read(&file)?).records.is_empty() {
        return Ok(true);
    }
    std::fs::remove_file(file).context("cannot remove an empty session")?;
    Ok(false)
}

/// What an end left behind.
fn look(place: &Place, end: End, run: &Run) -> Result<(Ended, Committed)> {
    let bytes = session_file(&place.state).map(std::fs::read).transpose()?.unwrap_or_default();
    let written = bytes.len();
    let left = Committed::of(bytes);
    let last = run.events.last().and_then(|event| event.get("type")).and_then(Value::as_str);
    let mut ended = Ended { kind: end.kind(), ..Ended::default() };
    match last {
        _ if judge::in_a_tool(&left.records) => ended.in_tools = 1,
        Some("message_start" | "message_update") => ended.in_text = 1,
        _ => ended.between = 1,
    }
    ended.torn = u64::from(left.bytes.len() < written);
    ended.committed = u64::try_from(judge::history(&left.records).len()).unwrap_or(u64::MAX);
    let missing = judge::missing(&run.events, &left);
    ended.lost += u64::try_from(missing.len()).unwrap_or(u64::MAX);
    ended.complaints.extend(missing);
    ended.complaints.extend(told(end, run));
    Ok((ended, left))
}

/// A store that fails is no reason to fall silent.
fn told(end: End, run: &Run) -> Option<String> {
    match end {
        End::Full { .. } => {
            let said = run.stderr.contains("session f")
                || run
                    .events
                    .iter()
                    .any(|event| event.get("failure").is_some_and(|f| !f.is_null()));
            let well = matches!(run.code, Some(1 | 2)) && said;
            (!well).then(|| format!("a full store: exit {:?}, said {:?}", run.code, run.stderr))
        }
        End::ReadOnly { .. } | End::Unsynced { .. } => {
            let last = run.events.last();
            let failed = last.is_some_and(|event| {
                event.get("type").is_some_and(|kind| kind == "agent_end")
                    && event.get("outcome").is_some_and(|outcome| outcome == "failed")
            });
            (!failed).then(|| format!("a store that fails did not end the prompt: {last:?}"))
        }
        End::Killed { .. } | End::KilledInTool { .. } | End::Torn { .. } | End::Forgot { .. } => {
            None
        }
    }
}

/// Whether the run after an end knew all that was committed before it.
fn went_on(place: &Place, server: &FaultServer, before: &Committed, asked: usize) -> Vec<String> {
    let now = session_file(&place.state).and_then(|file| std::fs::read(file).ok());
    let mut complaints = judge::kept(before, &now.unwrap_or_default());
    let chats = server.requests().into_iter().filter(|request| request.step.is_some());
    if let Some(first) = chats.into_iter().nth(asked) {
        complaints.extend(judge::remembered(before, &first.body));
    }
    complaints
}

fn answered(run: &Run) -> Option<String> {
    let said = run.events.iter().rev().find_map(|event| event.pointer("/message/text"));
    let whole = run.code == Some(0) && said.is_some_and(|text| text == ANSWER);
    (!whole).then(|| format!("the last run: exit {:?}, said {said:?}, {}", run.code, run.stderr))
}

/// Counts the changes and judges the requests of the whole session.
async fn finish(place: &Place, server: FaultServer, ended: &mut Ended) -> Result<()> {
    let file = session_file(&place.state).context("the session's file is gone")?;
    let records = Committed::of(std::fs::read(file)?).records;
    let log = std::fs::read_to_string(place.workspace.join(LOG)).unwrap_or_default();
    ended.effects = u64::try_from(log.lines().count()).unwrap_or(u64::MAX);
    let doubled = judge::effects(&records, &log);
    ended.doubled += u64::try_from(doubled.len()).unwrap_or(u64::MAX);
    ended.complaints.extend(doubled);
    ended.complaints.extend(judge::files(&records, &place.workspace));
    for request in server.stop().await.into_iter().filter(|request| request.step.is_some()) {
        ended.requests += 1;
        let wrong = judge::invalid(&request.body);
        ended.invalid += u64::from(wrong.is_some());
        ended.complaints.extend(wrong);
    }
    Ok(())
}
