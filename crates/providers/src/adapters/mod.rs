//! The adapters: each speaks the wire of one provider's API.

#[cfg(feature = "openai-chat")]
pub mod openai_chat;
#[cfg(any(feature = "openai-responses", feature = "anthropic", feature = "gemini"))]
pub(crate) mod settings;
