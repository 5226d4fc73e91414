//! Grep: the lines that match a regular expression, newest files first.

mod hits;
mod include;
mod scan;

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use cap_std::fs::MetadataExt as _;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use turnbuckle_errors::ErrorCode;

use self::{
    hits::{FileHits, Hits},
    include::Include,
    scan::{Scan, Scanner},
};
use super::{
    Shared, Stop, arguments,
    encoding::NotText,
    fs, question,
    search::{Counter, Left, Names, Scope, check_pattern, quoted, wanted},
};
use crate::{Effect, Outside, Tool, ToolContext, ToolError, ToolOutput, ToolSpec};

/// How large a compiled pattern may be, in bytes.
const COMPILED: usize = 8 * 1024 * 1024;

const DESCRIPTION: &str = "\
Searches the text files of the workspace for lines that match a regular expression (the syntax of \
ripgrep: no look-around, no back-references; put a \\ before . ( [ { | to search for them), files \
that changed last first. `output_mode` `content` gives each line as `path:line:text`, \
`files_with_matches` the paths alone, `count` each path with its number of lines. `include` limits \
it to files such as `*.rs` or `src/**/*.{ts,tsx}`. Binary files are left out. What ignore files \
(.gitignore, .ignore) name and names that begin with a dot are left out too, unless `path` or \
`include` names the folder, the file or the dot itself. Links are not followed. One call returns at most 2000 lines or \
48 KiB, and says how many there are; lines over 2000 characters are cut.";

/// The arguments of Grep.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GrepArguments {
    /// The regular expression; `(?i)` at its start ignores case.
    pattern: String,
    /// The folder or file to search. Default: the workspace.
    #[serde(default)]
    #[schemars(with = "String")]
    path: Option<String>,
    /// Which files: a pattern for their name, or, with a `/`, for their path below `path`. A `!` before it leaves these out.
    #[serde(default)]
    #[schemars(with = "String")]
    include: Option<String>,
    /// What to return. Default: content.
    #[serde(default)]
    #[schemars(with = "Mode")]
    output_mode: Option<Mode>,
    /// How many lines (or paths) to return. Default and maximum: 2000.
    #[serde(default)]
    #[schemars(with = "u64", range(min = 1))]
    head_limit: Option<u64>,
}

/// What a search returns.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Mode {
    #[default]
    Content,
    FilesWithMatches,
    Count,
}

/// Searches the content of files.
pub(crate) struct Grep {
    spec: ToolSpec,
    shared: Shared,
}

impl Grep {
    pub(crate) fn new(shared: Shared) -> Self {
        Self { spec: arguments::spec::<GrepArguments>("Grep", DESCRIPTION), shared }
    }
}

#[async_trait]
impl Tool for Grep {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn effect(&self, _input: &Value) -> Effect {
        Effect::Read
    }

    fn describe(&self, input: &Value) -> String {
        let pattern = question::text(input, "pattern").unwrap_or("?");
        format!("search files for {}", quoted(pattern))
    }

    async fn outside(&self, input: &Value) -> Option<Outside> {
        self.shared.outside(input).await
    }

    async fn run(&self, input: Value, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let arguments: GrepArguments = arguments::parse(&self.spec, input)?;
        check_pattern("Grep", "pattern", &arguments.pattern)?;
        let limit = wanted("Grep", "head_limit", arguments.head_limit)?;
        self.shared.look(context, move |shared, stop| grep(shared, &arguments, limit, stop)).await
    }
}

fn grep(
    shared: &Shared,
    wanted: &GrepArguments,
    limit: u64,
    stop: &Stop,
) -> Result<ToolOutput, ToolError> {
    let scope = Scope::find(shared, wanted.path.as_deref())?;
    let matcher = matcher(&wanted.pattern)?;
    let include = wanted.include.as_deref().map(Include::new).transpose()?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let search = Search {
        scope: &scope,
        mode: wanted.output_mode.unwrap_or_default(),
        hits: Mutex::new(Hits::new(limit)),
        searched: Counter::default(),
        left: Left::default(),
    };
    if scope.place.is_dir() {
        let names = wanted.include.as_deref().map(Names::in_pattern).unwrap_or_default();
        let (search, include) = (&search, &include);
        scope.walk(names, None, stop, &search.left, || {
            let mut scanner = Scanner::new(&matcher, search.mode, limit);
            Box::new(move |path, link| {
                let takes = |include: &Include| include.takes(search.scope, path);
                let chosen = || include.as_ref().is_none_or(takes);
                if !link && chosen() {
                    search.file(path, &mut scanner, stop);
                }
            })
        });
    } else {
        let binary =
            search.file(&scope.place.path, &mut Scanner::new(&matcher, search.mode, limit), stop);
        if binary {
            return Err(NotText::Binary.refusal(&scope.place.path));
        }
    }
    stop.check()?;
    Ok(ToolOutput::text(search.told(wanted)))
}

/// One search under way, shared by its threads.
struct Search<'a> {
    scope: &'a Scope,
    mode: Mode,
    hits: Mutex<Hits>,
    searched: Counter,
    left: Left,
}

impl Search<'_> {
    /// Searches one file; whether it is binary.
    fn file(&self, path: &str, scanner: &mut Scanner<'_>, stop: &Stop) -> bool {
        let scan = fs::open(&self.scope.workspace, path).ok().and_then(|(file, metadata)| {
            let modified = (metadata.mtime(), metadata.mtime_nsec());
            Some((scanner.scan(file.into_std(), stop).ok()?, modified))
        });
        match scan {
            None => self.left.unreadable.add(),
            Some((Scan::Binary, _)) => return true,
            Some((Scan::Text { lines, count }, modified)) => {
                self.searched.add();
                if count > 0 {
                    let file = FileHits { path: path.to_owned(), modified, lines, count };
                    self.hits.lock().unwrap_or_else(PoisonError::into_inner).add(file);
                }
            }
        }
        false
    }

    fn told(self, wanted: &GrepArguments) -> String {
        let hits = self.hits.into_inner().unwrap_or_else(PoisonError::into_inner);
        let remarks = self.left.remarks();
        if let Some(text) = hits.told(self.mode) {
            return text + &remarks;
        }
        let searched = super::search::counted(self.searched.get(), "file");
        format!(
            "(no line matches {}; {searched} searched, without ignored and binary files and names \
             that begin with a dot unless `path` or `include` names them)\n{remarks}",
            quoted(&wanted.pattern)
        )
    }
}

fn matcher(pattern: &str) -> Result<RegexMatcher, ToolError> {
    let mut builder = RegexMatcherBuilder::new();
    builder.multi_line(true).line_terminator(Some(b'\n')).crlf(true);
    builder.size_limit(COMPILED).dfa_size_limit(COMPILED);
    builder.build(pattern).map_err(|error| {
        let why: String = error.to_string().chars().take(600).collect();
        let text = format!(
            "Grep: `pattern` is not a regular expression that can be searched for in lines: {why}; \
             put a \\ before a character that is meant itself, and search one line at a time"
        );
        ToolError::new(ErrorCode::InvalidArgument, text)
    })
}

#[cfg(test)]
mod tests;
