//! Glob: the files whose path fits a pattern, newest first.

mod newest;

use std::sync::Mutex;

use async_trait::async_trait;
use cap_std::fs::MetadataExt as _;
use globset::{GlobBuilder, GlobMatcher};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use turnbuckle_errors::ErrorCode;

use self::newest::Newest;
use super::{
    Shared, Stop, arguments, question,
    search::{
        Left, MAX_BYTES, Names, REMARKS, Scope, check_pattern, counted, is_absolute, on_one_line,
        quoted, wanted,
    },
    workspace::Workspace,
};
use crate::{Effect, Outside, Tool, ToolContext, ToolError, ToolOutput, ToolSpec};

const DESCRIPTION: &str = "\
Finds files of the workspace by their path, newest first. `*` and `?` stay within one name, `**/` \
means any folders, `{a,b}` either, `[a-z]` one of them: `*.rs` looks in one folder, `**/*.rs` in \
all below too. What ignore files (.gitignore, .ignore) name and names that begin with a dot are \
left out, unless `pattern` or `path` names the folder or the dot itself. Links to folders are not \
followed. One call returns at most 2000 paths or 48 KiB, and says how many there are. To search \
what is in files use Grep.";

/// The arguments of Glob.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GlobArguments {
    /// The pattern, relative to `path`, such as `src/**/*.rs`.
    pattern: String,
    /// The folder to look in. Default: the workspace.
    #[serde(default)]
    #[schemars(with = "String")]
    path: Option<String>,
    /// How many paths to return. Default and maximum: 2000.
    #[serde(default)]
    #[schemars(with = "u64", range(min = 1))]
    limit: Option<u64>,
}

/// Finds files by their path.
pub(crate) struct Glob {
    spec: ToolSpec,
    shared: Shared,
}

impl Glob {
    pub(crate) fn new(shared: Shared) -> Self {
        Self { spec: arguments::spec::<GlobArguments>("Glob", DESCRIPTION), shared }
    }
}

#[async_trait]
impl Tool for Glob {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn effect(&self, _input: &Value) -> Effect {
        Effect::Read
    }

    fn describe(&self, input: &Value) -> String {
        let pattern = question::text(input, "pattern").unwrap_or("?");
        format!("list the files that fit {}", quoted(pattern))
    }

    async fn outside(&self, input: &Value) -> Option<Outside> {
        self.shared.outside(input).await
    }

    async fn run(&self, input: Value, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let arguments: GlobArguments = arguments::parse(&self.spec, input)?;
        check_pattern("Glob", "pattern", &arguments.pattern)?;
        let limit = wanted("Glob", "limit", arguments.limit)?;
        self.shared.look(context, move |shared, stop| glob(shared, &arguments, limit, stop)).await
    }
}

fn glob(
    shared: &Shared,
    wanted: &GlobArguments,
    limit: u64,
    stop: &Stop,
) -> Result<ToolOutput, ToolError> {
    let base = Scope::find(shared, wanted.path.as_deref())?;
    if !base.place.is_dir() {
        let text = format!("Glob: `{}` is a file; `path` names a folder", base.place.path);
        return Err(ToolError::new(ErrorCode::InvalidArgument, text));
    }
    let (folder, rest) = split(&wanted.pattern);
    let matcher = matcher(rest)?;
    let start = match (folder, is_absolute(folder)) {
        ("", _) => Some(base),
        (folder, true) => start(&base.workspace, folder)?,
        (folder, false) => start(&base.workspace, &format!("{}/{folder}", base.place.path))?,
    };
    let Some(scope) = start else { return Ok(ToolOutput::text(nothing(wanted, None))) };
    let newest = Mutex::new(Newest::new(usize::try_from(limit).unwrap_or(usize::MAX)));
    let depth = (!rest.contains("**")).then(|| rest.split('/').count());
    let left = Left::default();
    scope.walk(Names::in_pattern(rest), depth, stop, &left, || {
        let (scope, matcher, newest) = (&scope, &matcher, &newest);
        Box::new(move |path, link| {
            if matcher.is_match(scope.below(path))
                && let Some(modified) = look(&scope.workspace, path, link)
            {
                newest
                    .lock()
                    .unwrap_or_else(std::sync::PoisonError::into_inner)
                    .add(modified, path);
            }
        })
    });
    stop.check()?;
    let newest = newest.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    Ok(ToolOutput::text(told(wanted, newest, &left)))
}

/// Splits a pattern before its first name that is more than a name.
fn split(pattern: &str) -> (&str, &str) {
    let special = pattern.find(['*', '?', '[', '{', '\\']).unwrap_or(pattern.len());
    let folders = pattern.get(..special).unwrap_or_default();
    match folders.rfind('/') {
        // The slash of the root is the folder itself.
        Some(0) => ("/", pattern.get(1..).unwrap_or_default()),
        Some(at) => pattern
            .split_at_checked(at)
            .map_or(("", pattern), |(folder, rest)| (folder, rest.trim_start_matches('/'))),
        None => ("", pattern),
    }
}

fn matcher(pattern: &str) -> Result<GlobMatcher, ToolError> {
    let glob = GlobBuilder::new(pattern).literal_separator(true).build().map_err(|error| {
        let text = format!(
            "Glob: `pattern` is not a pattern: {}; close each bracket and brace, or put a \\ before it",
            error.kind()
        );
        ToolError::new(ErrorCode::InvalidArgument, text)
    })?;
    Ok(glob.compile_matcher())
}

/// The folder in which a pattern starts; `None` if there is no such folder.
fn start(workspace: &Workspace, folder: &str) -> Result<Option<Scope>, ToolError> {
    let place = workspace.resolve(folder)?;
    let found = place.is_dir().then(|| Scope { workspace: workspace.clone(), place });
    Ok(found)
}

/// When the file at `path` was changed last; `None` if it is no file any more,
/// or a link that leads out of the workspace or to something else.
fn look(workspace: &Workspace, path: &str, link: bool) -> Option<(i64, i64)> {
    let metadata = if link {
        workspace.resolve(path).ok()?.metadata?
    } else {
        workspace.dir().symlink_metadata(path).ok()?
    };
    metadata.is_file().then(|| (metadata.mtime(), metadata.mtime_nsec()))
}

fn told(wanted: &GlobArguments, newest: Newest, left: &Left) -> String {
    let total = newest.total();
    if total == 0 {
        return nothing(wanted, Some(left));
    }
    let mut text = String::new();
    let mut shown = 0;
    for path in newest.into_paths() {
        let line = on_one_line(&path);
        if text.len() + line.len() + 1 > MAX_BYTES - REMARKS {
            break;
        }
        text.push_str(&line);
        text.push('\n');
        shown += 1;
    }
    if shown < total {
        text.push_str(&format!(
            "(the newest {shown} of {}; to see others, narrow `pattern` or `path`{})\n",
            counted(total, "file"),
            if wanted.limit.is_some() { ", or raise `limit`" } else { "" }
        ));
    }
    text + &left.remarks()
}

fn nothing(wanted: &GlobArguments, left: Option<&Left>) -> String {
    let pattern = &wanted.pattern;
    let below = if pattern.contains('/') { "" } else { "; for folders below, begin it with `**/`" };
    format!(
        "(no file fits {}{below}; ignored files and names that begin with a dot are left out unless \
         `pattern` or `path` names them)\n{}",
        quoted(pattern),
        left.map(Left::remarks).unwrap_or_default()
    )
}

#[cfg(test)]
mod tests;
