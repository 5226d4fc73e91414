//! Uses each library crate as a stranger would who knows no other of ours.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    #[cfg(feature = "errors")]
    errors()?;
    #[cfg(feature = "diagnostics")]
    diagnostics()?;
    #[cfg(feature = "providers")]
    providers()?;
    #[cfg(feature = "tools")]
    tools()?;
    #[cfg(feature = "runtime")]
    runtime()?;
    #[cfg(feature = "faults")]
    faults()?;
    Ok(())
}

/// An error for what came out differently.
#[allow(dead_code, reason = "without a feature there is nothing to check")]
fn expect(holds: bool, what: &str) -> Result<(), Box<dyn std::error::Error>> {
    if holds { Ok(()) } else { Err(what.into()) }
}

/// Classifies a fact without any HTTP library.
#[cfg(feature = "errors")]
fn errors() -> Result<(), Box<dyn std::error::Error>> {
    use turnbuckle_errors::{ErrorCode, Fact, Facts, Phase, Transport, classify};

    let facts = Facts::new(Phase::Stream).with(Fact::Transport(Transport::Reset));
    let verdict = classify(&facts);
    expect(verdict.code == ErrorCode::StreamFailed && verdict.retriable, "the verdict")
}

/// Keeps a key out of a text.
#[cfg(feature = "diagnostics")]
fn diagnostics() -> Result<(), Box<dyn std::error::Error>> {
    use turnbuckle_diagnostics::{Redactor, SecretString};

    let redactor = Redactor::new([SecretString::from("a-key-of-sixteen")]);
    expect(!format!("{redactor:?}").contains("a-key-of-sixteen"), "the mask")
}

/// Sets up the adapter that the default features bring.
#[cfg(feature = "providers")]
fn providers() -> Result<(), Box<dyn std::error::Error>> {
    use turnbuckle_providers::{Provider, openai_chat::OpenAiChat};

    let provider = OpenAiChat::builder("http://127.0.0.1:9/v1").build()?;
    expect(provider.id() == "openai-chat", "the adapter")?;
    expect(OpenAiChat::builder("127.0.0.1:9").build().is_err(), "a URL without scheme")
}

/// Opens a workspace with the built-in tools.
#[cfg(feature = "tools")]
fn tools() -> Result<(), Box<dyn std::error::Error>> {
    use turnbuckle_tools::{
        ToolSet,
        builtin::{self, Workspace},
    };

    let workspace = Workspace::open(".")?;
    let set = builtin::tools(&workspace).into_iter().fold(ToolSet::new(), ToolSet::with);
    expect(set.specs().len() >= 4, "the built-in tools")
}

/// Reads the recovery policy and opens a journal.
#[cfg(feature = "runtime")]
fn runtime() -> Result<(), Box<dyn std::error::Error>> {
    use turnbuckle_runtime::{MemoryStore, RecoveryPolicy, SessionStore};

    let _store: Box<dyn SessionStore> = Box::new(MemoryStore::new());
    expect(RecoveryPolicy::default().max_attempts() > 1, "the policy")
}

/// Reads a fault script.
#[cfg(feature = "faults")]
fn faults() -> Result<(), Box<dyn std::error::Error>> {
    use turnbuckle_faults::Script;

    let script = Script::parse("[[step]]\nbehaviour = \"whole\"\n")?;
    expect(script.steps().len() == 1, "the script")
}
