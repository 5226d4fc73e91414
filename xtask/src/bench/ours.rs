//! What is measured: an adapter, asked and read through the public [`Provider`].

use std::sync::Arc;

use anyhow::{Context as _, Result, bail, ensure};
use bytes::Bytes;
use turnbuckle_providers::{
    AdapterBuilder, AdapterOptions, Arguments, AssistantMessage, AttemptContext, ChatRequest,
    EventStream, Message, Provider, StreamEvent,
    anthropic::Anthropic,
    gemini::Gemini,
    openai_chat::OpenAiChat,
    openai_responses::OpenAiResponses,
    testing::{ScriptedResponse, ScriptedTransport},
    transport::HttpTransport,
};

use super::case::Dialect;

/// An adapter, set up as a user would.
pub(super) struct Ours(Box<dyn Provider>);

/// The text of a message, or the arguments of its calls, without a copy of a long one.
pub(super) fn text_of(message: AssistantMessage) -> String {
    let mut text = message.text;
    for call in message.tool_calls {
        let (Arguments::Whole(raw) | Arguments::Broken(raw)) = call.arguments;
        if text.is_empty() {
            text = raw;
        } else {
            text.push_str(&raw);
        }
    }
    text
}

impl Ours {
    /// With the transport that the adapter makes itself.
    pub(super) fn at(dialect: Dialect, base: &str) -> Result<Self> {
        Self::with(dialect, base, None)
    }

    /// Reads these chunks, whatever it asks.
    pub(super) fn recorded(
        dialect: Dialect,
        chunks: impl IntoIterator<Item = Bytes>,
    ) -> Result<Self> {
        let head = ScriptedResponse::new(200).header("content-type", "text/event-stream");
        let response = chunks.into_iter().fold(head, ScriptedResponse::bytes);
        let transport = ScriptedTransport::new([response]);
        Self::with(dialect, "http://127.0.0.1:1", Some(Arc::new(transport)))
    }

    fn with(
        dialect: Dialect,
        base: &str,
        transport: Option<Arc<dyn HttpTransport>>,
    ) -> Result<Self> {
        fn build<O: AdapterOptions>(
            builder: AdapterBuilder<O>,
            transport: Option<Arc<dyn HttpTransport>>,
        ) -> Result<Box<dyn Provider>> {
            let builder = match transport {
                Some(transport) => builder.transport(transport),
                None => builder,
            };
            Ok(Box::new(builder.build().context("cannot set up the adapter")?))
        }
        Ok(Self(match dialect {
            Dialect::Chat => build(OpenAiChat::builder(base), transport)?,
            Dialect::Anthropic => build(Anthropic::builder().base_url(base), transport)?,
            Dialect::Responses => build(OpenAiResponses::builder().base_url(base), transport)?,
            Dialect::Gemini => build(Gemini::builder().base_url(base), transport)?,
        }))
    }

    /// For a runtime.
    pub(super) fn into_provider(self) -> Arc<dyn Provider> {
        Arc::from(self.0)
    }

    /// A question that any model could be asked.
    pub(super) fn question() -> ChatRequest {
        ChatRequest::new("a-model").with_message(Message::User("What do the notes say?".into()))
    }

    /// Sends a request and reads its answer up to the first text; the stream stays open.
    pub(super) async fn begin(&self, request: &ChatRequest) -> Result<(String, EventStream)> {
        let mut stream = self.0.open(request, AttemptContext::default()).await?;
        while let Some(event) = stream.next().await {
            if let StreamEvent::Text(text) = event? {
                return Ok((text, stream));
            }
        }
        bail!("the stream ended without a text")
    }

    /// Sends a request and reads its answer to the end, dropping each piece as a
    /// host that has shown it. `first` is called at the first text.
    pub(super) async fn ask(
        &self,
        request: &ChatRequest,
        mut first: impl FnMut(),
    ) -> Result<AssistantMessage> {
        let mut stream = self.0.open(request, AttemptContext::default()).await?;
        let mut seen = 0;
        while let Some(event) = stream.next().await {
            match event? {
                StreamEvent::Text(text) => {
                    if seen == 0 {
                        first();
                    }
                    seen += text.len();
                }
                StreamEvent::ToolCall(piece) => seen += piece.arguments.len(),
                StreamEvent::Finished(whole) => {
                    let message = whole.into_message();
                    let calls = message.tool_calls.iter().map(|call| call.arguments.as_json());
                    let all = message.text.len() + calls.map(str::len).sum::<usize>();
                    ensure!(seen == all, "{seen} bytes came in pieces, {all} in all");
                    return Ok(message);
                }
                _ => {}
            }
        }
        bail!("the stream ended without a whole message")
    }
}
