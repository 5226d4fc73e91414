//! Keeps `docs/ERRORS.md` equal to the codes.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::{collections::BTreeSet, fmt::Write as _, fs, path::PathBuf};

use turnbuckle_errors::{
    Actor,
    ErrorCode::{self, *},
};

/// Set it to rewrite the tables instead of comparing them.
const UPDATE: &str = "UPDATE_DOCS";

/// Names common elsewhere, our codes for them, and what tells those apart.
const NAMES: &[(&str, &[ErrorCode], &str)] = &[
    (
        "`AUTH`, `UNAUTHORIZED`, `AuthenticationError`, `authentication_error`",
        &[ProviderUnauthorized, ProviderSecretMissing, ProviderSecretInvalid],
        "the provider refused the key; no key was found; the key cannot be sent",
    ),
    (
        "`FORBIDDEN`, `PERMISSION_DENIED`, `PermissionDeniedError`",
        &[ProviderUnauthorized, ToolDenied],
        "the provider's word; ours about a tool call",
    ),
    (
        "`RATE_LIMIT`, `RATE_LIMITED`, `TOO_MANY_REQUESTS`, `RateLimitError`, `rate_limit_error`, `ThrottlingException`",
        &[ProviderRateLimited],
        "",
    ),
    (
        "`QUOTA`, `QUOTA_EXCEEDED`, `INSUFFICIENT_QUOTA`, `BILLING`, `PAYMENT_REQUIRED`, `USAGE_LIMIT`",
        &[ProviderQuotaExceeded],
        "",
    ),
    (
        "`RESOURCE_EXHAUSTED`",
        &[ProviderRateLimited, ProviderQuotaExceeded, ProviderOverloaded],
        "a quota by the minute; one by the day; no capacity",
    ),
    (
        "`OVERLOADED`, `overloaded_error`, `UNAVAILABLE`, `SERVICE_UNAVAILABLE`",
        &[ProviderOverloaded],
        "",
    ),
    (
        "`SERVER`, `SERVER_ERROR`, `API_ERROR`, `INTERNAL_SERVER_ERROR`, `InternalServerError`, `BAD_GATEWAY`",
        &[ProviderError],
        "",
    ),
    ("`UNKNOWN`, `OTHER`", &[ProviderError], "not retriable then"),
    (
        "`TRANSPORT`, `NETWORK`, `CONNECTION`, `APIConnectionError`, `FETCH_FAILED`, `ECONNREFUSED`, `ENOTFOUND`",
        &[NetworkError, StreamFailed],
        "before a response head came; after it",
    ),
    (
        "`STREAM`, `STREAM_ERROR`, `STREAM_INTERRUPTED`, `TERMINATED`, `PREMATURE_CLOSE`, `TRUNCATED`, `INCOMPLETE`",
        &[StreamFailed],
        "",
    ),
    (
        "`TIMEOUT`, `ETIMEDOUT`, `DEADLINE_EXCEEDED`, `APITimeoutError`",
        &[Timeout, ToolTimeout, PermissionTimeout],
        "a model attempt; a tool; a question to the user",
    ),
    (
        "`CONTEXT_WINDOW_EXCEEDED`, `CONTEXT_LENGTH_EXCEEDED`, `PROMPT_TOO_LONG`, `REQUEST_TOO_LARGE`, `ContextWindowExceededError`",
        &[ContextTooLarge],
        "",
    ),
    (
        "`EMPTY_RESPONSE`, `NO_OUTPUT`, `NO_CONTENT`",
        &[EmptyModelResponse, StreamFailed],
        "the model finished without a word; the body held no event",
    ),
    (
        "`INVALID_REQUEST`, `BAD_REQUEST`, `BadRequestError`, `INVALID_ARGUMENT`, `UnprocessableEntityError`",
        &[InvalidRequest, InvalidArgument],
        "a provider's word about a request; ours about a tool call",
    ),
    (
        "`NOT_FOUND`, `MODEL_NOT_FOUND`, `NotFoundError`",
        &[ModelNotConfigured, ProviderProtocolMismatch],
        "the model is unknown; nothing answers at that path",
    ),
    (
        "`CONTENT_FILTER`, `CONTENT_POLICY`, `SAFETY`, `REFUSAL`, `ContentPolicyViolationError`",
        &[ContentFiltered],
        "",
    ),
    (
        "`PARSE_ERROR`, `INVALID_RESPONSE`, `UNEXPECTED_RESPONSE`, `APIResponseValidationError`",
        &[StreamFailed, ProviderProtocolMismatch],
        "one event is unreadable; nothing of it is the expected protocol",
    ),
    ("`ABORTED`, `CANCELLED`, `APIUserAbortError`, `AbortError`", &[TurnAborted], ""),
    (
        "`BUSY`, `CONFLICT`",
        &[AgentBusy, SessionLocked],
        "a prompt is running in this session; another process writes it",
    ),
    ("`MAX_TURNS`, `MAX_STEPS`, `ITERATION_LIMIT`", &[TurnLimitReached], ""),
    ("`TOOL_ERROR`, `TOOL_EXECUTION_ERROR`", &[ToolFailed], ""),
    ("`UNKNOWN_TOOL`, `NO_SUCH_TOOL`", &[ToolNotFound], ""),
    ("`CONFIG`, `CONFIGURATION`, `MISSING_CONFIG`", &[InvalidConfig], ""),
    (
        "`BUG`, `PANIC`, `INTERNAL`",
        &[Internal],
        "a fault of ours; a provider's `INTERNAL` is `PROVIDER_ERROR`",
    ),
];

fn codes() -> String {
    let mut table = String::new();
    let mut family = None;
    for code in ErrorCode::ALL {
        let info = code.info();
        if family != Some(info.family) {
            family = Some(info.family);
            let name = info.family.as_str();
            let (first, rest) = name.split_at(1);
            writeln!(table, "\n### {}{rest}\n", first.to_uppercase()).unwrap();
            table.push_str("| code | meaning | retriable | who acts | what to do | example |\n");
            table.push_str("|---|---|---|---|---|---|\n");
        }
        let retriable = match (code, info.retriable) {
            (ProviderError, _) => "a server fault, yes; else no",
            (NetworkError, _) => "yes; a TLS handshake that fails, no",
            (_, true) => "yes",
            (_, false) => "no",
        };
        let acts = info.actor.as_str();
        let cells = [info.meaning, retriable, acts, info.advice, info.example];
        let cells = cells.map(|cell| cell.replace('|', "\\|")).join(" | ");
        writeln!(table, "| `{code}` | {cells} |").unwrap();
    }
    table.push('\n');
    table
}

fn names() -> String {
    let mut table = String::from("\n| elsewhere | here |\n|---|---|\n");
    for (elsewhere, ours, apart) in NAMES {
        let ours: Vec<String> = ours.iter().map(|code| format!("`{code}`")).collect();
        let apart = if apart.is_empty() { String::new() } else { format!(": {apart}") };
        writeln!(table, "| {elsewhere} | {}{apart} |", ours.join(", ")).unwrap();
    }
    table.push('\n');
    table
}

/// `page` with what stands between the marks of `name` replaced.
fn with(page: &str, name: &str, table: &str) -> String {
    let (begin, end) = (format!("<!-- {name}:begin -->\n"), format!("<!-- {name}:end -->"));
    let (head, rest) = page.split_once(&begin).unwrap_or_else(|| panic!("no mark {begin}"));
    let (_, tail) = rest.split_once(&end).unwrap_or_else(|| panic!("no mark {end}"));
    format!("{head}{begin}{table}{end}{tail}")
}

#[test]
fn the_page_is_equal_to_the_codes() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/ERRORS.md");
    let page = fs::read_to_string(&path).unwrap();
    let fresh = with(&with(&page, "codes", &codes()), "names", &names());
    if std::env::var_os(UPDATE).is_some() {
        fs::write(&path, fresh).unwrap();
        return;
    }
    let differs = page.lines().zip(fresh.lines()).find(|(is, must)| is != must);
    assert!(
        page == fresh,
        "docs/ERRORS.md differs from the codes, first here:\n  {differs:?}\n\
         rewrite it with: {UPDATE}=1 cargo test -p turnbuckle-errors --test page"
    );
}

#[test]
fn every_name_common_elsewhere_stands_once() {
    let mut seen = BTreeSet::new();
    for (names, ours, apart) in NAMES {
        for name in names.split(", ") {
            assert!(seen.insert(name), "{name} twice");
        }
        assert!(!ours.is_empty() && (ours.len() == 1 || !apart.is_empty()), "{names}");
    }
    for name in [
        "AUTH",
        "RATE_LIMIT",
        "QUOTA",
        "SERVER",
        "TRANSPORT",
        "CONTEXT_WINDOW_EXCEEDED",
        "EMPTY_RESPONSE",
        "INVALID_REQUEST",
        "ABORTED",
        "TIMEOUT",
    ] {
        assert!(seen.contains(format!("`{name}`").as_str()), "{name}");
    }
}

#[test]
fn every_actor_has_something_to_act_on() {
    let actors: BTreeSet<&str> =
        ErrorCode::ALL.iter().map(|code| code.info().actor.as_str()).collect();
    let all = [Actor::User, Actor::Host, Actor::Provider, Actor::Nobody].map(Actor::as_str);
    assert_eq!(actors, BTreeSet::from(all));
}
