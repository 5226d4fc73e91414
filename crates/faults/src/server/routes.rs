//! What each request is answered by, whatever protocol brought it.

mod own;

use serde_json::{Value, json};

use super::{
    reply::Head,
    request::Request,
    shared::{Attempt, Shared, Ticket},
};
use crate::{
    behaviour::ErrorReply,
    dialect::{self, Ask, Chat, Dialect},
    record::Ended,
};

/// What a request is answered by.
pub(super) enum Route<'a> {
    /// A step of the script.
    Attempt { dialect: &'static dyn Dialect, ask: Ask, attempt: Attempt<'a> },
    /// The server itself; with a ticket, where it is recorded.
    Plain(Plain, Option<Ticket<'a>>),
    /// Nothing: the next step is a handshake, so the client must connect anew.
    Reconnect(Ticket<'a>),
}

/// Says what answers this request, and records it.
pub(super) fn route<'a>(shared: &'a Shared, request: &Request, connection: usize) -> Route<'a> {
    let method = request.method.as_str();
    let route = request.route();
    if let Some(name) = route.strip_prefix("/_faults/") {
        return Route::Plain(own::answer(shared, method, name, request.query()), None);
    }
    let plain = match (method, route) {
        ("GET", _) if route.ends_with("/models") => models(),
        _ => match dialect::for_path(route) {
            None => unknown_path(method, route),
            Some(_) if method != "POST" => wrong_method(method, route, "POST"),
            Some(dialect) => match read(dialect, request) {
                Err(message) => error(400, "invalid_request_error", message),
                Ok(ask) => {
                    return match shared.attempt(request, connection) {
                        Some(attempt) => Route::Attempt { dialect, ask, attempt },
                        None => Route::Reconnect(shared.note(request, connection)),
                    };
                }
            },
        },
    };
    let ticket = shared.note(request, connection);
    ticket.ended(Ended::Complete);
    Route::Plain(plain, Some(ticket))
}

fn read(dialect: &dyn Dialect, request: &Request) -> Result<Ask, String> {
    serde_json::from_slice::<Value>(&request.body)
        .map_err(|error| format!("could not parse the JSON body of your request: {error}"))
        .and_then(|body| dialect.read(&body))
}

/// An answer of the server itself, outside any script.
pub(super) struct Plain {
    pub(super) head: Head,
    pub(super) body: Vec<u8>,
}

impl Plain {
    fn new(status: u16, body: &Value) -> Self {
        let body = body.to_string().into_bytes();
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        Self { head: Head { status, headers, length: Some(body.len()) }, body }
    }
}

fn models() -> Plain {
    Plain::new(
        200,
        &json!({"object": "list", "data": [
            {"id": "faults", "object": "model", "created": 0, "owned_by": "turnbuckle"},
        ]}),
    )
}

fn unknown_path(method: &str, route: &str) -> Plain {
    let message = format!(
        "nothing is served at {method} {route}: send chats to POST /v1/chat/completions \
         (set the client's base URL to http://HOST:PORT/v1); the record is at \
         GET /_faults/requests, what is left of the script at GET /_faults/script, and \
         POST /_faults/reset restarts both"
    );
    error(404, "invalid_request_error", message)
}

fn wrong_method(method: &str, route: &str, right: &str) -> Plain {
    let message = format!("{method} means nothing at {route}: use {right}");
    let mut plain = error(405, "invalid_request_error", message);
    plain.head.headers.push(("allow".to_owned(), right.to_owned()));
    plain
}

/// An answer in the words of the only dialect there is.
pub(super) fn error(status: u16, kind: &str, message: String) -> Plain {
    Plain::new(status, &Chat.error(&ErrorReply::new(status, kind, message)))
}
