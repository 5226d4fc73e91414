//! The adapters: each speaks the wire of one provider's API.

#[cfg(feature = "anthropic")]
pub mod anthropic;
#[cfg(feature = "openai-chat")]
pub mod openai_chat;
#[cfg(feature = "adapter")]
pub(crate) mod settings;
