//! The real client of a dialect.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use turnbuckle_diagnostics::Redactor;
use turnbuckle_providers::{
    Clocks, Provider,
    anthropic::Anthropic,
    gemini::Gemini,
    openai_chat::OpenAiChat,
    openai_responses::OpenAiResponses,
    transport::{HttpTransport, ReqwestTransport},
};

use super::dialect::Dialect;

/// What a client is made from.
pub(crate) struct Client<'a> {
    pub(crate) dialect: Dialect,
    pub(crate) url: String,
    /// The certificate of the server's authority, where it speaks TLS.
    pub(crate) authority: Option<&'a str>,
    pub(crate) key: &'a str,
    pub(crate) clocks: Clocks,
    pub(crate) redactor: Arc<Redactor>,
}

pub(crate) fn provider(client: Client<'_>) -> Result<Arc<dyn Provider>> {
    // On this machine, whatever proxy the environment names.
    let mut transport = ReqwestTransport::builder(&client.clocks).direct();
    if let Some(authority) = client.authority {
        transport = transport.root_certificates_pem(authority);
    }
    let transport = transport.build().context("cannot set up the transport")?;
    let transport: Arc<dyn HttpTransport> = Arc::new(transport);
    let Client { url, key, clocks, redactor, .. } = client;
    Ok(match client.dialect {
        Dialect::Chat => Arc::new(
            OpenAiChat::builder(url)
                .api_key(key)
                .clocks(clocks)
                .transport(transport)
                .redactor(redactor)
                .build()?,
        ),
        Dialect::Responses => Arc::new(
            OpenAiResponses::builder()
                .base_url(url)
                .api_key(key)
                .clocks(clocks)
                .transport(transport)
                .redactor(redactor)
                .build()?,
        ),
        Dialect::Anthropic => Arc::new(
            Anthropic::builder()
                .base_url(url)
                .api_key(key)
                .clocks(clocks)
                .transport(transport)
                .redactor(redactor)
                .build()?,
        ),
        Dialect::Gemini => Arc::new(
            Gemini::builder()
                .base_url(url)
                .api_key(key)
                .clocks(clocks)
                .transport(transport)
                .redactor(redactor)
                .build()?,
        ),
    })
}
