//! `turnbuckle providers`, and which profile a run means by a name.

use std::{
    env,
    io::{self, Write as _},
    process::ExitCode,
};

use serde_json::{Value, json};
use turnbuckle_errors::Failure;
use turnbuckle_providers::profiles::{self, Affinity, Dialect, Profile};

use crate::{args::ProvidersArgs, nearest::hint, refusal::invalid};

/// Prints what is known of each kind of server, and which keys are present.
pub(crate) fn providers(args: &ProvidersArgs) -> ExitCode {
    match write(args) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read it has read enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            anstream::eprintln!("error: the output could not be written: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The kind of server and the dialect that a name means. A dialect's own name
/// means its home, or any server at the address that the user gave; no name means
/// the same for OpenAI Chat.
pub(crate) fn provider(
    name: Option<&str>,
    has_address: bool,
) -> Result<(&'static Profile, Dialect), Failure> {
    let name = name.unwrap_or(Dialect::OpenAiChat.as_str());
    let openai = if has_address { &profiles::CUSTOM } else { &profiles::OPENAI };
    match (Dialect::by_name(name), profiles::by_name(name)) {
        (Some(dialect @ (Dialect::OpenAiChat | Dialect::OpenAiResponses)), _) => {
            Ok((openai, dialect))
        }
        (_, Some(profile)) => Ok((profile, profile.dialect)),
        _ => {
            // The other two are the names of profiles as well.
            let dialects = [Dialect::OpenAiChat, Dialect::OpenAiResponses].map(Dialect::as_str);
            let names: Vec<&str> =
                dialects.into_iter().chain(profiles::ALL.map(|profile| profile.name)).collect();
            Err(invalid(&format!("unknown provider `{name}`{}", hint(name, &names))))
        }
    }
}

/// Whether the key of a profile is there; its value is never looked at further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeyState {
    Set,
    Missing,
    /// Works without one.
    Optional,
}

impl KeyState {
    fn of(profile: &Profile) -> Self {
        let is_set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
        match profile.key.variable {
            Some(variable) if is_set(variable) => Self::Set,
            _ if profile.key.required => Self::Missing,
            _ => Self::Optional,
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Set => "set",
            Self::Missing => "missing",
            Self::Optional => "optional",
        }
    }
}

fn write(args: &ProvidersArgs) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    if args.json {
        let list: Vec<Value> = profiles::ALL.into_iter().map(described).collect();
        writeln!(out, "{}", json!(list))?;
        return out.flush();
    }
    row(&mut out, ["NAME", "DIALECT", "KEY", "", "REASONING", "ADDRESS"])?;
    for profile in profiles::ALL {
        let state = match profile.key.variable {
            None => "",
            Some(_) => KeyState::of(profile).as_str(),
        };
        row(
            &mut out,
            [
                profile.name,
                profile.dialect.as_str(),
                profile.key.variable.unwrap_or("no key needed"),
                state,
                profile.reasoning.as_str(),
                profile.base_url.unwrap_or("(give it with --base-url)"),
            ],
        )?;
    }
    writeln!(
        out,
        "\nopenai-chat and openai-responses name a dialect alone: at OpenAI, or at --base-url"
    )?;
    writeln!(out, "Try: turnbuckle run --provider ollama --model NAME \"say hello\"")?;
    writeln!(out, "All that is known of each: turnbuckle providers --json")?;
    out.flush()
}

fn row(out: &mut impl io::Write, cells: [&str; 6]) -> io::Result<()> {
    let [name, dialect, key, state, reasoning, address] = cells;
    writeln!(out, "{name:<14} {dialect:<11} {key:<20} {state:<8} {reasoning:<17} {address}")
}

fn described(profile: &Profile) -> Value {
    let affinity = match profile.affinity {
        Affinity::PromptCacheKey => Some("prompt_cache_key"),
        Affinity::Header(name) => Some(name),
        _ => None,
    };
    json!({
        "name": profile.name,
        "title": profile.title,
        "dialect": profile.dialect.as_str(),
        "baseUrl": profile.base_url,
        "keyVariable": profile.key.variable,
        "keyRequired": profile.key.required,
        "key": KeyState::of(profile).as_str(),
        "outputCapField": profile.output_cap.as_str(),
        "usageInStream": profile.usage_in_stream,
        "reasoning": profile.reasoning.as_str(),
        "thinkTags": profile.think_tags,
        "errors": profile.errors.iter().map(|way| way.as_str()).collect::<Vec<_>>(),
        "affinity": affinity,
        "byteIdleMs": profile.byte_idle.map(|idle| idle.as_millis()),
        "notes": profile.notes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(name: &str) -> String {
        provider(Some(name), false).unwrap_err().to_string()
    }

    #[track_caller]
    fn check(name: Option<&str>, has_address: bool, profile: &str, dialect: Dialect) {
        let (meant, spoken) = provider(name, has_address).unwrap();
        assert_eq!((meant.name, spoken), (profile, dialect), "{name:?}");
    }

    #[test]
    fn a_name_means_a_profile_and_a_dialect() {
        check(None, false, "openai", Dialect::OpenAiChat);
        check(None, true, "custom", Dialect::OpenAiChat);
        check(Some("openai-chat"), true, "custom", Dialect::OpenAiChat);
        check(Some("openai-responses"), false, "openai", Dialect::OpenAiResponses);
        check(Some("openai-responses"), true, "custom", Dialect::OpenAiResponses);
        check(Some("anthropic"), true, "anthropic", Dialect::Anthropic);
        check(Some("gemini"), false, "gemini", Dialect::Gemini);
        check(Some("groq"), true, "groq", Dialect::OpenAiChat);
    }

    #[test]
    fn a_wrong_name_is_answered_with_the_right_one() {
        assert_eq!(
            refusal("openai-chatt"),
            "INVALID_CONFIG: unknown provider `openai-chatt`; did you mean `openai-chat`?"
        );
        assert!(refusal("openruoter").ends_with("did you mean `openrouter`?"));
    }
}
