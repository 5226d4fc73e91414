//! The adapters: each speaks the wire of one provider's API.

#[cfg(feature = "anthropic")]
pub mod anthropic;
#[cfg(feature = "adapter")]
pub(crate) mod builder;
#[cfg(feature = "gemini")]
pub mod gemini;
#[cfg(feature = "openai-chat")]
pub mod openai_chat;
#[cfg(feature = "openai-responses")]
pub mod openai_responses;
#[cfg(feature = "adapter")]
pub(crate) mod settings;
