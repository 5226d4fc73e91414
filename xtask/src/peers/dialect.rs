//! The dialects that have an adapter, and how each is made for a peer.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use turnbuckle_providers::{
    Clocks, Provider,
    anthropic::Anthropic,
    gemini::Gemini,
    openai_chat::OpenAiChat,
    openai_responses::OpenAiResponses,
    profiles::{Dialect, Profile},
    transport::{HttpTransport, ReqwestTransport},
};

/// One dialect, as it is spoken to a peer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spoken {
    pub(crate) dialect: Dialect,
    /// Where its requests go at a server of several dialects.
    pub(crate) path: &'static str,
    adapter: fn(Place) -> Result<Arc<dyn Provider>>,
}

/// Every dialect that has an adapter. One that is new is one line here.
pub(crate) const SPOKEN: &[Spoken] = &[
    Spoken { dialect: Dialect::OpenAiChat, path: "/v1/chat/completions", adapter: chat },
    Spoken { dialect: Dialect::OpenAiResponses, path: "/v1/responses", adapter: responses },
    Spoken { dialect: Dialect::Anthropic, path: "/v1/messages", adapter: messages },
    Spoken {
        dialect: Dialect::Gemini,
        path: "/v1beta/models/peer:streamGenerateContent?alt=sse",
        adapter: gemini,
    },
];

/// A peer, as an adapter has to know it.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) port: u16,
    pub(crate) key: String,
    pub(crate) profile: &'static Profile,
}

impl Spoken {
    /// The adapter, which goes to loopback whatever proxy the environment names.
    pub(crate) fn provider(&self, place: Place) -> Result<Arc<dyn Provider>> {
        (self.adapter)(place).context("cannot make the client")
    }
}

impl Place {
    fn base_url(&self) -> String {
        self.under("v1")
    }

    fn under(&self, version: &str) -> String {
        format!("http://127.0.0.1:{}/{version}", self.port)
    }
}

fn direct() -> Result<Arc<dyn HttpTransport>> {
    Ok(Arc::new(ReqwestTransport::direct(&Clocks::default())?))
}

fn chat(place: Place) -> Result<Arc<dyn Provider>> {
    let adapter = OpenAiChat::for_profile(place.profile).base_url(place.base_url());
    Ok(Arc::new(adapter.api_key(place.key).transport(direct()?).build()?))
}

fn responses(place: Place) -> Result<Arc<dyn Provider>> {
    let adapter = OpenAiResponses::for_profile(place.profile).base_url(place.base_url());
    Ok(Arc::new(adapter.api_key(place.key).transport(direct()?).build()?))
}

fn messages(place: Place) -> Result<Arc<dyn Provider>> {
    let adapter = Anthropic::builder().base_url(place.base_url());
    Ok(Arc::new(adapter.api_key(place.key).transport(direct()?).build()?))
}

fn gemini(place: Place) -> Result<Arc<dyn Provider>> {
    let adapter = Gemini::builder().base_url(place.under("v1beta"));
    Ok(Arc::new(adapter.api_key(place.key).transport(direct()?).build()?))
}

#[cfg(test)]
mod tests {
    use turnbuckle_providers::profiles;

    use super::*;

    #[test]
    fn every_dialect_that_is_spoken_has_an_adapter_on_loopback() {
        for spoken in SPOKEN {
            let key = "example-key".to_owned();
            let place = Place { port: 9, key, profile: &profiles::CUSTOM };
            let told = format!("{:?}", spoken.provider(place).unwrap().id());
            assert!(!told.is_empty(), "{spoken:?}");
        }
    }
}
