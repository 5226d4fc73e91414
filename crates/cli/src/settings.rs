//! Flags over the config file over defaults, checked before any request.

use std::{
    ffi::OsString,
    io::{IsTerminal as _, Read as _},
    num::NonZeroU64,
    path::PathBuf,
    time::Duration,
};

use secrecy::SecretString;
use turnbuckle_errors::{ErrorCode, Failure};
use turnbuckle_providers::Clocks;
use turnbuckle_tools::PermissionMode;

use crate::{
    args::RunArgs,
    config::Config,
    nearest::hint,
    refusal::{invalid, refused},
};

/// OpenAI's own address, and the variable its key customarily has.
const OPENAI: (&str, &str) = ("https://api.openai.com/v1", "OPENAI_API_KEY");

/// What is asked at OpenAI's own address unless `--model` says otherwise.
const OPENAI_MODEL: &str = "gpt-5-mini";

/// Local servers mostly serve one model under any name.
const LOCAL_MODEL: &str = "default";

const BUILT_PROVIDERS: [&str; 1] = ["openai-chat"];
const PLANNED_PROVIDERS: [&str; 3] = ["openai-responses", "anthropic", "gemini"];
const TOOLS: [&str; 4] = ["Read", "Write", "Edit", "Bash"];
const PERMISSIONS: [&str; 4] = ["ask", "accept-edits", "auto", "read-only"];

/// Everything a run needs.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) prompt: String,
    pub(crate) base_url: String,
    pub(crate) model: String,
    pub(crate) key: Option<SecretString>,
    pub(crate) headers: Vec<(String, SecretString)>,
    pub(crate) system: Option<String>,
    pub(crate) tools: Vec<&'static str>,
    pub(crate) permission: PermissionMode,
    pub(crate) workspace: PathBuf,
    pub(crate) session: Option<String>,
    pub(crate) max_steps: Option<u32>,
    pub(crate) max_output_tokens: Option<u32>,
    pub(crate) clocks: Clocks,
}

impl Settings {
    /// Reads and checks everything.
    ///
    /// The prompt comes last, since reading standard input may wait.
    pub(crate) fn resolve(args: RunArgs) -> Result<Self, Failure> {
        if args.go_on {
            return Err(invalid(
                "`--continue` is not built yet; name the session with `--session ID`",
            ));
        }
        let config = args.config.as_deref().map(Config::read).transpose()?.unwrap_or_default();
        check_provider(args.provider.or(config.provider).as_deref())?;
        let own_address = args.base_url.is_none() && config.base_url.is_none();
        let base_url = args.base_url.or(config.base_url).unwrap_or_else(|| OPENAI.0.to_owned());
        let headers = headers(&args.headers, config.headers)?;
        let model = args.model.or(config.model);
        let model = model
            .unwrap_or_else(|| if own_address { OPENAI_MODEL } else { LOCAL_MODEL }.to_owned());
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
        let key = key(args.api_key_env.or(config.api_key_env), own_address)?;
        Ok(Self {
            prompt: prompt(args.prompt)?,
            base_url,
            model,
            key,
            headers,
            system: args.system.or(config.system),
            tools,
            permission,
            workspace,
            session: args.session,
            max_steps,
            max_output_tokens,
            clocks: clocks(first_event, idle),
        })
    }
}

fn check_provider(name: Option<&str>) -> Result<(), Failure> {
    match name {
        None => Ok(()),
        Some(name) if BUILT_PROVIDERS.contains(&name) => Ok(()),
        Some(name) if PLANNED_PROVIDERS.contains(&name) => {
            Err(invalid(&format!("the provider `{name}` is not built yet; built is `openai-chat`")))
        }
        Some(name) => {
            Err(invalid(&format!("unknown provider `{name}`{}", hint(name, &BUILT_PROVIDERS))))
        }
    }
}

/// The key, from the environment only. An address that the user gave gets no
/// key unless its variable is named: a key goes to the host it belongs to.
fn key(variable: Option<String>, own_address: bool) -> Result<Option<SecretString>, Failure> {
    let named = variable.is_some();
    if !named && !own_address {
        return Ok(None);
    }
    let variable = variable.unwrap_or_else(|| OPENAI.1.to_owned());
    match std::env::var(&variable) {
        Ok(value) if !value.trim().is_empty() => Ok(Some(SecretString::from(value))),
        Ok(_) | Err(std::env::VarError::NotPresent) => Err(refused(
            ErrorCode::ProviderSecretMissing,
            &format!(
                "no key: set the environment variable {variable} to your key for openai-chat, or name another \
                 variable with --api-key-env; `turnbuckle demo` needs no key, and neither does a local server \
                 given with --base-url"
            ),
        )),
        Err(std::env::VarError::NotUnicode(_)) => Err(refused(
            ErrorCode::ProviderSecretInvalid,
            &format!("the key in {variable} is not text; copy it again"),
        )),
    }
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

fn prompt(given: Option<OsString>) -> Result<String, Failure> {
    let not_text = || invalid("the prompt is not valid UTF-8; save it as UTF-8");
    let text = match given {
        Some(given) if given != "-" => given.into_string().map_err(|_| not_text())?,
        _ => {
            let mut bytes = Vec::new();
            std::io::stdin()
                .read_to_end(&mut bytes)
                .map_err(|error| invalid(&format!("standard input cannot be read: {error}")))?;
            String::from_utf8(bytes).map_err(|_| not_text())?
        }
    };
    if text.trim().is_empty() {
        return Err(invalid(
            "the prompt is empty; say what to do, as in: turnbuckle run \"explain this folder\"",
        ));
    }
    Ok(text)
}

fn clocks(first_event: Option<Duration>, idle: Option<Duration>) -> Clocks {
    let mut clocks = Clocks::default();
    if let Some(first_event) = first_event {
        clocks.first_event = first_event;
    }
    if let Some(idle) = idle {
        clocks.byte_idle = idle;
        clocks.progress_idle = idle;
    }
    clocks
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
    use super::*;

    fn message<T: std::fmt::Debug>(result: Result<T, Failure>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn a_wrong_name_is_answered_with_the_right_one() {
        assert_eq!(
            message(check_provider(Some("openai-chatt"))),
            "INVALID_CONFIG: unknown provider `openai-chatt`; did you mean `openai-chat`?"
        );
        assert!(message(check_provider(Some("anthropic"))).contains("not built yet"));
        assert!(message(tools(Some("Read,Edt"))).ends_with("did you mean `Edit`?"));
        assert!(message(permission(Some("autoo"))).ends_with("did you mean `auto`?"));
    }

    #[test]
    fn lists_of_tools_are_read() {
        assert_eq!(tools(Some("Read, Edit")).unwrap(), ["Read", "Edit"]);
        assert_eq!(tools(None).unwrap().len(), 4);
        assert!(tools(Some("none")).unwrap().is_empty());
    }

    #[test]
    fn an_empty_or_foreign_prompt_is_refused() {
        assert!(message(prompt(Some(" \n".into()))).contains("the prompt is empty"));
        #[cfg(unix)]
        {
            use std::os::unix::ffi::OsStringExt as _;
            let foreign = OsString::from_vec(vec![0x66, 0xff]);
            assert!(message(prompt(Some(foreign))).contains("UTF-8"));
        }
    }

    #[test]
    fn a_key_is_looked_for_only_where_it_belongs() {
        assert!(key(None, false).unwrap().is_none());
        let missing = message(key(Some("TURNBUCKLE_TEST_NO_SUCH_KEY".into()), false));
        assert!(missing.starts_with("PROVIDER_SECRET_MISSING"), "{missing}");
        assert!(
            missing.contains("TURNBUCKLE_TEST_NO_SUCH_KEY") && missing.contains("demo"),
            "{missing}"
        );
    }

    #[test]
    fn one_idle_option_sets_both_idle_clocks() {
        let clocks = clocks(Some(Duration::from_millis(5)), Some(Duration::from_millis(7)));
        assert_eq!(clocks.first_event, Duration::from_millis(5));
        assert_eq!(
            (clocks.byte_idle, clocks.progress_idle),
            (Duration::from_millis(7), Duration::from_millis(7))
        );
        assert!(positive(Some(0), "idle-timeout-ms").is_err());
    }

    #[test]
    fn a_header_is_a_name_and_a_value() {
        assert_eq!(headers(&["a=b=c".into()], Default::default()).unwrap()[0].0, "a");
        assert!(headers(&["a".into()], Default::default()).is_err());
        assert!(headers(&["=a".into()], Default::default()).is_err());
    }
}
