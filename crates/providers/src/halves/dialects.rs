//! Every dialect mends what it gets in halves.

use super::MARKS;
use crate::template::samples::{SAMPLES, told, with_text};

/// What all events together tell when the deltas of a sample have these texts.
fn all_told(bodies: &[&str]) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for sample in SAMPLES {
        for delta in sample.deltas {
            let mut events: Vec<String> =
                sample.before.iter().map(|&event| event.to_owned()).collect();
            events.push((*delta).to_owned());
            events.extend(bodies.iter().map(|body| with_text(delta, body)));
            events.extend(sample.end.iter().map(|&event| event.to_owned()));
            let [with, without] = (sample.readings)();
            let seen = told(with, &events).concat();
            assert_eq!(seen, told(without, &events).concat(), "{events:#?}");
            assert!(!seen.chars().any(|c| MARKS.contains(&u32::from(c))), "{seen}");
            all.push((events.join("\n"), seen));
        }
    }
    all
}

#[test]
fn a_pair_that_two_deltas_share_is_one_character() {
    for (events, told) in all_told(&["a\\ud83d", "\\ude00b"]) {
        assert!(told.contains("😀b") && !told.contains('\u{fffd}'), "{events}\n{told}");
    }
}

#[test]
fn half_a_pair_stays_visible_alone_wherever_it_stands() {
    for bodies in [&["a\\ud83d", "b"][..], &["\\ude00a"], &["a", "b\\ud83d"]] {
        for (events, told) in all_told(bodies) {
            assert!(told.contains('\u{fffd}'), "{events}\n{told}");
        }
    }
}
