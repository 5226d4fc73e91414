//! Serves the requests of one HTTP/2 connection.
//!
//! The library `h2` speaks the protocol as long as it is spoken well. To break
//! it, the socket is taken back from under the library, between two frames.

mod lent;
mod response;

use std::future::poll_fn;

use bytes::Bytes;
use futures_util::{StreamExt, stream::FuturesUnordered};
use h2::{
    RecvStream,
    server::{Builder, Connection},
};
use tokio::{select, sync::watch, time};

use self::{lent::Lent, response::Response};
use super::{
    connection::write_plain,
    reply::{Reply, Sink},
    request::{MAX_BODY, NoRequest, Request, too_long},
    routes::{self, Plain, Route},
    shared::{Shared, Ticket},
    socket::Socket,
    wire::{CLOSE_WAIT, Gone, Wire},
};
use crate::{
    behaviour::{HangUp, How, Http2Code},
    record::{Ended, Headers, Path},
};

const WINDOW: u32 = 16 * 1024 * 1024;

/// What is kept on a stream for a client that does not read. Small pieces cost more
/// than their bytes.
const UNSENT: usize = 32 * 1024;

/// What breaks the whole connection.
#[derive(Debug, Clone, Copy)]
enum Broken {
    Reset,
    Fin,
    FinWithoutNotify,
    BadRecord,
    BadFrame,
    /// The last stream that counts as processed, and the code.
    GoAway(u32, Http2Code),
}

pub(super) async fn serve(
    socket: Socket,
    mut stop: watch::Receiver<bool>,
    shared: &Shared,
    connection: usize,
) {
    let Some(socket) = turn_away(socket, &stop).await else { return };
    let lent = Lent::new(socket);
    let mut builder = Builder::new();
    builder
        .initial_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .max_send_buffer_size(UNSENT);
    let mut speaking = select! {
        shaken = builder.handshake::<_, Bytes>(lent.clone()) => match shaken {
            Ok(speaking) => speaking,
            Err(_) => return,
        },
        _ = stop.wait_for(|stop| *stop) => return,
    };
    let mut exchanges = FuturesUnordered::new();
    let mut stopped = stop.clone();
    let broken = loop {
        select! {
            biased;
            _ = stopped.wait_for(|stop| *stop) => break None,
            // Every poll of this drives the whole connection.
            incoming = speaking.accept() => match incoming {
                Some(Ok((request, respond))) => {
                    let response = Response::new(respond, lent.clone(), stop.clone());
                    exchanges.push(exchange(request, response, shared, connection));
                }
                Some(Err(_)) | None => break None,
            },
            Some(broken) = exchanges.next() => if let Some(broken) = broken {
                break Some(broken);
            },
        }
    };
    match broken {
        Some((broken, _response)) => break_off(speaking, &lent, broken, stop).await,
        None => drop(speaking),
    }
    // What is still under way finds the connection gone, and notes it.
    while exchanges.next().await.is_some() {}
}

/// Tells a client that speaks something else what is spoken here. Over TLS, ALPN
/// has told it already.
async fn turn_away(socket: Socket, stop: &watch::Receiver<bool>) -> Option<Socket> {
    let Socket::Plain(tcp) = &socket else { return Some(socket) };
    let mut first = [0; 3];
    let mut stopped = stop.clone();
    let seen = select! {
        seen = tcp.peek(&mut first) => seen.unwrap_or_default(),
        _ = stopped.wait_for(|stop| *stop) => return None,
    };
    let said = first.get(..seen).unwrap_or_default();
    if b"PRI".starts_with(said) {
        return Some(socket);
    }
    let message = "this server speaks HTTP/2: use a client that knows so beforehand (curl \
                   --http2-prior-knowledge), or add `tls = \"good\"` to [server]";
    let plain = routes::error(505, "invalid_request_error", message.to_owned());
    let mut wire = Wire::new(socket, stop.clone());
    if wire.send(&write_plain(&plain, false)).await.is_ok() {
        wire.fin().await;
    }
    None
}

/// Answers one request; `Some` when that breaks the connection. The response
/// comes back then, because a dropped one resets its stream.
async fn exchange(
    request: http::Request<RecvStream>,
    mut response: Response,
    shared: &Shared,
    connection: usize,
) -> Option<(Broken, Response)> {
    let broken = match read(request).await {
        Ok(request) => answer(&request, &mut response, shared, connection).await?,
        Err(NoRequest::Gone) => return None,
        Err(NoRequest::Bad { status, message }) => {
            let plain = routes::error(status, "invalid_request_error", message);
            // Whether the client waits for it is its own affair.
            let _ = say(&mut response, plain).await;
            return None;
        }
    };
    Some((broken, response))
}

async fn answer(
    request: &Request,
    response: &mut Response,
    shared: &Shared,
    connection: usize,
) -> Option<Broken> {
    match routes::route(shared, request, connection) {
        Route::Attempt { dialect, ask, attempt } => {
            let reply = Reply {
                dialect,
                behaviour: &attempt.step.behaviour(),
                content: &attempt.step.content(),
                ask: &ask,
                turn: attempt.turn,
                key: request.headers.key(),
                elsewhere: shared.elsewhere(request),
                ticket: attempt.ticket,
            };
            let played = reply.respond(response).await;
            let ended = match played {
                Ok(None) if reply.behaviour.hang_up == Some(HangUp::GoAway) => {
                    let id = response.stream_id();
                    let sent = response.until_sent().await;
                    sent.map(|()| Some(Broken::GoAway(id, Http2Code::NoError)))
                }
                Ok(None) => Ok(None),
                Ok(Some(how)) => break_at(response, &reply.ticket, how).await,
                Err(gone) => Err(gone),
            };
            ended.unwrap_or_else(|gone| {
                reply.ticket.ended(gone.into());
                None
            })
        }
        Route::Plain(plain, ticket) => {
            if let (Err(gone), Some(ticket)) = (say(response, plain).await, ticket) {
                ticket.ended(gone.into());
            }
            None
        }
        Route::Reconnect(ticket) => {
            ticket.ended(Ended::Fin);
            Some(Broken::Fin)
        }
    }
}

async fn say(response: &mut Response, plain: Plain) -> Result<(), Gone> {
    response.head(plain.head).await?;
    response.data(&plain.body, plain.body.len()).await?;
    response.end(&[]).await
}

/// Breaks the stream here, or says how to break its connection.
async fn break_at(
    response: &mut Response,
    ticket: &Ticket<'_>,
    how: How,
) -> Result<Option<Broken>, Gone> {
    // What was said before the break is to arrive.
    response.until_sent().await?;
    let (ended, broken) = match how {
        How::Silence => {
            ticket.ended(Ended::Silence);
            let gone = response.until_left().await;
            ticket.ended(match gone {
                Gone::ClientLeft => Ended::LeftInSilence,
                Gone::Stopped => Ended::Stopped,
            });
            return Ok(None);
        }
        How::RstStream(code) => {
            ticket.ended(Ended::StreamReset);
            response.reset(code);
            return Ok(None);
        }
        How::GoAway(code) => {
            (Ended::GoAway, Broken::GoAway(response.stream_id().saturating_sub(2), code))
        }
        How::GoAwayAccepted(code) => (Ended::GoAway, Broken::GoAway(response.stream_id(), code)),
        How::Reset => (Ended::Reset, Broken::Reset),
        How::FinWithoutNotify => (Ended::Fin, Broken::FinWithoutNotify),
        How::BadRecord => (Ended::Fin, Broken::BadRecord),
        How::BadFrame => (Ended::Fin, Broken::BadFrame),
        // The ways of HTTP/1.1 are refused where the script is checked.
        How::Fin | How::CleanEnd | How::ShortBody | How::BadChunk => (Ended::Fin, Broken::Fin),
    };
    ticket.ended(ended);
    Ok(Some(broken))
}

async fn break_off(
    mut speaking: Connection<Lent, Bytes>,
    lent: &Lent,
    broken: Broken,
    stop: watch::Receiver<bool>,
) {
    let flushed = poll_fn(|cx| {
        let _ = speaking.poll_accept(cx);
        lent.poll_between_frames()
    });
    // A client that does not read gets the break in the middle of a frame.
    let _ = time::timeout(CLOSE_WAIT, flushed).await;
    let Some(socket) = lent.take_back() else { return };
    drop(speaking);
    let mut wire = Wire::new(socket, stop);
    match broken {
        Broken::Reset => wire.reset().await,
        Broken::Fin => wire.fin().await,
        Broken::FinWithoutNotify => wire.fin_without_notify().await,
        Broken::BadRecord => wire.bad_record().await,
        Broken::BadFrame => {
            if wire.send(&DATA_ON_STREAM_ZERO).await.is_ok() {
                wire.fin().await;
            }
        }
        Broken::GoAway(last, code) => {
            if wire.send(&goaway(last, code)).await.is_ok() {
                wire.fin().await;
            }
        }
    }
}

/// A frame that breaks the whole connection (RFC 9113, section 6.1).
const DATA_ON_STREAM_ZERO: [u8; 10] = [0, 0, 1, 0, 0, 0, 0, 0, 0, b'x'];

/// A GOAWAY frame (RFC 9113, section 6.8).
fn goaway(last: u32, code: Http2Code) -> Vec<u8> {
    let mut frame = vec![0, 0, 8, 0x7, 0, 0, 0, 0, 0];
    frame.extend_from_slice(&last.to_be_bytes());
    frame.extend_from_slice(&code.value().to_be_bytes());
    frame
}

/// Reads a request whole.
async fn read(request: http::Request<RecvStream>) -> Result<Request, NoRequest> {
    let (head, mut incoming) = request.into_parts();
    let mut body = Vec::new();
    while let Some(piece) = incoming.data().await {
        let piece = piece.map_err(|_| NoRequest::Gone)?;
        let released = incoming.flow_control().release_capacity(piece.len());
        released.map_err(|_| NoRequest::Gone)?;
        if body.len() + piece.len() > MAX_BODY {
            return Err(too_long());
        }
        body.extend_from_slice(&piece);
    }
    let mut headers = Headers::default();
    if let Some(authority) = head.uri.authority() {
        headers.push("host", authority.as_str().as_bytes());
    }
    for (name, value) in &head.headers {
        headers.push(name.as_str(), value.as_bytes());
    }
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
    Ok(Request {
        method: head.method.as_str().to_owned(),
        path: Path(path.to_owned()),
        headers,
        body,
    })
}
