//! The rules, as functions over one file.

use super::ProjectFile;

/// From here on a source file is named as getting long.
const LONG: usize = 400;
/// A source file beyond this is two files.
const TOO_LONG: usize = 500;

/// Files that may be longer, how long, and why.
const LONGER: &[(&str, usize, &str)] = &[];

/// Modules that would hold whatever found no home.
const NO_HOME: &[&str] = &["utils", "util", "helpers", "helper", "common", "manager", "misc"];

/// Where a machine's own folders begin. Written in two parts, so that this file
/// obeys its own rule.
const MACHINE_PATHS: &[&str] = &[
    concat!("/ho", "me/"),
    concat!("/ro", "ot/"),
    concat!("/Us", "ers/"),
    concat!("/wo", "rk/"),
    concat!(":\\Us", "ers\\"),
];

/// The only registry there is.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// What names another registry, or a mirror of one.
const REGISTRY_SETTINGS: &[&str] =
    &[concat!("replace", "-with"), concat!("sparse", "+http"), concat!("[registries", ".")];

/// What one file does against the rules.
pub(super) fn broken_by(file: &ProjectFile) -> Vec<String> {
    let rules = [length, name, machine_paths, registries, lints, pending_snapshot];
    rules.iter().flat_map(|rule| rule(file)).collect()
}

/// Source files that are allowed and still worth a look, in one line.
pub(super) fn getting_long(files: &[ProjectFile]) -> Option<String> {
    let long: Vec<String> = files
        .iter()
        .filter(|file| is_source(file) && file.text.lines().count() > LONG)
        .map(|file| format!("{} ({} lines)", file.path, file.text.lines().count()))
        .collect();
    (!long.is_empty()).then(|| format!("over {LONG} lines: {}", long.join(", ")))
}

/// Exceptions that nobody needs any more.
pub(super) fn idle_exceptions(files: &[ProjectFile]) -> Vec<String> {
    let needed = |path: &str| {
        files.iter().any(|file| file.path == path && file.text.lines().count() > TOO_LONG)
    };
    let idle = LONGER.iter().filter(|(path, ..)| !needed(path));
    idle.map(|(path, ..)| format!("{path} needs no exception any more: take it out of LONGER"))
        .collect()
}

/// Code of the README that stands in no example, which every build compiles.
pub(super) fn readme_examples(files: &[ProjectFile]) -> Vec<String> {
    let readme = files.iter().find(|file| file.path == "README.md");
    let Some(readme) = readme else { return vec!["there is no README.md".to_owned()] };
    let is_example = |file: &&ProjectFile| file.path.contains("/examples/");
    let stands = |code: &str| files.iter().filter(is_example).any(|file| file.text.contains(code));
    let fences = readme.text.match_indices("\n```rust");
    fences
        .filter_map(|(at, _)| {
            let (before, block) = readme.text.split_at(at + 1);
            // Past the words after `rust`, up to the closing fence.
            let code = block.split_once('\n').map_or("", |(_, rest)| rest);
            let code = code.split("\n```").next().unwrap_or_default().trim();
            let line = before.matches('\n').count() + 1;
            (!stands(code)).then(|| format!("README.md:{line}: this code stands in no example"))
        })
        .collect()
}

fn is_source(file: &ProjectFile) -> bool {
    file.path.ends_with(".rs")
}

fn length(file: &ProjectFile) -> Vec<String> {
    let exception = LONGER.iter().find(|(path, ..)| *path == file.path);
    let limit = exception.map_or(TOO_LONG, |(_, limit, _)| *limit);
    let lines = file.text.lines().count();
    let broken = is_source(file) && lines > limit;
    broken
        .then(|| format!("{}: {lines} lines; a file says one thing in {limit} at most", file.path))
        .into_iter()
        .collect()
}

fn name(file: &ProjectFile) -> Vec<String> {
    let stem = file.path.strip_suffix(".rs").unwrap_or_default();
    let words = stem.split('/').filter(|part| NO_HOME.contains(part));
    words
        .map(|word| format!("{}: `{word}` says nothing; name it after what it does", file.path))
        .collect()
}

fn machine_paths(file: &ProjectFile) -> Vec<String> {
    let lines = file.text.lines().enumerate();
    lines
        .filter_map(|(index, line)| {
            let found = MACHINE_PATHS.iter().find(|path| line.contains(**path))?;
            Some(format!("{}:{}: {found}… is a path of one machine", file.path, index + 1))
        })
        .collect()
}

fn registries(file: &ProjectFile) -> Vec<String> {
    let is_lock = file.path.ends_with("Cargo.lock");
    let lines = file.text.lines().enumerate();
    lines
        .filter(|(_, line)| {
            let source = line.strip_prefix("source = ").filter(|_| is_lock);
            source.is_some_and(|source| source.trim_matches('"') != REGISTRY)
                || REGISTRY_SETTINGS.iter().any(|setting| line.contains(setting))
        })
        .map(|(index, _)| format!("{}:{}: crates come from crates.io alone", file.path, index + 1))
        .collect()
}

/// A member that forgets the shared lints has none.
fn lints(file: &ProjectFile) -> Vec<String> {
    let is_package = file.path.ends_with("Cargo.toml") && file.text.contains("[package]");
    let shares =
        file.text.contains("[lints]\nworkspace = true") || file.text.contains("[workspace]");
    (is_package && !shares)
        .then(|| format!("{}: add [lints] workspace = true", file.path))
        .into_iter()
        .collect()
}

fn pending_snapshot(file: &ProjectFile) -> Vec<String> {
    let pending = file.path.ends_with(".snap.new") || file.path.ends_with(".pending-snap");
    pending
        .then(|| format!("{}: a snapshot nobody has decided on; accept it or delete it", file.path))
        .into_iter()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, text: &str, expected: &[&str]) {
        let file = ProjectFile { path: path.to_owned(), text: text.to_owned() };
        assert_eq!(broken_by(&file), expected);
    }

    #[test]
    fn a_file_of_two_subjects_is_refused() {
        let text = "//\n".repeat(TOO_LONG + 1);
        let complaint = "src/a.rs: 501 lines; a file says one thing in 500 at most";
        check("src/a.rs", &text, &[complaint]);
        check("src/a.rs", &"//\n".repeat(TOO_LONG), &[]);
        check("docs/a.md", &text, &[]);
    }

    #[test]
    fn a_module_without_a_subject_is_refused() {
        let complaint = "src/utils/mod.rs: `utils` says nothing; name it after what it does";
        check("src/utils/mod.rs", "", &[complaint]);
        let complaint = "src/manager.rs: `manager` says nothing; name it after what it does";
        check("src/manager.rs", "", &[complaint]);
        check("src/common_prefix.rs", "", &[]);
    }

    #[test]
    fn a_path_of_one_machine_is_refused_with_its_line() {
        let text = format!("first\nsee {}me/alice/notes", "/ho");
        let complaint = format!("README.md:2: {}me/… is a path of one machine", "/ho");
        check("README.md", &text, &[&complaint]);
        check("README.md", "see https://example.com/homes", &[]);
    }

    #[test]
    fn a_crate_from_elsewhere_is_refused() {
        let lock = "name = \"a\"\nsource = \"git+https://example.com/a\"";
        check("Cargo.lock", lock, &["Cargo.lock:2: crates come from crates.io alone"]);
        check("Cargo.lock", &format!("source = \"{REGISTRY}\""), &[]);
        let config = format!("[source.crates-io]\n{}-with = \"mirror\"", "replace");
        let complaint = ".cargo/config.toml:2: crates come from crates.io alone";
        check(".cargo/config.toml", &config, &[complaint]);
    }

    #[test]
    fn a_member_without_the_shared_lints_is_refused() {
        let complaint = "crates/a/Cargo.toml: add [lints] workspace = true";
        check("crates/a/Cargo.toml", "[package]\nname = \"a\"\n", &[complaint]);
        check("crates/a/Cargo.toml", "[package]\n\n[lints]\nworkspace = true\n", &[]);
    }

    #[test]
    fn code_of_the_readme_that_no_build_compiles_is_refused() {
        let file = |path: &str, text: &str| ProjectFile { path: path.into(), text: text.into() };
        let readme =
            "# A\n\n```rust\nfn a() {}\n```\n\n```sh\nls\n```\n\n```rust\nfn b() {}\n```\n";
        let example = file("crates/cli/examples/a.rs", "use x;\n\nfn a() {}\n");
        assert_eq!(
            readme_examples(&[file("README.md", readme), example]),
            ["README.md:11: this code stands in no example"]
        );
        assert_eq!(readme_examples(&[]), ["there is no README.md"]);
    }

    #[test]
    fn a_forgotten_snapshot_is_refused() {
        let complaint = "a.snap.new: a snapshot nobody has decided on; accept it or delete it";
        check("a.snap.new", "", &[complaint]);
    }
}
