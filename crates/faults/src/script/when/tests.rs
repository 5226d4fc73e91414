use serde_json::json;

use super::*;

fn with<T>(
    path: &str,
    headers: &[(&str, &str)],
    body: &Value,
    look: impl Fn(&Asked<'_>) -> T,
) -> T {
    let mut sent = Headers::default();
    for (name, value) in headers {
        sent.push(name, value.as_bytes());
    }
    let raw = body.to_string().into_bytes();
    look(&Asked { path, headers: &sent, raw: &raw, body })
}

/// The same two requests in each dialect: a question, then its tool's result.
fn dialects() -> [(&'static str, Value, Value); 4] {
    let question = "what says notes.txt?";
    [
        (
            "/v1/chat/completions",
            json!({"model": "m", "messages": [
                {"role": "system", "content": "s"}, {"role": "user", "content": question}]}),
            json!({"model": "m", "messages": [
                {"role": "user", "content": [{"type": "text", "text": question}]},
                {"role": "assistant", "tool_calls": []},
                {"role": "tool", "tool_call_id": "c", "content": "sang"}]}),
        ),
        (
            "/v1/responses",
            json!({"model": "m", "input": question}),
            json!({"model": "m", "input": [
                {"role": "user", "content": [{"type": "input_text", "text": question}]},
                {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "hm"}]},
                {"type": "function_call", "name": "Read"},
                {"type": "function_call_output", "output": "sang"}]}),
        ),
        (
            "/v1/messages",
            json!({"model": "m", "messages": [{"role": "user", "content": question}]}),
            json!({"model": "m", "messages": [
                {"role": "user", "content": [{"type": "text", "text": question}]},
                {"role": "assistant", "content": [{"type": "tool_use"}]},
                {"role": "user", "content": [{"type": "tool_result", "content": "sang"}]}]}),
        ),
        (
            "/v1beta/models/m:streamGenerateContent?alt=sse",
            json!({"contents": [{"parts": [{"text": question}]}]}),
            json!({"contents": [
                {"role": "user", "parts": [{"text": question}]},
                {"role": "model", "parts": [{"functionCall": {}}]},
                {"role": "user", "parts": [{"functionResponse": {"response": {}}}]}]}),
        ),
    ]
}

#[test]
fn each_dialect_is_understood() {
    for (path, question, result) in dialects() {
        let fits = |when: &Match, body: &Value| with(path, &[], body, |asked| when.fits(asked));
        let asks = Match::default().last_user_contains("notes.txt");
        assert!(fits(&asks, &question) && fits(&asks, &result), "{path}");
        assert!(!fits(&Match::default().last_user_contains("sang"), &result), "{path}");
        let brings = Match::default().has_tool_result(true);
        assert!(!fits(&brings, &question) && fits(&brings, &result), "{path}");
        let brings_none = Match::default().has_tool_result(false);
        assert!(fits(&brings_none, &question) && !fits(&brings_none, &result), "{path}");
        assert!(fits(&Match::default().model("m"), &question), "{path}");
        assert!(!fits(&Match::default().model("mm"), &question), "{path}");
    }
}

#[test]
fn all_conditions_must_hold() {
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]});
    let fits = |when: Match| {
        with("/v1/chat/completions", &[("X-App", "test 7")], &body, |asked| when.fits(asked))
    };
    assert!(fits(Match::default()));
    assert!(fits(Match::default().path_contains("/chat/").header("x-app", "test")));
    assert!(fits(Match::default().body_contains("\"content\":\"hi\"").model("m")));
    assert!(!fits(Match::default().model("m").path_contains("/messages")));
    assert!(!fits(Match::default().model("m").header("x-app", "8")));
    assert!(!fits(Match::default().header("x-other", "")));
    assert!(!fits(Match::default().body_contains("ho").model("m")));
}

#[test]
fn a_session_is_found_in_the_ways_clients_name_it() {
    let session = |headers: &[(&str, &str)], body: Value, own: Option<&str>| {
        with("/v1/x", headers, &body, |asked| asked.session(own).map(str::to_owned))
    };
    let none = || json!({});
    assert_eq!(session(&[], none(), None), None);
    assert_eq!(session(&[("x-session-affinity", "a")], none(), None).as_deref(), Some("a"));
    assert_eq!(session(&[], json!({"prompt_cache_key": "b"}), None).as_deref(), Some("b"));
    assert_eq!(session(&[], json!({"metadata": {"user_id": "c"}}), None).as_deref(), Some("c"));
    let both = [("x-session-id", "theirs"), ("x-faults-session", "mine")];
    assert_eq!(session(&both, none(), None).as_deref(), Some("mine"));
    assert_eq!(session(&both, none(), Some("x-session-id")).as_deref(), Some("theirs"));
}
