//! The turn that is played: steps with changes that can be counted, and an answer.

use anyhow::{Context as _, Result};
use turnbuckle_faults::Script;

/// The steps that ask for tools.
const STEPS: usize = 9;

/// The file to which every counted call appends its id.
pub(super) const LOG: &str = "log";

/// What the last answer says.
pub(super) const ANSWER: &str = "everything is noted, and the work is done";

/// A turn in which each step says a few words and asks for tools: one change that
/// is counted, in every second step another one, beside them a read or a whole
/// file. One attempt on the way is cut.
pub(super) fn script() -> Result<Script> {
    let mut text = String::new();
    for step in 1..=STEPS {
        if step == 4 {
            text.push_str("[[step]]\nbehaviour = \"cut_inside_event\"\ntext = \"lost words that nobody keeps, whatever happens here\"\n");
        }
        text.push_str(&format!(
            "[[step]]\nbehaviour = \"whole\"\nevent_delay_ms = 4\n\
             text = \"step {step} is to be noted with some words that take a while\"\n"
        ));
        text.push_str(&counted(&format!("c{step}")));
        if step % 2 == 0 {
            text.push_str(&counted(&format!("d{step}")));
        }
        if step % 3 == 0 {
            text.push_str(&format!(
                "[[step.tool_call]]\nid = \"w{step}\"\nname = \"Write\"\n\
                 arguments = {{ path = \"file-{step}\", content = \"whole {step}\" }}\n"
            ));
        } else {
            text.push_str(&format!(
                "[[step.tool_call]]\nid = \"r{step}\"\nname = \"Read\"\narguments = {{ path = \"notes\" }}\n"
            ));
        }
    }
    text.push_str(&format!(
        "[[step]]\nbehaviour = \"whole\"\nevent_delay_ms = 4\ntext = \"{ANSWER}\"\n"
    ));
    Script::parse(&text).context("the script of the turn is wrong")
}

fn counted(id: &str) -> String {
    format!(
        "[[step.tool_call]]\nid = \"{id}\"\nname = \"Bash\"\n\
         arguments = {{ command = \"echo {id} >> {LOG}\" }}\n"
    )
}
