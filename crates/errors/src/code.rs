//! The stable error codes, each with what it means and who acts on it.

use std::{fmt, str::FromStr};

use serde::{Serialize, Serializer};

/// Defines [`ErrorCode`] and its table from one entry a code, so that the two
/// cannot drift apart.
macro_rules! codes {
    ($($family:ident {
        $($variant:ident = $wire:literal, $retriable:literal, $actor:ident,
            $meaning:literal, $advice:literal, $example:literal;)+
    })+) => {
        /// What went wrong, as a stable name that programs may branch on.
        ///
        /// Names never change and are never reused. New codes may come, hence
        /// `#[non_exhaustive]`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum ErrorCode {
            $($(
                #[doc = $meaning]
                #[doc = ""]
                #[doc = concat!(
                    "Wire name `", $wire, "`; retriable by default: ", $retriable,
                    "; who acts: ", stringify!($actor), "."
                )]
                #[doc = ""]
                #[doc = concat!("What to do: ", $advice)]
                #[doc = ""]
                #[doc = concat!("Example: ", $example)]
                $variant,
            )+)+
        }

        impl ErrorCode {
            /// Every code, in the order of the tables in the documentation.
            pub const ALL: &'static [Self] = &[$($(Self::$variant,)+)+];

            /// Everything known about this code.
            #[must_use]
            pub const fn info(self) -> &'static CodeInfo {
                match self {
                    $($(Self::$variant => &CodeInfo {
                        code: Self::$variant,
                        wire: $wire,
                        family: Family::$family,
                        retriable: $retriable,
                        actor: Actor::$actor,
                        meaning: $meaning,
                        advice: $advice,
                        example: $example,
                    },)+)+
                }
            }
        }
    };
}

codes! {
    Provider {
        ProviderUnauthorized = "PROVIDER_UNAUTHORIZED", false, User,
            "The provider refused the key, or the key may not do this.",
            "Check the key and what it is allowed to use.",
            "401 with `invalid_api_key`.";
        ProviderSecretMissing = "PROVIDER_SECRET_MISSING", false, User,
            "No key was found where the provider's key is expected.",
            "Set the environment variable that the message names.",
            "`OPENAI_API_KEY` is not set.";
        ProviderSecretInvalid = "PROVIDER_SECRET_INVALID", false, User,
            "The key cannot be sent: it is empty or holds characters no header may carry.",
            "Copy the key again, without quotes, spaces or line breaks.",
            "A key that ends in a newline in the middle of the value.";
        ProviderRateLimited = "PROVIDER_RATE_LIMITED", true, Nobody,
            "Too many requests or tokens in a short window.",
            "Wait as long as the provider says, or lower the rate.",
            "429 with `rate_limit_exceeded`.";
        ProviderQuotaExceeded = "PROVIDER_QUOTA_EXCEEDED", false, User,
            "The plan, the credit or a daily limit is used up.",
            "Add credit, raise the limit, or wait for the plan to renew.",
            "429 with `insufficient_quota`.";
        ProviderOverloaded = "PROVIDER_OVERLOADED", true, Nobody,
            "The provider has no capacity right now.",
            "Wait and try again, or use another model.",
            "529, or 503 with `overloaded_error`.";
        ProviderError = "PROVIDER_ERROR", true, Provider,
            "The provider failed; retriable for 5xx, not for an unknown error.",
            "Try again later; if it stays, send the request id to the provider.",
            "500 with `server_error`.";
        ProviderProtocolMismatch = "PROVIDER_PROTOCOL_MISMATCH", false, Host,
            "What answered does not speak the expected protocol.",
            "Check the base URL and the chosen provider; a proxy or login page may sit in between.",
            "200 with an HTML page.";
        InvalidRequest = "INVALID_REQUEST", false, Host,
            "The provider refused the request as malformed or not allowed for this model.",
            "Change the parameter that the message names.",
            "400 with `invalid_request_error`.";
        ModelNotConfigured = "MODEL_NOT_CONFIGURED", false, User,
            "The model is unknown to the provider, or not open to this key.",
            "Choose a model that the provider lists for this key.",
            "404 with `model_not_found`.";
        ContextTooLarge = "CONTEXT_TOO_LARGE", false, Host,
            "The request is larger than the model's context.",
            "Shorten or compact the conversation, or use a model with a larger context.",
            "400 with `context_length_exceeded`.";
        ContentFiltered = "CONTENT_FILTERED", false, User,
            "A safety filter blocked the request or the answer.",
            "Rephrase the request.",
            "400 with `content_filter`.";
        EmptyModelResponse = "EMPTY_MODEL_RESPONSE", true, Nobody,
            "The model ended without visible text and without a tool call.",
            "Ask again, or use another model.",
            "A finished message that holds reasoning alone.";
    }
    Transport {
        NetworkError = "NETWORK_ERROR", true, Nobody,
            "The connection failed before a response head came.",
            "Check the network, the proxy and the base URL.",
            "Connection refused.";
        Timeout = "TIMEOUT", true, Nobody,
            "A clock expired: one of ours, which the failure names, or a server's on the way.",
            "Try again; raise the named clock if the model needs longer.",
            "No event within 300 s of sending the request.";
        StreamFailed = "STREAM_FAILED", true, Nobody,
            "The answer broke off or became unreadable before it was complete.",
            "Try again; if it stays, look at proxies between here and the provider.",
            "Connection reset in the middle of the answer.";
    }
    Turn {
        TurnAborted = "TURN_ABORTED", false, Nobody,
            "The user or the host cancelled the prompt.",
            "Nothing to do.",
            "Ctrl-C while the answer streams.";
        AgentBusy = "AGENT_BUSY", false, Host,
            "A prompt is already running in this session.",
            "Wait for it to end, or abort it first.",
            "A second prompt while the first still streams.";
        ContextCompactionFailed = "CONTEXT_COMPACTION_FAILED", false, Host,
            "The conversation could not be made smaller.",
            "Start a new session, or remove large messages.",
            "The summary came back blank.";
        MutationRetryBudgetExhausted = "MUTATION_RETRY_BUDGET_EXHAUSTED", false, User,
            "The model failed the same change twice in one prompt.",
            "Look at the mismatch below, then say more exactly what to change.",
            "A second Edit of one file whose `old_string` is not there.";
        TurnLimitReached = "TURN_LIMIT_REACHED", false, User,
            "The prompt took more steps than it may.",
            "Continue with a new prompt, or raise the step limit.",
            "The model asked for tools a hundred times.";
        SessionLocked = "SESSION_LOCKED", false, Host,
            "Another process is writing this session.",
            "Close the other process, or use another session.",
            "Two programs open one session file.";
        SessionCorrupt = "SESSION_CORRUPT", false, Host,
            "The session file cannot be read as a session.",
            "Restore the file from a backup, or start a new session.",
            "A file of another program under the session's name.";
        SessionNotFound = "SESSION_NOT_FOUND", false, User,
            "There is no session of this name.",
            "Check the id, or start a new session.",
            "`--session` with an id that was never used.";
    }
    Tools {
        InvalidArgument = "INVALID_ARGUMENT", false, Nobody,
            "A tool was called with arguments it cannot take.",
            "The model should read the message and call again.",
            "`old_string` is missing.";
        ToolNotFound = "TOOL_NOT_FOUND", false, Nobody,
            "The model called a tool that does not exist.",
            "The model should use one of the listed tools.",
            "A call of `read_file` where the tool is named `Read`.";
        ToolDenied = "TOOL_DENIED", false, User,
            "The call was not permitted, and was not run.",
            "Allow it, or ask for another way.",
            "`Bash` in read-only mode.";
        PermissionTimeout = "PERMISSION_TIMEOUT", false, User,
            "Nobody answered the permission question in time; the call was not run.",
            "Answer the question, or choose a permission mode that does not ask.",
            "No answer within 120 s.";
        ToolTimeout = "TOOL_TIMEOUT", true, Nobody,
            "The tool did not end in time and was stopped.",
            "The model may call again with a longer limit or less work.",
            "A shell command that ran longer than 60 s.";
        ToolFailed = "TOOL_FAILED", false, Nobody,
            "The tool ran and failed.",
            "The model should read the output.",
            "A file that cannot be opened.";
        ToolBinaryContent = "TOOL_BINARY_CONTENT", false, Nobody,
            "The file is not text.",
            "Use a program made for this kind of file.",
            "Read of a PNG file.";
        PathOutsideWorkspace = "PATH_OUTSIDE_WORKSPACE", false, User,
            "The path leads out of the workspace.",
            "Use a path inside the workspace, or widen the workspace.",
            "Read of `/etc/passwd`.";
        EditNoMatch = "EDIT_NO_MATCH", false, Nobody,
            "The text to replace is not in the file.",
            "The model should Read the file again and take the text from there.",
            "`old_string` with spaces where the file has tabs.";
        EditAmbiguous = "EDIT_AMBIGUOUS", false, Nobody,
            "The text to replace is in the file more than once.",
            "The model should add surrounding lines until it is unique, or set `replace_all`.",
            "`old_string` is `}`.";
        EditStale = "EDIT_STALE", false, Nobody,
            "The file changed since the session last saw it.",
            "The model should Read the file again.",
            "A Write over a file that another program has changed.";
        EditNoChange = "EDIT_NO_CHANGE", false, Nobody,
            "The change would change nothing.",
            "The model should check whether the work is already done.",
            "`old_string` equals `new_string`.";
        ProcessResourceExhausted = "PROCESS_RESOURCE_EXHAUSTED", true, Host,
            "The machine has no process, memory or descriptor left to run it.",
            "Free resources, then try again.",
            "`fork` fails with EAGAIN.";
        McpUnavailable = "MCP_UNAVAILABLE", true, Host,
            "Reserved: nothing produces it yet. The MCP server behind the tool cannot be reached.",
            "Check the server's command and its log.",
            "The server exited in its handshake.";
    }
    Host {
        InvalidConfig = "INVALID_CONFIG", false, Host,
            "A setting is missing, unknown or wrong.",
            "Correct the setting that the message names.",
            "A base URL without scheme.";
        Internal = "INTERNAL", false, Host,
            "A fault in Turnbuckle itself, or in the machine under it.",
            "Report it with the message and the trace id.",
            "The journal could not be written.";
    }
}

impl ErrorCode {
    /// The wire name: SCREAMING_SNAKE, never changed.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.info().wire
    }

    /// Whether a failure with this code is worth trying again unless its facts
    /// say otherwise.
    #[must_use]
    pub const fn retriable(self) -> bool {
        self.info().retriable
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Serialize for ErrorCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl FromStr for ErrorCode {
    type Err = UnknownCode;

    fn from_str(wire: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.iter().find(|code| code.as_str() == wire);
        found.copied().ok_or(UnknownCode)
    }
}

/// A text that is no wire name of an [`ErrorCode`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownCode;

impl fmt::Display for UnknownCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not the name of an error code")
    }
}

impl std::error::Error for UnknownCode {}

/// What is known about one code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CodeInfo {
    /// The code itself.
    pub code: ErrorCode,
    /// Its wire name.
    pub wire: &'static str,
    /// The family it belongs to.
    pub family: Family,
    /// Whether it is retriable by default.
    pub retriable: bool,
    /// Who can do something about it.
    pub actor: Actor,
    /// What it means, in one sentence.
    pub meaning: &'static str,
    /// The next step, in one sentence.
    pub advice: &'static str,
    /// One example.
    pub example: &'static str,
}

/// A family of codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Family {
    /// What a model provider says.
    Provider,
    /// The way to it.
    Transport,
    /// The turn and its session.
    Turn,
    /// A tool call.
    Tools,
    /// The embedding program.
    Host,
}

impl Family {
    /// The family's name in lower case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Provider => "provider",
            Self::Transport => "transport",
            Self::Turn => "turn",
            Self::Tools => "tools",
            Self::Host => "host",
        }
    }
}

/// Who can do something about a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Actor {
    /// The person at the keyboard.
    User,
    /// The program that embeds the runtime, and its operator.
    Host,
    /// The model provider.
    Provider,
    /// Nobody: it passes by itself, or the model repairs it.
    Nobody,
}

impl Actor {
    /// The actor's name in lower case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Host => "host",
            Self::Provider => "provider",
            Self::Nobody => "nobody",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn wire_names_are_unique_screaming_snake_and_parse_back() {
        let mut seen = BTreeSet::new();
        for code in ErrorCode::ALL {
            let wire = code.as_str();
            assert!(seen.insert(wire), "{wire} twice");
            assert!(wire.bytes().all(|b| b.is_ascii_uppercase() || b == b'_'), "{wire}");
            assert_eq!(wire.parse(), Ok(*code));
            assert_eq!(serde_json::to_value(code).unwrap(), wire);
        }
        assert_eq!("provider_error".parse::<ErrorCode>(), Err(UnknownCode));
    }

    #[test]
    fn every_code_is_documented_in_sentences() {
        for code in ErrorCode::ALL {
            let info = code.info();
            assert_eq!(info.code, *code);
            for text in [info.meaning, info.advice, info.example] {
                assert!(text.len() > 7 && text.ends_with('.'), "{code}: {text}");
            }
        }
    }
}
