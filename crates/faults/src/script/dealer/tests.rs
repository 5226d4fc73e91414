use serde_json::json;

use super::*;
use crate::{Dealing, Match, record::Headers, script::After};

const FAULTS: [&str; 3] = ["stall", "quota", "overloaded"];

/// A step that can be told from the others by its name.
fn step(name: &str) -> Step {
    Step::named(name).unwrap()
}

fn script(steps: Vec<Step>, dealing: Dealing) -> Script {
    Script::new(steps).unwrap().dealt(dealing).unwrap()
}

/// One letter a request: the first one of the behaviour's name, `-` for a whole
/// answer outside the script, `>` for a new connection.
struct Table {
    script: Script,
    dealer: Dealer,
}

impl Table {
    fn new(steps: Vec<Step>, dealing: Dealing) -> Self {
        let seed = dealing.seed.unwrap_or(0);
        Self { script: script(steps, dealing), dealer: Dealer::new(seed) }
    }

    fn ask(&mut self, connection: usize, model: &str, session: Option<&str>) -> char {
        let body = json!({ "model": model });
        let raw = body.to_string().into_bytes();
        let mut headers = Headers::default();
        if let Some(session) = session {
            headers.push("X-Session-Id", session.as_bytes());
        }
        let asked = Asked { path: "/v1/x", headers: &headers, raw: &raw, body: &body };
        match self.dealer.deal_request(&self.script, &asked, connection) {
            Dealt::Step(index) => self.letter(index),
            Dealt::Whole => '-',
            Dealt::Reconnect => '>',
        }
    }

    fn letter(&self, index: usize) -> char {
        self.script.steps()[index].name().unwrap().chars().next().unwrap()
    }

    fn row(&mut self, requests: usize) -> String {
        (0..requests).map(|_| self.ask(1, "m", None)).collect()
    }
}

#[test]
fn after_the_last_step_comes_what_the_script_says() {
    let dealt =
        |after| Table::new(FAULTS.map(step).to_vec(), Dealing::default().after(after)).row(8);
    assert_eq!(dealt(After::RepeatLast), "sqoooooo");
    assert_eq!(dealt(After::StartAgain), "sqosqosq");
    assert_eq!(dealt(After::Answer), "sqo-----");
}

#[test]
fn a_step_is_dealt_as_often_as_it_says() {
    let steps = vec![step("stall").times(3), step("whole")];
    assert_eq!(Table::new(steps, Dealing::default()).row(6), "ssswww");
}

#[test]
fn a_step_waits_for_the_request_it_is_for() {
    let small = step("quota").when(Match::default().model("small")).times(2);
    let mut table = Table::new(vec![small, step("stall"), step("whole")], Dealing::default());
    let asked = ["big", "small", "big", "small", "small", "big"];
    let dealt: String = asked.iter().map(|model| table.ask(1, model, None)).collect();
    assert_eq!(dealt, "sqwqww");
}

#[test]
fn a_request_that_no_step_is_for_gets_a_whole_answer_and_moves_nothing() {
    let small = |name: &str| step(name).when(Match::default().model("small"));
    for after in [After::RepeatLast, After::StartAgain, After::Answer] {
        let steps = vec![small("stall").times(2), small("quota")];
        let mut table = Table::new(steps, Dealing::default().after(after));
        let asked = ["big", "small", "big", "small", "big", "small"];
        let dealt: String = asked.iter().map(|model| table.ask(1, model, None)).collect();
        assert_eq!(dealt, "-s-s-q", "{after:?}");
    }
}

#[test]
fn connections_and_sessions_have_rows_of_their_own() {
    let steps = || vec![step("stall"), step("quota"), step("whole")];
    let mut table = Table::new(steps(), Dealing::default().scope(Scope::Connection));
    let asked = [1, 1, 2, 1, 2, 3];
    assert_eq!(
        asked.map(|connection| table.ask(connection, "m", None)),
        ['s', 'q', 's', 'w', 'q', 's']
    );

    let mut table = Table::new(steps(), Dealing::default().scope(Scope::Session));
    let asked = [Some("a"), Some("b"), Some("a"), None, None, Some("a")];
    assert_eq!(asked.map(|session| table.ask(1, "m", session)), ['s', 's', 'q', 's', 'q', 'w']);
    let left: Vec<String> =
        table.dealer.left().iter().map(|row| serde_json::to_string(row).unwrap()).collect();
    assert_eq!(
        left,
        [
            r#"{"of":{"session":null},"left":[0,0,1]}"#,
            r#"{"of":{"session":"a"},"left":[0,0,0]}"#,
            r#"{"of":{"session":"b"},"left":[0,1,1]}"#,
        ]
    );
}

#[test]
fn a_lone_step_with_a_probability_fails_as_often_as_it_says() {
    let dealt = |seed| {
        let steps = vec![step("stall").probability(0.3)];
        Table::new(steps, Dealing::default().seed(seed)).row(2000)
    };
    let failed = dealt(7).matches('s').count();
    assert!((500..=700).contains(&failed), "{failed} of 2000");
    assert_eq!(dealt(7), dealt(7), "the same seed throws the same dice");
    assert_ne!(dealt(7), dealt(8));
}

#[test]
fn dice_that_say_no_let_the_request_go_on() {
    let steps =
        || vec![step("stall").probability(0.2), step("quota").probability(0.2), step("whole")];
    let dealing = Dealing::default().seed(3).after(After::StartAgain);
    let dealt = Table::new(steps(), dealing).row(3000);
    let share = |letter| dealt.matches(letter).count() as f64 / 3000.0;
    // Of a round 0.2 are stalls, and so are 0.2 of what goes on, and one is whole.
    let round = 0.2 + 0.2 + 1.0;
    assert!((share('s') - 0.2 / round).abs() < 0.03, "{}", share('s'));
    assert!((share('q') - 0.2 / round).abs() < 0.03, "{}", share('q'));
    let never = vec![step("stall").probability(0.0), step("whole")];
    assert_eq!(Table::new(never, Dealing::default()).row(3), "www");
    let always = vec![step("stall").probability(1.0), step("whole")];
    assert_eq!(Table::new(always, Dealing::default()).row(3), "sww");
}

#[test]
fn a_step_with_times_throws_once_for_each_request() {
    let steps = vec![step("stall").probability(0.1).times(1000), step("whole")];
    let dealt = Table::new(steps, Dealing::default().seed(5)).row(1000);
    let failed = dealt.matches('s').count();
    assert!((60..=140).contains(&failed), "{failed} of 1000");
}

#[test]
fn a_step_that_is_always_there_is_never_used_up() {
    let small = step("quota").when(Match::default().model("small")).times(Step::ALWAYS);
    let dealing = Dealing::default().after(After::Answer);
    let mut table = Table::new(vec![small, step("stall"), step("whole")], dealing);
    let asked = ["small", "big", "small", "big", "big", "small"];
    let dealt: String = asked.iter().map(|model| table.ask(1, model, None)).collect();
    assert_eq!(dealt, "qsqw-q");
    let steps = ["stall", "quota"].map(|name| step(name).probability(0.1).times(Step::ALWAYS));
    let steps = [steps.to_vec(), vec![step("whole")]].concat();
    let dealt = Table::new(steps, Dealing::default().seed(2)).row(3000);
    let share = |letter| dealt.matches(letter).count() as f64 / 3000.0;
    assert!((share('s') - 0.1).abs() < 0.02 && (share('q') - 0.09).abs() < 0.02, "{}", share('s'));
}

#[test]
fn rows_throw_dice_of_their_own_whatever_the_order() {
    let table = || {
        let steps = vec![step("stall").probability(0.5)];
        Table::new(steps, Dealing::default().seed(1).scope(Scope::Session))
    };
    let of = |table: &mut Table, session: &str| -> String {
        (0..40).map(|_| table.ask(1, "m", Some(session))).collect()
    };
    let (mut one, mut other) = (table(), table());
    let (a, b) = (of(&mut one, "a"), of(&mut one, "b"));
    let (b_first, a_second) = (of(&mut other, "b"), of(&mut other, "a"));
    assert_eq!((&a, &b), (&a_second, &b_first));
    assert_ne!(a, b);
}

#[test]
fn a_failing_handshake_is_dealt_to_the_next_connection() {
    let steps = vec![step("stall"), step("tls_expired").times(2), step("whole")];
    let mut table = Table::new(steps, Dealing::default());
    let handshake = |table: &mut Table| table.dealer.deal_handshake(&table.script).is_some();
    assert!(!handshake(&mut table));
    assert_eq!(table.row(1), "s");
    assert_eq!(table.row(2), ">>", "only a connection uses it up");
    assert!(handshake(&mut table) && handshake(&mut table) && !handshake(&mut table));
    assert_eq!(table.row(2), "ww");
}

#[test]
fn a_failing_handshake_at_the_end_repeats_or_begins_again() {
    let dealt = |after| {
        let mut table =
            Table::new(vec![step("tls_expired"), step("whole")], Dealing::default().after(after));
        let handshakes: Vec<bool> = (0..3)
            .map(|_| {
                let failed = table.dealer.deal_handshake(&table.script).is_some();
                if !failed {
                    table.row(1);
                }
                failed
            })
            .collect();
        handshakes
    };
    assert_eq!(dealt(After::RepeatLast), [true, false, false]);
    assert_eq!(dealt(After::StartAgain), [true, false, true]);
    let mut last = Table::new(vec![step("whole"), step("tls_expired")], Dealing::default());
    assert_eq!(last.row(3), "w>>");
    for _ in 0..3 {
        assert!(last.dealer.deal_handshake(&last.script).is_some());
    }
    assert_eq!(last.row(1), ">");
}
