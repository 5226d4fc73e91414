//! A tool made of a function: its schema comes from the type of its arguments.

use std::{fmt, future::Future, marker::PhantomData};

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{Effect, Tool, ToolContext, ToolError, ToolOutput, ToolSpec, arguments};

/// A tool made of an async function that takes its arguments as a struct.
///
/// The schema that models see is derived from the struct, doc comments
/// included. Arguments that do not fit it never reach the function: they are
/// `INVALID_ARGUMENT`, and the error names the one at fault and the allowed
/// ones. Names that the struct does not have are refused too.
///
/// ```
/// use std::sync::Arc;
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use turnbuckle_tools::{Effect, FnTool, ToolOutput, ToolSet};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Add {
///     /// One number.
///     a: i64,
///     /// Another number.
///     b: i64,
/// }
///
/// let add = FnTool::new("Add", "Adds two numbers.", Effect::Read, |add: Add, _context| async move {
///     Ok(ToolOutput::text((add.a + add.b).to_string()))
/// });
/// let set = ToolSet::new().with(Arc::new(add));
/// assert_eq!(set.specs()[0].input_schema["properties"]["a"]["description"], "One number.");
/// ```
pub struct FnTool<T, F> {
    spec: ToolSpec,
    effect: Effect,
    function: F,
    arguments: PhantomData<fn(T)>,
}

impl<T, F, R> FnTool<T, F>
where
    T: DeserializeOwned + JsonSchema,
    F: Fn(T, ToolContext) -> R + Send + Sync,
    R: Future<Output = Result<ToolOutput, ToolError>> + Send,
{
    /// A tool with this name and description. `effect` is what every call does to
    /// the machine: it decides whether a permission is asked for.
    ///
    /// The future that `function` returns is dropped when the prompt is; it should
    /// also end soon after the context's `cancel`.
    #[must_use]
    pub fn new(name: &str, description: &str, effect: Effect, function: F) -> Self {
        let mut spec = arguments::spec::<T>(name, description);
        if let Some(schema) = spec.input_schema.as_object_mut() {
            schema.entry("additionalProperties").or_insert(Value::Bool(false));
        }
        Self { spec, effect, function, arguments: PhantomData }
    }
}

#[async_trait]
impl<T, F, R> Tool for FnTool<T, F>
where
    T: DeserializeOwned + JsonSchema + Send,
    F: Fn(T, ToolContext) -> R + Send + Sync,
    R: Future<Output = Result<ToolOutput, ToolError>> + Send,
{
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn effect(&self, _input: &Value) -> Effect {
        self.effect
    }

    async fn run(&self, input: Value, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        (self.function)(arguments::parse(&self.spec, input)?, context.clone()).await
    }
}

impl<T, F> fmt::Debug for FnTool<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FnTool").field("name", &self.spec.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;
    use turnbuckle_errors::ErrorCode;

    use super::*;

    #[derive(Deserialize, JsonSchema)]
    struct Arguments {
        /// How far.
        by: i32,
        scale: Option<f64>,
        #[serde(default)]
        names: Vec<String>,
    }

    #[derive(Deserialize, JsonSchema)]
    struct Nothing {}

    #[tokio::test]
    async fn a_function_gets_what_fits_its_struct_and_nothing_else() {
        let tool = FnTool::new("Move", "Moves.", Effect::Mutate, |to: Arguments, _| async move {
            Ok(ToolOutput::text(format!("{} {:?} {:?}", to.by, to.scale, to.names)))
        });
        assert_eq!(tool.effect(&json!({})), Effect::Mutate);
        let schema = &tool.spec().input_schema;
        assert_eq!(
            schema["properties"]["by"],
            json!({"type": "integer", "description": "How far."})
        );
        assert_eq!(schema["required"], json!(["by"]));
        let context = ToolContext::default();
        for (input, text) in [
            (json!({"by": -3}), "-3 None []"),
            (json!({"by": 3, "scale": 0.5, "names": ["a"]}), "3 Some(0.5) [\"a\"]"),
        ] {
            assert_eq!(tool.run(input, &context).await.unwrap().text, text);
        }
        for (input, why) in [
            (json!({}), "`by` is missing"),
            (json!({"by": 1, "too": 1}), "there is no argument `too`"),
            (json!({"by": 1.5}), "`by` must be an integer"),
            (json!({"by": 1_u64 << 40}), "invalid value"),
            (json!({"by": 1, "scale": "x"}), "invalid type"),
            (json!({"by": 1, "names": "x"}), "`names` must be an array"),
        ] {
            let error = tool.run(input, &context).await.unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidArgument);
            assert!(error.text.contains(why), "{error}");
        }
    }

    #[tokio::test]
    async fn a_function_may_take_no_arguments() {
        let tool = FnTool::new("Now", "Now.", Effect::Read, |_: Nothing, _| async {
            Ok(ToolOutput::text("now"))
        });
        let context = ToolContext::default();
        assert_eq!(tool.run(json!({}), &context).await.unwrap().text, "now");
        let error = tool.run(json!({"at": 1}), &context).await.unwrap_err();
        assert!(
            error.text.ends_with("there is no argument `at`; it takes no arguments"),
            "{error}"
        );
    }
}
