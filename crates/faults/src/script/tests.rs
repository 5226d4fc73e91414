mod refusals;
mod round_trip;

use std::time::Duration;

use serde_json::json;

use super::*;
use crate::{
    behaviour::{Behaviour, How, Point, Protocol, Tls},
    catalogue::{self, DEFAULT_EVENT},
    content::{Finish, ToolCall, Usage},
};

fn refused(source: &str) -> ScriptError {
    Script::parse(source).unwrap_err()
}

const EVERY_KEY: &str = r#"
[[step]]
behaviour = "cut_inside_event"
at_event = 6
how = "fin"
text = "The file says …"
reasoning = "I \"think\"\nso."
usage = { input = 10, output = 14, cached = 3, reasoning = 2 }
finish = "length"
chunk_chars = 1
headers_delay_ms = 1
event_delay_ms = 2
cut_delay_ms = 3
headers = { x-should-retry = "false", "x.y" = "z" }
[[step.tool_call]]
name = "Edit"
id = "mine"
arguments = { path = "b", all = true, list = [1, { deep = "é" }], count = 3 }
[[step.tool_call]]
name = "Broken"
arguments = '{"path": '
[[step.tool_call]]
name = "Null"
arguments = '{"a":null}'

[[step]]
behaviour = "rate_limit"
retry_after_ms = 1200
"#;

#[test]
fn every_key_of_a_step_is_read() {
    let script = Script::parse(EVERY_KEY).unwrap();
    let built = Script::new(vec![
        Step::named("cut_inside_event")
            .unwrap()
            .at_event(6)
            .how(How::Fin)
            .text("The file says …")
            .reasoning("I \"think\"\nso.")
            .usage(Usage { input: 10, output: 14, cached: 3, reasoning: 2 })
            .finish(Finish::Length)
            .chunk_chars(1)
            .headers_delay(Duration::from_millis(1))
            .event_delay(Duration::from_millis(2))
            .cut_delay(Duration::from_millis(3))
            .header("x-should-retry", "false")
            .header("x.y", "z")
            .call(
                ToolCall::new(
                    "Edit",
                    &json!({"path": "b", "all": true, "list": [1, {"deep": "é"}], "count": 3}),
                )
                .id("mine"),
            )
            .call(ToolCall::with_raw_arguments("Broken", "{\"path\": "))
            .call(ToolCall::with_raw_arguments("Null", "{\"a\":null}")),
        Step::named("rate_limit").unwrap().retry_after(Duration::from_millis(1200)),
    ])
    .unwrap();
    assert_eq!(script, built);
    assert_eq!(
        built.steps()[0].behaviour(),
        Behaviour::whole()
            .cut(Point::InsideEvent(6), How::Fin)
            .after(Duration::from_millis(3))
            .headers_delay(Duration::from_millis(1))
            .event_delay(Duration::from_millis(2))
            .header("x-should-retry", "false")
            .header("x.y", "z")
    );
}

#[test]
fn a_script_written_back_reads_to_an_equal_one() {
    let sources = Script::shipped().iter().map(|shipped| shipped.source);
    let of_the_example = include_str!("../../examples/openai_sdk/faults.toml");
    for source in sources.chain([EVERY_KEY, of_the_example]) {
        let script = Script::parse(source).unwrap();
        let written = script.to_toml().unwrap();
        assert_eq!(Script::parse(&written).unwrap(), script, "{written}");
    }
}

#[test]
fn a_written_script_reads_as_a_person_would_write_it() {
    insta::assert_snapshot!(Script::parse(EVERY_KEY).unwrap().to_toml().unwrap());
}

#[test]
fn a_behaviour_built_in_code_cannot_be_written_back() {
    let script = Script::new(vec![Step::with(Behaviour::whole())]).unwrap();
    assert!(matches!(script.to_toml(), Err(ScriptError::NotWritable { step: 1 })));
    assert_eq!(script.to_string(), "  1  (built in code)       an answer\n");
}

#[test]
fn the_server_of_a_script_is_what_it_says_or_what_its_steps_need() {
    let serving = |source: &str| Script::parse(source).unwrap().serving().clone();
    let step = |name: &str| format!("[[step]]\nbehaviour = \"{name}\"\n");
    assert_eq!(serving(&step("whole")), Serving::default());
    assert_eq!(serving(&step("tls_expired")), Serving::default().tls(Tls::Good));
    let http2 = Serving::default().tls(Tls::Good).protocol(Protocol::Http2);
    assert_eq!(serving(&(step("whole") + &step("http2_goaway_in_body"))), http2);
    let plain = "[server]\nprotocol = \"http2\"\n".to_owned() + &step("http2_goaway_in_body");
    assert_eq!(serving(&plain), Serving::default().protocol(Protocol::Http2));
}

#[test]
fn a_written_server_table_is_read_back() {
    let source = "[server]\ntls = \"wrong_name\"\nprotocol = \"http2\"\nca_file = \"a\\\"b.pem\"\n\n\
        [[step]]\nbehaviour = \"http2_reset_in_body\"\nhttp2_code = \"CANCEL\"\ngzip = \"held\"\n";
    let script = Script::parse(source).unwrap();
    assert_eq!(script.to_toml().unwrap(), source);
    let source = "[[step]]\nbehaviour = \"whole\"\nhang_up = \"on_reuse\"\n";
    assert_eq!(Script::parse(source).unwrap().to_toml().unwrap(), source);
}

#[test]
fn the_line_of_a_mistake_is_that_of_its_key() {
    let source = "# a comment\n\n[[step]]\nbehaviour = \"whole\"\n\n[[step]]\nbehaviour = \"whole\"\nevnet_delay_ms = 3\n";
    let error = refused(source);
    let ScriptError::UnknownKey { at, key, nearest, .. } = &error else { panic!("{error:?}") };
    assert_eq!(
        (at.line, at.column, key.as_str(), *nearest),
        (Some(8), Some(1), "evnet_delay_ms", Some("event_delay_ms"))
    );
}

#[test]
fn the_column_of_a_mistake_counts_characters() {
    let error = refused("[[step]]\r\nusage = { \"é漢🦀\" = 1 }\r\nbehaviour = \"whole\"\r\n");
    assert!(error.to_string().starts_with("line 2, column 11: unknown key `é漢🦀`"), "{error}");
    let error = refused("[[step]]\nbehaviour = \"whole\"\nmatch = { model = \"é漢🦀\", path = 1 }");
    assert!(error.to_string().starts_with("line 3, column 26: unknown key `path`"), "{error}");
    let error = refused("[[step]]\nbehaviour = ");
    assert!(error.to_string().starts_with("line 2, column 1"), "{error}");
}

#[test]
fn a_long_name_moves_the_column_of_all() {
    let steps = ["whole", "http2_goaway_before_status"].map(|name| Step::named(name).unwrap());
    let shown = Script::new(steps.to_vec()).unwrap().to_string();
    let columns: Vec<_> = shown.lines().map(|line| line.find("an answer")).collect();
    assert_eq!(columns, [Some(32), Some(32)], "{shown}");
}

#[test]
fn an_unknown_name_in_code_is_told_without_a_line() {
    let error = Step::named("whale").unwrap_err();
    assert_eq!(error.line(), None);
    assert!(error.to_string().contains("did you mean `whole`?"), "{error}");
    let error = Script::named("dem").unwrap_err();
    assert!(error.to_string().contains("did you mean `demo`?"), "{error}");
}

#[test]
fn a_script_is_read_from_a_file_and_a_missing_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("one.toml");
    std::fs::write(&path, "[[step]]\nbehaviour = \"stall\"\n").unwrap();
    assert_eq!(Script::from_path(&path).unwrap().steps()[0].name(), Some("stall"));
    let error = Script::from_path(folder.path().join("two.toml")).unwrap_err();
    assert!(matches!(&error, ScriptError::Read { .. }) && error.to_string().contains("two.toml"));
}

#[test]
fn a_named_fault_in_a_short_answer_moves_to_its_middle() {
    let event = |step: Step| match step.behaviour().cut.unwrap().point {
        Point::InsideEvent(number) => number,
        other => panic!("{other}"),
    };
    let cut = || Step::named("cut_inside_event").unwrap();
    assert_eq!(event(cut()), DEFAULT_EVENT);
    assert_eq!(event(cut().text("hey")), 2);
    assert_eq!(event(cut().text("")), 1);
    assert_eq!(event(cut().at_event(3)), 3);
}

#[test]
fn every_behaviour_of_the_catalogue_can_be_a_step() {
    for entry in catalogue::all() {
        Script::new(vec![Step::from_entry(entry)]).unwrap();
    }
}

#[test]
fn the_shipped_scripts_play_what_their_table_says() {
    let played: Vec<String> = Script::shipped()
        .iter()
        .map(|shipped| {
            format!(
                "{}: {}\n{}",
                shipped.name,
                shipped.sentence,
                Script::named(shipped.name).unwrap()
            )
        })
        .collect();
    insta::assert_snapshot!(played.join("\n"));
}

#[test]
fn the_scripts_in_the_readme_are_accepted() {
    let readme = include_str!("../../README.md");
    let scripts = readme.split("```toml\n").skip(1);
    let steps = scripts.map(|from| {
        let (script, _) = from.split_once("```").unwrap();
        Script::parse(script).unwrap().steps().len()
    });
    assert_eq!(steps.collect::<Vec<_>>(), [4, 2, 2, 3]);
}

#[test]
fn every_key_that_is_allowed_is_explained_in_the_readme() {
    let readme = include_str!("../../README.md");
    let places = [
        "nonsense = 1\n",
        "[server]\nnonsense = 1\n",
        "[[step]]\nnonsense = 1\n",
        "[[step]]\nmatch = { nonsense = 1 }\n",
        "[[step]]\nusage = { nonsense = 1 }\n",
        "[[step]]\nerror = { status = 500, nonsense = 1 }\n",
        "[[step]]\nraw = { nonsense = 1 }\n",
        "[[step]]\n[[step.tool_call]]\nnonsense = 1\n",
        "[[step]]\n[[step.insert]]\nnonsense = 1\n",
    ];
    let allowed = places.map(|place| {
        let source = place.replace("[[step]]\n", "[[step]]\nbehaviour = \"whole\"\n");
        let error = refused(&source);
        let ScriptError::UnknownKey { allowed, .. } = error else { panic!("{error:?}") };
        allowed
    });
    for key in allowed.concat() {
        let explained = ["`KEY`", "`[[step.KEY]]`", "`[[KEY]]`", "`[KEY]`"]
            .iter()
            .any(|spelled| readme.contains(&spelled.replace("KEY", key)));
        assert!(explained, "{key}");
    }
}

#[test]
fn every_word_that_is_allowed_is_explained_in_the_readme() {
    let readme = include_str!("../../README.md");
    let step = "[[step]]\nbehaviour = \"whole\"\n";
    let (script, server) = (["scope", "after"], ["tls", "protocol"]);
    let of_step = ["how", "http2_code", "gzip", "hang_up", "finish", "cut", "handshake"];
    let sources = script
        .map(|key| format!("{key} = \"\"\n{step}"))
        .into_iter()
        .chain(server.map(|key| format!("[server]\n{key} = \"\"\n{step}")))
        .chain(of_step.map(|key| format!("{step}{key} = \"\"\n")))
        .chain([format!("{step}[[step.insert]]\nwhat = \"\"\n")]);
    for source in sources {
        let error = refused(&source);
        let ScriptError::UnknownWord { key, allowed, .. } = error else { panic!("{error:?}") };
        // The codes of HTTP/2 are explained in its RFC.
        for word in allowed.iter().filter(|_| key != "http2_code") {
            let said = readme.contains(&format!("`{word}`"));
            assert!(said, "`{word}` of `{key}`");
        }
    }
}
