//! Every mistake is told with its place, what is allowed there and the nearest
//! right name.

use std::{fs, path::Path};

use super::super::*;

/// The message with its causes, as a person would see it.
fn told(error: &ScriptError) -> String {
    let mut told = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        told = format!("{told}: {cause}");
        source = cause.source();
    }
    told
}

/// What stands beside the bad script.
const BESIDE: [(&str, &str); 3] = [
    ("other.toml", "[[step]]\nbehaviour = \"whole\"\n\n[[step]]\ninclude = \"./bad.toml\"\n"),
    ("settings.toml", "seed = 3\n\n[[step]]\nbehaviour = \"whole\"\n"),
    ("broken.toml", "[[step]]\nbehaviour = \"whol\"\n"),
];

/// Reads it from a file, and says the error without the folder it lay in.
fn refused(folder: &Path, source: &str) -> String {
    let path = folder.join("bad.toml");
    fs::write(&path, source).unwrap();
    let error = Script::from_path(&path).unwrap_err();
    let at = error.at().unwrap();
    assert!(at.file.is_some(), "{error:?}");
    let has_place = at.line.is_some() && at.column.is_some();
    assert!(has_place || matches!(error, ScriptError::NoSteps { .. }), "{error:?}");
    let told = told(&error).replace(&format!("{}/", folder.display()), "");
    // The catalogue grows, and this page is about the words around it.
    match &error {
        ScriptError::UnknownBehaviour { near, known, .. } => {
            assert!(near.len() == 5 && *known > near.len(), "{error:?}");
            let (known, near) = (format!("all {known}"), near.join(", "));
            told.replace(&known, "all N").replace(&near, "(five names)")
        }
        _ => told,
    }
}

#[test]
fn every_mistake_is_told_with_its_place_and_the_way_out() {
    let step = "[[step]]\nbehaviour = \"whole\"\n";
    let cases = [
        "[[step]]\nbehaviour = \"whole\ntext = 1\n".to_owned(),
        "steps = 1\n".to_owned(),
        "[step]\nbehaviour = \"whole\"\n".to_owned(),
        "step = [1]\n".to_owned(),
        "[[step]]\nbehavior = \"whole\"\n".to_owned(),
        "[[step]]\ntext = \"x\"\n".to_owned(),
        "[[step]]\nbehaviour = \"cut_inside_evnt\"\n".to_owned(),
        "[[step]]\nbehaviour = \"zzz\"\n".to_owned(),
        "[[step]]\nbehaviour = 7\n".to_owned(),
        format!("{step}event_delay_ms = -1\n"),
        format!("{step}event_delay_ms = 1.5\n"),
        format!("{step}chunk_chars = 0\n"),
        format!("{step}retry_after_ms = 99999999999999999999\n"),
        format!("{step}text = 3\n"),
        format!("{step}finish = \"lenght\"\n"),
        format!("{step}usage = {{ inputs = 3 }}\n"),
        format!("{step}usage = {{ input = -3 }}\n"),
        format!("{step}usage = 3\n"),
        format!("{step}headers = {{ a = 3 }}\n"),
        format!("{step}headers = {{ \"a b\" = \"c\" }}\n"),
        format!("{step}[[step.tool_call]]\nargs = {{}}\n"),
        format!("{step}[[step.tool_call]]\nid = \"x\"\n"),
        format!("{step}[[step.tool_call]]\nname = \"x\"\narguments = 3\n"),
        format!("{step}at_event = 3\n"),
        format!("{step}how = \"fin\"\n"),
        format!("{step}cut_delay_ms = 3\n"),
        format!("{step}retry_after_ms = 3\n"),
        "[[step]]\nbehaviour = \"quota\"\ntext = \"x\"\n".to_owned(),
        "[[step]]\nbehaviour = \"cut_inside_event\"\nhow = \"finn\"\n".to_owned(),
        "[[step]]\nbehaviour = \"cut_inside_event\"\nat_event = 99\n".to_owned(),
        "[[step]]\nbehaviour = \"cut_before_status\"\nhow = \"clean_end\"\n".to_owned(),
        "[[step]]\nbehaviour = \"cut_inside_character\"\ntext = \"plain\"\n".to_owned(),
        "[[step]]\nbehaviour = \"cut_inside_event\"\nhow = \"rst_stream\"\nhttp2_code = \"CALM\"\n"
            .to_owned(),
        format!("{step}http2_code = \"CANCEL\"\n"),
        format!("{step}gzip = \"flush\"\n"),
        "[[step]]\nbehaviour = \"tls_expired\"\ngzip = \"held\"\n".to_owned(),
        "[[step]]\nbehaviour = \"stall\"\nhang_up = \"at_once\"\n".to_owned(),
        "[[step]]\nbehaviour = \"cut_before_status\"\nhow = \"bad_chunk\"\n".to_owned(),
        format!("[server]\ntls = \"expird\"\n{step}"),
        format!("[server]\nprotocol = 2\n{step}"),
        format!("[server]\ncert = \"x\"\n{step}"),
        format!("[[server]]\n{step}"),
        format!("[server]\nca_file = \"ca.pem\"\n{step}"),
        "[server]\nprotocol = \"http2\"\n\n[[step]]\nbehaviour = \"bad_chunk\"\n".to_owned(),
        "[server]\n\n[[step]]\nbehaviour = \"tls_expired\"\n".to_owned(),
        "[server]\ntls = \"good\"\n\n[[step]]\nbehaviour = \"http2_refused_stream\"\n".to_owned(),
        "[[step]]\nbehaviour = \"http2_refused_stream\"\n\n[[step]]\nbehaviour = \"short_body\"\n"
            .to_owned(),
        String::new(),
        "seed = 7\n".to_owned(),
        format!("sed = 7\n{step}"),
        format!("seed = -7\n{step}"),
        format!("seed = \"x\"\n{step}"),
        format!("scope = \"conection\"\n{step}"),
        format!("after = \"repeat\"\n{step}"),
        format!("session_header = 3\n{step}"),
        format!("{step}probability = 1.5\n"),
        format!("{step}probability = -0.1\n"),
        format!("{step}probability = nan\n"),
        format!("{step}probability = \"often\"\n"),
        format!("{step}times = 0\n"),
        format!("{step}times = \"allways\"\n"),
        format!("{step}times = 1.5\n"),
        format!("{step}match = \"x\"\n"),
        format!("{step}match = {{ last_user_contain = \"x\" }}\n"),
        format!("{step}match = {{ has_tool_result = \"yes\" }}\n"),
        format!("{step}match = {{ header = \"x\" }}\n"),
        format!("{step}match = {{ header = {{ x-app = 3 }} }}\n"),
        "[[step]]\nbehaviour = \"tls_expired\"\nmatch = { model = \"m\" }\n".to_owned(),
        "scope = \"session\"\n[[step]]\nbehaviour = \"tls_expired\"\n".to_owned(),
        "[[step]]\n".to_owned(),
        format!("{step}cut = \"inside_evnt\"\n"),
        format!("{step}cut = \"inside_body\"\n"),
        "[[step]]\ncut = \"after_headers\"\nat_event = 3\n".to_owned(),
        "[[step]]\ncut = \"after_event\"\nat_event = 99\n".to_owned(),
        "[[step]]\nerror = { type = \"server_error\" }\n".to_owned(),
        "[[step]]\nerror = { status = 204 }\n".to_owned(),
        "[[step]]\nerror = { status = 500 }\ncut = \"after_event\"\n".to_owned(),
        "[[step]]\nerror = { status = 500 }\nwithout_terminal = true\n".to_owned(),
        "[[step]]\nerror = { status = 500 }\ntext = \"x\"\n".to_owned(),
        "[[step]]\nerror = { status = 500 }\nraw = { body = \"x\" }\n".to_owned(),
        "[[step]]\nraw = { body = 3 }\n".to_owned(),
        "[[step]]\nredirect = 300\n".to_owned(),
        "[[step]]\nhandshake = \"good\"\n".to_owned(),
        "[[step]]\nhandshake = \"expired\"\nstatus = 500\n".to_owned(),
        "[[step]]\nstatus = 600\n".to_owned(),
        "[[step]]\nwithout_terminal = \"yes\"\n".to_owned(),
        "[[step]]\n[[step.insert]]\nat = \"after_event\"\n".to_owned(),
        "[[step]]\n[[step.insert]]\nwhat = \"malformd\"\n".to_owned(),
        "[[step]]\n[[step.insert]]\nwhat = \"huge_line\"\n".to_owned(),
        "[[step]]\n[[step.insert]]\nwhat = \"malformed\"\nbytes = 3\n".to_owned(),
        "[[step]]\n[[step.insert]]\nwhat = \"raw\"\n".to_owned(),
        "[[step]]\n[[step.insert]]\nwhat = \"comment\"\nevery_ms = -1\n".to_owned(),
        "[[step]]\n[[step.insert]]\nwhat = \"error\"\nevery_ms = 1\n".to_owned(),
        "[[step]]\n[[step.insert]]\nwhat = \"malformed\"\nat = \"at_end\"\nevent = 3\n".to_owned(),
        "[[step]]\n[[step.insert]]\nwhat = \"malformed\"\nat = \"inside_event\"\n".to_owned(),
        "[[step]]\n[[step.insert]]\nwhat = \"malformed\"\nevent = 99\n".to_owned(),
        "[[step]]\n[[step.insert]]\nwhat = \"corrupt_gzip\"\n".to_owned(),
        "[[step]]\ninclude = 3\n".to_owned(),
        "[[step]]\ninclude = \"cut_onse\"\n".to_owned(),
        "[[step]]\ninclude = \"missing.toml\"\n".to_owned(),
        "[[step]]\ninclude = \"cut_once\"\ntext = \"x\"\n".to_owned(),
        "[[step]]\ninclude = \"bad.toml\"\n".to_owned(),
        "# round and round\n[[step]]\ninclude = \"other.toml\"\n".to_owned(),
        "[[step]]\ninclude = \"settings.toml\"\n".to_owned(),
        "[[step]]\ninclude = \"broken.toml\"\n".to_owned(),
    ];
    let folder = tempfile::tempdir().unwrap();
    for (name, source) in BESIDE {
        fs::write(folder.path().join(name), source).unwrap();
    }
    let told: Vec<String> = cases
        .iter()
        .map(|source| format!("{source}--> {}\n", refused(folder.path(), source)))
        .collect();
    println!("counted: {} bad scripts", told.len());
    let of_code = told.iter().find(|told| told.contains("::") || told.contains("`."));
    assert_eq!(of_code, None, "a script is written in TOML, not in code");
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn a_circle_of_files_is_shown_whole() {
    let folder = tempfile::tempdir().unwrap();
    let include = |name: &str| format!("[[step]]\ninclude = \"{name}\"\n");
    for (name, to) in [("a.toml", "b.toml"), ("b.toml", "sub/../c.toml"), ("c.toml", "a.toml")] {
        fs::write(folder.path().join(name), include(to)).unwrap();
    }
    fs::create_dir(folder.path().join("sub")).unwrap();
    let error = Script::from_path(folder.path().join("a.toml")).unwrap_err();
    let ScriptError::Cycle { cycle, at } = &error else { panic!("{error:?}") };
    let names: Vec<_> = cycle.iter().map(|path| path.file_name().unwrap()).collect();
    assert_eq!(names, ["a.toml", "b.toml", "c.toml", "a.toml"]);
    assert_eq!((at.line, at.file.as_deref().unwrap().ends_with("c.toml")), (Some(2), true));
}

#[test]
fn the_same_file_twice_is_no_circle_but_too_many_steps_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let twice = |name: &str| format!("[[step]]\ninclude = \"{name}\"\n").repeat(2);
    fs::write(folder.path().join("0.toml"), "[[step]]\nbehaviour = \"whole\"\n").unwrap();
    for n in 1..16 {
        let name = folder.path().join(format!("{n}.toml"));
        fs::write(name, twice(&format!("{}.toml", n - 1))).unwrap();
    }
    let script = Script::from_path(folder.path().join("3.toml")).unwrap();
    assert_eq!(script.steps().len(), 8);
    let error = Script::from_path(folder.path().join("15.toml")).unwrap_err();
    assert!(matches!(error, ScriptError::TooManySteps { most: 10_000, .. }), "{error}");
}

#[test]
fn a_text_that_is_no_file_says_its_line_and_cannot_include_files() {
    let error = Script::parse("[[step]]\nbehaviour = \"whole\"\n\n[[step]]\nhow = 1\n");
    assert!(error.unwrap_err().to_string().starts_with("line 4, column 1: `behaviour` is missing"));
    let error = Script::parse("[[step]]\ninclude = \"other.toml\"\n").unwrap_err();
    assert!(matches!(error, ScriptError::NoFolder { .. }), "{error:?}");
    assert!(
        error.to_string().starts_with("line 2, column 11: `other.toml` cannot be included"),
        "{error}"
    );
    assert_eq!(Script::parse("[[step]]\ninclude = \"cut_once\"\n").unwrap().steps().len(), 2);
}

#[test]
fn included_steps_come_where_they_are_included() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, source: &str| fs::write(folder.path().join(name), source).unwrap();
    fs::create_dir(folder.path().join("sub")).unwrap();
    write("sub/deep.toml", "[[step]]\nbehaviour = \"quota\"\n");
    write(
        "sub/storm.toml",
        "[[step]]\nbehaviour = \"overloaded\"\n[[step]]\ninclude = \"deep.toml\"\n",
    );
    write(
        "main.toml",
        "seed = 3\n[[step]]\nbehaviour = \"stall\"\n[[step]]\ninclude = \"sub/storm.toml\"\n\
         [[step]]\ninclude = \"cut_once\"\n",
    );
    let script = Script::from_path(folder.path().join("main.toml")).unwrap();
    let names: Vec<_> = script.steps().iter().map(|step| step.name().unwrap()).collect();
    assert_eq!(names, ["stall", "overloaded", "quota", "cut_inside_event", "whole"]);
    assert_eq!(Script::parse(&script.to_toml().unwrap()).unwrap(), script);
}
