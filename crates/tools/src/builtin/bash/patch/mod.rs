//! Finds the patch programs in a shell command, by parsing it.
//!
//! A word alone proves nothing: `echo patch` prints, `git stash apply` restores.
//! So the command is parsed as bash, and each simple command in it is followed
//! through what stands before its program (`sudo`, `env`, `xargs`, `bash -c`).
//! Text that does not parse is searched as far as it does. [`words`] reads a
//! parsed command, [`programs`] knows what programs do.

mod programs;
mod words;

use tree_sitter::{Node, Parser, Tree};

use self::{
    programs::{Use, follow},
    words::{input_text, piped_text, text, words},
};

/// How deep shells within shells are followed.
const DEPTH: usize = 6;
/// The longest text that is given back, in characters.
const SHORT: usize = 120;

/// The first command in a shell command that applies a patch, shortened to one
/// line; `None` if there is none. Dry runs and questions do not count.
///
/// ```
/// use turnbuckle_tools::builtin::patch_command;
///
/// let found = patch_command("cd src && sudo patch -p1 < fix.diff");
/// assert_eq!(found.as_deref(), Some("sudo patch -p1"));
/// assert_eq!(patch_command("git log --grep apply"), None);
/// ```
#[must_use]
pub fn patch_command(command: &str) -> Option<String> {
    patches(command).map(|found| found.command)
}

/// The patch programs of a shell command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Patches {
    /// The first command that runs one, shortened to one line.
    pub(super) command: String,
    /// Whether one of them is started past the `PATH` that the shell was given:
    /// by its whole path, or by a program that sets a `PATH` of its own.
    pub(super) past_path: bool,
}

/// What [`patch_command`] finds, and how it is started.
pub(super) fn patches(command: &str) -> Option<Patches> {
    find(command, 0)
}

/// Whether a program with these arguments, its name first, applies a patch.
pub(super) fn applies(words: &[String]) -> bool {
    matches!(follow(words, 0).0, Use::Patch)
}

fn find(source: &str, depth: usize) -> Option<Patches> {
    if depth > DEPTH {
        return None;
    }
    let tree = parse(source)?;
    let mut cursor = tree.walk();
    // `Node::parent` searches from the root, which deep nesting makes slow.
    let mut above = Vec::new();
    let mut first: Option<Patches> = None;
    loop {
        let node = cursor.node();
        if node.kind() == "command"
            && let Some(found) = judge(Simple { node, above: &above }, source, depth)
        {
            match &mut first {
                Some(first) => first.past_path |= found.past_path,
                None => first = Some(found),
            }
        }
        if cursor.goto_first_child() {
            above.push(node);
            continue;
        }
        while !cursor.goto_next_sibling() {
            above.pop();
            if !cursor.goto_parent() {
                return first;
            }
        }
    }
}

/// A simple command, and the statements it is in, the innermost last.
#[derive(Clone, Copy)]
struct Simple<'a, 'tree> {
    node: Node<'tree>,
    above: &'a [Node<'tree>],
}

impl<'tree> Simple<'_, 'tree> {
    /// The statement that holds the redirects behind the command.
    fn redirected(self) -> Option<Node<'tree>> {
        self.above.last().copied().filter(|parent| parent.kind() == "redirected_statement")
    }
}

fn parse(source: &str) -> Option<Tree> {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).ok()?;
    parser.parse(source, None)
}

fn judge(command: Simple<'_, '_>, source: &str, depth: usize) -> Option<Patches> {
    let words = words(command, source);
    let (does, past_path) = follow(&words, depth);
    let past_path = past_path || sets_path(command, source);
    let within = |script: &str| {
        let found = find(script, depth + 1)?;
        Some(Patches { past_path: past_path || found.past_path, ..found })
    };
    match does {
        Use::Patch => Some(Patches { command: shorten(text(command.node, source)), past_path }),
        Use::Script(script) => within(&script),
        Use::Shell => match input_text(command, source) {
            Some(script) => within(&script),
            None => within(&piped_text(command, source)?),
        },
        Use::Other => None,
    }
}

/// Whether the command has a `PATH` of its own: `PATH=/opt/bin git apply x`.
fn sets_path(command: Simple<'_, '_>, source: &str) -> bool {
    let mut cursor = command.node.walk();
    let mut parts = command.node.named_children(&mut cursor);
    parts
        .any(|part| part.kind() == "variable_assignment" && text(part, source).starts_with("PATH="))
}

fn shorten(command: &str) -> String {
    let line = command.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(SHORT) {
        None => line,
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests;
