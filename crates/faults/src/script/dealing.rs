//! How the steps of a script are dealt to the requests.

/// How the steps are dealt: in one row or in several, what follows the last
/// one, and which dice are thrown for a step with a probability.
///
/// ```
/// use turnbuckle_faults::{After, Dealing, Scope};
///
/// let dealing = Dealing::default().scope(Scope::Session).after(After::StartAgain).seed(7);
/// # let _ = dealing;
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Dealing {
    pub(crate) seed: Option<u64>,
    pub(crate) scope: Scope,
    pub(crate) after: After,
    pub(crate) session_header: Option<String>,
}

impl Dealing {
    /// Throws these dice; without a seed, one is drawn when the server starts.
    /// The highest bit is not used, for TOML cannot write it.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed & (u64::MAX >> 1));
        self
    }

    /// Who shares one row of steps.
    #[must_use]
    pub fn scope(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// What follows when no step is left.
    #[must_use]
    pub fn after(mut self, after: After) -> Self {
        self.after = after;
        self
    }

    /// The header that says which session a request belongs to, where the
    /// client sends it in one of its own.
    #[must_use]
    pub fn session_header(mut self, name: impl Into<String>) -> Self {
        self.session_header = Some(name.into().to_ascii_lowercase());
        self
    }
}

/// Who shares one row of steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Scope {
    /// All requests.
    #[default]
    Server,
    /// The requests of one connection.
    Connection,
    /// The requests of one session.
    Session,
}

impl Scope {
    /// The words a script may use.
    pub const WORDS: &'static [&'static str] = &["server", "connection", "session"];

    /// The word of a script.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Connection => "connection",
            Self::Session => "session",
        }
    }

    pub(crate) fn from_word(word: &str) -> Option<Self> {
        let all = [Self::Server, Self::Connection, Self::Session];
        all.into_iter().find(|scope| scope.as_str() == word)
    }
}

/// What follows when no step is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum After {
    /// The last step, again and again.
    #[default]
    RepeatLast,
    /// All steps once more, from the first.
    StartAgain,
    /// Whole answers.
    Answer,
}

impl After {
    /// The words a script may use.
    pub const WORDS: &'static [&'static str] = &["repeat_last", "start_again", "answer"];

    /// The word of a script.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RepeatLast => "repeat_last",
            Self::StartAgain => "start_again",
            Self::Answer => "answer",
        }
    }

    pub(crate) fn from_word(word: &str) -> Option<Self> {
        let all = [Self::RepeatLast, Self::StartAgain, Self::Answer];
        all.into_iter().find(|after| after.as_str() == word)
    }
}
