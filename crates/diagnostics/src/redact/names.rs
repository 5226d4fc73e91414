//! Names under which secrets stand.

/// How much a name says about its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strength {
    /// A header made to carry a key: whatever stands there goes.
    Header,
    /// A secret by name, as `api_key` and `password`.
    Strong,
    /// Often a secret, often not, as `token`.
    Weak,
    /// A secret in the query of a URL and in shouted environment names only, as `key`.
    Query,
}

/// The words that end such names. The search stops at each; `strength` judges.
pub(super) const WORDS: &[&str] = &[
    "authorization",
    "cookie",
    "key",
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "dbpass",
    "db_pass",
    "credential",
    "credentials",
    "sharedaccesssignature",
];

/// Words that say something in the query of a URL only, each with the `=` after
/// it: they are frequent in prose and code.
pub(super) const QUERY_WORDS: &[&[&str]] = &[
    &["signature=", "signature%3d", "signature\\u003d"],
    &["sig=", "sig%3d", "sig\\u003d"],
    &["auth=", "auth%3d", "auth\\u003d"],
    &["pass=", "pass%3d", "pass\\u003d"],
    &["code=", "code%3d", "code\\u003d"],
    &["session=", "session%3d", "session\\u003d"],
];

/// Names of two and more words, without `-` and `_`, that end strong names.
const STRONG: &[&str] = &[
    "apikey",
    "apisecret",
    "appsecret",
    "accesskey",
    "accesskeysecret",
    "secretkey",
    "secretaccesskey",
    "accesstoken",
    "refreshtoken",
    "idtoken",
    "authtoken",
    "apitoken",
    "bearertoken",
    "bottoken",
    "sessiontoken",
    "securitytoken",
    "privatetoken",
    "personalaccesstoken",
    "accountkey",
    "sharedaccesskey",
    "sharedaccesssignature",
    "clientsecret",
    "consumersecret",
    "webhooksecret",
    "signingsecret",
    "signingkey",
    "encryptionkey",
    "masterkey",
    "privatekey",
    "subscriptionkey",
    "functionskey",
    "licensekey",
    "servicerolekey",
    "password",
    "passwd",
    "passphrase",
    "dbpass",
    "userpwd",
    "githubtoken",
    "gitlabtoken",
    "npmtoken",
    "hftoken",
    "slacktoken",
    "vaulttoken",
];

/// Signed URLs: these names carry what makes the link work.
const SIGNED: &[&str] = &["xamzsignature", "xamzcredential", "xgoogsignature", "xgoogcredential"];

/// Headers that carry a key although nothing in the name says so strongly.
const HEADERS: &[&str] = &[
    "authorization",
    "proxyauthorization",
    "xauthtoken",
    "xaccesstoken",
    "xamzsecuritytoken",
    "xvaulttoken",
    "privatetoken",
    "jobtoken",
    "xfigmatoken",
    "xgitlabtoken",
    "xcsrftoken",
    "xxsrftoken",
    "xshopifyaccesstoken",
    "cfaccessclientsecret",
    "cookie",
    "setcookie",
    "xauthkey",
    "xapitoken",
    "xtoken",
    "xsecret",
    "xauth",
    "xpassword",
];

/// What `name` says about its value; `None` if nothing.
pub(super) fn strength(name: &[u8]) -> Option<Strength> {
    let plain: String = name
        .iter()
        .filter(|byte| byte.is_ascii_alphanumeric())
        .map(|byte| char::from(byte.to_ascii_lowercase()))
        .collect();
    let strong = STRONG.iter().any(|word| plain.ends_with(word));
    let hyphens = name.contains(&b'-') && !name.starts_with(b"-");
    let header = HEADERS.contains(&plain.as_str()) && (hyphens || !plain.starts_with('x'));
    let header = header && !name.contains(&b'.') && !name.contains(&b'_');
    // `id-token: write` grants a right in the workflows of GitHub.
    let carries = strong && hyphens && !name.contains(&b'_') && plain != "idtoken";
    if header || carries {
        return Some(Strength::Header);
    }
    if strong {
        return Some(Strength::Strong);
    }
    if SIGNED.contains(&plain.as_str()) {
        return Some(Strength::Query);
    }
    match plain.as_str() {
        name if name.ends_with("token") || name.ends_with("secret") || name.ends_with("pwd") => {
            Some(Strength::Weak)
        }
        name if name.ends_with("credential") || name.ends_with("credentials") => {
            Some(Strength::Weak)
        }
        "key" | "sig" | "signature" | "auth" | "pass" | "code" | "session" => Some(Strength::Query),
        name_of_key if name_of_key.ends_with("key") && is_shouted(name) => Some(Strength::Query),
        _ => None,
    }
}

/// Whether a name is written as environment variables are.
pub(super) fn is_shouted(name: &[u8]) -> bool {
    name.len() >= 3
        && name.iter().any(u8::is_ascii_uppercase)
        && !name.iter().any(u8::is_ascii_lowercase)
}

/// Whether `value` only stands for a secret: a variable, a template, the name of
/// a type, a literal of a language, a value already masked.
pub(super) fn is_placeholder(value: &[u8]) -> bool {
    const WORDS: &[&str] = &[
        "null",
        "none",
        "nil",
        "true",
        "false",
        "undefined",
        "void",
        "string",
        "str",
        "text",
        "bytes",
        "number",
        "option",
        "any",
        "bool",
        "boolean",
        "object",
        "required",
        "optional",
        "secretstring",
        "header",
        "missing",
        "unset",
        "empty",
        "invalid",
        "redacted",
        "hidden",
    ];
    const BEGINNINGS: &[&str] = &[
        "env:",
        "env.",
        "process.env",
        "os.environ",
        "os.getenv",
        "self.",
        "this.",
        "config.",
        "your-",
        "your_",
        "%s",
        "%v",
    ];
    let Some(&first) = value.first() else { return true };
    let is = |word: &&str| value.eq_ignore_ascii_case(word.as_bytes());
    let begins = |word: &&str| {
        value.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word.as_bytes()))
    };
    matches!(first, b'$' | b'{' | b'<')
        || value.starts_with("…".as_bytes())
        || value.starts_with(b"...")
        || (value.len() >= 3
            && value.iter().all(|byte| matches!(byte, b'*' | b'.' | b'x' | b'X' | b'-')))
        || (value.contains(&b'_')
            && value.iter().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || *b == b'_')
            && !value.iter().any(u8::is_ascii_digit))
        || WORDS.iter().any(is)
        || BEGINNINGS.iter().any(begins)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_how_secret_its_value_is() {
        for (name, expected) in [
            ("Authorization", Some(Strength::Header)),
            ("x-api-key", Some(Strength::Header)),
            ("x.password", Some(Strength::Strong)),
            ("x_token", Some(Strength::Weak)),
            ("Ocp-Apim-Subscription-Key", Some(Strength::Header)),
            ("OPENAI_API_KEY", Some(Strength::Strong)),
            ("aws_secret_access_key", Some(Strength::Strong)),
            ("clientSecret", Some(Strength::Strong)),
            ("AccountKey", Some(Strength::Strong)),
            ("next_token", Some(Strength::Weak)),
            ("sig", Some(Strength::Query)),
            ("MY_KEY", Some(Strength::Query)),
            ("primary_key", None),
            ("monkey", None),
            ("status_code", None),
        ] {
            assert_eq!(strength(name.as_bytes()), expected, "{name}");
        }
    }

    #[test]
    fn what_only_stands_for_a_secret_is_told_apart() {
        for value in ["$TOKEN", "{key}", "<your key>", "OPENAI_API_KEY", "None", "****", "self.key"]
        {
            assert!(is_placeholder(value.as_bytes()), "{value}");
        }
        for value in ["hunter2", "AKIA_1", "correct", "A1B2C3"] {
            assert!(!is_placeholder(value.as_bytes()), "{value}");
        }
    }
}
