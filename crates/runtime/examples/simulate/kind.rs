//! Every way an attempt can go, and what the promises say about each.
//!
//! [`Kind::means`] is the oracle's own table. It is written from the promises,
//! and asks neither the classifier nor the decision that it is held against.

use turnbuckle_errors::{
    Clock, ErrorBody, ErrorCode, Fact, Facts, Failure, InBandError, Phase, Protocol, Redact,
    StatusFact, Transport,
};
use turnbuckle_runtime::recovery::Budget;

macro_rules! kinds {
    ($($variant:ident = $name:literal,)+) => {
        /// How one attempt goes.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub(crate) enum Kind { $($variant,)+ }

        impl Kind {
            pub(crate) const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// Its name in a script.
            pub(crate) const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }
        }
    };
}

kinds! {
    // Whole answers.
    Answer = "answer",
    Refusal = "refusal",
    Length = "length",
    LengthSilent = "length-silent",
    Tools = "tools",
    Pause = "pause",
    // Whole, and of no use.
    Empty = "empty",
    ReasoningOnly = "reasoning-only",
    Filtered = "filtered",
    // Before the response head.
    Refused = "refused",
    ResetRequest = "reset-request",
    Tls = "tls",
    ConnectClock = "connect-clock",
    HeadClock = "head-clock",
    BadRequest = "400",
    Unauthorized = "401",
    NotFound = "404",
    Quota = "quota",
    RateLimited = "429",
    RateLimitedWait = "429-wait",
    RateLimitedLong = "429-long",
    Server = "500",
    ServerWait = "500-wait",
    ServerLong = "500-long",
    ServerFinal = "500-final",
    Unavailable = "503",
    Overloaded = "529",
    ContextRequest = "context",
    ContextBlank = "context-blank-digest",
    ContextCut = "context-cut-digest",
    FilterRequest = "filter-request",
    // After the response head.
    CutHead = "cut-head",
    CutStart = "cut-start",
    CutText = "cut-text",
    CutReasoning = "cut-reasoning",
    CutCall = "cut-call",
    FirstEventClock = "first-event-clock",
    IdleClock = "idle-clock",
    ProgressClock = "progress-clock",
    InBand = "in-band",
    InBandOverload = "in-band-overload",
    InBandContext = "in-band-context",
    Html = "html",
    Endless = "no-end",
}

/// The longest waits that a server may ask for, of which `429-wait` and `500-wait`
/// ask for all, and `429-long` and `500-long` for a little more.
const CAPACITY_CAP_MS: u64 = 65_000;
const SETUP_CAP_MS: u64 = 8_000;

/// What an attempt means to the step that made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Means {
    /// The prompt is answered.
    Done,
    /// The message is kept, and the model is asked again.
    GoesOn,
    /// It may be repeated while this budget lasts, then ends with this code.
    Again(ErrorCode, Budget),
    /// One smaller request may follow; then it ends with `CONTEXT_TOO_LARGE`.
    Smaller,
    /// It ends the step at once.
    Final(ErrorCode),
}

/// How much of an answer comes before the attempt ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    /// No response head.
    Nothing,
    /// A response head.
    Head,
    /// The first event.
    Start,
    Reasoning,
    Text,
    /// Text, and a call whose arguments are cut.
    HalfCall,
    /// All of it.
    Whole,
}

impl Kind {
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }

    pub(crate) const fn means(self) -> Means {
        use ErrorCode as Code;
        match self {
            Self::Answer | Self::Refusal | Self::Length | Self::LengthSilent => Means::Done,
            Self::Tools | Self::Pause => Means::GoesOn,
            Self::Empty | Self::ReasoningOnly => {
                Means::Again(Code::EmptyModelResponse, Budget::Silent)
            }
            Self::Refused | Self::ResetRequest => Means::Again(Code::NetworkError, Budget::Setup),
            Self::ConnectClock | Self::HeadClock => Means::Again(Code::Timeout, Budget::Setup),
            Self::Server | Self::ServerWait => Means::Again(Code::ProviderError, Budget::Setup),
            Self::RateLimited | Self::RateLimitedWait => {
                Means::Again(Code::ProviderRateLimited, Budget::Capacity)
            }
            Self::Unavailable | Self::Overloaded | Self::InBandOverload => {
                Means::Again(Code::ProviderOverloaded, Budget::Capacity)
            }
            Self::CutHead | Self::CutStart | Self::CutText | Self::CutReasoning | Self::CutCall => {
                Means::Again(Code::StreamFailed, Budget::Stream)
            }
            Self::FirstEventClock | Self::IdleClock | Self::ProgressClock => {
                Means::Again(Code::Timeout, Budget::Stream)
            }
            Self::InBand => Means::Again(Code::ProviderError, Budget::Stream),
            Self::ContextRequest | Self::ContextBlank | Self::ContextCut | Self::InBandContext => {
                Means::Smaller
            }
            Self::Tls => Means::Final(Code::NetworkError),
            Self::BadRequest => Means::Final(Code::InvalidRequest),
            Self::Unauthorized => Means::Final(Code::ProviderUnauthorized),
            Self::NotFound => Means::Final(Code::ModelNotConfigured),
            Self::Quota => Means::Final(Code::ProviderQuotaExceeded),
            Self::RateLimitedLong => Means::Final(Code::ProviderRateLimited),
            Self::ServerFinal | Self::ServerLong => Means::Final(Code::ProviderError),
            Self::FilterRequest | Self::Filtered => Means::Final(Code::ContentFiltered),
            Self::Html => Means::Final(Code::ProviderProtocolMismatch),
            Self::Endless => Means::Final(Code::Internal),
        }
    }

    /// The wait that the server asks for, where it asks.
    pub(crate) const fn wish_ms(self) -> Option<u64> {
        match self {
            Self::RateLimitedWait => Some(CAPACITY_CAP_MS),
            Self::RateLimitedLong => Some(CAPACITY_CAP_MS + 1),
            Self::ServerWait => Some(SETUP_CAP_MS),
            Self::ServerLong => Some(SETUP_CAP_MS + 1),
            _ => None,
        }
    }

    pub(crate) const fn part(self) -> Part {
        match self {
            Self::Answer
            | Self::Refusal
            | Self::Length
            | Self::LengthSilent
            | Self::Tools
            | Self::Pause
            | Self::Empty
            | Self::ReasoningOnly
            | Self::Filtered => Part::Whole,
            Self::CutHead | Self::FirstEventClock | Self::Html => Part::Head,
            Self::CutStart => Part::Start,
            Self::CutReasoning | Self::ProgressClock => Part::Reasoning,
            Self::CutText
            | Self::IdleClock
            | Self::InBand
            | Self::InBandOverload
            | Self::InBandContext
            | Self::Endless => Part::Text,
            Self::CutCall => Part::HalfCall,
            _ => Part::Nothing,
        }
    }

    /// Virtual milliseconds until it fails.
    pub(crate) const fn takes_ms(self) -> u64 {
        match self {
            Self::ConnectClock => 20_000,
            Self::HeadClock | Self::FirstEventClock | Self::IdleClock => 300_000,
            Self::ProgressClock => 900_000,
            _ => 4,
        }
    }

    /// Whether the message, once whole, is kept in the history.
    pub(crate) const fn is_kept(self) -> bool {
        matches!(self.means(), Means::Done | Means::GoesOn) && !matches!(self, Self::LengthSilent)
    }

    /// Whether the digest that is made after it can be used.
    pub(crate) const fn digest_works(self) -> bool {
        matches!(self, Self::ContextRequest | Self::InBandContext)
    }

    /// What the adapter would report, from the facts it would have seen.
    pub(crate) fn failure(self) -> Option<Failure> {
        self.facts().map(|facts| Failure::from_facts(&facts, &Plain))
    }

    fn facts(self) -> Option<Facts> {
        let phase = match self.part() {
            Part::Nothing => Phase::Request,
            _ => Phase::Stream,
        };
        let facts = Facts::new(phase);
        let broken = |cause| facts.clone().with(Fact::Transport(cause));
        let clock = |clock| facts.clone().with(Fact::Clock(clock));
        let rules = |rule| facts.clone().with(Fact::Protocol(rule));
        let status = |status, body: &str| {
            let body = ErrorBody::parse(body);
            facts.clone().with(Fact::Status(StatusFact::new(status, body)))
        };
        let in_band =
            |body: &str| facts.clone().with(Fact::InBand(InBandError::new(ErrorBody::parse(body))));
        let wish = |facts: Facts| {
            let wish = self.wish_ms().map(std::time::Duration::from_millis);
            facts.with_retry_after(wish)
        };
        let told = match self {
            Self::Refused => broken(Transport::Refused),
            Self::ResetRequest => broken(Transport::Reset),
            Self::Tls => broken(Transport::Tls),
            Self::ConnectClock => clock(Clock::Connect),
            Self::HeadClock | Self::FirstEventClock => clock(Clock::FirstEvent),
            Self::IdleClock => clock(Clock::ByteIdle),
            Self::ProgressClock => clock(Clock::ProgressIdle),
            Self::BadRequest => status(400, &body("invalid_request_error", "unknown_parameter")),
            Self::Unauthorized => status(401, &body("authentication_error", "invalid_api_key")),
            Self::NotFound => status(404, &body("invalid_request_error", "model_not_found")),
            Self::Quota => status(429, &body("insufficient_quota", "insufficient_quota")),
            Self::RateLimited | Self::RateLimitedWait | Self::RateLimitedLong => {
                wish(status(429, &body("rate_limit_error", "rate_limit_exceeded")))
            }
            Self::Server | Self::ServerWait | Self::ServerLong => {
                wish(status(500, &body("server_error", "server_error")))
            }
            Self::ServerFinal => {
                status(500, &body("server_error", "server_error")).with_should_retry(Some(false))
            }
            Self::Unavailable => status(503, &body("overloaded_error", "overloaded")),
            Self::Overloaded => status(529, &body("overloaded_error", "overloaded_error")),
            Self::ContextRequest | Self::ContextBlank | Self::ContextCut => {
                status(400, &body("invalid_request_error", "context_length_exceeded"))
            }
            Self::FilterRequest => status(400, &body("invalid_request_error", "content_filter")),
            Self::CutHead => rules(Protocol::EmptyBody),
            Self::CutStart => broken(Transport::Reset),
            Self::CutText => broken(Transport::Incomplete),
            Self::CutReasoning => broken(Transport::BadChunk),
            Self::CutCall => rules(Protocol::EndedEarly),
            Self::InBand => in_band(&body("server_error", "server_error")),
            Self::InBandOverload => in_band(&body("overloaded_error", "overloaded_error")),
            Self::InBandContext => {
                in_band(&body("invalid_request_error", "context_length_exceeded"))
            }
            Self::Html => rules(Protocol::Html),
            _ => return None,
        };
        Some(told)
    }
}

/// Stands in every error text, and must stand in no request.
pub(crate) const WORDING: &str = "wording-of-an-error";

fn body(kind: &str, code: &str) -> String {
    format!(r#"{{"error":{{"type":"{kind}","code":"{code}","message":"{WORDING}"}}}}"#)
}

/// Shows everything: the scripts hold no secret.
pub(crate) struct Plain;

impl Redact for Plain {
    fn redact<'a>(&self, text: &'a str) -> std::borrow::Cow<'a, str> {
        std::borrow::Cow::Borrowed(text)
    }
}
