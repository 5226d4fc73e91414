use crate::stage::bare;

#[test]
fn the_demo_shows_one_answer_one_wait_one_restart_and_the_diff() {
    let ran = bare(&["demo"]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    assert_eq!(ran.stdout.matches("I fixed the typo").count(), 1, "{}", ran.stdout);
    for shown in [
        "1 answer, 1 capacity wait, 1 restart, 2 tool calls, 5 requests",
        "The provider counted 5 requests; none of them held a part of the broken answer.",
        "-Hello, wrold!",
        "+Hello, world!",
        "waited 1.2 s [capacity budget]",
        "waited 0.75 s [stream budget]",
        "What to run next",
    ] {
        assert!(ran.stdout.contains(shown), "{} lacks {shown}", ran.stdout);
    }
    assert!(!ran.stdout.contains('\u{1b}'), "colours are for terminals");
}
