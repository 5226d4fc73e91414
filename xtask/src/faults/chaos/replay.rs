//! A script that broke something, as a file: the script itself, and in comments before
//! it what else is needed to play it again.

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, Result};
use clap::ValueEnum as _;
use turnbuckle_faults::Script;

use super::super::{
    dialect::Dialect,
    log,
    plant::Plant,
    stage::{Part, Until},
};
use crate::terminal::say;

const DIALECT: &str = "# dialect: ";

/// Writes the script into this folder.
pub(super) fn write(
    folder: &Path,
    name: &str,
    part: &Part,
    complaints: &[String],
) -> Result<PathBuf> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let mut text = format!("{DIALECT}{}\n", part.dialect.name());
    for line in complaints.iter().flat_map(|complaint| complaint.lines()) {
        text.push_str(&format!("# broken: {line}\n"));
    }
    text.push('\n');
    text.push_str(&part.script.to_toml()?);
    let path = folder.join(name);
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

/// Reads a script to be played until its end, in the dialect that is asked for, or else
/// that it names, or else Chat.
pub(super) fn read(path: &Path, dialect: Option<Dialect>) -> Result<Part> {
    let script = Script::from_path(path)?;
    let text = fs::read_to_string(path).unwrap_or_default();
    let named = text.lines().find_map(|line| line.strip_prefix(DIALECT));
    let named = named.and_then(|name| Dialect::from_str(name.trim(), true).ok());
    Ok(Part {
        dialect: dialect.or(named).unwrap_or(Dialect::Chat),
        script,
        key: "sk-canary-0123456789abcdef".to_owned(),
        until: Until::Played,
    })
}

/// Plays the script of a file, and shows what was seen and what is wrong with it.
pub(super) async fn play(
    path: &Path,
    dialect: Option<Dialect>,
    plant: Option<Plant>,
) -> Result<ExitCode> {
    let part = read(path, dialect)?;
    say(format_args!("{}, {}:\n{}", path.display(), part.dialect.name(), part.script));
    let (seen, complaints) = super::judged(&part, plant).await;
    if let Some(seen) = &seen {
        say("what the host was told:");
        log::events(seen).iter().for_each(say);
        say("what the server saw:");
        log::requests(seen).iter().for_each(say);
    }
    match complaints.is_empty() {
        true => say("\nholds"),
        false => say("\nBROKEN"),
    }
    complaints.iter().for_each(|complaint| say(format_args!("  - {complaint}")));
    Ok(ExitCode::from(u8::from(!complaints.is_empty())))
}
