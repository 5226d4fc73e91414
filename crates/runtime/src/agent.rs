//! A session that several tasks share, for hosts with a window or a socket.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::{runtime::Handle, sync::watch};
use tokio_util::sync::CancellationToken;
use turnbuckle_errors::{ErrorCode, Failure, Origin};
use turnbuckle_providers::UserMessage;

use crate::{
    Prompt, Remote, Session,
    inbox::NotRunning,
    prompt::event_room,
    turn::{Opening, Turn, lost},
};

/// A session behind a handle that is cheap to clone and can be used from any task.
///
/// A prompt runs on a task of its own, so that a host which is slow to read its
/// events slows the turn down and still can cancel it. It runs as long as its
/// [`Prompt`] is held: dropping that cancels it, and its tools end their children
/// in the background ([`idle`](Self::idle) waits for that).
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap().block_on(async {
/// use std::sync::Arc;
/// use turnbuckle_errors::ErrorCode;
/// use turnbuckle_providers::testing::{ScriptedAttempt, ScriptedProvider};
/// use turnbuckle_runtime::{Agent, MemoryStore, Runtime};
///
/// let provider = ScriptedProvider::new([
///     ScriptedAttempt::answer(["Hello"]),
///     ScriptedAttempt::answer(["Bye"]),
/// ]);
/// let runtime = Runtime::builder(Arc::new(provider), "a-model").build();
/// let agent = Agent::new(runtime.session(MemoryStore::new()));
///
/// let prompt = agent.prompt("Say hello").unwrap();
/// assert_eq!(agent.prompt("Me too").unwrap_err().code(), ErrorCode::AgentBusy);
/// agent.follow_up("Say goodbye").unwrap();
/// assert_eq!(prompt.outcome().await.text, "Bye");
/// # });
/// ```
#[derive(Clone)]
pub struct Agent {
    shared: Arc<Shared>,
}

struct Shared {
    id: String,
    state: Mutex<State>,
    busy: watch::Sender<bool>,
}

#[derive(Default)]
struct State {
    /// Away while a prompt runs.
    session: Option<Session>,
    /// Reaches the prompt that runs.
    remote: Option<Remote>,
}

impl Agent {
    /// Takes a session over.
    #[must_use]
    pub fn new(session: Session) -> Self {
        let id = session.id().to_owned();
        let state = State { session: Some(session), remote: None };
        let shared = Shared { id, state: Mutex::new(state), busy: watch::Sender::new(false) };
        Self { shared: Arc::new(shared) }
    }

    /// The session's id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.shared.id
    }

    /// Begins a prompt. It runs whether its events are read or not, until as many
    /// wait as there is room for.
    ///
    /// # Errors
    ///
    /// `AGENT_BUSY` while another prompt of this session runs; `INTERNAL` outside
    /// of a tokio runtime.
    pub fn prompt(&self, said: impl Into<UserMessage>) -> Result<Prompt<'static>, Failure> {
        self.begin(Opening::Say(said.into()))
    }

    /// Goes on from the history, as [`Session::continue_`] does.
    ///
    /// # Errors
    ///
    /// Those of [`prompt`](Self::prompt).
    pub fn continue_(&self) -> Result<Prompt<'static>, Failure> {
        self.begin(Opening::GoOn)
    }

    /// Cancels the prompt that runs, if one does.
    pub fn abort(&self) {
        if let Some(remote) = self.remote() {
            remote.abort();
        }
    }

    /// [`Remote::steer`] of the prompt that runs.
    ///
    /// # Errors
    ///
    /// [`NotRunning`], with the message, if none runs.
    pub fn steer(&self, text: impl Into<String>) -> Result<(), NotRunning> {
        match self.remote() {
            Some(remote) => remote.steer(text),
            None => Err(NotRunning { text: text.into() }),
        }
    }

    /// [`Remote::follow_up`] of the prompt that runs.
    ///
    /// # Errors
    ///
    /// [`NotRunning`], with the message, if none runs.
    pub fn follow_up(&self, text: impl Into<String>) -> Result<(), NotRunning> {
        match self.remote() {
            Some(remote) => remote.follow_up(text),
            None => Err(NotRunning { text: text.into() }),
        }
    }

    /// Whether a prompt runs. It does until just before its `agent_end` is sent.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        *self.shared.busy.borrow()
    }

    /// Waits until no prompt runs.
    ///
    /// Cancel safety: nothing is lost when the future is dropped.
    pub async fn idle(&self) {
        // The sender lives as long as we do, so that this cannot fail.
        let _ = self.shared.busy.subscribe().wait_for(|busy| !busy).await;
    }

    /// Looks at the session, for example at its history, while no prompt runs.
    ///
    /// # Errors
    ///
    /// `AGENT_BUSY` while one does.
    pub fn look<T>(&self, look: impl FnOnce(&Session) -> T) -> Result<T, Failure> {
        self.shared.lock().session.as_ref().map(look).ok_or_else(busy)
    }

    fn remote(&self) -> Option<Remote> {
        self.shared.lock().remote.clone()
    }

    fn begin(&self, opening: Opening) -> Result<Prompt<'static>, Failure> {
        let executor = Handle::try_current().map_err(|_| {
            Failure::new(ErrorCode::Internal, "there is no tokio runtime to run a prompt on")
                .with_origin(Origin::Host)
        })?;
        let remote = Remote::new(CancellationToken::new());
        let mut loan = self.lend(&remote)?;
        let (host, events) = event_room();
        let (id, reach) = (self.shared.id.clone(), remote.clone());
        let task = executor.spawn(async move {
            let Some(session) = &mut loan.session else { return lost(id) };
            let ending = Turn::new(session, host, reach).work(opening).await;
            // Whoever reads `agent_end` may begin the next prompt.
            drop(loan);
            ending.tell().await
        });
        let id = self.shared.id.clone();
        let run = async move { task.await.unwrap_or_else(|_| lost(id)) };
        Ok(Prompt::new(Box::pin(run), events, remote))
    }

    fn lend(&self, remote: &Remote) -> Result<Loan, Failure> {
        let mut state = self.shared.lock();
        let session = state.session.take().ok_or_else(busy)?;
        state.remote = Some(remote.clone());
        self.shared.busy.send_replace(true);
        Ok(Loan { shared: Arc::clone(&self.shared), session: Some(session) })
    }
}

/// The session, on loan to a prompt; goes back whatever happens to the prompt.
struct Loan {
    shared: Arc<Shared>,
    session: Option<Session>,
}

impl Drop for Loan {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.session = self.session.take();
        state.remote = None;
        self.shared.busy.send_replace(false);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn busy() -> Failure {
    Failure::new(ErrorCode::AgentBusy, "a prompt of this session is running")
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent")
            .field("id", &self.shared.id)
            .field("busy", &self.is_busy())
            .finish_non_exhaustive()
    }
}
