use super::*;
use serde_json::json;

fn named(name: &str) -> Step {
    Step::named(name).unwrap()
}

fn due(steps: Vec<Step>) -> Due {
    foretell(&Script::new(steps).unwrap(), Until::Played, &Chance::default())
}

#[test]
fn the_documented_waits_are_those_of_the_design() {
    assert_eq!(documented_wait("stream", 0, Some((9, 9))), (750, 750));
    assert_eq!(documented_wait("setup", 0, None), (500, 625));
    assert_eq!(documented_wait("capacity", 0, None), (2000, 2500));
    assert_eq!(documented_wait("capacity", 3, None), (16_000, 20_000));
    assert_eq!(documented_wait("capacity", 4, None), (30_000, 30_000));
    assert_eq!(documented_wait("capacity", 4, Some((1234, 1234))), (1234, 1234));
    assert_eq!(documented_wait("silent", 0, None), (0, 0));
}

#[test]
fn a_step_pays_each_budget_once_and_the_next_step_has_its_own() {
    let read = named("whole").tool_call("Read", &json!({"path": "a"}));
    let due = due(vec![
        named("stall"),
        named("server_error"),
        read,
        named("stall"),
        named("stall"),
        named("whole").text("ok"),
    ]);
    let stalled = Failing { code: "TIMEOUT", phase: "stream" };
    let done = Ending::Completed("ok".to_owned());
    assert_eq!(due.prompts, [Ending::Failed(stalled), done.clone(), done]);
    let places: Vec<_> = due.attempts.iter().map(|a| (a.prompt, a.step)).collect();
    assert_eq!(
        places,
        [(0, 0), (0, 0), (0, 0), (0, 1), (0, 1), (1, 0), (2, 0)],
        "one more prompt shows what is remembered"
    );
    let budgets: Vec<_> = due.attempts.iter().map(|a| a.retry.map(|r| r.budget)).collect();
    assert_eq!(budgets, [Some("stream"), Some("setup"), None, Some("stream"), None, None, None]);
}

#[test]
fn a_request_on_a_dead_connection_is_lost_in_one_way_or_another() {
    let script = Script::new(vec![
        named("close_after_answer").text("one"),
        named("close_after_answer").text("two"),
    ]);
    let script = script.unwrap();
    let until = Until::Prompts(3);
    assert_eq!(ways(&script, until, 3, 3).count(), 1);
    let lost: Vec<usize> = ways(&script, until, 4, 3)
        .filter_map(|due| due.attempts.iter().position(|attempt| attempt.dealt.is_none()))
        .collect();
    assert_eq!(lost, [1, 2]);
}

#[test]
fn a_prompt_that_ended_by_a_dead_connection_may_leave_another_one_behind() {
    let script =
        Script::new(vec![named("server_error"), named("tls_alert"), named("whole").text("ok")]);
    let script = script.unwrap();
    // The purse is empty after the first loss, so that no fresh connection follows it.
    let twice = ways(&script, Until::Played, 6, 4)
        .map(|due| due.attempts.iter().map(|a| a.dealt.is_none()).collect::<Vec<_>>())
        .collect::<Vec<_>>();
    assert_eq!(twice, [[false, true, true, false, false, false]]);
}

#[test]
fn a_dead_connection_lies_in_the_pool_until_it_is_used() {
    let steps = ["reset_on_reuse", "whole"].map(|name| named(name).text(name)).to_vec();
    let script = Script::new(steps).unwrap();
    let lost: Vec<usize> = ways(&script, Until::Prompts(3), 4, 3)
        .filter_map(|due| due.attempts.iter().position(|attempt| attempt.dealt.is_none()))
        .collect();
    assert_eq!(lost, [1, 2], "the second prompt meets it, or the third");
}

#[test]
fn an_answer_after_bytes_of_no_answer_may_not_be_read() {
    let names = ["bytes_beyond_length", "whole", "whole"];
    let script = Script::new(names.map(|name| named(name).text(name)).to_vec()).unwrap();
    let failed: Vec<_> = ways(&script, Until::Prompts(2), 3, 3)
        .map(|due| due.attempts.iter().map(|a| a.fails.is_some()).collect::<Vec<_>>())
        .collect();
    assert_eq!(failed, [vec![false, false], vec![false, true, false]]);
}

#[test]
fn a_broken_handshake_may_meet_a_connection_that_was_opened_for_later() {
    let steps = vec![named("tls_alert"), named("whole").text("ok")];
    let script = Script::new(steps).unwrap();
    let prompts = |due: Due| (due.prompts.len(), due.spare, due.dealt());
    let seen: Vec<_> = ways(&script, Until::Played, 3, 3).map(prompts).collect();
    assert_eq!(seen, [(3, 0, 3)], "the first fails, or a request is lost for each spare one");
    let seen: Vec<_> = ways(&script, Until::Played, 2, 3).map(prompts).collect();
    assert_eq!(seen, [(3, 0, 3), (2, 1, 3)]);
}

#[test]
fn a_script_that_calls_tools_for_ever_is_known_not_to_end() {
    assert!(due(vec![named("whole").tool_call("Read", &json!({"path": "a"}))]).endless);
}
