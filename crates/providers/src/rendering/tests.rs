use std::cell::RefCell;

use proptest::{prelude::*, sample::select};
use serde_json::json;

use super::*;
use crate::{
    Arguments, AttemptContext, ChatRequest, Image, Native, Provider, ToolCall, ToolDefinition,
    ToolResult, UserMessage, testing::ScriptedTransport,
};

/// Writes each message as a number or a word, and remembers which it wrote.
#[derive(Default)]
struct Counting(RefCell<Vec<usize>>);

impl Dialogue for Counting {
    fn write(&self, history: &History, range: Range<usize>, out: &mut Vec<u8>) -> Result<()> {
        self.0.borrow_mut().extend(range.clone());
        history.range(range).try_for_each(|message| match message {
            Message::User(said) => element(out, &said.text),
            Message::Assistant(said) => element(out, &said.text),
            Message::Tool(result) => element(out, &result.text),
        })
    }
}

fn key(model: &str) -> Key {
    Key { dialect: "counted", server: "", model: model.into(), options: [false; 3] }
}

/// The body, and which messages were written for it.
fn asked(history: &History, model: &str, head: &str) -> (Bytes, Vec<usize>) {
    let counting = Counting::default();
    let extra = Map::new();
    let mut fields = Fields::new(&extra);
    fields.put("head", head).unwrap();
    fields.messages("all", None::<()>).unwrap();
    let body = fields.end(&[]).unwrap().around(history, key(model), &counting).unwrap();
    (body, counting.0.into_inner())
}

fn user(text: &str) -> Message {
    Message::User(text.into())
}

fn model(text: &str) -> Message {
    Message::Assistant(AssistantMessage { text: text.into(), ..AssistantMessage::default() })
}

#[test]
fn only_what_was_added_is_written() {
    let mut history = History::from(vec![user("a"), model("b"), user("c")]);
    let (body, wrote) = asked(&history, "m", "x");
    assert_eq!(body, br#"{"head":"x","all":["a","b","c"]}"#.as_slice());
    assert_eq!(wrote, [0, 1, 2]);
    for round in 0..10 {
        history.extend([model("d"), user("e")]);
        let new = 2 * round + 3;
        assert_eq!(asked(&history, "m", "x").1, [new, new + 1]);
    }
    // A group that grows is written once more.
    history.push(user("f"));
    assert_eq!(asked(&history, "m", "x").1, [21, 22, 23]);
}

#[test]
fn a_body_that_was_sent_grows_where_it_is() {
    let mut history = History::from(vec![user(&"a".repeat(100_000))]);
    let (mut body, _) = asked(&history, "m", "x");
    let mut moved = 0;
    for _ in 0..200 {
        let at = body.as_ptr();
        drop(body);
        history.extend([model(&"b".repeat(1000)), user("c")]);
        body = asked(&history, "m", "x").0;
        moved += u32::from(body.as_ptr() != at);
    }
    assert!(moved <= 4, "the allocation grows by doubling, and moved {moved} times");
    // One that is still being sent stays what it is.
    let sent = body.clone();
    history.push(model("d"));
    assert_ne!(asked(&history, "m", "x").0.as_ptr(), sent.as_ptr());
    assert_eq!(body, sent);
}

#[test]
fn the_same_again_is_not_even_copied() {
    let history = History::from(vec![user("a"), model("b")]);
    let (first, _) = asked(&history, "m", "x");
    for again in [&history, &history.clone()] {
        let (body, wrote) = asked(again, "m", "x");
        assert!(wrote.is_empty());
        assert_eq!(body.as_ptr(), first.as_ptr());
    }
    // Another head is written around the same messages.
    let (other, wrote) = asked(&history, "m", "y");
    assert_eq!(other, br#"{"head":"y","all":["a","b"]}"#.as_slice());
    assert_eq!(wrote, [1]);
}

#[test]
fn another_model_and_another_branch_are_written_by_themselves() {
    let mut history = History::from(vec![user("a"), model("b"), user("c"), model("d")]);
    asked(&history, "m", "x");
    assert_eq!(asked(&history, "n", "x").1, [0, 1, 2, 3]);
    let mut fork = history.clone();
    history.extend([user("e"), model("f"), user("g")]);
    fork.extend([user("E"), model("F")]);
    asked(&history, "m", "x");
    let (body, wrote) = asked(&fork, "m", "x");
    assert_eq!(body, br#"{"head":"x","all":["a","b","c","d","E","F"]}"#.as_slice());
    assert_eq!(wrote, [3, 4, 5]);
    // It goes on inside of a group that the other one has closed.
    let mut inside: History = fork.range(0..3).cloned().collect();
    let before = inside.clone();
    inside.extend([model("d"), user("e")]);
    asked(&inside, "m", "x");
    let mut longer = before;
    longer.extend([user("D"), model("e"), user("f")]);
    assert_eq!(asked(&longer, "m", "x").1, [1, 2, 3, 4, 5]);
}

/// Every adapter, and one whose server wants cache markers in messages.
fn adapters(transport: &ScriptedTransport) -> Vec<Box<dyn Provider>> {
    let shared = || -> Arc<dyn crate::transport::HttpTransport> { Arc::new(transport.clone()) };
    let mut all: Vec<Box<dyn Provider>> = Vec::new();
    #[cfg(feature = "openai-chat")]
    {
        use crate::{openai_chat::OpenAiChat, profiles};
        for profile in [&profiles::CUSTOM, &profiles::OPENROUTER, &profiles::MISTRAL] {
            let builder = OpenAiChat::for_profile(profile).base_url("http://server.test/v1");
            all.push(Box::new(builder.transport(shared()).build().unwrap()));
        }
    }
    #[cfg(feature = "openai-responses")]
    {
        let builder = crate::openai_responses::OpenAiResponses::builder();
        all.push(Box::new(builder.transport(shared()).build().unwrap()));
    }
    #[cfg(feature = "anthropic")]
    {
        let builder = crate::anthropic::Anthropic::builder();
        all.push(Box::new(builder.transport(shared()).build().unwrap()));
    }
    #[cfg(feature = "gemini")]
    {
        let builder = crate::gemini::Gemini::builder();
        all.push(Box::new(builder.transport(shared()).build().unwrap()));
    }
    all
}

#[derive(Debug, Clone)]
enum Step {
    Say(Message),
    /// Asks what was said so far, and a nudge that is not kept.
    Ask {
        nudge: bool,
    },
    /// Goes on with a clone, and returns to the original at the next fork.
    Fork,
    Model(&'static str),
    Caching(bool),
    System(&'static str),
}

fn text() -> impl Strategy<Value = String> {
    select(vec!["", " \n", "hi", "a \"quoted\"\\ line\nand é", "]}[{,"]).prop_map(str::to_owned)
}

fn images() -> impl Strategy<Value = Vec<Image>> {
    let image = Image { media_type: "image/png".into(), base64: "iVBORw0=".into() };
    select(vec![0, 0, 0, 1, 2]).prop_map(move |count| vec![image.clone(); count])
}

fn native() -> impl Strategy<Value = Option<Native>> {
    const PARTS: [&str; 7] = [
        r#"{"type":"thinking" ,"thinking":"t","signature":"c2ln"}"#,
        r#"{"type":"reasoning","id":"rs","summary":[]}"#,
        r#"{"type":"custom_tool_call","call_id":"a","name":"f","input":"x"}"#,
        r#"{"functionCall":{"id":"theirs","name":"f","args":{}}}"#,
        r#"{"reasoning_details":[{"type":"reasoning.text","text":"t"}]}"#,
        r#"{"id":"a","extra_content":{"google":{"thought_signature":"s"}}}"#,
        r#"{"cut"#,
    ];
    let dialects = ["anthropic", "gemini", "openai-responses", "openai-chat/openrouter"];
    let parts = prop::collection::vec(select(PARTS.to_vec()), 0..3);
    let made = (select(dialects.to_vec()), select(vec!["m", "n"]), parts);
    prop::option::of(made.prop_map(|(dialect, model, parts)| Native {
        dialect: dialect.into(),
        model: model.into(),
        parts: parts.into_iter().map(str::to_owned).collect(),
    }))
}

fn message() -> impl Strategy<Value = Message> {
    let id = || select(vec!["a", "b", "call:1"]).prop_map(str::to_owned);
    let call = (id(), select(vec!["{}", r#"{"p": 1.0}"#, "[1]", "{"])).prop_map(|(id, raw)| {
        ToolCall { id, name: "f".into(), arguments: Arguments::parse(raw.into()) }
    });
    let said = (text(), text(), prop::collection::vec(call, 0..3), native());
    prop_oneof![
        (text(), images()).prop_map(|(text, images)| Message::User(UserMessage { text, images })),
        said.prop_map(|(text, reasoning, tool_calls, native)| Message::Assistant(
            AssistantMessage { text, reasoning, tool_calls, native }
        )),
        (id(), text(), images(), any::<bool>()).prop_map(|(call_id, text, images, ok)| {
            Message::Tool(ToolResult { call_id, name: "f".into(), text, images, ok })
        }),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => message().prop_map(Step::Say),
        6 => any::<bool>().prop_map(|nudge| Step::Ask { nudge }),
        3 => Just(Step::Fork),
        1 => select(vec!["m", "n"]).prop_map(Step::Model),
        1 => any::<bool>().prop_map(Step::Caching),
        1 => select(vec!["", "be brief"]).prop_map(Step::System),
    ];
    prop::collection::vec(step, 1..40)
}

/// The body that `provider` sends for `request`.
fn sent(provider: &dyn Provider, transport: &ScriptedTransport, request: &ChatRequest) -> Bytes {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let refused = runtime.block_on(provider.open(request, AttemptContext::default()));
    assert!(refused.is_err(), "there is no script");
    transport.requests().pop().unwrap().body
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_body_that_grew_is_a_body_that_was_written_at_once(steps in steps()) {
        let count = adapters(&ScriptedTransport::default()).len();
        for place in 0..count {
            let transport = ScriptedTransport::default();
            let provider = adapters(&transport).remove(place);
            let mut request = ChatRequest::new("m");
            request.tools = vec![ToolDefinition {
                name: "f".into(),
                description: "Does it.".into(),
                input_schema: json!({"type": "object"}),
            }].into();
            let mut left = None;
            for step in steps.iter().cloned() {
                match step {
                    Step::Say(message) => request.messages.push(message),
                    Step::Model(model) => request.model = model.into(),
                    Step::Caching(caching) => request.prompt_caching = caching,
                    Step::System(system) => request.system = Some(system.into()),
                    Step::Fork => match left.take() {
                        Some(before) => request.messages = before,
                        None => left = Some(request.messages.clone()),
                    },
                    Step::Ask { nudge } => {
                        let mut request = request.clone();
                        if nudge {
                            request.messages.push(user("are you there?"));
                        }
                        let grown = sent(&*provider, &transport, &request);
                        let again = sent(&*provider, &transport, &request);
                        prop_assert_eq!(grown.as_ptr(), again.as_ptr());
                        request.messages = request.messages.to_vec().into();
                        let anew = sent(&*provider, &transport, &request);
                        prop_assert!(grown == anew, "{}\n{:?}\n{:?}", provider.id(), grown, anew);
                        let json = serde_json::from_slice::<Value>(&anew);
                        prop_assert!(json.is_ok(), "{:?}", anew);
                    }
                }
            }
        }
    }
}
