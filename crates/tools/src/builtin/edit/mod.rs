//! Edit: one small replacement in a text file.
//!
//! [`plan`] decides on text alone, `apply` reads and stores; [`explain`] says
//! why text did not match.

mod apply;
mod explain;
mod plan;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{Shared, arguments, question};
use crate::{Effect, Outside, Tool, ToolContext, ToolError, ToolOutput, ToolSpec, Touched};

const DESCRIPTION: &str = "\
Replaces text in a file of the workspace. `old_string` must be in the file exactly once, character \
by character, blanks included; copy it from what Read returned, without the line numbers, with \
enough lines around it to be unique. With `replace_all` every place is replaced. Use it for one \
small unique replacement; for a coherent rewrite of a whole file use Write. If it does not match, \
Read the place once and make one new Edit from what is there now; a second failure on one file \
ends the prompt. Line endings, encoding, byte-order mark and mode of the file are kept. Never ask \
for two changes of one file at once. No hand-edited diffs, no shell patches.";

/// The arguments of Edit.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EditArguments {
    /// The file: relative to the workspace, or absolute inside it.
    path: String,
    /// The text to replace, exactly as it is in the file.
    old_string: String,
    /// The text to put in its place.
    new_string: String,
    /// Whether to replace every place. Default: false, which needs exactly one.
    #[serde(default)]
    #[schemars(with = "bool")]
    replace_all: Option<bool>,
}

/// Replaces text in files.
pub(crate) struct Edit {
    spec: ToolSpec,
    shared: Shared,
}

impl Edit {
    pub(crate) fn new(shared: Shared) -> Self {
        Self { spec: arguments::spec::<EditArguments>("Edit", DESCRIPTION), shared }
    }
}

#[async_trait]
impl Tool for Edit {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn effect(&self, _input: &Value) -> Effect {
        Effect::Mutate
    }

    fn describe(&self, input: &Value) -> String {
        let path = question::path(input);
        let all = input.get("replace_all").and_then(Value::as_bool).unwrap_or_default();
        let what = if all { "every place of a text" } else { "one place" };
        let side = |name, mark| match question::text(input, name).unwrap_or_default() {
            "" => "nothing".to_owned(),
            text => format!("({}):{}", question::size(text), question::marked(mark, text)),
        };
        let (old, new) = (side("old_string", "- "), side("new_string", "+ "));
        format!("change {what} in the file {path}, from {old}\nto {new}")
    }

    async fn outside(&self, input: &Value) -> Option<Outside> {
        self.shared.outside(input).await
    }

    async fn run(&self, input: Value, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let arguments: EditArguments = arguments::parse(&self.spec, input)?;
        self.shared
            .change(context, move |shared, stop| {
                let place = shared.workspace.resolve(&arguments.path)?;
                let touched = Touched::Edit(place.path.clone());
                let change = plan::Change {
                    old: &arguments.old_string,
                    new: &arguments.new_string,
                    all: arguments.replace_all.unwrap_or_default(),
                };
                match apply::apply(shared, &place, &change, stop) {
                    Ok(output) => Ok(output.with_touched(touched)),
                    Err(error) => Err(error.with_touched(touched)),
                }
            })
            .await
    }
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
