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
    reply::{Reply, Sink},
    request::{MAX_BODY, Request},
    routes::{self, Plain, Route},
    shared::{Shared, Ticket},
    socket::Socket,
    wire::{CLOSE_WAIT, Gone, Wire},
};
use crate::{
    behaviour::{How, Http2Code},
    record::{Ended, Headers, Path},
};

const WINDOW: u32 = 16 * 1024 * 1024;

/// What breaks the whole connection.
#[derive(Debug, Clone, Copy)]
enum Broken {
    Reset,
    Fin,
    FinWithoutNotify,
    /// The last stream that counts as processed, and the code.
    GoAway(u32, Http2Code),
}

pub(super) async fn serve(
    socket: Socket,
    mut stop: watch::Receiver<bool>,
    shared: &Shared,
    connection: usize,
) {
    let lent = Lent::new(socket);
    let mut builder = Builder::new();
    builder.initial_window_size(WINDOW).initial_connection_window_size(WINDOW);
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

/// Answers one request; `Some` when that breaks the connection. The response
/// comes back then, because a dropped one resets its stream.
async fn exchange(
    request: http::Request<RecvStream>,
    mut response: Response,
    shared: &Shared,
    connection: usize,
) -> Option<(Broken, Response)> {
    let request = read(request).await?;
    let broken = answer(&request, &mut response, shared, connection).await?;
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
                content: attempt.step.content(),
                ask: &ask,
                turn: attempt.turn,
                key: request.headers.key(),
                elsewhere: shared.elsewhere(request),
                ticket: attempt.ticket,
            };
            let played = reply.respond(response).await;
            let ended = match played {
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
    response.end().await
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
        Broken::GoAway(last, code) => {
            if wire.send(&goaway(last, code)).await.is_ok() {
                wire.fin().await;
            }
        }
    }
}

/// A GOAWAY frame (RFC 9113, section 6.8).
fn goaway(last: u32, code: Http2Code) -> Vec<u8> {
    let mut frame = vec![0, 0, 8, 0x7, 0, 0, 0, 0, 0];
    frame.extend_from_slice(&last.to_be_bytes());
    frame.extend_from_slice(&code.value().to_be_bytes());
    frame
}

/// Reads a request whole; `None` when the client gave it up.
async fn read(request: http::Request<RecvStream>) -> Option<Request> {
    let (head, mut incoming) = request.into_parts();
    let mut body = Vec::new();
    while let Some(piece) = incoming.data().await {
        let piece = piece.ok()?;
        incoming.flow_control().release_capacity(piece.len()).ok()?;
        if body.len() + piece.len() > MAX_BODY {
            return None;
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
    Some(Request {
        method: head.method.as_str().to_owned(),
        path: Path(path.to_owned()),
        headers,
        body,
    })
}
