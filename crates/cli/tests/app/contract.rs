use serde_json::{Value, json};

use crate::stage::{Ran, Stage, app, kinds, ran};

const KEY: &str = "sk-canary-0123456789abcdef";

#[test]
fn a_cut_stream_gives_the_documented_events_and_a_clean_second_request() {
    let stage = Stage::of(&["cut_inside_event", "whole"]);
    let events = stage.run(&["--output", "ndjson"]);
    assert_eq!(events.code, Some(0), "{}", events.stderr);
    let events = events.lines();
    assert_eq!(
        kinds(&events),
        [
            "agent_start",
            "turn_start",
            "message_start",
            "message_update",
            "retry_scheduled",
            "retry_started",
            "message_restart",
            "message_update",
            "message_end",
            "turn_end",
            "agent_end",
        ]
    );
    let scheduled = events.iter().find(|event| event["type"] == "retry_scheduled").unwrap();
    assert_eq!(
        (
            &scheduled["budget"],
            &scheduled["delayMs"],
            &scheduled["phase"],
            &scheduled["failure"]["code"]
        ),
        (&json!("stream"), &json!(750), &json!("stream"), &json!("STREAM_FAILED"))
    );
    let ids: Vec<&Value> =
        events.iter().map(|event| &event["messageId"]).filter(|id| id.is_string()).collect();
    assert!(ids.iter().all(|id| *id == ids[0]));
    for (event, seq) in events.iter().zip(1..) {
        assert_eq!(event["seq"], seq);
        assert!(
            event["sessionId"].is_string() && event["turn"].is_u64() && event["ts"].is_string(),
            "{event}"
        );
    }

    let end = events.iter().find(|event| event["type"] == "message_end").unwrap();
    let deltas = |from: usize, to: usize| -> String {
        events[from..to].iter().filter_map(|event| event["delta"].as_str()).collect()
    };
    let restart = events.iter().position(|event| event["type"] == "message_restart").unwrap();
    assert_eq!(end["message"]["text"], deltas(restart, events.len()));
    let partial = deltas(0, restart);
    assert!(!partial.is_empty());

    let asked = stage.asked();
    assert_eq!(asked.len(), 2);
    assert_eq!(asked[0].body, asked[1].body);
    assert!(!asked[1].body.to_string().contains(partial.trim()));
    assert_ne!(asked[0].connection, asked[1].connection);
}

#[test]
fn the_summary_of_a_recovered_run_is_one_object() {
    let stage = Stage::of(&["cut_between_events", "whole"]);
    let ran = stage.run(&["--output", "json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let summary = ran.object();
    assert_eq!(summary["ok"], true);
    assert_eq!(summary["outcome"], "completed");
    assert_eq!(summary["finish"], "stop");
    assert_eq!(summary["attempts"], 2);
    assert_eq!(summary["retries"][0]["code"], "STREAM_FAILED");
    assert_eq!(summary["failure"], Value::Null);
    assert_eq!(summary["toolCalls"], json!([]));
    assert!(summary["usage"]["outputTokens"].is_u64());
    assert!(summary["timing"]["backoffMs"].as_u64().unwrap() >= 750);
    assert_eq!(ran.stdout.lines().count(), 1);
}

#[test]
fn a_persistent_cut_fails_once_visibly_and_exits_1() {
    let stage = Stage::of(&["cut_inside_event"]);
    let ran = stage.run(&["--output", "ndjson"]);
    assert_eq!(ran.code, Some(1));
    let events = ran.lines();
    let tail: Vec<_> = kinds(&events).into_iter().rev().take(4).collect();
    assert_eq!(tail, ["agent_end", "error", "turn_end", "message_end"]);
    let failure = &events.last().unwrap()["failure"];
    assert_eq!(failure["code"], "STREAM_FAILED");
    assert_eq!(failure["details"]["phase"], "stream");
    assert_eq!(failure["details"]["retryAttempt"], 2);
    assert_eq!(failure["details"]["delivered"], "yes");
    assert!(failure["details"]["eventsReceived"].as_u64().unwrap() > 0, "{failure}");
    assert!(!failure["details"]["causes"].as_array().unwrap().is_empty(), "{failure}");
    assert_eq!(stage.asked().len(), 2);
}

#[test]
fn in_text_only_whole_messages_reach_a_pipe() {
    let stage = Stage::of(&["cut_inside_event", "whole"]);
    let ran = stage.run(&[]);
    assert_eq!(ran.code, Some(0));
    let summary = Stage::of(&["whole"]).run(&["--output", "json"]).object();
    assert_eq!(ran.stdout.trim_end(), summary["text"].as_str().unwrap());
    assert!(
        ran.stderr.contains("STREAM_FAILED") && ran.stderr.contains("trying again in 0.75 s"),
        "{}",
        ran.stderr
    );
    assert!(!ran.stdout.contains('\u{1b}') && !ran.stderr.contains('\u{1b}'));
}

#[test]
fn a_failure_in_text_says_what_to_do() {
    let ran = Stage::of(&["model_not_found"]).run(&[]);
    assert_eq!(ran.code, Some(1));
    assert_eq!(ran.stdout, "");
    assert!(
        ran.stderr.contains("MODEL_NOT_CONFIGURED") && ran.stderr.contains("what to do:"),
        "{}",
        ran.stderr
    );
}

fn with_key(stage: &Stage, more: &[&str]) -> Ran {
    let mut command = app(&stage.state());
    command
        .env("MY_KEY", KEY)
        .args(["run", "go", "--api-key-env", "MY_KEY", "--base-url", &stage.base_url()])
        .args(["--workspace".into(), stage.workspace().into_os_string()])
        .args(more);
    ran(command)
}

#[test]
fn a_refused_key_is_asked_once_and_never_printed() {
    for format in ["text", "json", "ndjson"] {
        let stage = Stage::of(&["unauthorized"]);
        let ran = with_key(&stage, &["--output", format]);
        assert_eq!(ran.code, Some(1));
        let asked = stage.asked();
        assert_eq!(asked.len(), 1);
        assert_eq!(asked[0].headers.get("authorization"), Some(format!("Bearer {KEY}").as_str()));
        let printed = format!("{}{}", ran.stdout, ran.stderr);
        assert!(printed.contains("PROVIDER_UNAUTHORIZED"), "{printed}");
        assert!(!printed.contains("canary"), "{printed}");
    }
}

#[test]
fn without_its_variable_a_given_address_gets_no_key() {
    let stage = Stage::of(&["whole"]);
    let mut command = app(&stage.state());
    command.env("OPENAI_API_KEY", KEY).args(["run", "go", "--base-url", &stage.base_url()]);
    assert_eq!(ran(command).code, Some(0));
    assert_eq!(stage.asked()[0].headers.get("authorization"), None);
}

#[test]
fn a_refusal_without_a_key_says_how_to_name_one() {
    let ran = Stage::of(&["unauthorized"]).run(&[]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("--api-key-env VARIABLE"), "{}", ran.stderr);
    let stage = Stage::of(&["unauthorized"]);
    assert!(!with_key(&stage, &[]).stderr.contains("--api-key-env"));
}

#[test]
fn headers_model_system_and_limits_reach_the_provider() {
    let stage = Stage::of(&["whole"]);
    let ran = stage.run(&[
        "--model",
        "model-7",
        "--system",
        "be brief",
        "--header",
        "x-team=research",
        "--tools",
        "Read",
        "--max-output-tokens",
        "77",
    ]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let asked = &stage.asked()[0];
    assert_eq!(asked.headers.get("x-team"), Some("research"));
    assert_eq!(asked.body["model"], "model-7");
    assert_eq!(asked.body["messages"][0], json!({"role": "system", "content": "be brief"}));
    assert_eq!(asked.body["tools"].as_array().unwrap().len(), 1);
    let cap = ["max_tokens", "max_completion_tokens"].map(|field| asked.body[field].as_u64());
    assert!(cap.contains(&Some(77)), "{}", asked.body);
}

#[test]
fn images_temperature_and_effort_reach_the_provider_and_the_journal() {
    let stage = Stage::of(&["whole"]);
    let picture = stage.workspace().join("picture");
    std::fs::write(&picture, b"\x89PNG\r\n\x1a\nrest").unwrap();
    let ran = stage.run(&[
        "--image",
        picture.to_str().unwrap(),
        "--temperature",
        "0.5",
        "--reasoning-effort",
        "low",
    ]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let asked = &stage.asked()[0].body;
    assert_eq!(asked["temperature"], 0.5);
    assert_eq!(asked["reasoning_effort"], "low");
    let said = asked["messages"].as_array().unwrap().last().unwrap();
    assert!(said.to_string().contains("data:image/png;base64,iVBORw0KGgpyZXN0"), "{said}");

    // What was seen is kept: the next prompt of the session shows it again.
    let ran = stage.run(&["--continue"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(stage.asked()[1].body["messages"].to_string().contains("iVBORw0KGgpyZXN0"));
}

#[test]
fn a_config_file_sets_what_flags_do_not() {
    let stage = Stage::of(&["whole"]);
    let config = stage.workspace().join("turnbuckle.toml");
    std::fs::write(&config, "model = \"from-file\"\nmax_output_tokens = 5\ntools = \"none\"\n")
        .unwrap();
    let ran = stage.run(&["--config", config.to_str().unwrap(), "--max-output-tokens", "9"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let asked = &stage.asked()[0].body;
    assert_eq!(asked["model"], "from-file");
    assert!(asked.get("tools").is_none());
    assert!(asked.to_string().contains(":9"), "{asked}");
}

#[test]
fn a_stalled_stream_is_given_up_by_the_named_clock() {
    let stage = Stage::of(&["stall"]);
    let ran = stage.run(&["--output", "json", "--idle-timeout-ms", "300"]);
    assert_eq!(ran.code, Some(1));
    let summary = ran.object();
    assert_eq!(summary["failure"]["code"], "TIMEOUT");
    assert!(summary["failure"]["message"].as_str().unwrap().contains("byte_idle"), "{summary}");
    assert_eq!(summary["attempts"], 2);
    assert_eq!(stage.asked().len(), 2);

    let stage = Stage::of(&["stall_before_headers"]);
    let summary = stage.run(&["--output", "json", "--first-byte-timeout-ms", "300"]).object();
    assert!(summary["failure"]["message"].as_str().unwrap().contains("first_event"), "{summary}");
}

#[test]
fn a_session_goes_on_where_it_ended() {
    let stage = Stage::new(
        "[[step]]\nbehaviour = \"whole\"\ntext = \"the first answer\"\n[[step]]\nbehaviour = \"whole\"\n",
    );
    let first = stage.run(&["--output", "json"]).object();
    let id = first["sessionId"].as_str().unwrap();
    let second = stage.run(&["--output", "json", "--session", id]).object();
    assert_eq!(second["sessionId"], id);
    let history = stage.asked()[1].body["messages"].to_string();
    assert!(history.contains("the first answer"), "{history}");
}

/// Real sockets, real files, and a process for each prompt, so that each one starts
/// from the journal.
#[test]
fn a_session_that_outgrows_its_model_goes_on_from_a_summary() {
    let answer = |word: &str| {
        let text = format!("{word} ").repeat(500);
        format!("[[step]]\nbehaviour = \"whole\"\ntext = \"{text}\"\n")
    };
    let refusal =
        "[[step]]\nbehaviour = \"context_overflow\"\nheaders = { x-should-retry = \"false\" }\n";
    let (one, two) = (answer("first"), answer("second"));
    let script = [
        one.as_str(),
        two.as_str(),
        refusal,
        "[[step]]\nbehaviour = \"whole\"\ntext = \"THE SUMMARY\"\n",
        "[[step]]\nbehaviour = \"whole\"\ntext = \"third\"\n",
        "[[step]]\nbehaviour = \"whole\"\ntext = \"fourth\"\n",
    ];
    let stage = Stage::new(&script.concat());
    let first = stage.run(&["--output", "json"]).object();
    let id = first["sessionId"].as_str().unwrap();
    let on = ["--output", "json", "--session", id];
    stage.run(&on);
    let third = stage.run(&["--output", "ndjson", "--session", id]);
    assert_eq!(third.code, Some(0), "{}", third.stderr);
    assert_eq!(
        kinds(&third.lines())[..6],
        [
            "agent_start",
            "turn_start",
            "compaction_start",
            "compaction_end",
            "retry_scheduled",
            "retry_started"
        ]
    );
    let fourth = stage.run(&on).object();
    assert_eq!(fourth["text"], "fourth");

    let asked = stage.asked();
    assert_eq!(asked.len(), 6);
    let said = |at: usize| asked[at].body["messages"].to_string();
    assert!(said(2).contains("first first") && said(2).contains("second second"));
    assert!(said(3).contains("first first") && asked[3].body.get("tools").is_none());
    for at in [4, 5] {
        assert!(said(at).contains("THE SUMMARY") && !said(at).contains("first first"), "{at}");
    }
    // A new process makes of the journal what the old one had in memory: the last
    // request begins with the one before it.
    let (before, after) = (&asked[4].body["messages"], &asked[5].body["messages"]);
    let (before, after) = (before.as_array().unwrap(), after.as_array().unwrap());
    assert_eq!(after[..before.len()], before[..]);
}

#[test]
fn a_known_window_makes_a_history_smaller_before_it_is_refused() {
    // The provider's own count decides: the second request has 2,600 tokens.
    let step = |input: u32, text: &str| {
        let usage = format!("usage = {{ input = {input}, output = 1 }}");
        format!("[[step]]\nbehaviour = \"whole\"\n{usage}\ntext = \"{text}\"\n")
    };
    let long = "word ".repeat(2_000);
    let script =
        [step(9, &long), step(2_600, &long), step(3_000, "THE SUMMARY"), step(900, "done")];
    let stage = Stage::new(&script.concat());
    let first = stage.run(&["--output", "json", "--tools", "none"]).object();
    let id = first["sessionId"].as_str().unwrap();
    let on = ["--tools", "none", "--session", id, "--context-window", "4000", "--output"];
    stage.run(&[&on[..], &["json"]].concat());
    let events = stage.run(&[&on[..], &["ndjson"]].concat()).lines();
    let start = events.iter().find(|event| event["type"] == "compaction_start").unwrap();
    assert_eq!(start["reason"], "boundary");
    assert!(stage.asked()[3].body["messages"].to_string().contains("THE SUMMARY"));
    let ran = stage.run(&["--context-window", "0"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
}

#[test]
fn a_secret_that_came_by_header_or_address_is_not_printed_when_it_is_echoed_alone() {
    let stage = Stage::new("[[step]]\nbehaviour = \"unauthorized\"\n");
    let address = format!("{}?key=QUERYSECRET123", stage.base_url());
    let mut command = app(&stage.state());
    command.args([
        "run",
        "go",
        "--output",
        "json",
        "--base-url",
        &address,
        "--header",
        "Authorization=Token tokABCDEF999",
    ]);
    let ran = ran(command);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    for secret in ["tokABCDEF999", "QUERYSECRET123"] {
        assert!(!format!("{}{}", ran.stdout, ran.stderr).contains(secret), "{}", ran.stdout);
    }
}

#[test]
fn a_proxy_of_the_environment_is_not_asked_for_this_machine() {
    let stage = Stage::of(&["whole"]);
    let mut command = app(&stage.state());
    // Nobody listens there: whoever asks it fails.
    command.env("HTTP_PROXY", "http://127.0.0.1:1").env("http_proxy", "http://127.0.0.1:1");
    command.args(["run", "go", "--base-url", &stage.base_url()]);
    assert_eq!(ran(command).code, Some(0));
}

#[test]
fn every_dialect_recovers_a_cut_answer_and_runs_a_tool() {
    let script = "[[step]]\nbehaviour = \"whole\"\n[[step.tool_call]]\nname = \"Read\"\n\
                  arguments = { path = \"notes.txt\" }\n\
                  [[step]]\nbehaviour = \"cut_inside_event\"\ntext = \"the part that is lost to a cut here\"\n\
                  [[step]]\nbehaviour = \"whole\"\ntext = \"the whole answer\"\n";
    for provider in ["openai-chat", "openai-responses", "anthropic", "gemini"] {
        let stage = Stage::new(script);
        std::fs::write(stage.workspace().join("notes.txt"), "what the notes say").unwrap();
        let ran = stage.run(&["--provider", provider, "--model", "m", "--output", "json"]);
        assert_eq!(ran.code, Some(0), "{provider}: {}", ran.stderr);
        let summary = ran.object();
        assert_eq!(summary["text"], "the whole answer", "{provider}");
        assert_eq!(
            (&summary["attempts"], &summary["toolCalls"][0]["ok"]),
            (&json!(3), &json!(true))
        );
        let asked = stage.asked();
        assert_eq!(asked.len(), 3, "{provider}");
        let last = asked[2].body.to_string();
        assert!(
            last.contains("what the notes say") && !last.contains("lost to a cut"),
            "{provider}: {last}"
        );
    }
}
