//! A tool in ten lines: a struct for its arguments, a function for what it does.
#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use turnbuckle_tools::{Call, Effect, FnTool, Tool, ToolContext, ToolOutput, ToolSet};

/// Models see these comments: they are the descriptions in the schema.
#[derive(Deserialize, JsonSchema)]
struct Repeat {
    /// What to repeat.
    text: String,
    /// How often.
    times: u8,
}

fn repeat() -> impl Tool {
    FnTool::new("Repeat", "Repeats a text.", Effect::Read, |say: Repeat, _context| async move {
        Ok(ToolOutput::text(say.text.repeat(say.times.into())))
    })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let set = ToolSet::new().with(Arc::new(repeat()));
    for spec in set.specs() {
        println!("{}: {}\n{:#}", spec.name, spec.description, spec.input_schema);
    }
    let prompt = set.begin_prompt();
    for input in [json!({"text": "ha", "times": 3}), json!({"text": "ha"})] {
        let call = Call { id: "1".to_owned(), name: "Repeat".to_owned(), input: Ok(input) };
        let outcome = prompt.call(&call, &ToolContext::default()).await;
        println!("{}", outcome.text());
        let expected = if outcome.ok() { "hahaha" } else { "Repeat: `times` is missing; the" };
        if !outcome.text().starts_with(expected) {
            return Err(format!("not {expected}").into());
        }
    }
    Ok(())
}

#[test]
fn it_runs() {
    main().unwrap();
}
