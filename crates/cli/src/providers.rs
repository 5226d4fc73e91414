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

/// The dialects that this program can speak.
const BUILT: [Dialect; 1] = [Dialect::OpenAiChat];

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

/// The profile that a name means. No name is OpenAI, or any server at the address
/// that the user gave; so is the name of the dialect, as it always was.
pub(crate) fn profile(name: Option<&str>, has_address: bool) -> Result<&'static Profile, Failure> {
    let dialect_alone = Dialect::OpenAiChat.as_str();
    let Some(name) = name.filter(|name| *name != dialect_alone) else {
        return Ok(if has_address { &profiles::CUSTOM } else { &profiles::OPENAI });
    };
    let known = profiles::by_name(name);
    let dialect = known.map(|profile| profile.dialect).or_else(|| Dialect::by_name(name));
    match (known, dialect) {
        (Some(profile), Some(dialect)) if BUILT.contains(&dialect) => Ok(profile),
        (_, Some(dialect)) => Err(invalid(&format!(
            "the provider `{name}` is not built yet: it speaks {}, and built is `{dialect_alone}`",
            dialect.as_str()
        ))),
        _ => {
            let dialects = [dialect_alone];
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
    let absent: Vec<&str> = Dialect::ALL
        .into_iter()
        .filter(|dialect| !BUILT.contains(dialect))
        .map(Dialect::as_str)
        .collect();
    if !absent.is_empty() {
        writeln!(out, "\nNot built yet: {}", absent.join(", "))?;
    }
    writeln!(out, "\nTry: turnbuckle run --provider ollama --model NAME \"say hello\"")?;
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
        "built": BUILT.contains(&profile.dialect),
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
        profile(Some(name), false).unwrap_err().to_string()
    }

    #[test]
    fn a_name_means_a_profile_or_is_answered_with_the_right_one() {
        assert_eq!(profile(None, false).unwrap().name, "openai");
        assert_eq!(profile(None, true).unwrap().name, "custom");
        assert_eq!(profile(Some("openai-chat"), true).unwrap().name, "custom");
        assert_eq!(profile(Some("groq"), true).unwrap().name, "groq");
        assert_eq!(
            refusal("openai-chatt"),
            "INVALID_CONFIG: unknown provider `openai-chatt`; did you mean `openai-chat`?"
        );
        assert!(refusal("openruoter").ends_with("did you mean `openrouter`?"));
    }

    #[test]
    fn a_dialect_that_is_not_built_is_named() {
        for name in ["anthropic", "gemini", "openai-responses"] {
            assert!(refusal(name).contains("not built yet"), "{name}");
        }
    }
}
