//! The real client of a dialect.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use turnbuckle_diagnostics::Redactor;
use turnbuckle_providers::{
    AdapterBuilder, AdapterOptions, Clocks, Provider,
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
    let transport = Arc::new(transport.build().context("cannot set up the transport")?);
    match client.dialect {
        Dialect::Chat => adapter(OpenAiChat::builder(&client.url), client, transport),
        Dialect::Responses => adapter(OpenAiResponses::builder(), client, transport),
        Dialect::Anthropic => adapter(Anthropic::builder(), client, transport),
        Dialect::Gemini => adapter(Gemini::builder(), client, transport),
    }
}

fn adapter<O: AdapterOptions>(
    builder: AdapterBuilder<O>,
    client: Client<'_>,
    transport: Arc<dyn HttpTransport>,
) -> Result<Arc<dyn Provider>> {
    let Client { url, key, clocks, redactor, .. } = client;
    let builder = builder.base_url(url).api_key(key).clocks(clocks).transport(transport);
    Ok(Arc::new(builder.redactor(redactor).build()?))
}
