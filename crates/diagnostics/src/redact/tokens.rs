//! Tokens that their maker gave a prefix.

use super::{
    run::{Mix, Run, Text},
    span::Span,
};

/// One kind of token: what it begins with, what follows, and how much of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token {
    pub(super) prefix: &'static str,
    body: Run,
    /// Fewer characters after the prefix are something else.
    least: usize,
    needs: Needs,
}

/// What the body must have besides its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Needs {
    Nothing,
    /// A digit, which names made of words lack.
    Digit,
    /// A digit, an asterisk, or length together with both cases.
    Key,
    /// Exactly the least length, and no more of it.
    Exact,
    /// Two parts with a dot between them, each at least this long.
    TwoParts,
    /// A path: the prefix may stand anywhere.
    Anywhere,
}

const fn token(prefix: &'static str, body: Run, least: usize, needs: Needs) -> Token {
    Token { prefix, body, least, needs }
}

use Needs::{Anywhere, Digit, Exact, Key, Nothing, TwoParts};
use Run::{Alnum, Base64, Dash, Dotted, Hex, Path, Upper, Word};

/// The kinds we know, by maker. Prefixes are compared with their case.
#[rustfmt::skip]
pub(super) const TOKENS: &[Token] = &[
    // Models: OpenAI, Anthropic, OpenRouter, and the many that copied `sk-`.
    token("sk-proj-", Dotted, 8, Nothing), token("sk-svcacct-", Dotted, 8, Nothing),
    token("sk-admin-", Dotted, 12, Nothing), token("sk-ant-", Dotted, 8, Nothing),
    token("sk-or-", Dotted, 8, Digit), token("sk-lf-", Dotted, 12, Digit),
    token("sk-", Dotted, 8, Key),
    // Google: API keys, OAuth access tokens and client secrets.
    token("AIza", Dash, 30, Nothing), token("ya29.", Dash, 20, Nothing),
    token("GOCSPX-", Dash, 20, Nothing),
    // Groq, xAI, Perplexity, Replicate, Fireworks, Cerebras, Together, NVIDIA, Hugging Face.
    token("gsk_", Alnum, 30, Nothing), token("xai-", Alnum, 30, Digit),
    token("pplx-", Alnum, 30, Nothing), token("r8_", Alnum, 30, Nothing),
    token("fw_", Alnum, 20, Digit), token("csk-", Alnum, 30, Digit),
    token("tgp_v1_", Dash, 30, Nothing), token("nvapi-", Dash, 30, Nothing),
    token("hf_", Alnum, 30, Nothing), token("jina_", Dash, 30, Digit),
    token("tvly-", Dash, 20, Digit), token("pcsk_", Word, 30, Nothing),
    token("lsv2_pt_", Word, 30, Nothing), token("lsv2_sk_", Word, 30, Nothing),
    token("e2b_", Hex, 30, Nothing), token("sk_", Hex, 40, Nothing),
    // AWS key ids, and Bedrock API keys.
    token("AKIA", Upper, 16, Exact), token("ASIA", Upper, 16, Exact),
    token("ABIA", Upper, 16, Exact), token("ACCA", Upper, 16, Exact),
    token("ABSK", Base64, 60, Digit), token("bedrock-api-key-", Base64, 20, Nothing),
    // Code hosts: GitHub, GitLab, Bitbucket and Atlassian, Sourcegraph.
    token("ghp_", Alnum, 30, Nothing), token("gho_", Alnum, 30, Nothing),
    token("ghu_", Alnum, 30, Nothing), token("ghs_", Alnum, 30, Nothing),
    token("ghr_", Alnum, 30, Nothing), token("github_pat_", Word, 30, Nothing),
    token("glpat-", Dotted, 16, Nothing), token("gldt-", Dash, 16, Digit),
    token("glrt-", Dotted, 16, Digit), token("glptt-", Dash, 16, Nothing),
    token("glcbt-", Dash, 16, Digit), token("glsoat-", Dash, 16, Nothing),
    token("ATATT3", Base64, 40, Nothing), token("ATCTT3", Base64, 40, Nothing),
    token("ATBB", Alnum, 24, Digit), token("sgp_", Word, 32, Digit),
    // Chat and mail: Slack, Discord, Teams, SendGrid, Mailgun, Twilio.
    token("xoxb-", Dash, 10, Digit), token("xoxp-", Dash, 10, Digit),
    token("xoxa-", Dash, 10, Digit), token("xoxr-", Dash, 10, Digit),
    token("xoxs-", Dash, 10, Digit), token("xoxe-", Dash, 10, Digit),
    token("xoxe.", Dotted, 10, Digit), token("xoxc-", Dash, 10, Digit),
    token("xoxd-", Base64, 10, Digit), token("xapp-", Dash, 10, Digit),
    token("hooks.slack.com/services/", Path, 16, Anywhere),
    token("hooks.slack.com/workflows/", Path, 16, Anywhere),
    token("discord.com/api/webhooks/", Path, 20, Anywhere),
    token("discordapp.com/api/webhooks/", Path, 20, Anywhere),
    token("webhook.office.com/webhookb2/", Path, 20, Anywhere),
    token("SG.", Dash, 16, TwoParts), token("key-", Hex, 32, Exact),
    // Money: Stripe, Square, Shopify.
    token("sk_live_", Alnum, 10, Nothing), token("rk_live_", Alnum, 10, Nothing),
    token("sk_test_", Alnum, 10, Digit), token("rk_test_", Alnum, 10, Digit),
    token("whsec_", Base64, 20, Nothing), token("sq0atp-", Dash, 20, Nothing),
    token("sq0csp-", Dash, 20, Nothing), token("shpat_", Hex, 32, Nothing),
    token("shpca_", Hex, 32, Nothing), token("shppa_", Hex, 32, Nothing),
    token("shpss_", Hex, 32, Nothing),
    // Packages: npm, PyPI, RubyGems, crates.io, Docker.
    token("npm_", Alnum, 30, Nothing), token("pypi-AgE", Dash, 40, Nothing),
    token("rubygems_", Hex, 40, Nothing), token("dckr_pat_", Dash, 20, Nothing),
    // Clouds and platforms.
    token("dop_v1_", Hex, 40, Nothing), token("doo_v1_", Hex, 40, Nothing),
    token("dor_v1_", Hex, 40, Nothing), token("dapi", Hex, 32, Nothing),
    token("hvs.", Dash, 20, Nothing), token("hvb.", Dash, 20, Nothing),
    token("hvr.", Dash, 20, Nothing), token("dp.pt.", Alnum, 30, Nothing),
    token("dp.st.", Dotted, 30, Nothing), token("dp.ct.", Alnum, 30, Nothing),
    token("dp.sa.", Alnum, 30, Nothing), token("dp.scim.", Alnum, 30, Nothing),
    token("HRKU-", Dash, 30, Nothing), token("tskey-", Dash, 16, Digit),
    token("pul-", Hex, 40, Nothing), token("pscale_tkn_", Dotted, 30, Nothing),
    token("pscale_pw_", Dotted, 30, Nothing), token("sbp_", Hex, 40, Nothing),
    token("sb_secret_", Dash, 20, Nothing), token("nfp_", Alnum, 30, Nothing),
    token("fm2_", Base64, 40, Nothing),
    // Tools: Linear, Notion, Grafana, Sentry, Postman, Figma, New Relic, 1Password.
    token("lin_api_", Alnum, 30, Nothing), token("lin_oauth_", Alnum, 30, Nothing),
    token("ntn_", Alnum, 40, Nothing), token("secret_", Alnum, 40, Digit),
    token("glsa_", Word, 32, Nothing), token("glc_eyJ", Base64, 30, Nothing),
    token("sntrys_", Base64, 40, Nothing), token("sntryu_", Hex, 40, Nothing),
    token("PMAK-", Dash, 40, Nothing), token("figd_", Dash, 30, Nothing),
    token("NRAK-", Upper, 20, Nothing), token("ops_eyJ", Base64, 100, Nothing),
    // Keys to files: age.
    token("AGE-SECRET-KEY-1", Upper, 40, Nothing),
];

/// Twilio keys begin with letters that stand in many words, so the search stops
/// only where a hexadecimal digit follows.
pub(super) const TWILIO_KEY: Token = token("SK", Hex, 32, Exact);
/// The places where it stops.
pub(super) const TWILIO: &[&str] = &[
    "SK0", "SK1", "SK2", "SK3", "SK4", "SK5", "SK6", "SK7", "SK8", "SK9", "SKa", "SKb", "SKc",
    "SKd", "SKe", "SKf",
];

/// Judges the place `start..end`, where the prefix of `token` was seen in any case.
pub(super) fn judge(text: Text<'_>, token: &Token, start: usize, end: usize) -> Option<Span> {
    if text.slice(start, end) != token.prefix.as_bytes() {
        return None;
    }
    if token.needs == Anywhere {
        let stop = trimmed(text, end, text.run(end, token.body));
        return (stop - end >= token.least).then(|| Span::open(end, stop, token.body));
    }
    if !text.begins(start) {
        return None;
    }
    let stop = text.run(end, token.body);
    let stop = if token.body == Dotted { trimmed(text, end, stop) } else { stop };
    let (body, length) = (text.slice(end, stop), stop - end);
    if length < token.least {
        return None;
    }
    let fits = match token.needs {
        Nothing | Anywhere => true,
        Digit => Mix::of(body).digit,
        Key => is_key(body),
        Exact => length == token.least && !Dash.has(text.at(stop)),
        TwoParts => {
            let second = text.run(stop + 1, token.body);
            let fits = text.at(stop) == b'.' && second - (stop + 1) >= token.least;
            return fits.then(|| Span::open(start, second, token.body));
        }
    };
    fits.then(|| Span::open(start, stop, token.body))
}

/// After the bare `sk-`: class names and words joined by hyphens have no digits
/// to speak of, keys have; servers shorten a key they echo with asterisks.
fn is_key(body: &[u8]) -> bool {
    let mix = Mix::of(body);
    mix.star
        || (mix.digit && mix.letter() && body.len() >= 9)
        || (mix.digit && body.len() >= 16)
        || (mix.camel && body.len() >= 20)
}

/// Without the dots that end a sentence.
fn trimmed(text: Text<'_>, start: usize, end: usize) -> usize {
    text.back(end, end - start, |byte| byte == b'.').max(start)
}
