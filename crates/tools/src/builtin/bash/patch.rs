//! Finds the patch programs in a shell command, by parsing it.
//!
//! A word alone proves nothing: `echo patch` prints, `git stash apply` restores.
//! So the command is parsed as bash, and each simple command in it is followed
//! through what stands before its program (`sudo`, `env`, `xargs`, `bash -c`).
//! Text that does not parse is searched as far as it does.

use tree_sitter::{Node, Parser, Tree};

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
    find(command, 0)
}

fn find(source: &str, depth: usize) -> Option<String> {
    if depth > DEPTH {
        return None;
    }
    let tree = parse(source)?;
    let mut cursor = tree.walk();
    // `Node::parent` searches from the root, which deep nesting makes slow.
    let mut above = Vec::new();
    loop {
        let node = cursor.node();
        if node.kind() == "command"
            && let Some(found) =
                judge(Simple { node, parent: above.last().copied() }, source, depth)
        {
            return Some(found);
        }
        if cursor.goto_first_child() {
            above.push(node);
            continue;
        }
        while !cursor.goto_next_sibling() {
            above.pop();
            if !cursor.goto_parent() {
                return None;
            }
        }
    }
}

/// A simple command, and the statement it is in.
#[derive(Clone, Copy)]
struct Simple<'tree> {
    node: Node<'tree>,
    parent: Option<Node<'tree>>,
}

impl<'tree> Simple<'tree> {
    /// The statement that holds the redirects behind the command.
    fn redirected(self) -> Option<Node<'tree>> {
        self.parent.filter(|parent| parent.kind() == "redirected_statement")
    }
}

fn parse(source: &str) -> Option<Tree> {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).ok()?;
    parser.parse(source, None)
}

fn judge(command: Simple<'_>, source: &str, depth: usize) -> Option<String> {
    let words = words(command, source);
    match follow(&words, depth) {
        Use::Patch => Some(shorten(text(command.node, source))),
        Use::Script(script) => find(&script, depth + 1),
        Use::Shell => find(&input_text(command, source)?, depth + 1),
        Use::Other => None,
    }
}

/// What a simple command does, as far as we care.
#[derive(Debug, PartialEq, Eq)]
enum Use {
    /// Applies a patch.
    Patch,
    /// Runs this shell text.
    Script(String),
    /// Runs the shell text in its input.
    Shell,
    /// Something else.
    Other,
}

impl Use {
    const fn patch_if(applies: bool) -> Self {
        if applies { Self::Patch } else { Self::Other }
    }
}

/// Follows a command through its prefixes to the program it runs.
fn follow(words: &[String], depth: usize) -> Use {
    let mut words = words;
    while let Some((name, rest)) = words.split_first() {
        let name = name.rsplit('/').next().unwrap_or(name);
        words = match name {
            "patch" | "gpatch" => return Use::patch_if(!is_question(rest, PATCH_QUESTIONS)),
            "apply_patch" | "applypatch" => return Use::patch_if(!is_question(rest, QUESTIONS)),
            "git" => return Use::patch_if(git_applies(rest)),
            "bash" | "sh" | "dash" | "zsh" | "ksh" | "ash" => return shell(rest),
            "su" => return shell_argument(rest).map_or(Use::Other, Use::Script),
            "eval" => return Use::Script(rest.join(" ")),
            "find" | "fd" => return run_by_find(rest, depth),
            "command" if rest.first().is_some_and(|word| word == "-v" || word == "-V") => {
                return Use::Other;
            }
            "sudo" | "doas" => skip_assignments(skip_options(rest, SUDO_VALUES)),
            "env" => skip_assignments(skip_options(rest, &["-u", "--unset", "-C", "--chdir"])),
            "command" | "nohup" | "setsid" | "time" | "chronic" | "builtin" => {
                skip_options(rest, &["-f", "-o"])
            }
            "exec" => skip_options(rest, &["-a"]),
            "nice" | "ionice" => skip_options(rest, &["-n", "--adjustment", "-c", "--class"]),
            "stdbuf" => skip_options(rest, &["-i", "-o", "-e"]),
            "timeout" => skip_options(rest, &["-k", "-s", "--kill-after", "--signal"])
                .get(1..)
                .unwrap_or(&[]),
            "xargs" => skip_options(rest, XARGS_VALUES),
            "busybox" | "toybox" => rest,
            _ => return Use::Other,
        };
    }
    Use::Other
}

/// Options that make any program talk instead of work.
const QUESTIONS: &[&str] = &["--help", "-h", "--version"];
const PATCH_QUESTIONS: &[&str] = &["--help", "--version", "-v", "--dry-run", "-C", "--check"];
const APPLY_QUESTIONS: &[&str] =
    &["--help", "-h", "--check", "--stat", "--numstat", "--summary", "--build-fake-ancestor"];
/// These end, skip or show a series that was begun; they apply nothing new.
const AM_QUESTIONS: &[&str] = &[
    "--help",
    "-h",
    "--abort",
    "--quit",
    "--skip",
    "--continue",
    "--resolved",
    "-r",
    "--show-current-patch",
];
const SUDO_VALUES: &[&str] = &[
    "-u", "--user", "-g", "--group", "-h", "--host", "-p", "--prompt", "-C", "-D", "--chdir", "-R",
    "--chroot", "-r", "-t", "-T", "-U",
];
const XARGS_VALUES: &[&str] = &[
    "-I",
    "-n",
    "--max-args",
    "-P",
    "--max-procs",
    "-L",
    "--max-lines",
    "-d",
    "--delimiter",
    "-a",
    "--arg-file",
    "-E",
    "-s",
    "--max-chars",
];
const GIT_VALUES: &[&str] = &[
    "-C",
    "-c",
    "--git-dir",
    "--work-tree",
    "--namespace",
    "--config-env",
    "--attr-source",
    "--super-prefix",
];

fn is_question(words: &[String], questions: &[&str]) -> bool {
    words.iter().take_while(|word| *word != "--").any(|word| {
        let option = word.split_once('=').map_or(word.as_str(), |(option, _)| option);
        questions.contains(&option)
    })
}

fn git_applies(words: &[String]) -> bool {
    let before = words.len() - skip_options(words, GIT_VALUES).len();
    let (global, rest) = words.split_at(before);
    if is_question(global, QUESTIONS) {
        return false;
    }
    match rest.split_first() {
        Some((verb, rest)) if verb == "apply" => {
            is_question(rest, &["--apply"]) || !is_question(rest, APPLY_QUESTIONS)
        }
        Some((verb, rest)) if verb == "am" => !is_question(rest, AM_QUESTIONS),
        _ => false,
    }
}

/// The words after the leading options, some of which take a value.
fn skip_options<'a>(mut words: &'a [String], with_value: &[&str]) -> &'a [String] {
    while let Some((word, rest)) = words.split_first() {
        if word == "--" {
            return rest;
        }
        if !word.starts_with('-') || word == "-" {
            break;
        }
        words =
            if with_value.contains(&word.as_str()) { rest.get(1..).unwrap_or(&[]) } else { rest };
    }
    words
}

fn skip_assignments(words: &[String]) -> &[String] {
    let is_assignment = |word: &String| word.split_once('=').is_some_and(|(name, _)| is_name(name));
    let count = words.iter().take_while(|word| is_assignment(word)).count();
    words.get(count..).unwrap_or(&[])
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// A shell runs the text after `-c`, a file, or else its input.
fn shell(words: &[String]) -> Use {
    match shell_argument(words) {
        Some(script) => Use::Script(script),
        None if skip_options(words, SHELL_VALUES).is_empty() => Use::Shell,
        None if words.iter().any(|word| word == "-s") => Use::Shell,
        None => Use::Other,
    }
}

const SHELL_VALUES: &[&str] = &["-o", "+o", "-O", "+O", "--rcfile", "--init-file"];

/// The shell text after `-c`, also in a cluster such as `-lc` or `-euo pipefail -c`.
fn shell_argument(words: &[String]) -> Option<String> {
    let mut found = false;
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let cluster = word.strip_prefix(['-', '+']).filter(|rest| !rest.starts_with('-'));
        match cluster {
            Some(cluster) => {
                found |= cluster.contains('c') && word.starts_with('-');
                if cluster.ends_with(['o', 'O']) {
                    words.next();
                }
            }
            None if SHELL_VALUES.contains(&word.as_str()) => {
                words.next();
            }
            None if word == "--command" => found = true,
            None if word.starts_with("--") => {}
            None if found => return Some(word.clone()),
            None => return None,
        }
    }
    None
}

/// `find … -exec PROGRAM … ;`: the first that applies a patch decides.
fn run_by_find(words: &[String], depth: usize) -> Use {
    let runs =
        |word: &String| matches!(word.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir" | "-x");
    let ends = |word: &String| word == ";" || word == "+";
    let mut words = words;
    while depth <= DEPTH
        && let Some(at) = words.iter().position(runs)
    {
        let rest = words.get(at + 1..).unwrap_or(&[]);
        let (program, behind) = rest.split_at(rest.iter().position(ends).unwrap_or(rest.len()));
        match follow(program, depth + 1) {
            Use::Other | Use::Shell => words = behind,
            used => return used,
        }
    }
    Use::Other
}

/// The words of a command without assignments and redirects, as far as known.
fn words(command: Simple<'_>, source: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut cursor = command.node.walk();
    for child in command.node.named_children(&mut cursor) {
        match child.kind() {
            "variable_assignment" | "herestring_redirect" | "heredoc_redirect" | "subshell" => {}
            "file_redirect" => words.extend(stray_words(child, source)),
            _ => words.push(literal(child, source)),
        }
    }
    if let Some(parent) = command.redirected() {
        let mut cursor = parent.walk();
        for redirect in parent.named_children(&mut cursor) {
            words.extend(stray_words(redirect, source));
        }
    }
    words
}

/// Words of the command that stand behind a redirect and are parsed into it.
fn stray_words(redirect: Node<'_>, source: &str) -> Vec<String> {
    let (field, own) = match redirect.kind() {
        "file_redirect" => ("destination", 1),
        "heredoc_redirect" => ("argument", 0),
        _ => return Vec::new(),
    };
    let mut cursor = redirect.walk();
    let words = redirect.children_by_field_name(field, &mut cursor).skip(own);
    words.map(|word| literal(word, source)).collect()
}

/// The here-document or here-string that a command reads, if it has one.
fn input_text(command: Simple<'_>, source: &str) -> Option<String> {
    for holder in [Some(command.node), command.redirected()].into_iter().flatten() {
        let mut cursor = holder.walk();
        for redirect in holder.named_children(&mut cursor) {
            let mut inner = redirect.walk();
            let mut parts = redirect.named_children(&mut inner);
            match redirect.kind() {
                "heredoc_redirect" => {
                    let body = parts.find(|part| part.kind() == "heredoc_body")?;
                    return Some(text(body, source).to_owned());
                }
                "herestring_redirect" => return parts.next().map(|part| literal(part, source)),
                _ => {}
            }
        }
    }
    None
}

/// The value of a word; what only the shell knows stays as it is written.
fn literal(node: Node<'_>, source: &str) -> String {
    let whole = text(node, source);
    match node.kind() {
        "command_name" => {
            node.named_child(0).map_or_else(|| whole.to_owned(), |child| literal(child, source))
        }
        "concatenation" => {
            let mut cursor = node.walk();
            node.children(&mut cursor).map(|part| literal(part, source)).collect()
        }
        "raw_string" => whole.trim_matches('\'').to_owned(),
        "string" => unescape(between(whole, "\"", "\""), |c| matches!(c, '"' | '\\' | '$' | '`')),
        "ansi_c_string" => between(whole, "$'", "'").replace("\\n", "\n").replace("\\'", "'"),
        "word" => unescape(whole, |_| true),
        _ => whole.to_owned(),
    }
}

fn between<'a>(text: &'a str, start: &str, end: &str) -> &'a str {
    let text = text.strip_prefix(start).unwrap_or(text);
    text.strip_suffix(end).unwrap_or(text)
}

fn unescape(text: &str, escapable: impl Fn(char) -> bool) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match characters.peek() {
            Some(next) if character == '\\' && escapable(*next) => {
                plain.extend(characters.next().filter(|next| *next != '\n'));
            }
            _ => plain.push(character),
        }
    }
    plain
}

fn text<'a>(node: Node<'_>, source: &'a str) -> &'a str {
    source.get(node.byte_range()).unwrap_or_default()
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
