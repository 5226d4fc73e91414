//! Steps 2 and 3: what a status with its body, or an error inside a stream, means.
//!
//! The typed words of a body (`type`, `code`, `status`) refine what the status
//! allows; prose refines only a 400, 403, 404, 413, 422, 429 or 5xx, where
//! providers put several different things behind one number.

mod words;

use words::{Typed, typed};

use super::{
    Scene, UNKNOWN, Verdict,
    wording::{self, CAPACITY, REFUSALS},
};
use crate::{BodyShape, ErrorBody, ErrorCode, Origin};

pub(super) fn conclude(status: u16, body: &ErrorBody, scene: Scene) -> Verdict {
    let typed = typed(body);
    let scene = Scene { google: scene.google || typed == Some(Typed::Exhausted), ..scene };
    match status {
        401 => told(ErrorCode::ProviderUnauthorized, "status.401", "the provider refused the key"),
        402 => told(ErrorCode::ProviderQuotaExceeded, "status.402", "the credit is used up"),
        403 => forbidden(typed, body, scene),
        404 => not_found(typed, body, scene),
        408 => told(ErrorCode::Timeout, "status.408", "the server gave up waiting"),
        413 => match typed {
            Some(Typed::Rate) => above_the_tier("status.413+typed.rate", body),
            _ if says(body, scene, ErrorCode::ProviderRateLimited) => {
                above_the_tier("status.413+wording.throttle", body)
            }
            _ => too_large("status.413"),
        },
        429 => too_many(typed, body, scene),
        400 | 422 => bad_request(typed, body, scene),
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
        500..=599 => broken_server(typed, body, scene),
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
pub(super) fn conclude_in_band(body: &ErrorBody, scene: Scene) -> Verdict {
    let verdict = match typed(body) {
        Some(Typed::Quota) => quota("inband.typed.quota"),
        Some(Typed::Rate) if says_per_day(body, scene) => quota("inband.wording.per_day"),
        Some(Typed::Rate) => rate_limited("inband.typed.rate"),
        Some(Typed::Overloaded) => overloaded("inband.typed.overloaded"),
        Some(Typed::Overflow) => too_large("inband.typed.overflow"),
        Some(Typed::Filtered) => filtered("inband.typed.filter"),
        Some(Typed::Auth | Typed::Region) => told(
            ErrorCode::ProviderUnauthorized,
            "inband.typed.auth",
            "the provider refused the key",
        ),
        Some(Typed::Model) => no_model("inband.typed.model"),
        Some(Typed::Sampling) => server_error("inband.typed.sampling"),
        Some(Typed::Server) => match refined(body, scene, CAPACITY) {
            Some(verdict) => verdict,
            None => server_error("inband.typed.server"),
        },
        Some(Typed::Invalid) => match refined(body, scene, REFUSALS) {
            Some(verdict) => verdict,
            None => invalid("inband.typed.invalid"),
        },
        typed @ (Some(Typed::Exhausted) | None) => match body.numeric_status() {
            Some(status) => Verdict { rule: "inband.status", ..conclude(status, body, scene) },
            None if typed.is_some() => {
                let scene = Scene { google: true, ..scene };
                Verdict { rule: "inband.typed.exhausted", ..too_many(typed, body, scene) }
            }
            None => {
                let told = body.message.as_deref().and_then(|text| wording::conclude(text, scene));
                told.unwrap_or(Verdict { rule: "inband.unknown", ..UNKNOWN })
            }
        },
    };
    Verdict { source: Origin::Provider, delivered: None, ..verdict }
}

/// 403: a key without the right, but also a region, a filter or an empty plan.
fn forbidden(typed: Option<Typed>, body: &ErrorBody, scene: Scene) -> Verdict {
    match typed {
        Some(Typed::Filtered) => filtered("status.403+typed.filter"),
        Some(Typed::Quota) => quota("status.403+typed.quota"),
        Some(Typed::Model) => no_model("status.403+typed.model"),
        Some(Typed::Region) => told(
            ErrorCode::ProviderUnauthorized,
            "status.403+typed.region",
            "the provider does not serve this region",
        ),
        // OpenRouter: a flagged input, and a key's own spending limit.
        _ if says(body, scene, ErrorCode::ContentFiltered) => filtered("status.403+wording.filter"),
        _ if says(body, scene, ErrorCode::ProviderQuotaExceeded) => {
            quota("status.403+wording.quota")
        }
        _ => told(
            ErrorCode::ProviderUnauthorized,
            "status.403",
            "the provider forbids this to the key",
        ),
    }
}

/// 404: an unknown model, or a wrong base URL.
fn not_found(typed: Option<Typed>, body: &ErrorBody, scene: Scene) -> Verdict {
    let lower = body.message.as_deref().unwrap_or_default().to_ascii_lowercase();
    // OpenAI, Groq, FastAPI servers: the path is unknown, said in JSON.
    let names_path = ["invalid url", "unknown request url"].iter().any(|says| lower.contains(says))
        || (lower == "not found" && typed.is_none());
    match typed {
        Some(Typed::Model) => no_model("status.404+typed.model"),
        _ if says(body, scene, ErrorCode::ModelNotConfigured) => {
            no_model("status.404+wording.model")
        }
        // No API answers like this: the path is wrong, not the model.
        _ if body.shape != BodyShape::Json => wrong_path("status.404+shape"),
        _ if names_path => wrong_path("status.404+wording.path"),
        _ if lower.contains("model") => no_model("status.404+wording.model"),
        _ => told(ErrorCode::InvalidRequest, "status.404", "the provider knows no such thing"),
    }
}

/// 429: a rate, a plan or a full house, told apart by type before prose. The
/// words "exceeded your current quota" mean a plan at OpenAI and a rate at Google.
fn too_many(typed: Option<Typed>, body: &ErrorBody, scene: Scene) -> Verdict {
    let per_day = body.quota_ids.iter().any(|id| id.contains("PerDay"));
    let per_minute = body.quota_ids.iter().any(|id| id.contains("PerMinute"));
    match typed {
        Some(Typed::Quota) => quota("status.429+typed.quota"),
        Some(Typed::Overloaded) => overloaded("status.429+typed.overloaded"),
        _ if per_day => quota("status.429+typed.per_day"),
        _ if per_minute => rate_limited("status.429+typed.per_minute"),
        _ if says_per_day(body, scene) => quota("status.429+wording.per_day"),
        // Typed as a rate limit: its prose may mention billing, and means nothing by it.
        Some(Typed::Rate) => rate_limited("status.429+typed.rate"),
        _ if says(body, scene, ErrorCode::ProviderQuotaExceeded) => {
            quota("status.429+wording.quota")
        }
        _ if says(body, scene, ErrorCode::ProviderOverloaded) => {
            overloaded("status.429+wording.overloaded")
        }
        _ => rate_limited("status.429"),
    }
}

fn bad_request(typed: Option<Typed>, body: &ErrorBody, scene: Scene) -> Verdict {
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
        // A fault of the model's own sampling, which another sample may not have.
        Some(Typed::Sampling) => server_error("status.400+typed.sampling"),
        // Seen on Cerebras servers: an overflow as a 400 without a body.
        None if body.shape == BodyShape::Empty => too_large("status.400+empty"),
        _ => refined(body, scene, REFUSALS).unwrap_or(invalid("status.400")),
    }
}

/// 5xx: gateways also put the refusals of the server behind them here.
fn broken_server(typed: Option<Typed>, body: &ErrorBody, scene: Scene) -> Verdict {
    match typed {
        Some(Typed::Overloaded) => overloaded("status.5xx+typed.overloaded"),
        Some(Typed::Rate) => rate_limited("status.5xx+typed.rate"),
        Some(Typed::Quota) => quota("status.5xx+typed.quota"),
        Some(Typed::Overflow) => too_large("status.5xx+typed.overflow"),
        Some(Typed::Filtered) => filtered("status.5xx+typed.filter"),
        _ => refined(body, scene, CAPACITY).unwrap_or(server_error("status.5xx")),
    }
}

/// A request that its tier refuses as too large: final, unless the message's own
/// numbers say that it fits.
fn above_the_tier(rule: &'static str, body: &ErrorBody) -> Verdict {
    match body.message.as_deref().and_then(wording::above_the_limit) {
        Some(false) => rate_limited(rule),
        _ => rate_limited(rule).never(),
    }
}

fn refined(body: &ErrorBody, scene: Scene, allowed: &[ErrorCode]) -> Option<Verdict> {
    let verdict = wording::refine(body.message.as_deref()?, scene, allowed)?;
    Some(Verdict { source: Origin::Provider, delivered: None, ..verdict })
}

fn says(body: &ErrorBody, scene: Scene, code: ErrorCode) -> bool {
    let told = body.message.as_deref().and_then(|text| wording::conclude(text, scene));
    told.is_some_and(|verdict| verdict.code == code)
}

fn says_per_day(body: &ErrorBody, scene: Scene) -> bool {
    let told = body.message.as_deref().and_then(|text| wording::conclude(text, scene));
    told.is_some_and(|verdict| verdict.rule == "wording.per_day")
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

const fn wrong_path(rule: &'static str) -> Verdict {
    told(
        ErrorCode::ProviderProtocolMismatch,
        rule,
        "nothing answers at this path; the base URL may be wrong",
    )
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
