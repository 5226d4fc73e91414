//! L2, what everything is measured against: the same HTTP client and the same
//! bytes; drain, split lines, parse the needed fields borrowed, append the text to
//! one `String`.
//!
//! It checks nothing, keeps no state of the stream, and cannot tell a cut answer
//! from a whole one. The structs are what one writes first with serde.

use std::{borrow::Cow, sync::Arc};

use anyhow::{Context as _, Result};
use bytes::Bytes;
use futures_util::StreamExt as _;
use reqwest::Client;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::case::Dialect;

/// The client, set up as plainly as the answers are served: without a proxy, and
/// with TLS that trusts nobody, because nothing is asked over TLS.
pub(super) fn client() -> Result<Client> {
    let ring = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(ring)
        .with_safe_default_protocol_versions()
        .context("ring supports no TLS")?
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    let client = Client::builder().tls_backend_preconfigured(tls).no_proxy();
    client.build().context("cannot set up the HTTP client")
}

/// Sends one request and reads its answer to the end. `first` is called at the
/// first text.
pub(super) async fn ask(
    client: &Client,
    url: &str,
    dialect: Dialect,
    body: Bytes,
    mut first: impl FnMut(),
) -> Result<Drain> {
    let sent = client.post(url).header("content-type", "application/json").body(body).send();
    let mut chunks = sent.await.context("no answer came")?.bytes_stream();
    let mut drain = Drain::of(dialect);
    let mut begun = false;
    while let Some(chunk) = chunks.next().await {
        drain.feed(&chunk.context("the answer was cut")?)?;
        if !begun && !drain.text.is_empty() {
            begun = true;
            first();
        }
    }
    Ok(drain)
}

/// Sends one request and reads its answer up to the first text; it stays open.
pub(super) async fn begin(
    client: &Client,
    url: &str,
    dialect: Dialect,
    body: Bytes,
) -> Result<(Drain, impl Sized + use<>)> {
    let sent = client.post(url).header("content-type", "application/json").body(body).send();
    let mut chunks = sent.await.context("no answer came")?.bytes_stream();
    let mut drain = Drain::of(dialect);
    while drain.text.is_empty() {
        let chunk = chunks.next().await.context("the answer has no text")?;
        drain.feed(&chunk.context("the answer was cut")?)?;
    }
    Ok((drain, chunks))
}

/// What has been read of an answer.
#[derive(Debug)]
pub(super) struct Drain {
    dialect: Dialect,
    /// The line that began in an earlier chunk.
    carry: Vec<u8>,
    /// The text, and the arguments of calls.
    pub(super) text: String,
}

impl Drain {
    pub(super) const fn of(dialect: Dialect) -> Self {
        Self { dialect, carry: Vec::new(), text: String::new() }
    }

    pub(super) fn feed(&mut self, chunk: &[u8]) -> Result<()> {
        let mut rest = chunk;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let (line, tail) = rest.split_at(end);
            rest = tail.get(1..).unwrap_or_default();
            if self.carry.is_empty() {
                read(self.dialect, line, &mut self.text)?;
            } else {
                self.carry.extend_from_slice(line);
                read(self.dialect, &self.carry, &mut self.text)?;
                self.carry.clear();
            }
        }
        self.carry.extend_from_slice(rest);
        Ok(())
    }
}

fn read(dialect: Dialect, line: &[u8], text: &mut String) -> Result<()> {
    let Some(data) = line.strip_prefix(b"data: ") else { return Ok(()) };
    match dialect {
        Dialect::Chat if data == b"[DONE]" => {}
        Dialect::Chat => {
            let event: Chat<'_> = serde_json::from_slice(data).context("an event is no JSON")?;
            for Choice { delta, .. } in event.choices {
                text.push_str(delta.content.as_deref().unwrap_or_default());
                for call in delta.tool_calls.unwrap_or_default() {
                    text.push_str(call.function.arguments.as_deref().unwrap_or_default());
                }
            }
        }
        Dialect::Anthropic => {
            let event: Messages<'_> =
                serde_json::from_slice(data).context("an event is no JSON")?;
            if let ("content_block_delta", Some(delta)) = (&*event.r#type, event.delta) {
                text.push_str(delta.text.as_deref().unwrap_or_default());
                text.push_str(delta.partial_json.as_deref().unwrap_or_default());
            }
        }
        Dialect::Responses => {
            let event: Responses<'_> =
                serde_json::from_slice(data).context("an event is no JSON")?;
            let kinds = ["response.output_text.delta", "response.function_call_arguments.delta"];
            if kinds.contains(&&*event.r#type) {
                text.push_str(event.delta.as_deref().unwrap_or_default());
            }
        }
        Dialect::Gemini => {
            let event: Gemini<'_> = serde_json::from_slice(data).context("an event is no JSON")?;
            for part in event.candidates.into_iter().flat_map(|one| one.content.parts) {
                text.push_str(part.text.as_deref().unwrap_or_default());
                match part.function_call {
                    Some(CallPart { args: Some(args), .. }) => text.push_str(args.get()),
                    // The one text of the arguments, which needs no escapes.
                    Some(CallPart { name: Some(_), .. }) => text.push_str(r#"{"text":""#),
                    Some(CallPart { partial_args: Some(pieces), .. }) => {
                        pieces.iter().for_each(|piece| text.push_str(&piece.string_value));
                    }
                    Some(_) => text.push_str(r#""}"#),
                    None => {}
                }
            }
        }
    }
    Ok(())
}

#[derive(Deserialize)]
struct Chat<'a> {
    #[serde(borrow)]
    choices: Vec<Choice<'a>>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    delta: Delta<'a>,
    #[serde(borrow, rename = "finish_reason")]
    _finish_reason: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    content: Option<Cow<'a, str>>,
    #[serde(borrow)]
    tool_calls: Option<Vec<Call<'a>>>,
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    function: Function<'a>,
}

#[derive(Deserialize)]
struct Function<'a> {
    #[serde(borrow)]
    arguments: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Messages<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(borrow)]
    delta: Option<Piece<'a>>,
}

#[derive(Deserialize)]
struct Piece<'a> {
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow)]
    partial_json: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Responses<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(borrow)]
    delta: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Gemini<'a> {
    #[serde(borrow)]
    candidates: Vec<Candidate<'a>>,
}

#[derive(Deserialize)]
struct Candidate<'a> {
    #[serde(borrow)]
    content: Content<'a>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow)]
    parts: Vec<Part<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow)]
    function_call: Option<CallPart<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallPart<'a> {
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
    #[serde(borrow)]
    partial_args: Option<Vec<PartialArg<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PartialArg<'a> {
    #[serde(borrow)]
    string_value: Cow<'a, str>,
}

#[cfg(test)]
mod tests {
    use super::{
        super::{
            body,
            case::{Case, Shape},
        },
        *,
    };

    #[test]
    fn the_yardstick_reads_every_shape_however_it_is_cut() {
        for dialect in Dialect::ALL {
            for (shape, size) in [(Shape::Long, 40), (Shape::Big, 400), (Shape::Fragments, 40)] {
                let case = Case { dialect, shape, size };
                let answer = body::answer(case);
                for cut in [1, 7, 1000] {
                    let mut drain = Drain::of(dialect);
                    answer.bytes.chunks(cut).for_each(|chunk| drain.feed(chunk).unwrap());
                    assert_eq!(drain.text, body::expected(case), "{case} cut at {cut}");
                }
            }
        }
    }
}
