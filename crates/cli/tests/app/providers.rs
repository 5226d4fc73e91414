//! `turnbuckle providers`, and runs by the name of a profile.

use serde_json::Value;

use crate::stage::{Ran, Stage, app, bare, ran};

/// `turnbuckle ARGS` with these variables set.
fn with_keys(args: &[&str], keys: &[(&str, &str)]) -> Ran {
    let state = tempfile::tempdir().unwrap();
    let mut command = app(state.path());
    command.env_remove("GROQ_API_KEY").args(args).envs(keys.iter().copied());
    ran(command)
}

#[test]
fn the_table_says_which_keys_are_present_and_shows_none() {
    let ran = with_keys(&["providers"], &[("MISTRAL_API_KEY", "canary-of-a-key")]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(!ran.stdout.contains("canary"), "{}", ran.stdout);
    let line = |name: &str| {
        let found = ran.stdout.lines().find(|line| line.split_whitespace().next() == Some(name));
        found.unwrap_or_default().split_whitespace().collect::<Vec<_>>()
    };
    assert_eq!(
        line("mistral"),
        ["mistral", "openai-chat", "MISTRAL_API_KEY", "set", "parts", "https://api.mistral.ai/v1"]
    );
    assert_eq!(line("groq")[3], "missing");
    assert!(line("ollama").contains(&"http://localhost:11434/v1"));
}

#[test]
fn the_json_has_every_profile_whole() {
    let ran = with_keys(&["providers", "--json"], &[("MISTRAL_API_KEY", "canary-of-a-key")]);
    assert!(!ran.stdout.contains("canary"), "{}", ran.stdout);
    let list: Vec<Value> = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(list.len(), 23);
    let of = |name: &str| list.iter().find(|profile| profile["name"] == name).unwrap();
    assert_eq!(of("mistral")["key"], "set");
    assert_eq!(of("mistral")["usageInStream"], false);
    assert_eq!(of("openrouter")["byteIdleMs"], 60_000);
    assert_eq!(of("openai")["outputCapField"], "max_completion_tokens");
    assert_eq!(of("ollama")["keyVariable"], Value::Null);
}

#[test]
fn a_profile_at_another_address_speaks_as_the_profile_says() {
    let stage = Stage::of(&["whole"]);
    let ran = stage.run(&["--provider", "mistral", "--max-output-tokens", "5"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let asked = stage.asked().remove(0);
    assert_eq!(asked.body.get("stream_options"), None);
    let ran = stage.run(&["--provider", "openai", "--max-output-tokens", "5"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let asked = stage.asked().remove(1);
    assert_eq!(asked.body["max_completion_tokens"], 5);
    assert_eq!(asked.body["stream_options"]["include_usage"], true);
}

#[test]
fn a_profile_without_its_key_its_model_or_its_address_exits_2_and_says_what_to_do() {
    for (args, words) in [
        (&["--provider", "groq", "--model", "m"][..], ["PROVIDER_SECRET_MISSING", "GROQ_API_KEY"]),
        (&["--provider", "ollama"][..], ["MODEL_NOT_CONFIGURED", "--model"]),
        (&["--provider", "azure"][..], ["INVALID_CONFIG", "--base-url"]),
        (
            &["--provider", "anthropic", "--model", "m"][..],
            ["PROVIDER_SECRET_MISSING", "ANTHROPIC_API_KEY"],
        ),
    ] {
        let ran = with_keys(&[&["run", "go"], args].concat(), &[]);
        assert_eq!(ran.code, Some(2), "{args:?}: {}", ran.stderr);
        for word in words {
            assert!(ran.stderr.contains(word), "{args:?}: {}", ran.stderr);
        }
    }
    assert!(bare(&["--help"]).stdout.contains("providers"));
}
