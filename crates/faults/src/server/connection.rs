//! Serves the requests of one connection, one after the other.

use serde_json::{Value, json};

use super::{
    exchange::{self, Exchange},
    request::{self, NoRequest, Request},
    shared::{OpenGuard, Shared},
    wire::{Gone, Wire},
};
use crate::{
    behaviour::ErrorReply,
    dialect::{self, Chat, Dialect},
    record::Ended,
};

pub(crate) async fn serve(mut wire: Wire, shared: &Shared, connection: usize) {
    let _open = OpenGuard::new(&shared.open);
    loop {
        let request = match request::read(&mut wire).await {
            Ok(Some(request)) => request,
            Ok(None) | Err(NoRequest::Gone) => return,
            Err(NoRequest::Bad { status, message }) => {
                let answer = error(status, "invalid_request_error", message);
                if wire.send(&answer.bytes(false)).await.is_ok() {
                    wire.fin().await;
                }
                return;
            }
        };
        match answer(wire, shared, connection, &request).await {
            Some(next) => wire = next,
            None => return,
        }
    }
}

/// Answers one request; the connection comes back when it can carry another.
async fn answer(wire: Wire, shared: &Shared, connection: usize, request: &Request) -> Option<Wire> {
    let method = request.method.as_str();
    let route = request.route();
    let plain = match (method, route) {
        ("GET", "/_faults/requests") => return say(wire, request, &requests(shared)).await.ok()?,
        ("POST", "/_faults/reset") => {
            shared.reset();
            let done = Plain::new(200, json!({"reset": true}));
            return say(wire, request, &done).await.ok()?;
        }
        ("GET", _) if route.ends_with("/models") => models(),
        _ => match dialect::for_path(route) {
            None => unknown_path(method, route),
            Some(_) if method != "POST" => wrong_method(method, route),
            Some(dialect) => match chat(wire, shared, connection, request, dialect).await {
                Chatted::Played(next) => return next.map(|wire| *wire),
                Chatted::Refused(back, message) => {
                    let plain = error(400, "invalid_request_error", message);
                    return note_and_say(*back, shared, connection, request, &plain).await;
                }
            },
        },
    };
    note_and_say(wire, shared, connection, request, &plain).await
}

enum Chatted {
    Played(Option<Box<Wire>>),
    Refused(Box<Wire>, String),
}

async fn chat(
    wire: Wire,
    shared: &Shared,
    connection: usize,
    request: &Request,
    dialect: &'static dyn Dialect,
) -> Chatted {
    let ask = serde_json::from_slice::<Value>(&request.body)
        .map_err(|error| format!("could not parse the JSON body of your request: {error}"))
        .and_then(|body| dialect.read(&body));
    let ask = match ask {
        Ok(ask) => ask,
        Err(message) => return Chatted::Refused(Box::new(wire), message),
    };
    let Some(attempt) = shared.attempt(request, connection) else {
        // A script holds at least one step, so this answers rather than panics.
        return Chatted::Refused(Box::new(wire), "the script has no steps".to_owned());
    };
    let exchange = Exchange {
        dialect,
        behaviour: &attempt.step.behaviour(),
        content: attempt.step.content(),
        ask: &ask,
        turn: attempt.turn,
        key: request.headers.key(),
        keep_alive: request.keep_alive(),
        ticket: attempt.ticket,
    };
    Chatted::Played(exchange.play(wire).await.map(Box::new))
}

async fn note_and_say(
    wire: Wire,
    shared: &Shared,
    connection: usize,
    request: &Request,
    plain: &Plain,
) -> Option<Wire> {
    let ticket = shared.note(request, connection);
    ticket.ended(Ended::Complete);
    match say(wire, request, plain).await {
        Ok(next) => next,
        Err(gone) => {
            ticket.ended(match gone {
                Gone::ClientLeft => Ended::ClientLeft,
                Gone::Stopped => Ended::Stopped,
            });
            None
        }
    }
}

async fn say(mut wire: Wire, request: &Request, plain: &Plain) -> Result<Option<Wire>, Gone> {
    let keep_alive = request.keep_alive();
    wire.send(&plain.bytes(keep_alive)).await?;
    if keep_alive {
        return Ok(Some(wire));
    }
    wire.fin().await;
    Ok(None)
}

/// An answer of the server itself, outside any script.
struct Plain {
    status: u16,
    body: Value,
    headers: Vec<(&'static str, String)>,
}

impl Plain {
    fn new(status: u16, body: Value) -> Self {
        Self { status, body, headers: vec![("content-type", "application/json".to_owned())] }
    }

    fn bytes(&self, keep_alive: bool) -> Vec<u8> {
        let body = self.body.to_string();
        let mut bytes = exchange::head(self.status, &self.headers, Some(body.len()), keep_alive);
        bytes.extend_from_slice(body.as_bytes());
        bytes
    }
}

fn requests(shared: &Shared) -> Plain {
    match serde_json::to_value(shared.records()) {
        Ok(records) => Plain::new(200, records),
        Err(problem) => error(500, "server_error", format!("cannot write the record: {problem}")),
    }
}

fn models() -> Plain {
    Plain::new(
        200,
        json!({"object": "list", "data": [
            {"id": "faults", "object": "model", "created": 0, "owned_by": "turnbuckle"},
        ]}),
    )
}

fn unknown_path(method: &str, route: &str) -> Plain {
    let message = format!(
        "nothing is served at {method} {route}: send chats to POST /v1/chat/completions \
         (set the client's base URL to http://HOST:PORT/v1); the record is at \
         GET /_faults/requests, and POST /_faults/reset restarts the script"
    );
    error(404, "invalid_request_error", message)
}

fn wrong_method(method: &str, route: &str) -> Plain {
    let mut plain =
        error(405, "invalid_request_error", format!("{method} means nothing at {route}: use POST"));
    plain.headers.push(("allow", "POST".to_owned()));
    plain
}

fn error(status: u16, kind: &str, message: String) -> Plain {
    Plain::new(status, Chat.error(&ErrorReply::new(status, kind, message)))
}
