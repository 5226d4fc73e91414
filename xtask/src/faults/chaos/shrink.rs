//! The shortest script that still breaks something.

use turnbuckle_faults::{Script, Step};

use super::super::{plant::Plant, stage::Part};

/// The most scripts that are tried for one failure.
const MOST_TRIES: usize = 60;

/// What is left of a script when everything is taken away that breaks nothing, and what
/// it breaks.
pub(super) async fn shrink(
    part: &Part,
    plant: Option<Plant>,
    complaints: Vec<String>,
) -> (Part, Vec<String>) {
    let (mut smallest, mut found) = (part.clone(), complaints);
    let mut tries = 0;
    'smaller: loop {
        for script in smaller(&smallest.script) {
            tries += 1;
            if tries > MOST_TRIES {
                break 'smaller;
            }
            let candidate = Part { script, ..smallest.clone() };
            let broken = super::broken_by(&candidate, plant).await;
            if !broken.is_empty() {
                (smallest, found) = (candidate, broken);
                continue 'smaller;
            }
        }
        break;
    }
    (smallest, found)
}

/// Every script that is one step shorter, and then every one with a step less strange.
/// The last step stays: it answers for ever.
fn smaller(script: &Script) -> Vec<Script> {
    let steps = script.steps();
    let but_last = steps.len().saturating_sub(1);
    let shorter = (0..but_last).filter_map(|at| {
        let left = steps.iter().enumerate().filter(|(place, _)| *place != at);
        Script::new(left.map(|(_, step)| step.clone()).collect()).ok()
    });
    let plainer = (0..but_last).filter_map(|at| {
        // What a fault says by itself may be a fault too.
        let plain = |step: &&Step| step.name() != Some("whole") && !step.behaviour().says();
        let step = steps.get(at).filter(plain)?;
        let mut plain = Step::named("whole").ok()?.text(step.answer());
        for call in step.answer_calls() {
            plain = plain.call(call);
        }
        let mut steps = steps.to_vec();
        *steps.get_mut(at)? = plain;
        Script::new(steps).ok()
    });
    shorter.chain(plainer).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_smaller_script_lacks_a_step_or_has_one_that_is_whole() {
        let named = |name| Step::named(name).unwrap();
        let script =
            Script::new(vec![named("stall"), named("whole"), named("whole").text("x")]).unwrap();
        let names = |script: &Script| {
            script.steps().iter().filter_map(Step::name).collect::<Vec<_>>().join(" ")
        };
        let smaller: Vec<_> = smaller(&script).iter().map(names).collect();
        assert_eq!(smaller, ["whole whole", "stall whole", "whole whole whole"]);
    }
}
