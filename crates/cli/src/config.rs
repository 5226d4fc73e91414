//! The config file: the options of `run`, with underscores.

use std::{collections::BTreeMap, path::Path};

use serde::Deserialize;
use turnbuckle_errors::Failure;

use crate::{nearest::hint, refusal::invalid};

/// What a config file may set. Flags win over it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Config {
    pub(crate) provider: Option<String>,
    pub(crate) base_url: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) api_key_env: Option<String>,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) system: Option<String>,
    pub(crate) tools: Option<String>,
    pub(crate) permission: Option<String>,
    pub(crate) workspace: Option<std::path::PathBuf>,
    pub(crate) max_steps: Option<u32>,
    pub(crate) max_output_tokens: Option<u32>,
    pub(crate) context_window: Option<u32>,
    pub(crate) temperature: Option<f32>,
    pub(crate) reasoning_effort: Option<String>,
    pub(crate) idle_timeout_ms: Option<u64>,
    pub(crate) first_byte_timeout_ms: Option<u64>,
}

const KEYS: [&str; 16] = [
    "provider",
    "base_url",
    "model",
    "api_key_env",
    "headers",
    "system",
    "tools",
    "permission",
    "workspace",
    "max_steps",
    "max_output_tokens",
    "context_window",
    "temperature",
    "reasoning_effort",
    "idle_timeout_ms",
    "first_byte_timeout_ms",
];

impl Config {
    /// Reads the file.
    ///
    /// A file is read only when it is named: one that lies in a folder by itself
    /// could send a key to a host that its author chose.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            invalid(&format!("the config file {} cannot be read: {error}", path.display()))
        })?;
        Self::parse(&text).map_err(|why| invalid(&format!("{}: {why}", path.display())))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let table: toml::Table = toml::from_str(text).map_err(|error| line_of(text, &error))?;
        if let Some(unknown) = table.keys().find(|key| !KEYS.contains(&key.as_str())) {
            return Err(format!("unknown key `{unknown}`{}", hint(unknown, &KEYS)));
        }
        toml::from_str(text).map_err(|error| line_of(text, &error))
    }
}

fn line_of(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start));
    match before {
        Some(before) => format!("line {}: {}", before.matches('\n').count() + 1, error.message()),
        None => error.message().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_config_sets_options_by_name() {
        let config =
            Config::parse("model = \"m\"\nmax_steps = 3\n[headers]\nx-team = \"a\"\n").unwrap();
        assert_eq!(config.model.as_deref(), Some("m"));
        assert_eq!(config.max_steps, Some(3));
        assert_eq!(config.headers["x-team"], "a");
    }

    #[test]
    fn an_unknown_key_names_the_nearest_right_one() {
        let why = Config::parse("modle = \"m\"").unwrap_err();
        assert_eq!(why, "unknown key `modle`; did you mean `model`?");
    }

    #[test]
    fn a_wrong_type_or_syntax_names_its_line() {
        for text in [
            "model = \"m\"\nmax_steps = \"three\"",
            "model = \"m\"\nmax_steps = ",
            "model = \"m\"\nmax_steps = -1",
        ] {
            let why = Config::parse(text).unwrap_err();
            assert!(why.starts_with("line 2: "), "{why}");
        }
    }
}
