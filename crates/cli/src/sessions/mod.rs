//! `turnbuckle sessions`: what is kept of earlier runs.

mod desk;
mod list;
mod show;

use std::{
    io::{self, IsTerminal as _, Write as _},
    path::PathBuf,
    process::ExitCode,
};

use turnbuckle_errors::{ErrorCode, Failure};
use turnbuckle_runtime::{
    Conversation, Repairs, SessionFolder, StoreError, SystemWorld, World as _,
};

use crate::{
    args::{Document, ExportArgs, ForkArgs, Format, RemoveArgs, SessionsCommand},
    output::printable,
    refusal::{invalid, refused, tell},
};

pub(crate) use desk::Desk;
pub(crate) use list::list_here;

pub(crate) fn sessions(command: SessionsCommand) -> ExitCode {
    let done = folder().and_then(|folder| match command {
        SessionsCommand::List(args) => list::list(&folder, &args),
        SessionsCommand::Show { id } => show::show(&folder, &id),
        SessionsCommand::Fork(args) => fork(&folder, &args),
        SessionsCommand::Export(args) => export(&folder, &args),
        SessionsCommand::Remove(args) => remove(&folder, &args),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => tell(&failure, Format::Text),
    }
}

/// Where sessions are kept: `TURNBUCKLE_STATE_DIR`, else the system's place for
/// a program's state.
pub(crate) fn folder() -> Result<SessionFolder, Failure> {
    Ok(SessionFolder::new(state_folder()?.join("sessions")))
}

pub(crate) fn state_folder() -> Result<PathBuf, Failure> {
    use etcetera::BaseStrategy as _;
    if let Some(folder) =
        std::env::var_os("TURNBUCKLE_STATE_DIR").filter(|folder| !folder.is_empty())
    {
        return Ok(PathBuf::from(folder));
    }
    let base = etcetera::choose_base_strategy()
        .map_err(|_| invalid("there is no home folder for sessions; set TURNBUCKLE_STATE_DIR"))?;
    let state = base.state_dir().unwrap_or_else(|| base.data_dir());
    Ok(state.join("turnbuckle"))
}

/// Why a session cannot be used, and what to do about it.
pub(crate) fn unusable(error: &StoreError) -> Failure {
    let failure = error.failure();
    match error {
        StoreError::NotFound(id) => refused(
            failure.code(),
            &format!("there is no session `{id}`; `turnbuckle sessions list` names them"),
        ),
        StoreError::Ambiguous { .. } => {
            refused(failure.code(), &format!("{error}: give more of it"))
        }
        StoreError::Corrupt { path, .. }
        | StoreError::Foreign { path }
        | StoreError::Newer { path, .. } => refused(
            failure.code(),
            &format!("{}; the file is {}", failure.message(), path.display()),
        ),
        StoreError::Io { source, .. } => invalid(&format!(
            "the session folder cannot be used: {error}: {source}; set TURNBUCKLE_STATE_DIR to a folder that can be written"
        )),
        _ => failure,
    }
}

/// Says what was wrong with the file of a session that was opened.
pub(crate) fn tell_repairs(repairs: &Repairs) {
    if repairs.cut_bytes > 0 {
        anstream::eprintln!(
            "· the end of the session file was torn: {} bytes of a record that was never whole are cut",
            repairs.cut_bytes
        );
    }
    if !repairs.unreadable.is_empty() {
        let lines: Vec<String> = repairs.unreadable.iter().map(u64::to_string).collect();
        anstream::eprintln!(
            "· the session file is damaged: line {} cannot be read, stays in the file, and is passed over",
            lines.join(", ")
        );
    }
    if repairs.interrupted {
        anstream::eprintln!(
            "· the last prompt was interrupted; what it had finished is kept, and nothing is run again"
        );
    }
}

/// Reads a session by the beginning of its id.
pub(crate) fn read(folder: &SessionFolder, id: &str) -> Result<Conversation, Failure> {
    let journal = folder.find(id).and_then(|id| folder.read(&id));
    let journal = journal.map_err(|error| unusable(&error))?;
    tell_repairs(&journal.repairs);
    Ok(Conversation::of(&journal.records))
}

/// Begins a session with the messages of another one, and gives its id.
pub(crate) fn fork_of(
    folder: &SessionFolder,
    id: &str,
    at: Option<usize>,
) -> Result<String, StoreError> {
    let new_id = SystemWorld.new_id();
    folder.fork(&folder.find(id)?, at, &new_id, SystemWorld.now())?;
    Ok(new_id)
}

fn fork(folder: &SessionFolder, args: &ForkArgs) -> Result<(), Failure> {
    let new_id = fork_of(folder, &args.id, args.at).map_err(|error| unusable(&error))?;
    print(&format!("{new_id}\n"))
}

fn export(folder: &SessionFolder, args: &ExportArgs) -> Result<(), Failure> {
    let conversation = read(folder, &args.id)?;
    let document = match args.format {
        Document::Markdown => conversation.to_markdown(),
        Document::Json => serde_json::to_string_pretty(&conversation)
            .map(|json| json + "\n")
            .map_err(|_| refused(ErrorCode::Internal, "the session cannot be written as JSON"))?,
    };
    match &args.to {
        None => print(&document),
        Some(path) => std::fs::write(path, document)
            .map_err(|error| invalid(&format!("{} cannot be written: {error}", path.display()))),
    }
}

fn remove(folder: &SessionFolder, args: &RemoveArgs) -> Result<(), Failure> {
    // All of them are found before the first one goes.
    let found: Result<Vec<String>, StoreError> =
        args.ids.iter().map(|id| folder.find(id)).collect();
    for id in found.map_err(|error| unusable(&error))? {
        folder.remove(&id).map_err(|error| unusable(&error))?;
        print(&format!("removed {id}\n"))?;
    }
    Ok(())
}

/// Prints to standard output: exactly, but for what could steer a terminal. A reader
/// who has left has read enough.
fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let safe = out.is_terminal().then(|| printable(text));
    let text = safe.as_deref().unwrap_or(text);
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(invalid(&format!("the output could not be written: {error}")))
        }
        _ => Ok(()),
    }
}
