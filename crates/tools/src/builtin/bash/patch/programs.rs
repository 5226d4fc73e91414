//! What programs do, as far as patches are concerned.

use super::DEPTH;

/// What a simple command does, as far as we care.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Use {
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

/// Follows a command through its prefixes to the program it runs; the flag is
/// whether that program is started past the `PATH` of the shell.
pub(super) fn follow(words: &[String], depth: usize) -> (Use, bool) {
    let mut words = words;
    let mut past_path = false;
    while let Some((path, rest)) = words.split_first() {
        let name = path.rsplit('/').next().unwrap_or(path);
        let found = match name {
            "patch" | "gpatch" => Use::patch_if(!is_question(rest, PATCH_QUESTIONS)),
            "apply_patch" | "applypatch" => Use::patch_if(!is_question(rest, QUESTIONS)),
            "git" => git(rest),
            "bash" | "sh" | "dash" | "zsh" | "ksh" | "ash" => shell(rest),
            "su" | "runuser" | "script" if script_option(rest).is_some() => {
                Use::Script(script_option(rest).unwrap_or_default())
            }
            "env" if split_by_env(rest).is_some() => {
                past_path |= sets_a_path(name, rest);
                Use::Script(split_by_env(rest).unwrap_or_default())
            }
            "watch" => Use::Script(skip_options(rest, &["-n", "--interval"]).join(" ")),
            "eval" => Use::Script(rest.join(" ")),
            "trap" => rest.first().map_or(Use::Other, |script| Use::Script(script.clone())),
            "find" | "fd" => run_by_find(rest, depth),
            "command" if rest.first().is_some_and(|word| word == "-v" || word == "-V") => {
                Use::Other
            }
            _ => match run_by(name, rest) {
                Some(inner) => {
                    past_path |= sets_a_path(name, rest);
                    words = inner;
                    continue;
                }
                None => Use::Other,
            },
        };
        past_path |= path.contains('/') || matches!(name, "su" | "runuser");
        return (found, past_path);
    }
    (Use::Other, past_path)
}

/// The command that a program was given to run, if that is what the program does.
fn run_by<'a>(name: &str, rest: &'a [String]) -> Option<&'a [String]> {
    let behind = |options: &[&str], own: usize| {
        Some(skip_options(rest, options).get(own..).unwrap_or_default())
    };
    match name {
        "sudo" | "doas" => Some(skip_assignments(skip_options(rest, SUDO_VALUES))),
        "env" => Some(skip_assignments(skip_options(rest, ENV_VALUES))),
        "command" | "nohup" | "setsid" | "time" | "chronic" | "builtin" | "unbuffer" | "coproc"
        | "fakeroot" | "unshare" => behind(&["-f", "-o"], 0),
        "runuser" => behind(&["-u", "--user", "-g", "--group"], 0),
        "strace" | "ltrace" => behind(&["-e", "-o", "-p", "-s", "-u", "-P", "-E"], 0),
        "exec" => behind(&["-a"], 0),
        "nice" | "ionice" => behind(&["-n", "--adjustment", "-c", "--class"], 0),
        "stdbuf" => behind(&["-i", "-o", "-e"], 0),
        "timeout" => behind(&["-k", "-s", "--kill-after", "--signal"], 1),
        "flock" => behind(&["-w", "--timeout", "-E"], 1),
        "chroot" => behind(&[], 1),
        "taskset" => behind(&[], 1),
        "xargs" => behind(XARGS_VALUES, 0),
        "parallel" => behind(PARALLEL_VALUES, 0),
        "busybox" | "toybox" => Some(rest),
        _ => None,
    }
}

/// Whether what this program runs is not looked for in the `PATH` it got itself.
fn sets_a_path(name: &str, rest: &[String]) -> bool {
    let clears = |word: &String| {
        matches!(word.as_str(), "-" | "-i" | "--ignore-environment") || word.starts_with("PATH=")
    };
    match name {
        "sudo" | "doas" | "runuser" | "chroot" | "busybox" | "toybox" => true,
        "env" => rest.iter().any(clears),
        "command" => rest.first().is_some_and(|word| word == "-p"),
        _ => false,
    }
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

const ENV_VALUES: &[&str] = &["-u", "--unset", "-C", "--chdir"];
const PARALLEL_VALUES: &[&str] = &["-j", "--jobs", "-a", "--arg-file", "-I", "-n", "-d", "-N"];
/// The shortest begin of a long option that is taken for it, dashes included.
const BEGIN: usize = "--dry".len();

/// Whether an option makes the program talk; like the programs we take the begin
/// of a long option for the whole.
fn is_question(words: &[String], questions: &[&str]) -> bool {
    words.iter().take_while(|word| *word != "--").any(|word| {
        let option = word.split_once('=').map_or(word.as_str(), |(option, _)| option);
        let begins = option.starts_with("--") && option.len() >= BEGIN;
        questions.iter().any(|known| *known == option || (begins && known.starts_with(option)))
    })
}

fn git(words: &[String]) -> Use {
    let before = words.len() - skip_options(words, GIT_VALUES).len();
    let (global, rest) = words.split_at(before);
    let Some((verb, rest)) = rest.split_first().filter(|_| !is_question(global, QUESTIONS)) else {
        return Use::Other;
    };
    match verb.as_str() {
        "apply" => Use::patch_if(
            rest.iter().any(|word| word == "--apply") || !is_question(rest, APPLY_QUESTIONS),
        ),
        "am" => Use::patch_if(!is_question(rest, AM_QUESTIONS)),
        "submodule" => match rest.iter().position(|word| word == "foreach") {
            Some(at) => {
                let script = skip_options(rest.get(at + 1..).unwrap_or_default(), &[]);
                Use::Script(script.join(" "))
            }
            None => Use::Other,
        },
        _ => Use::Other,
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
        words = if takes_next(word, with_value) { rest.get(1..).unwrap_or(&[]) } else { rest };
    }
    words
}

/// Whether the value of an option is the next word; in a cluster such as `-iu` the last
/// one may have a value there.
fn takes_next(word: &str, with_value: &[&str]) -> bool {
    let of_one = |letter: char| {
        with_value
            .iter()
            .any(|option| option.strip_prefix('-') == Some(letter.encode_utf8(&mut [0; 4])))
    };
    let cluster = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
    let first =
        cluster.and_then(|letters| letters.char_indices().find(|(_, letter)| of_one(*letter)));
    match (cluster, first) {
        (Some(letters), Some((at, letter))) => at + letter.len_utf8() == letters.len(),
        _ => with_value.contains(&word),
    }
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

/// The shell text after `-c`, also in a cluster such as `-lc`; `su` takes the user
/// before or behind its options.
fn script_option(words: &[String]) -> Option<String> {
    let is_option = |word: &String| {
        let cluster = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        word == "--command" || cluster.is_some_and(|letters| letters.ends_with('c'))
    };
    let at = words.iter().position(is_option)?;
    words.get(at + 1).cloned()
}

/// The command in the text that `env -S` splits, with the words behind it.
fn split_by_env(words: &[String]) -> Option<String> {
    let mut words = words;
    while let Some((word, rest)) = words.split_first().filter(|(word, _)| word.starts_with('-')) {
        let letters = word.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
        let in_cluster = letters.and_then(|letters| letters.split_once('S'));
        let split = match word.strip_prefix("--split-string") {
            Some(value) => value.strip_prefix('=').or(Some("")),
            None => in_cluster
                .filter(|(before, _)| {
                    before.chars().all(|letter| matches!(letter, 'i' | '0' | 'v'))
                })
                .map(|(_, value)| value),
        };
        match split {
            Some("") => return Some(rest.join(" ")),
            Some(value) => return Some([&[value.to_owned()], rest].concat().join(" ")),
            None if word == "--" => return None,
            None => words = if takes_next(word, ENV_VALUES) { rest.get(1..)? } else { rest },
        }
    }
    None
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
        match follow(program, depth + 1).0 {
            Use::Other | Use::Shell => words = behind,
            used => return used,
        }
    }
    Use::Other
}
