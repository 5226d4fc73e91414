//! The example of the README, word for word.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::sync::Arc;

use turnbuckle_providers::openai_chat::OpenAiChat;
use turnbuckle_runtime::{MemoryStore, Runtime};
use turnbuckle_tools::{ToolSet, builtin};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let provider = OpenAiChat::builder("http://127.0.0.1:4010/v1").build()?;
    let tools = builtin::tools(&builtin::Workspace::open(".")?);
    let tools = tools.into_iter().fold(ToolSet::new(), ToolSet::with);
    let runtime = Runtime::builder(Arc::new(provider), "a-model").tools(tools).build();
    let mut session = runtime.session(MemoryStore::new());
    let outcome = session.prompt("Explain this folder.").outcome().await;
    if let Some(failure) = outcome.failure {
        return Err(failure.into());
    }
    println!("{} (after {} requests)", outcome.text, outcome.attempts);
    Ok(())
}
