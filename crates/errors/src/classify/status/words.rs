//! The words that providers type their errors with.

use crate::ErrorBody;

/// What the typed words of a body say, whatever the status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Typed {
    Quota,
    Overloaded,
    Rate,
    Overflow,
    Filtered,
    Auth,
    Region,
    Model,
    Sampling,
    Server,
    Invalid,
    Exhausted,
}

/// The words that providers type their errors with, most telling kinds first.
/// Compared without case, `_`, `-` and blanks, since gateways respell them.
const WORDS: &[(Typed, &[&str])] = &[
    // OpenAI, Moonshot, Codex plans, gateways; 1113 is Z.ai's empty balance, the
    // `allocation…` words are DashScope's.
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
            "usagenotincluded",
            "allocationquotafreetieronly",
            "arrearage",
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
            "ratelimitreachederror",
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
    // OpenAI.
    (Typed::Region, &["unsupportedcountryregionterritory"]),
    // OpenAI, Groq, Doubleword, Azure.
    (Typed::Model, &["modelnotfound", "modelnotfounderror", "invalidmodel", "deploymentnotfound"]),
    // Groq, Gemini: the model wrote a call that its own server cannot read.
    (Typed::Sampling, &["toolusefailed", "malformedfunctioncall", "unexpectedtoolcall"]),
    // OpenAI, Anthropic, Google, llama.cpp; a Responses answer that failed without a word.
    (
        Typed::Server,
        &[
            "servererror",
            "internalservererror",
            "internalerror",
            "internal",
            "apierror",
            "responsefailed",
        ],
    ),
    // OpenAI, Anthropic, Google, Mistral, vLLM.
    (
        Typed::Invalid,
        &[
            "invalidrequesterror",
            "invalidrequestinvalidargs",
            "invalidargument",
            "invalidprompt",
            "invalidimageurl",
            "badrequest",
            "badrequesterror",
            "failedprecondition",
        ],
    ),
    // Google says this of a rate and of a plan alike: it decides only where prose would.
    (Typed::Exhausted, &["resourceexhausted"]),
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
