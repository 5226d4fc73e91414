//! Steps 2 and 3: what a status with its body, or an error inside a stream, means.
//!
//! The typed words of a body (`type`, `code`, `status`) refine what the status
//! allows; prose refines only a 400, 413, 422 or 429, where providers put
//! several different things behind one number.

mod words;

use words::{Typed, typed};

use super::{UNKNOWN, Verdict, wording};
use crate::{BodyShape, ErrorBody, ErrorCode, Origin};

pub(super) fn conclude(status: u16, body: &ErrorBody) -> Verdict {
    let typed = typed(body);
    match status {
        401 => told(ErrorCode::ProviderUnauthorized, "status.401", "the provider refused the key"),
        402 => told(ErrorCode::ProviderQuotaExceeded, "status.402", "the credit is used up"),
        403 => match typed {
            Some(Typed::Filtered) => filtered("status.403+typed.filter"),
            Some(Typed::Quota) => quota("status.403+typed.quota"),
            Some(Typed::Model) => no_model("status.403+typed.model"),
            _ => told(
                ErrorCode::ProviderUnauthorized,
                "status.403",
                "the provider forbids this to the key",
            ),
        },
        404 => not_found(typed, body),
        408 => told(ErrorCode::Timeout, "status.408", "the server gave up waiting"),
        413 => match typed {
            Some(Typed::Rate) => throttled_for_good("status.413+typed.rate"),
            _ if says_throttle(body) => throttled_for_good("status.413+wording.throttle"),
            _ => too_large("status.413"),
        },
        429 => too_many(typed, body),
        400 | 422 => bad_request(typed, body),
        503 | 529 => match typed {
            Some(Typed::Quota) => quota("status.503+typed.quota"),
            _ => overloaded(if status == 529 { "status.529" } else { "status.503" }),
        },
        501 | 505 => told(
            ErrorCode::ProviderError,
            "status.not_implemented",
            "the server does not implement this",
        )
        .never(),
        500..=599 => match typed {
            Some(Typed::Overloaded) => overloaded("status.5xx+typed.overloaded"),
            Some(Typed::Rate) => rate_limited("status.5xx+typed.rate"),
            Some(Typed::Quota) => quota("status.5xx+typed.quota"),
            Some(Typed::Overflow) => too_large("status.5xx+typed.overflow"),
            _ => server_error("status.5xx"),
        },
        300..=399 => told(
            ErrorCode::ProviderProtocolMismatch,
            "status.3xx",
            "the server redirects elsewhere, which is not followed with a key",
        ),
        405 | 406 | 409..=412 | 414..=417 => {
            told(ErrorCode::InvalidRequest, "status.4xx", "the provider refused the request")
        }
        _ => told(ErrorCode::ProviderError, "status.other", "the provider answered with an error")
            .never(),
    }
}

/// An error inside a 2xx stream: its words, else the status it carries as a code.
pub(super) fn conclude_in_band(body: &ErrorBody) -> Verdict {
    let verdict = match typed(body) {
        Some(Typed::Quota) => quota("inband.typed.quota"),
        Some(Typed::Rate) => rate_limited("inband.typed.rate"),
        Some(Typed::Overloaded) => overloaded("inband.typed.overloaded"),
        Some(Typed::Overflow) => too_large("inband.typed.overflow"),
        Some(Typed::Filtered) => filtered("inband.typed.filter"),
        Some(Typed::Auth) => told(
            ErrorCode::ProviderUnauthorized,
            "inband.typed.auth",
            "the provider refused the key",
        ),
        Some(Typed::Model) => no_model("inband.typed.model"),
        Some(Typed::Server) => server_error("inband.typed.server"),
        Some(Typed::Invalid) => match body.message.as_deref().and_then(wording::refine) {
            Some(verdict) => verdict,
            None => invalid("inband.typed.invalid"),
        },
        None => match body.numeric_status() {
            Some(status) => Verdict { rule: "inband.status", ..conclude(status, body) },
            None => {
                let told = body.message.as_deref().and_then(wording::conclude);
                told.unwrap_or(Verdict { rule: "inband.unknown", ..UNKNOWN })
            }
        },
    };
    Verdict { source: Origin::Provider, ..verdict }
}

fn not_found(typed: Option<Typed>, body: &ErrorBody) -> Verdict {
    let names_model = body.shape == BodyShape::Json
        && body.message.as_deref().is_some_and(|text| text.to_ascii_lowercase().contains("model"));
    match typed {
        Some(Typed::Model) => no_model("status.404+typed.model"),
        _ if names_model => no_model("status.404+wording.model"),
        // No API answers like this: the path is wrong, not the model.
        _ if body.shape != BodyShape::Json => told(
            ErrorCode::ProviderProtocolMismatch,
            "status.404+shape",
            "nothing answers at this path; the base URL may be wrong",
        ),
        _ => told(ErrorCode::InvalidRequest, "status.404", "the provider knows no such thing"),
    }
}

fn too_many(typed: Option<Typed>, body: &ErrorBody) -> Verdict {
    let per_day = body.quota_ids.iter().any(|id| id.contains("PerDay"));
    let per_minute = body.quota_ids.iter().any(|id| id.contains("PerMinute"));
    match typed {
        Some(Typed::Quota) => quota("status.429+typed.quota"),
        Some(Typed::Overloaded) => overloaded("status.429+typed.overloaded"),
        _ if per_day => quota("status.429+typed.per_day"),
        _ if per_minute => rate_limited("status.429+typed.per_minute"),
        // Typed as a rate limit: its prose may mention billing, and means nothing by it.
        Some(Typed::Rate) => rate_limited("status.429+typed.rate"),
        _ if body.message.as_deref().is_some_and(wording::says_quota) => {
            quota("status.429+wording.quota")
        }
        _ => rate_limited("status.429"),
    }
}

fn bad_request(typed: Option<Typed>, body: &ErrorBody) -> Verdict {
    match typed {
        Some(Typed::Overflow) => too_large("status.400+typed.overflow"),
        Some(Typed::Filtered) => filtered("status.400+typed.filter"),
        Some(Typed::Auth) => told(
            ErrorCode::ProviderUnauthorized,
            "status.400+typed.auth",
            "the provider refused the key",
        ),
        Some(Typed::Model) => no_model("status.400+typed.model"),
        Some(Typed::Quota) => quota("status.400+typed.quota"),
        Some(Typed::Rate) => rate_limited("status.400+typed.rate"),
        Some(Typed::Overloaded) => overloaded("status.400+typed.overloaded"),
        // Seen on Cerebras servers: an overflow as a 400 without a body.
        None if body.shape == BodyShape::Empty => too_large("status.400+empty"),
        _ => match body.message.as_deref().and_then(wording::refine) {
            Some(verdict) => Verdict { source: Origin::Provider, ..verdict },
            None => invalid("status.400"),
        },
    }
}

fn says_throttle(body: &ErrorBody) -> bool {
    body.message.as_deref().is_some_and(wording::says_throttle)
}

const fn told(code: ErrorCode, rule: &'static str, sentence: &'static str) -> Verdict {
    Verdict::new(code, Origin::Provider, rule, sentence)
}

const fn quota(rule: &'static str) -> Verdict {
    told(ErrorCode::ProviderQuotaExceeded, rule, "the quota is used up")
}

const fn rate_limited(rule: &'static str) -> Verdict {
    told(ErrorCode::ProviderRateLimited, rule, "too many requests in a short time")
}

/// A single request above the whole limit of its tier: waiting does not help.
const fn throttled_for_good(rule: &'static str) -> Verdict {
    told(ErrorCode::ProviderRateLimited, rule, "the request is above the rate limit of its tier")
        .never()
}

const fn overloaded(rule: &'static str) -> Verdict {
    told(ErrorCode::ProviderOverloaded, rule, "the provider has no capacity right now")
}

const fn too_large(rule: &'static str) -> Verdict {
    told(ErrorCode::ContextTooLarge, rule, "the request is larger than the model's context")
}

const fn filtered(rule: &'static str) -> Verdict {
    told(ErrorCode::ContentFiltered, rule, "a safety filter blocked it")
}

const fn no_model(rule: &'static str) -> Verdict {
    told(ErrorCode::ModelNotConfigured, rule, "the provider does not know the model")
}

const fn server_error(rule: &'static str) -> Verdict {
    told(ErrorCode::ProviderError, rule, "the provider failed")
}

const fn invalid(rule: &'static str) -> Verdict {
    told(ErrorCode::InvalidRequest, rule, "the provider refused the request")
}
