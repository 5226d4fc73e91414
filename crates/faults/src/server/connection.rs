//! Serves the requests of one HTTP/1.1 connection, one after the other.

use super::{
    exchange::{Exchange, write_head},
    reply::Reply,
    request::{self, NoRequest, Request},
    routes::{self, Plain, Route},
    shared::Shared,
    wire::{Gone, Wire},
};
use crate::record::Ended;

pub(super) async fn serve(mut wire: Wire, shared: &Shared, connection: usize) {
    loop {
        let request = match request::read(&mut wire).await {
            Ok(Some(request)) => request,
            Ok(None) | Err(NoRequest::Gone) => return,
            Err(NoRequest::Bad { status, message }) => {
                let answer = routes::error(status, "invalid_request_error", message);
                if wire.send(&write_plain(&answer, false)).await.is_ok() {
                    wire.fin().await;
                }
                return;
            }
        };
        if wire.is_doomed() {
            shared.note(&request, connection).ended(Ended::Reset);
            return wire.reset().await;
        }
        match answer(wire, shared, connection, &request).await {
            Some(next) => wire = next,
            None => return,
        }
    }
}

/// Answers one request; the connection comes back when it can carry another.
async fn answer(wire: Wire, shared: &Shared, connection: usize, request: &Request) -> Option<Wire> {
    let keep_alive = request.keep_alive();
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
            Exchange { reply, keep_alive }.play(wire).await
        }
        Route::Plain(plain, ticket) => match say(wire, &plain, keep_alive).await {
            Ok(next) => next,
            Err(gone) => {
                ticket.iter().for_each(|ticket| ticket.ended(gone.into()));
                None
            }
        },
        Route::Reconnect(ticket) => {
            ticket.ended(Ended::Fin);
            wire.fin().await;
            None
        }
    }
}

async fn say(mut wire: Wire, plain: &Plain, keep_alive: bool) -> Result<Option<Wire>, Gone> {
    wire.send(&write_plain(plain, keep_alive)).await?;
    if keep_alive {
        return Ok(Some(wire));
    }
    wire.fin().await;
    Ok(None)
}

/// An answer of the server itself as HTTP/1.1.
pub(super) fn write_plain(plain: &Plain, keep_alive: bool) -> Vec<u8> {
    let mut bytes = write_head(&plain.head, keep_alive);
    bytes.extend_from_slice(&plain.body);
    bytes
}
