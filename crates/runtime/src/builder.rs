//! The only place where a runtime is wired together.

use std::{collections::HashSet, fmt, num::NonZeroU32, sync::Arc, time::Duration};

use turnbuckle_errors::{Opaque, Redact};
use turnbuckle_providers::{ChatRequest, Provider, ToolDefinition, ToolList};
use turnbuckle_tools::ToolSet;

use crate::{
    Journal, JsonlStore, Record, RecoveryPolicy, Repairs, Session, SessionStore, StoreError,
    SystemWorld, TurnObserver, World,
    callback::{Sturdy, SturdyRedact},
    compaction::{CompactionPolicy, Compactor, SummaryCompactor},
    observer::Watcher,
    recovery::{RecoveryPolicies, RetryQuota},
    session,
};

/// The most steps of one prompt, unless the host says otherwise. Long tasks take
/// dozens; a hundred is a loop.
const MAX_STEPS: u32 = 100;

/// A configured runtime. Cheap to clone; sessions share it.
#[derive(Clone)]
pub struct Runtime {
    pub(crate) parts: Arc<Parts>,
}

/// What a runtime is made of.
pub(crate) struct Parts {
    pub(crate) provider: Arc<dyn Provider>,
    /// What every request says besides the conversation and the tools.
    pub(crate) request: ChatRequest,
    pub(crate) tools: ToolSet,
    /// What the model is told of the tools.
    pub(crate) offered: ToolList,
    pub(crate) policy: RecoveryPolicy,
    pub(crate) quota: Option<Arc<RetryQuota>>,
    pub(crate) compaction: CompactionPolicy,
    pub(crate) compactor: Option<Arc<dyn Compactor>>,
    /// Names of tools that hand something over to the user.
    pub(crate) delivering: HashSet<String>,
    /// What a request weighs before its history.
    pub(crate) fixed_bytes: u64,
    pub(crate) redact: Arc<dyn Redact>,
    pub(crate) watcher: Arc<Watcher>,
    pub(crate) world: Arc<dyn World>,
    pub(crate) max_steps: u32,
    wait_divisor: NonZeroU32,
}

impl Parts {
    /// What a request weighs before its history: the system prompt and the tools.
    fn weigh_head(&self) -> u64 {
        let tools = self.tools.specs().into_iter().map(|spec| {
            spec.name.len() + spec.description.len() + spec.input_schema.to_string().len()
        });
        let bytes = tools.sum::<usize>() + self.request.system.as_ref().map_or(0, String::len);
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// How long a wait really takes.
    pub(crate) fn paced(&self, wait: Duration) -> Duration {
        wait / self.wait_divisor.get()
    }
}

impl Runtime {
    /// Begins to configure a runtime that asks `model` of `provider`.
    pub fn builder(provider: Arc<dyn Provider>, model: impl Into<String>) -> Builder {
        let mut request = ChatRequest::new(model);
        request.prompt_caching = true;
        Builder {
            parts: Parts {
                provider,
                request,
                tools: ToolSet::new(),
                offered: ToolList::new(),
                policy: RecoveryPolicy::default(),
                quota: None,
                compaction: CompactionPolicy::default(),
                compactor: Some(Arc::new(SummaryCompactor)),
                delivering: HashSet::new(),
                fixed_bytes: 0,
                redact: Arc::new(Opaque),
                watcher: Arc::default(),
                world: Arc::new(SystemWorld),
                max_steps: MAX_STEPS,
                wait_divisor: NonZeroU32::MIN,
            },
        }
    }

    /// Begins a session with an id of its own.
    #[must_use]
    pub fn session(&self, store: impl SessionStore + 'static) -> Session {
        Session::begin(self.clone(), self.parts.world.new_id(), Box::new(store))
    }

    /// Begins a session whose journal is a file in `folder`.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the file cannot be made.
    pub fn session_in(&self, folder: &std::path::Path) -> Result<Session, StoreError> {
        let id = self.parts.world.new_id();
        let store = JsonlStore::create(folder, &id)?;
        Ok(Session::begin(self.clone(), id, Box::new(store)))
    }

    /// Goes on with the session `id`, whose journal is a file in `folder`.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if there is none, another process holds it, or it is no
    /// journal.
    pub fn resume(&self, folder: &std::path::Path, id: &str) -> Result<Session, StoreError> {
        let (store, journal) = JsonlStore::open(folder, id)?;
        Ok(Session::resumed(self.clone(), id.to_owned(), Box::new(store), journal))
    }

    /// Goes on with a session whose records a host has read from a store of its
    /// own. A prompt that was interrupted is closed, in the journal too.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`] if there is no first record;
    /// [`StoreError`] if what closes the prompt cannot be appended.
    pub async fn resume_from(
        &self,
        mut store: impl SessionStore + 'static,
        mut records: Vec<Record>,
    ) -> Result<Session, StoreError> {
        let Some(Record::Session { session_id, .. }) = records.first() else {
            return Err(StoreError::NotFound(String::new()));
        };
        let id = session_id.clone();
        let closing = session::closing(&records);
        for record in &closing {
            store.append(record).await?;
        }
        if !closing.is_empty() {
            store.sync().await?;
        }
        let repairs = Repairs { interrupted: !closing.is_empty(), ..Repairs::default() };
        records.extend(closing);
        let journal = Journal { records, repairs };
        Ok(Session::resumed(self.clone(), id, Box::new(store), journal))
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime")
            .field("provider", &self.parts.provider.id())
            .field("model", &self.parts.request.model)
            .field("tools", &self.parts.tools)
            .field("policy", &self.parts.policy)
            .finish_non_exhaustive()
    }
}

/// Configures a [`Runtime`].
#[must_use]
pub struct Builder {
    parts: Parts,
}

impl Builder {
    /// The system prompt.
    pub fn system(mut self, system: impl Into<String>) -> Self {
        self.parts.request.system = Some(system.into());
        self
    }

    /// The tools. Without them the model can only talk.
    pub fn tools(mut self, tools: ToolSet) -> Self {
        let told = tools.specs().into_iter().map(|spec| ToolDefinition {
            name: spec.name,
            description: spec.description,
            input_schema: spec.input_schema,
        });
        self.parts.offered = told.collect();
        self.parts.tools = tools;
        self
    }

    /// How failed attempts are repeated.
    pub fn policy(mut self, policy: RecoveryPolicy) -> Self {
        self.parts.policy = policy;
        self
    }

    /// How failed attempts are repeated, by provider: takes the policy for the one
    /// that this runtime asks.
    pub fn policies(self, policies: &RecoveryPolicies) -> Self {
        let policy = policies.policy_for(self.parts.provider.id()).clone();
        self.policy(policy)
    }

    /// A purse that bounds the retries of all sessions that share it. Without one,
    /// each step has only its own budgets.
    pub fn retry_quota(mut self, quota: Arc<RetryQuota>) -> Self {
        self.parts.quota = Some(quota);
        self
    }

    /// When a history is made smaller, and how small. Without a
    /// [`window`](CompactionPolicy::window), only after the provider's refusal.
    pub const fn compaction(mut self, policy: CompactionPolicy) -> Self {
        self.parts.compaction = policy;
        self
    }

    /// The model's context in tokens, so that a history is made smaller before it is
    /// refused. The same as in [`compaction`](Self::compaction).
    pub const fn context_window(mut self, tokens: u64) -> Self {
        self.parts.compaction.window = Some(tokens);
        self
    }

    /// How a history is made smaller. By default the session's model writes a
    /// [summary](SummaryCompactor); [`TailCompactor`](crate::compaction::TailCompactor)
    /// asks no model.
    pub fn compactor(mut self, compactor: Arc<dyn Compactor>) -> Self {
        self.parts.compactor = Some(compactor);
        self
    }

    /// Leaves every history as it is: a context that is too large ends the step.
    pub fn without_compaction(mut self) -> Self {
        self.parts.compactor = None;
        self
    }

    /// Names tools that hand something over to the user, a message or a file for
    /// example. A model that ends in silence right after one of them has said what it
    /// had to say: its blank message completes the prompt and is not asked again.
    pub fn delivering_tools<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.parts.delivering = names.into_iter().map(Into::into).collect();
        self
    }

    /// Masks secrets in what tools report. Without one, outside text is withheld.
    pub fn redactor(mut self, redact: Arc<dyn Redact>) -> Self {
        self.parts.redact = Arc::new(SturdyRedact(redact));
        self
    }

    /// Watches every prompt.
    pub fn observer(mut self, observer: Arc<dyn TurnObserver>) -> Self {
        self.parts.watcher = Arc::new(Watcher::new(observer));
        self
    }

    /// Where the date, fresh ids and chance come from.
    pub fn world(mut self, world: Arc<dyn World>) -> Self {
        self.parts.world = Arc::new(Sturdy(world));
        self
    }

    /// The most steps of one prompt; then it ends with `TURN_LIMIT_REACHED`.
    /// By default 100.
    pub const fn max_steps(mut self, steps: u32) -> Self {
        self.parts.max_steps = steps;
        self
    }

    /// The most tokens of one answer. By default the provider's own limit.
    pub const fn max_output_tokens(mut self, tokens: u32) -> Self {
        self.parts.request.max_output_tokens = Some(tokens);
        self
    }

    /// What else every request says: temperature, reasoning effort, stop texts, the
    /// schema of the answer, fields for an odd gateway. The messages, the tools and the
    /// session id are the runtime's own, whatever is set here. Prompt caching is on
    /// unless it is switched off here.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use turnbuckle_providers::testing::ScriptedProvider;
    /// # use turnbuckle_runtime::Runtime;
    /// # let provider = Arc::new(ScriptedProvider::new([]));
    /// let runtime = Runtime::builder(provider, "a-model")
    ///     .request(|request| {
    ///         request.temperature = Some(0.2);
    ///         request.reasoning_effort = Some("low".to_owned());
    ///     })
    ///     .build();
    /// ```
    pub fn request(mut self, say: impl FnOnce(&mut ChatRequest)) -> Self {
        say(&mut self.parts.request);
        self
    }

    /// Divides every wait between attempts. Events still tell the wait of the
    /// policy. For tests against real sockets, which cannot pause time.
    pub const fn wait_divisor(mut self, divisor: NonZeroU32) -> Self {
        self.parts.wait_divisor = divisor;
        self
    }

    /// The runtime.
    #[must_use]
    pub fn build(mut self) -> Runtime {
        self.parts.fixed_bytes = self.parts.weigh_head();
        Runtime { parts: Arc::new(self.parts) }
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("model", &self.parts.request.model).finish_non_exhaustive()
    }
}
