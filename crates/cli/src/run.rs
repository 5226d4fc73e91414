//! `turnbuckle run`: one prompt, from settings to exit code.

use std::{
    io::{self, IsTerminal as _},
    process::ExitCode,
    sync::Arc,
};

use secrecy::{ExposeSecret as _, SecretString};
use tokio_util::sync::CancellationToken;
use turnbuckle_diagnostics::Redactor;
use turnbuckle_errors::{ErrorCode, Failure, Redact};
use turnbuckle_providers::{
    AdapterBuilder, AdapterOptions, ConfigError, Provider, UserMessage, anthropic::Anthropic,
    gemini::Gemini, openai_chat::OpenAiChat, openai_responses::OpenAiResponses, profiles,
    profiles::Dialect,
};
use turnbuckle_runtime::{Outcome, PromptOutcome, Runtime, Session};
use turnbuckle_tools::{
    Approver, DenyAll, ToolSet,
    builtin::{self, Workspace},
};

use crate::{
    approval::AskOnTerminal,
    args::RunArgs,
    output::{Output, Writer, output},
    refusal::{invalid, tell},
    sessions::Desk,
    settings::Settings,
    signals::{ABORTED, cancel_on_signal},
};

/// A variable whose value is a key, besides those of the profiles.
const GOOGLE_KEY: &str = "GOOGLE_API_KEY";

pub(crate) async fn run(args: RunArgs) -> ExitCode {
    let format = args.output;
    let settings = Settings::resolve(args);
    let keyless = settings.as_ref().is_ok_and(|settings| settings.key.is_none());
    let prepared = settings.and_then(prepare);
    let (mut session, prompt) = match prepared {
        Ok(prepared) => prepared,
        Err(failure) => return tell(&failure, format),
    };
    let cancel = CancellationToken::new();
    cancel_on_signal(cancel.clone());
    let (outcome, written) = show(&mut session, prompt, cancel, output(format)).await;
    let refused =
        outcome.failure.as_ref().map(Failure::code) == Some(ErrorCode::ProviderUnauthorized);
    if refused && keyless {
        anstream::eprintln!(
            "  no key was sent: with --base-url, name its variable with --api-key-env VARIABLE"
        );
    }
    exit_code(&outcome, written.err().as_ref())
}

/// Runs the prompt and shows it; gives back the output, or why it could not be
/// written. When it cannot, the prompt is cancelled.
pub(crate) async fn show<O: Output + 'static>(
    session: &mut Session,
    prompt: impl Into<UserMessage>,
    cancel: CancellationToken,
    output: O,
) -> (PromptOutcome, io::Result<O>) {
    let mut writer = Writer::new(output, cancel.clone());
    let mut prompt = session.prompt_until(prompt, cancel);
    while let Some(event) = prompt.next().await {
        writer.event(event).await;
    }
    let outcome = prompt.outcome().await;
    let written = writer.end(&outcome).await;
    (outcome, written)
}

/// Output that did not arrive is no success, whatever the prompt came to.
pub(crate) fn exit_code(outcome: &PromptOutcome, lost: Option<&io::Error>) -> ExitCode {
    if let Some(error) = lost.filter(|error| error.kind() != io::ErrorKind::BrokenPipe) {
        anstream::eprintln!("error: the output could not be written: {error}");
    }
    match outcome.outcome {
        Outcome::Completed if lost.is_some() => ExitCode::FAILURE,
        Outcome::Completed => ExitCode::SUCCESS,
        Outcome::Failed => ExitCode::FAILURE,
        Outcome::Aborted => ExitCode::from(ABORTED),
    }
}

fn prepare(mut settings: Settings) -> Result<(Session, UserMessage), Failure> {
    // Off a terminal there is nobody to ask, and what is piped in is no answer.
    let approver: Arc<dyn Approver> = if io::stdin().is_terminal() && io::stderr().is_terminal() {
        Arc::new(AskOnTerminal::default())
    } else {
        Arc::new(DenyAll)
    };
    let prompt = std::mem::take(&mut settings.prompt);
    Ok((Desk::new(settings, approver)?.session()?, prompt))
}

/// Wires everything together; no request is made here.
pub(crate) fn runtime(
    settings: &Settings,
    approver: Arc<dyn Approver>,
) -> Result<Runtime, Failure> {
    let redact = redactor(settings);
    let provider = provider(settings, Arc::clone(&redact))?;
    let tools = tools(settings, Arc::clone(&redact), approver)?;
    let mut builder = Runtime::builder(provider, settings.model.clone()).redactor(redact);
    let system = match &settings.system {
        Some(system) => Some(system.clone()),
        None if settings.tools.is_empty() => None,
        None => Some(builtin::SYSTEM_PROMPT.to_owned()),
    };
    if let Some(system) = system {
        builder = builder.system(system);
    }
    if let Some(steps) = settings.max_steps {
        builder = builder.max_steps(steps);
    }
    if let Some(tokens) = settings.max_output_tokens {
        builder = builder.max_output_tokens(tokens);
    }
    if let Some(tokens) = settings.context_window {
        builder = builder.context_window(u64::from(tokens));
    }
    let (temperature, effort) = (settings.temperature, settings.reasoning_effort.clone());
    let builder = builder.request(|request| {
        request.temperature = temperature;
        request.reasoning_effort = effort;
    });
    Ok(builder.tools(tools).build())
}

/// Knows the key, what headers carry, what the address carries, and the keys of
/// other providers, which a tool may print.
fn redactor(settings: &Settings) -> Arc<dyn Redact> {
    // Whichever provider is used: a tool may print them.
    let variables = profiles::ALL.into_iter().filter_map(|profile| profile.key.variable);
    let environment = variables.chain([GOOGLE_KEY]).filter_map(|name| std::env::var(name).ok());
    let headers = settings.headers.iter().flat_map(|(_, value)| spellings(value.expose_secret()));
    let key = settings.key.iter().map(|key| key.expose_secret().to_owned());
    let query = settings.base_url.split_once('?').map_or("", |(_, query)| query);
    let query =
        query.split('&').filter_map(|pair| pair.split_once('=')).map(|(_, value)| value.to_owned());
    let known = key.chain(headers).chain(query).chain(environment);
    Arc::new(Redactor::new(known.map(SecretString::from)))
}

/// A header's value as a server may echo it: whole, what follows the scheme, and
/// the password of a Basic pair.
fn spellings(value: &str) -> Vec<String> {
    use base64::Engine as _;
    let mut all = vec![value.to_owned()];
    if let Some((scheme, rest)) = value.split_once(' ') {
        all.push(rest.to_owned());
        let pair = base64::engine::general_purpose::STANDARD.decode(rest.trim()).ok();
        let pair = pair.and_then(|bytes| String::from_utf8(bytes).ok());
        if let Some(pair) = pair.filter(|_| scheme.eq_ignore_ascii_case("basic")) {
            all.extend(pair.split_once(':').map(|(_, password)| password.to_owned()));
            all.push(pair);
        }
    }
    all
}

fn provider(settings: &Settings, redact: Arc<dyn Redact>) -> Result<Arc<dyn Provider>, Failure> {
    let profile = settings.profile;
    Ok(match settings.dialect {
        Dialect::OpenAiResponses => {
            adapter(OpenAiResponses::for_profile(profile), settings, redact)?
        }
        Dialect::Anthropic => adapter(Anthropic::for_profile(profile), settings, redact)?,
        Dialect::Gemini => adapter(Gemini::for_profile(profile), settings, redact)?,
        _ => adapter(OpenAiChat::for_profile(profile), settings, redact)?,
    })
}

fn adapter<O: AdapterOptions>(
    builder: AdapterBuilder<O>,
    settings: &Settings,
    redact: Arc<dyn Redact>,
) -> Result<Arc<dyn Provider>, ConfigError> {
    let mut builder = builder.base_url(&settings.base_url).clocks(settings.clocks).redactor(redact);
    if let Some(key) = &settings.key {
        builder = builder.api_key(key.clone());
    }
    for (name, value) in &settings.headers {
        builder = builder.header(name, value.clone());
    }
    Ok(Arc::new(builder.build()?))
}

fn tools(
    settings: &Settings,
    redact: Arc<dyn Redact>,
    approver: Arc<dyn Approver>,
) -> Result<ToolSet, Failure> {
    let workspace =
        Workspace::open(&settings.workspace).map_err(|error| invalid(&error.to_string()))?;
    let chosen = builtin::tools(&workspace)
        .into_iter()
        .filter(|tool| settings.tools.contains(&tool.spec().name.as_str()));
    Ok(chosen
        .fold(ToolSet::new(), ToolSet::with)
        .with_permissions(settings.permission, approver)
        .with_redactor(redact))
}
