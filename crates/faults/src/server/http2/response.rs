//! One response as HTTP/2.

use std::{
    future::poll_fn,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use h2::{Reason, SendStream, server::SendResponse};
use http::{HeaderMap, HeaderName, HeaderValue};
use tokio::{select, sync::watch, time};

use super::lent::{Lent, Sent};
use crate::{
    behaviour::Http2Code,
    server::{
        reply::{Head, Sink},
        wire::Gone,
    },
};

/// The response on one stream.
pub(super) struct Response {
    respond: SendResponse<Bytes>,
    /// There once the head was sent.
    body: Option<SendStream<Bytes>>,
    /// What was given to the library so far.
    given: Sent,
    lent: Lent,
    stop: watch::Receiver<bool>,
}

impl Response {
    pub(super) fn new(
        respond: SendResponse<Bytes>,
        lent: Lent,
        stop: watch::Receiver<bool>,
    ) -> Self {
        Self { respond, body: None, given: Sent::default(), lent, stop }
    }

    pub(super) fn stream_id(&self) -> u32 {
        self.respond.stream_id().as_u32()
    }

    /// Resets the stream; the connection lives on.
    pub(super) fn reset(&mut self, code: Http2Code) {
        let reason = Reason::from(code.value());
        match &mut self.body {
            Some(body) => body.send_reset(reason),
            None => self.respond.send_reset(reason),
        }
    }

    /// Waits until all that was given to the library is on the wire, because a
    /// reset throws away what is not.
    pub(super) async fn until_sent(&mut self) -> Result<(), Gone> {
        let (id, given) = (self.stream_id(), self.given);
        let mut writes = self.lent.writes();
        loop {
            let sent = self.lent.sent(id);
            if sent.headers == given.headers && sent.data >= given.data {
                return Ok(());
            }
            select! {
                // The sender lives as long as our handle.
                _ = writes.changed() => {}
                _ = poll_fn(|cx| poll_reset(&mut self.respond, self.body.as_mut(), cx)) => {
                    return Err(Gone::ClientLeft);
                }
                _ = self.stop.wait_for(|stop| *stop) => return Err(Gone::Stopped),
            }
        }
    }

    /// Waits until the client gives up the stream or the connection.
    pub(super) async fn until_left(&mut self) -> Gone {
        select! {
            // Stopping ends the connection too, and is then the reason.
            biased;
            _ = self.stop.wait_for(|stop| *stop) => Gone::Stopped,
            () = poll_fn(|cx| poll_reset(&mut self.respond, self.body.as_mut(), cx)) => {
                Gone::ClientLeft
            }
        }
    }
}

impl Sink for Response {
    async fn head(&mut self, head: Head) -> Result<(), Gone> {
        let mut response = http::Response::builder().status(head.status);
        for (name, value) in &head.headers {
            response = response.header(name, value);
        }
        if let Some(length) = head.length {
            response = response.header("content-length", HeaderValue::from(length));
        }
        // The script's headers were checked, so this is a client that left.
        let response = response.body(()).map_err(|_| Gone::ClientLeft)?;
        let body = self.respond.send_response(response, false).map_err(|_| Gone::ClientLeft)?;
        self.body = Some(body);
        self.given.headers = true;
        Ok(())
    }

    async fn data(&mut self, bytes: &[u8], _announced: usize) -> Result<(), Gone> {
        let Some(body) = &mut self.body else { return Ok(()) };
        let mut left = Bytes::copy_from_slice(bytes);
        while !left.is_empty() {
            body.reserve_capacity(left.len());
            let room = select! {
                room = poll_fn(|cx| body.poll_capacity(cx)) => match room {
                    Some(Ok(room)) => room,
                    Some(Err(_)) | None => return Err(Gone::ClientLeft),
                },
                _ = self.stop.wait_for(|stop| *stop) => return Err(Gone::Stopped),
            };
            let piece = left.split_to(room.min(left.len()));
            self.given.data += piece.len();
            body.send_data(piece, false).map_err(|_| Gone::ClientLeft)?;
        }
        Ok(())
    }

    async fn torn_head(&mut self, _: Head) -> Result<(), Gone> {
        // Refused where the script is checked: a head is one frame here.
        Ok(())
    }

    async fn end(&mut self, trailers: &[(&str, &str)]) -> Result<(), Gone> {
        let Some(body) = &mut self.body else { return Ok(()) };
        if !trailers.is_empty() {
            let mut map = HeaderMap::new();
            for (name, value) in trailers {
                if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), value.parse()) {
                    map.insert(name, value);
                }
            }
            return body.send_trailers(map).map_err(|_| Gone::ClientLeft);
        }
        body.send_data(Bytes::new(), true).map_err(|_| Gone::ClientLeft)
    }

    async fn wait(&mut self, delay: Duration) -> Result<(), Gone> {
        if delay.is_zero() {
            return Ok(());
        }
        select! {
            () = time::sleep(delay) => Ok(()),
            gone = self.until_left() => Err(gone),
        }
    }
}

/// Ready when the client, or the end of the connection, ended this stream.
fn poll_reset(
    respond: &mut SendResponse<Bytes>,
    body: Option<&mut SendStream<Bytes>>,
    cx: &mut Context<'_>,
) -> Poll<()> {
    let ended = match body {
        Some(body) => body.poll_reset(cx),
        None => respond.poll_reset(cx),
    };
    ended.map(|_| ())
}
