//! A line that is a command, told from one that is a message.

use crate::nearest::hint;

/// What `/help` prints.
pub(super) const HELP: &str = "\
/new          begin a new session
/sessions     list the sessions of this workspace
/resume ID    go on with one of them; the beginning of its id will do
/fork [N]     go on in a copy of this session, of its first N messages
/help         this
/quit         leave; so does Ctrl-D
A message that begins with a slash is written with two. Ctrl-C ends a running prompt.";

const NAMES: [&str; 6] = ["/new", "/sessions", "/resume", "/fork", "/help", "/quit"];

/// What a line asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Command {
    Nothing,
    Say(String),
    New,
    Sessions,
    Resume(String),
    Fork(Option<usize>),
    Help,
    Quit,
}

impl Command {
    /// Reads a line; or says why it is no command, although it looks like one.
    pub(super) fn read(line: &str) -> Result<Self, String> {
        let trimmed = line.trim();
        if trimmed.is_empty() {
            return Ok(Self::Nothing);
        }
        if let Some(message) = trimmed.strip_prefix("//") {
            return Ok(Self::Say(format!("/{message}")));
        }
        let (name, rest) = trimmed.split_once(char::is_whitespace).unwrap_or((trimmed, ""));
        let rest = rest.trim();
        // A path is the beginning of a message.
        let is_name = |word: &str| word.chars().all(|c| c.is_ascii_alphabetic());
        if !name.strip_prefix('/').is_some_and(is_name) {
            return Ok(Self::Say(line.to_owned()));
        }
        match (name, rest) {
            ("/new", "") => Ok(Self::New),
            ("/sessions", "") => Ok(Self::Sessions),
            ("/help", "") => Ok(Self::Help),
            ("/quit" | "/exit", "") => Ok(Self::Quit),
            ("/fork", "") => Ok(Self::Fork(None)),
            ("/fork", number) => match number.parse() {
                Ok(number) => Ok(Self::Fork(Some(number))),
                Err(_) => Err("write it /fork 4, with the number of a message".to_owned()),
            },
            ("/resume", "") => Err("write it /resume ID; /sessions lists the ids".to_owned()),
            ("/resume", id) => Ok(Self::Resume(id.to_owned())),
            (known, _) if NAMES.contains(&known) => Err(format!("{known} takes nothing more")),
            (name, _) => Err(format!("unknown command `{name}`{}", hint(name, &NAMES))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: Result<Command, &str>) {
        let read = Command::read(line);
        match expected {
            Ok(command) => assert_eq!(read, Ok(command)),
            Err(part) => assert!(read.as_ref().unwrap_err().contains(part), "{read:?}"),
        }
    }

    #[test]
    fn commands_are_told_from_messages() {
        check(" \t", Ok(Command::Nothing));
        check("hello /new", Ok(Command::Say("hello /new".into())));
        check("  indented", Ok(Command::Say("  indented".into())));
        check("//new", Ok(Command::Say("/new".into())));
        check("/etc/hosts: what is it?", Ok(Command::Say("/etc/hosts: what is it?".into())));
        check("/new ", Ok(Command::New));
        check("/exit", Ok(Command::Quit));
        check("/resume  0192", Ok(Command::Resume("0192".into())));
        check("/fork", Ok(Command::Fork(None)));
        check("/fork 12", Ok(Command::Fork(Some(12))));
        check("/fork x", Err("/fork 4"));
        check("/resume", Err("/resume ID"));
        check("/quit now", Err("takes nothing more"));
        check("/sesions", Err("did you mean `/sessions`?"));
    }

    #[test]
    fn help_names_every_command() {
        assert!(NAMES.iter().all(|name| HELP.contains(name)));
    }
}
