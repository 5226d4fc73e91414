//! Flags over the config file over defaults, checked before any request.

use std::{io::IsTerminal as _, num::NonZeroU64, path::PathBuf, time::Duration};

use secrecy::SecretString;
use turnbuckle_errors::{ErrorCode, Failure};
use turnbuckle_providers::{
    Clocks, UserMessage,
    profiles::{Dialect, Profile},
    transport::Endpoint,
};
use turnbuckle_tools::PermissionMode;

use crate::{
    args::RunArgs,
    config::Config,
    nearest::hint,
    providers,
    refusal::{invalid, refused},
    said,
};

/// What is asked at OpenAI's own address unless `--model` says otherwise.
const OPENAI_MODEL: &str = "gpt-5-mini";

/// Local servers mostly serve one model under any name.
const LOCAL_MODEL: &str = "default";

const TOOLS: [&str; 6] = ["Read", "Write", "Edit", "Glob", "Grep", "Bash"];
const PERMISSIONS: [&str; 4] = ["ask", "accept-edits", "auto", "read-only"];

/// Everything a run needs.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) prompt: UserMessage,
    pub(crate) profile: &'static Profile,
    pub(crate) dialect: Dialect,
    pub(crate) base_url: String,
    pub(crate) model: String,
    pub(crate) key: Option<SecretString>,
    pub(crate) headers: Vec<(String, SecretString)>,
    pub(crate) system: Option<String>,
    pub(crate) tools: Vec<&'static str>,
    pub(crate) permission: PermissionMode,
    pub(crate) workspace: PathBuf,
    pub(crate) session: Option<String>,
    pub(crate) go_on: bool,
    pub(crate) max_steps: Option<u32>,
    pub(crate) max_output_tokens: Option<u32>,
    /// The model's context in tokens, where it is known.
    pub(crate) context_window: Option<u32>,
    pub(crate) temperature: Option<f32>,
    pub(crate) reasoning_effort: Option<String>,
    pub(crate) clocks: Clocks,
}

impl Settings {
    /// Reads and checks everything.
    ///
    /// The prompt comes last, since reading standard input may wait.
    pub(crate) fn resolve(mut args: RunArgs) -> Result<Self, Failure> {
        let given = args.prompt.take();
        let mut settings = Self::all_but_the_prompt(args)?;
        settings.prompt.text = said::text(given, settings.go_on || settings.session.is_some())?;
        Ok(settings)
    }

    /// The same for a chat, which waits for its first message only if none is given.
    pub(crate) fn resolve_for_chat(
        mut args: RunArgs,
    ) -> Result<(Self, Option<UserMessage>), Failure> {
        let given = args.prompt.take().filter(|prompt| prompt != "-");
        let mut settings = Self::all_but_the_prompt(args)?;
        let images = std::mem::take(&mut settings.prompt.images);
        if given.is_none() && !images.is_empty() {
            return Err(invalid(
                "--image goes with a first message: turnbuckle chat \"what is this?\" --image FILE",
            ));
        }
        let text = given.map(|given| said::text(Some(given), false)).transpose()?;
        Ok((settings, text.map(|text| UserMessage { text, images })))
    }

    fn all_but_the_prompt(args: RunArgs) -> Result<Self, Failure> {
        let config = args.config.as_deref().map(Config::read).transpose()?.unwrap_or_default();
        let given = args.base_url.or(config.base_url);
        let provider = args.provider.or(config.provider);
        let (profile, dialect) = providers::provider(provider.as_deref(), given.is_some())?;
        let own_address = given.is_none();
        let base_url = given.or_else(|| profile.base_url.map(str::to_owned)).ok_or_else(|| {
            invalid(&format!(
                "the provider `{}` has no address of its own: {}",
                profile.name, profile.notes
            ))
        })?;
        let headers = headers(&args.headers, config.headers)?;
        let model = args.model.or(config.model);
        let model = match model {
            Some(model) => model,
            None => default_model(profile, own_address)?.to_owned(),
        };
        if model.trim().is_empty() {
            return Err(refused(
                ErrorCode::ModelNotConfigured,
                "the model's name is empty; set `--model NAME`",
            ));
        }
        let first_event = positive(
            args.first_byte_timeout_ms.or(config.first_byte_timeout_ms),
            "first-byte-timeout-ms",
        )?;
        let idle = positive(args.idle_timeout_ms.or(config.idle_timeout_ms), "idle-timeout-ms")?;
        let tools = tools(args.tools.or(config.tools).as_deref())?;
        let permission = permission(args.permission.or(config.permission).as_deref())?;
        let workspace = args.workspace.or(config.workspace).unwrap_or_else(|| PathBuf::from("."));
        let max_steps = not_zero(args.max_steps.or(config.max_steps), "max-steps")?;
        let max_output_tokens =
            not_zero(args.max_output_tokens.or(config.max_output_tokens), "max-output-tokens")?;
        let context_window =
            not_zero(args.context_window.or(config.context_window), "context-window")?;
        let images = args.images.iter().map(|path| said::image(path)).collect::<Result<_, _>>()?;
        let key = key(args.api_key_env.or(config.api_key_env).as_deref(), profile, &base_url)?;
        Ok(Self {
            prompt: UserMessage { text: String::new(), images },
            profile,
            dialect,
            base_url,
            model,
            key,
            headers,
            system: args.system.or(config.system),
            tools,
            permission,
            workspace,
            session: args.session,
            go_on: args.go_on,
            max_steps,
            max_output_tokens,
            context_window,
            temperature: temperature(args.temperature.or(config.temperature))?,
            reasoning_effort: args.reasoning_effort.or(config.reasoning_effort),
            clocks: clocks(profile, first_event, idle),
        })
    }
}

/// The model that is asked unless one is named: of OpenAI a common one, and of a
/// server that has a single one, that.
fn default_model(profile: &Profile, own_address: bool) -> Result<&'static str, Failure> {
    match profile.name {
        _ if !own_address => Ok(LOCAL_MODEL),
        "llama-cpp" | "lm-studio" => Ok(LOCAL_MODEL),
        "openai" => Ok(OPENAI_MODEL),
        name => Err(refused(
            ErrorCode::ModelNotConfigured,
            &format!("no model: name one of `{name}` with `--model NAME`"),
        )),
    }
}

/// The key, from the environment only. An address that is not the profile's own
/// gets no key unless its variable is named: a key goes to the host it belongs to.
fn key(
    named: Option<&str>,
    profile: &Profile,
    base_url: &str,
) -> Result<Option<SecretString>, Failure> {
    let variable = match (named, profile.key.variable) {
        (Some(named), _) => named,
        (None, Some(own)) if is_at_home(profile, base_url) => own,
        _ => return Ok(None),
    };
    match std::env::var(variable) {
        Ok(value) if !value.trim().is_empty() => Ok(Some(SecretString::from(value))),
        Ok(_) | Err(std::env::VarError::NotPresent) if named.is_none() && !profile.key.required => {
            Ok(None)
        }
        Ok(_) | Err(std::env::VarError::NotPresent) => Err(refused(
            ErrorCode::ProviderSecretMissing,
            &format!(
                "no key: set the environment variable {variable} to your key for {} ({}), or name another \
                 variable with --api-key-env; `turnbuckle demo` needs no key, and neither does a local server \
                 given with --base-url",
                profile.name,
                profile.dialect.as_str()
            ),
        )),
        Err(std::env::VarError::NotUnicode(_)) => Err(refused(
            ErrorCode::ProviderSecretInvalid,
            &format!("the key in {variable} is not text; copy it again"),
        )),
    }
}

/// Whether an address is the profile's: of the same scheme, host and port. Of a
/// profile without one every address is, since the user named both together.
fn is_at_home(profile: &Profile, base_url: &str) -> bool {
    let origin = |url: &str| {
        let endpoint = Endpoint::parse(url).ok()?;
        let shown = endpoint.to_string();
        Some(shown.strip_suffix(endpoint.path())?.to_owned())
    };
    profile.base_url.is_none_or(|own| own == base_url || origin(own) == origin(base_url))
}

fn headers(
    flags: &[String],
    file: std::collections::BTreeMap<String, String>,
) -> Result<Vec<(String, SecretString)>, Failure> {
    let mut headers: Vec<(String, SecretString)> =
        file.into_iter().map(|(name, value)| (name, value.into())).collect();
    for flag in flags {
        let Some((name, value)) = flag.split_once('=').filter(|(name, _)| !name.trim().is_empty())
        else {
            return Err(invalid("a header is written NAME=VALUE, as in --header x-team=research"));
        };
        headers.push((name.trim().to_owned(), value.to_owned().into()));
    }
    Ok(headers)
}

fn tools(list: Option<&str>) -> Result<Vec<&'static str>, Failure> {
    match list {
        None | Some("all") => Ok(TOOLS.to_vec()),
        Some("none") => Ok(Vec::new()),
        Some(list) => list
            .split(',')
            .map(str::trim)
            .map(|name| {
                let known = TOOLS.into_iter().find(|tool| *tool == name);
                known
                    .ok_or_else(|| invalid(&format!("unknown tool `{name}`{}", hint(name, &TOOLS))))
            })
            .collect(),
    }
}

fn permission(mode: Option<&str>) -> Result<PermissionMode, Failure> {
    match mode {
        None if std::io::stdin().is_terminal() && std::io::stderr().is_terminal() => {
            Ok(PermissionMode::Ask)
        }
        None | Some("read-only") => Ok(PermissionMode::ReadOnly),
        Some("ask") => Ok(PermissionMode::Ask),
        Some("accept-edits") => Ok(PermissionMode::AcceptEdits),
        Some("auto") => Ok(PermissionMode::Auto),
        Some(mode) => {
            Err(invalid(&format!("unknown permission mode `{mode}`{}", hint(mode, &PERMISSIONS))))
        }
    }
}

fn clocks(profile: &Profile, first_event: Option<Duration>, idle: Option<Duration>) -> Clocks {
    let mut clocks = Clocks::default();
    if let Some(byte_idle) = profile.byte_idle {
        clocks.byte_idle = byte_idle;
    }
    if let Some(first_event) = first_event {
        clocks.first_event = first_event;
    }
    if let Some(idle) = idle {
        clocks.byte_idle = idle;
        clocks.progress_idle = idle;
    }
    clocks
}

fn temperature(given: Option<f32>) -> Result<Option<f32>, Failure> {
    match given {
        Some(given) if !(given.is_finite() && given >= 0.0) => {
            Err(invalid("--temperature must be a number from 0 up; most providers take 0 to 2"))
        }
        given => Ok(given),
    }
}

fn positive(millis: Option<u64>, name: &str) -> Result<Option<Duration>, Failure> {
    let millis = millis.map(|millis| {
        NonZeroU64::new(millis).ok_or_else(|| invalid(&format!("--{name} must be at least 1")))
    });
    Ok(millis.transpose()?.map(|millis| Duration::from_millis(millis.get())))
}

fn not_zero(number: Option<u32>, name: &str) -> Result<Option<u32>, Failure> {
    match number {
        Some(0) => Err(invalid(&format!("--{name} must be at least 1"))),
        number => Ok(number),
    }
}

#[cfg(test)]
mod tests {
    use turnbuckle_providers::profiles;

    use super::*;

    fn message<T: std::fmt::Debug>(result: Result<T, Failure>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn a_wrong_name_is_answered_with_the_right_one() {
        assert!(message(tools(Some("Read,Edt"))).ends_with("did you mean `Edit`?"));
        assert!(message(permission(Some("autoo"))).ends_with("did you mean `auto`?"));
    }

    #[test]
    fn lists_of_tools_are_read() {
        assert_eq!(tools(Some("Read, Edit")).unwrap(), ["Read", "Edit"]);
        assert_eq!(tools(None).unwrap().len(), 6);
        assert!(tools(Some("none")).unwrap().is_empty());
    }

    #[test]
    fn a_key_is_looked_for_only_where_it_belongs() {
        let elsewhere = "http://127.0.0.1:9/v1";
        for profile in [&profiles::CUSTOM, &profiles::OPENAI, &profiles::VLLM, &profiles::OLLAMA] {
            assert!(key(None, profile, elsewhere).unwrap().is_none(), "{}", profile.name);
        }
        let named = Some("TURNBUCKLE_TEST_NO_SUCH_KEY");
        let missing = message(key(named, &profiles::CUSTOM, elsewhere));
        assert!(missing.starts_with("PROVIDER_SECRET_MISSING"), "{missing}");
        assert!(
            missing.contains("TURNBUCKLE_TEST_NO_SUCH_KEY") && missing.contains("demo"),
            "{missing}"
        );
    }

    #[test]
    fn an_address_is_the_profiles_by_scheme_host_and_port() {
        for (url, home) in [
            ("https://api.openai.com/v1", true),
            ("https://API.openai.com/v1/chat/completions", true),
            ("http://api.openai.com/v1", false),
            ("https://api.openai.com:8443/v1", false),
            ("https://api.openai.com.example.org/v1", false),
            ("not a url", false),
        ] {
            assert_eq!(is_at_home(&profiles::OPENAI, url), home, "{url}");
        }
        assert!(is_at_home(&profiles::AZURE, "https://r.openai.azure.com/openai/v1"));
    }

    #[test]
    fn a_model_is_supposed_only_where_any_name_will_do() {
        assert_eq!(default_model(&profiles::OPENAI, true).unwrap(), OPENAI_MODEL);
        assert_eq!(default_model(&profiles::LLAMA_CPP, true).unwrap(), LOCAL_MODEL);
        assert_eq!(default_model(&profiles::GROQ, false).unwrap(), LOCAL_MODEL);
        let missing = message(default_model(&profiles::OLLAMA, true));
        assert!(missing.starts_with("MODEL_NOT_CONFIGURED") && missing.contains("--model"));
    }

    #[test]
    fn a_server_that_pings_is_given_up_sooner_unless_the_user_says_otherwise() {
        let idle = |profile, idle| clocks(profile, None, idle).byte_idle;
        assert_eq!(idle(&profiles::OPENROUTER, None), Duration::from_secs(60));
        assert_eq!(idle(&profiles::OPENAI, None), Clocks::default().byte_idle);
        let said = Duration::from_secs(7);
        assert_eq!(idle(&profiles::OPENROUTER, Some(said)), said);
    }

    #[test]
    fn one_idle_option_sets_both_idle_clocks() {
        let (first, idle) = (Duration::from_millis(5), Duration::from_millis(7));
        let clocks = clocks(&profiles::OPENROUTER, Some(first), Some(idle));
        assert_eq!(clocks.first_event, Duration::from_millis(5));
        assert_eq!(
            (clocks.byte_idle, clocks.progress_idle),
            (Duration::from_millis(7), Duration::from_millis(7))
        );
        assert!(positive(Some(0), "idle-timeout-ms").is_err());
    }

    #[test]
    fn a_temperature_is_a_number_from_0_up() {
        assert_eq!(temperature(Some(0.7)).unwrap(), Some(0.7));
        for wrong in [-0.1, f32::NAN, f32::INFINITY] {
            assert!(message(temperature(Some(wrong))).contains("--temperature"));
        }
    }

    #[test]
    fn a_header_is_a_name_and_a_value() {
        assert_eq!(headers(&["a=b=c".into()], Default::default()).unwrap()[0].0, "a");
        assert!(headers(&["a".into()], Default::default()).is_err());
        assert!(headers(&["=a".into()], Default::default()).is_err());
    }
}
