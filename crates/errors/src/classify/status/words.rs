//! The words that providers type their errors with.

use crate::ErrorBody;

/// What the typed words of a body say, whatever the status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Typed {
    Quota,
    Rate,
    Overloaded,
    Overflow,
    Filtered,
    Auth,
    Model,
    Server,
    Invalid,
}

/// The words that providers type their errors with, most telling kinds first.
/// Compared without case, `_`, `-` and blanks, since gateways respell them.
const WORDS: &[(Typed, &[&str])] = &[
    // OpenAI, Moonshot, Codex plans, gateways; 1113 is Z.ai's empty balance.
    (
        Typed::Quota,
        &[
            "insufficientquota",
            "quotaexceeded",
            "billinghardlimitreached",
            "billingnotactive",
            "billingerror",
            "creditbalanceexhausted",
            "insufficientcredits",
            "insufficientbalance",
            "exceededcurrentquotaerror",
            "usagelimitreached",
            "1113",
        ],
    ),
    // Anthropic, Moonshot, Gemini code assist, llama.cpp, Google.
    (
        Typed::Overloaded,
        &[
            "overloadederror",
            "engineoverloadederror",
            "serveroverloaded",
            "modelcapacityexhausted",
            "unavailableerror",
            "unavailable",
            "slowdown",
        ],
    ),
    // OpenAI (also as type `tokens` or `requests`), Anthropic, Azure, Mistral.
    (
        Typed::Rate,
        &[
            "ratelimitexceeded",
            "ratelimiterror",
            "ratelimitreached",
            "ratelimited",
            "toomanyrequests",
            "throttlingexception",
            "tokens",
            "requests",
        ],
    ),
    // OpenAI and most compatible servers, llama.cpp, Z.ai (1261).
    (
        Typed::Overflow,
        &[
            "contextlengthexceeded",
            "exceedcontextsizeerror",
            "requesttoolarge",
            "modelcontextwindowexceeded",
            "1261",
        ],
    ),
    // OpenAI, Azure, Gemini.
    (
        Typed::Filtered,
        &["contentfilter", "contentpolicyviolation", "responsibleaipolicyviolation", "safety"],
    ),
    // OpenAI, Anthropic, Google, Moonshot.
    (
        Typed::Auth,
        &[
            "invalidapikey",
            "apikeyinvalid",
            "authenticationerror",
            "invalidauthenticationerror",
            "unauthenticated",
            "permissionerror",
            "permissiondenied",
            "accountdeactivated",
        ],
    ),
    // OpenAI, Groq, Doubleword, Azure.
    (Typed::Model, &["modelnotfound", "modelnotfounderror", "invalidmodel", "deploymentnotfound"]),
    // OpenAI, Anthropic, Google, llama.cpp.
    (
        Typed::Server,
        &["servererror", "internalservererror", "internalerror", "internal", "apierror"],
    ),
    // OpenAI, Anthropic, Google, Mistral, vLLM, Groq (a tool call that misses its schema).
    (
        Typed::Invalid,
        &[
            "invalidrequesterror",
            "invalidrequestinvalidargs",
            "invalidargument",
            "badrequest",
            "badrequesterror",
            "failedprecondition",
            "toolusefailed",
        ],
    ),
];

pub(super) fn typed(body: &ErrorBody) -> Option<Typed> {
    let words: Vec<String> = body
        .words()
        .map(|word| {
            word.chars()
                .filter(char::is_ascii_alphanumeric)
                .collect::<String>()
                .to_ascii_lowercase()
        })
        .collect();
    let hit =
        |(_, known): &&(Typed, &[&str])| words.iter().any(|word| known.contains(&word.as_str()));
    WORDS.iter().find(hit).map(|(typed, _)| *typed)
}
