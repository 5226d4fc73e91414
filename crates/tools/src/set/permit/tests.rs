use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use serde_json::json;

use super::*;
use crate::{Approver, ToolOutput, ToolSet, ToolSpec};

/// A tool that runs programs, or says that it would.
struct Runs(ToolSpec);

#[async_trait]
impl Tool for Runs {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn effect(&self, _input: &Value) -> Effect {
        Effect::Execute
    }

    async fn run(&self, _input: Value, _context: &ToolContext) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text("ran"))
    }
}

/// Answers each question with the next answer, and counts them.
struct Answers {
    answers: Vec<Answer>,
    asked: AtomicUsize,
}

#[async_trait]
impl Approver for Answers {
    async fn answer(&self, _request: &ApprovalRequest) -> Answer {
        self.answers[self.asked.fetch_add(1, Ordering::Relaxed)]
    }
}

fn stage(answers: &[Answer]) -> (ToolSet, Arc<Answers>) {
    let answers = Arc::new(Answers { answers: answers.to_vec(), asked: AtomicUsize::new(0) });
    let approver: Arc<dyn Approver> = Arc::<Answers>::clone(&answers);
    let tool = |name: &str| {
        Arc::new(Runs(ToolSpec {
            name: name.to_owned(),
            description: "runs".to_owned(),
            input_schema: json!({"type": "object"}),
        }))
    };
    let set = ToolSet::new().with(tool("One")).with(tool("Two"));
    (set.with_permissions(PermissionMode::Ask, approver), answers)
}

async fn runs(tools: &PromptTools, name: &str) -> bool {
    let call = Call { id: "1".to_owned(), name: name.to_owned(), input: Ok(json!({})) };
    tools.call(&call, &ToolContext::default()).await.started
}

#[tokio::test]
async fn an_answer_for_the_session_holds_for_that_tool_in_later_prompts() {
    use Answer::{Allow, AllowForSession, Deny};
    let (set, answers) = stage(&[Allow, AllowForSession, Deny]);
    let asked = || answers.asked.load(Ordering::Relaxed);
    let first = set.begin_prompt();
    assert!(runs(&first, "One").await);
    assert!(runs(&first, "One").await);
    assert_eq!(asked(), 2, "allowed once is asked again");
    assert!(runs(&first, "One").await);
    assert!(runs(&set.begin_prompt(), "One").await);
    assert_eq!(asked(), 2, "allowed for the session is not");
    assert!(!runs(&first, "Two").await);
    assert_eq!(asked(), 3, "another tool is another question");
}

#[tokio::test]
async fn a_denial_is_for_one_call_and_is_told_to_the_model() {
    let (set, answers) = stage(&[Answer::Deny, Answer::Allow]);
    let tools = set.begin_prompt();
    let call = Call { id: "1".to_owned(), name: "One".to_owned(), input: Ok(json!({})) };
    let outcome = tools.call(&call, &ToolContext::default()).await;
    assert_eq!(outcome.text(), "not run: the user did not allow it");
    assert!(!outcome.started);
    assert!(runs(&tools, "One").await);
    assert_eq!(answers.asked.load(Ordering::Relaxed), 2);
}
