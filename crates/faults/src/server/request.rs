//! One HTTP/1.1 request off the socket.

use serde_json::Value;

use super::wire::{Gone, Wire};
use crate::{
    record::{Headers, Path},
    script::Asked,
};

const MAX_HEAD: usize = 64 * 1024;
const MAX_HEADERS: usize = 128;
pub(super) const MAX_BODY: usize = 64 * 1024 * 1024;

/// A request, read whole.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: Path,
    pub(crate) headers: Headers,
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// The path without its query.
    pub(crate) fn route(&self) -> &str {
        let path = self.path.as_str();
        path.split_once('?').map_or(path, |(path, _)| path)
    }

    /// What follows the path's question mark.
    pub(crate) fn query(&self) -> &str {
        self.path.as_str().split_once('?').map_or("", |(_, query)| query)
    }

    /// What a step may want to know of it; the body is the recorded one.
    pub(crate) fn asked<'a>(&'a self, body: &'a Value) -> Asked<'a> {
        Asked { path: self.path.as_str(), headers: &self.headers, raw: &self.body, body }
    }

    pub(crate) fn keep_alive(&self) -> bool {
        !self.headers.has_word("connection", "close")
    }

    /// The body for the record: JSON where it is JSON.
    pub(crate) fn recorded_body(&self) -> Value {
        if self.body.is_empty() {
            return Value::Null;
        }
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|_| String::from_utf8_lossy(&self.body).into_owned().into())
    }
}

/// Why no request came out. After a bad one the stream is out of step, so the
/// connection ends with its answer.
#[derive(Debug)]
pub(crate) enum NoRequest {
    Gone,
    Bad { status: u16, message: String },
}

impl From<Gone> for NoRequest {
    fn from(_: Gone) -> Self {
        Self::Gone
    }
}

fn bad(status: u16, message: impl Into<String>) -> NoRequest {
    let message = message.into();
    NoRequest::Bad { status, message }
}

/// The next request; `None` when the client is done.
pub(crate) async fn read(wire: &mut Wire) -> Result<Option<Request>, NoRequest> {
    let Some(mut request) = read_head(wire).await? else {
        return Ok(None);
    };
    let framing = framing(&request.headers)?;
    if framing != Framing::Length(0) && request.headers.has_word("expect", "100-continue") {
        wire.send(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
    }
    request.body = match framing {
        Framing::Length(length) => exactly(wire, length).await?,
        Framing::Chunked => chunked(wire).await?,
    };
    Ok(Some(request))
}

async fn read_head(wire: &mut Wire) -> Result<Option<Request>, NoRequest> {
    loop {
        if let Some((request, length)) = parse_head(wire.buffered())? {
            wire.take(length);
            return Ok(Some(request));
        }
        if wire.buffered().len() > MAX_HEAD {
            return Err(bad(431, "the request head is longer than 64 KiB"));
        }
        if !wire.fill().await? {
            return Ok(None);
        }
    }
}

fn parse_head(bytes: &[u8]) -> Result<Option<(Request, usize)>, NoRequest> {
    let mut fields = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut head = httparse::Request::new(&mut fields);
    let length = match head.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::Version) => return Err(bad(505, "speak HTTP/1.1 to this server")),
        Err(error) => return Err(bad(400, format!("this is no HTTP/1.1 request: {error}"))),
    };
    if head.version != Some(1) {
        return Err(bad(505, "speak HTTP/1.1 to this server"));
    }
    let mut headers = Headers::default();
    for field in head.headers.iter() {
        headers.push(field.name, field.value);
    }
    let request = Request {
        method: head.method.unwrap_or_default().to_owned(),
        path: Path(head.path.unwrap_or_default().to_owned()),
        headers,
        body: Vec::new(),
    };
    Ok(Some((request, length)))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    Length(usize),
    Chunked,
}

fn framing(headers: &Headers) -> Result<Framing, NoRequest> {
    let coding = headers.get("transfer-encoding");
    let length = headers.get("content-length");
    match (coding, length) {
        (None, None) => Ok(Framing::Length(0)),
        (None, Some(length)) => match length.trim().parse() {
            Ok(length) if length <= MAX_BODY => Ok(Framing::Length(length)),
            Ok(_) => Err(too_long()),
            Err(_) => Err(bad(400, format!("content-length is not a number: {length:?}"))),
        },
        (Some(coding), None) if coding.trim().eq_ignore_ascii_case("chunked") => {
            Ok(Framing::Chunked)
        }
        (Some(coding), None) => {
            Err(bad(501, format!("cannot read transfer-encoding {coding:?}: send `chunked`")))
        }
        (Some(_), Some(_)) => {
            Err(bad(400, "content-length and transfer-encoding exclude each other"))
        }
    }
}

pub(super) fn too_long() -> NoRequest {
    bad(413, "the request body is longer than 64 MiB")
}

async fn exactly(wire: &mut Wire, length: usize) -> Result<Vec<u8>, NoRequest> {
    while wire.buffered().len() < length {
        more(wire).await?;
    }
    Ok(wire.take(length))
}

async fn chunked(wire: &mut Wire) -> Result<Vec<u8>, NoRequest> {
    let mut body = Vec::new();
    loop {
        let size = chunk_size(wire).await?;
        if size == 0 {
            // Trailers, if any, up to the empty line.
            while !line(wire).await?.is_empty() {}
            return Ok(body);
        }
        if size > MAX_BODY - body.len() {
            return Err(too_long());
        }
        body.append(&mut exactly(wire, size).await?);
        if !line(wire).await?.is_empty() {
            return Err(bad(400, "a chunk is longer than it announced"));
        }
    }
}

async fn chunk_size(wire: &mut Wire) -> Result<usize, NoRequest> {
    loop {
        match httparse::parse_chunk_size(wire.buffered()) {
            Ok(httparse::Status::Complete((head, size))) => {
                wire.take(head);
                return Ok(usize::try_from(size).unwrap_or(usize::MAX));
            }
            Ok(httparse::Status::Partial) if wire.buffered().len() <= MAX_HEAD => {
                more(wire).await?
            }
            _ => return Err(bad(400, "the size of a chunk is not a hexadecimal number")),
        }
    }
}

/// The next line without its end.
async fn line(wire: &mut Wire) -> Result<Vec<u8>, NoRequest> {
    loop {
        if let Some(end) = wire.buffered().windows(2).position(|pair| pair == b"\r\n") {
            let mut line = wire.take(end + 2);
            line.truncate(end);
            return Ok(line);
        }
        if wire.buffered().len() > MAX_HEAD {
            return Err(bad(400, "a line of the chunked body does not end"));
        }
        more(wire).await?;
    }
}

async fn more(wire: &mut Wire) -> Result<(), NoRequest> {
    if wire.fill().await? {
        return Ok(());
    }
    Err(bad(400, "the request body ends before it is whole"))
}
