//! Plays a script against the runtime, under virtual time.

use std::{
    future::{Future as _, poll_fn},
    ops::Range,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use anyhow::{Context as _, Result};
use tokio::time::Instant;
use turnbuckle_providers::{Message, Provider};
use turnbuckle_runtime::{
    Event, PromptOutcome, Record, RecoveryPolicy, Runtime, Session, World,
    recovery::{AlwaysMode, OverCap},
};

use crate::{
    hands,
    journal::Journal,
    kind::Plain,
    mail::Sent,
    model::Model,
    sabotage::Sabotage,
    script::{Act, Attempt, Policy, PromptScript, Script},
    stage::{Asked, Digest, Stage, ToolRun},
};

/// The most steps of one prompt. Small, so that scripts reach it.
pub(crate) const MAX_STEPS: u32 = 6;

/// What is asked after the script, to see what a request would hold.
const NEXT: &str = "user: what next";

/// Where runs are played, one after another.
pub(crate) struct Theatre {
    tokio: tokio::runtime::Runtime,
    stage: Arc<Stage>,
    default: Runtime,
    clamp: Runtime,
    always: Runtime,
    sabotage: Option<Sabotage>,
    /// Whether the sessions are asked for their histories after the script, and not
    /// for one more request.
    brief: bool,
}

/// Everything that was seen of one run.
pub(crate) struct Played {
    pub(crate) policy: Policy,
    /// The history of the session after the script, and of one that was rebuilt from
    /// the journal, where no prompt asks for more.
    pub(crate) histories: Option<[Vec<Message>; 2]>,
    pub(crate) prompts: Vec<PlayedPrompt>,
    pub(crate) asked: Vec<Asked>,
    pub(crate) digests: Vec<Digest>,
    pub(crate) tool_runs: Vec<ToolRun>,
}

/// Why a prompt was played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The script says so.
    Scripted,
    /// The machine stopped in the one before it, and the session was reopened.
    Resumed,
    /// The same, and the user says nothing new.
    GoneOn,
    /// One more of the same session, to see what it would send next.
    Next,
    /// The same of a session reopened from the journal.
    Twin,
}

/// Everything that was seen of one prompt.
pub(crate) struct PlayedPrompt {
    pub(crate) role: Role,
    pub(crate) text: String,
    /// The attempts that it could use; beyond them are answers.
    pub(crate) attempts: Vec<Attempt>,
    /// Each event, and when it came.
    pub(crate) events: Vec<(u64, Event)>,
    /// None if the machine stopped before.
    pub(crate) outcome: Option<PromptOutcome>,
    /// Its requests.
    pub(crate) asked: Range<usize>,
    /// Its requests for digests.
    pub(crate) digests: Range<usize>,
    /// Its runs of tools.
    pub(crate) tool_runs: Range<usize>,
    /// What the user said into it, as far as it was taken.
    pub(crate) sent: Vec<Sent>,
    pub(crate) ended_ms: u64,
    /// When the user cancelled it.
    pub(crate) aborted_ms: Option<u64>,
    /// Whether it asked for more attempts than it had.
    pub(crate) hungry: bool,
    /// Streams that were left open at its end.
    pub(crate) left_open: u32,
    /// Tasks that were left running at its end.
    pub(crate) left_running: usize,
    /// What is left of the journal, if it did not come to its end.
    pub(crate) records: Vec<Record>,
    /// Whether the journal is full, so that nothing can follow.
    pub(crate) full: bool,
    pub(crate) session_id: String,
}

impl Theatre {
    pub(crate) fn new(sabotage: Option<Sabotage>, acts: &[Act]) -> Result<Self> {
        let tokio = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .context("cannot start the executor")?;
        let stage = {
            let _guard = tokio.enter();
            Arc::new(Stage::new())
        };
        let tools = hands::tools(&stage, acts);
        let provider = Arc::new(Model::new(Arc::clone(&stage)));
        let runtime = |policy| {
            let builder = Runtime::builder(Arc::clone(&provider) as Arc<dyn Provider>, "model")
                .tools(tools.clone())
                .world(Arc::new(Still(Arc::clone(&stage))))
                .redactor(Arc::new(Plain))
                .max_steps(MAX_STEPS)
                .policy(sabotage.map_or(policy, |sabotage| sabotage.policy()));
            match sabotage {
                Some(Sabotage::NeverSmaller) => builder.without_compaction().build(),
                _ => builder.build(),
            }
        };
        let mut clamp = RecoveryPolicy::default();
        clamp.over_cap = OverCap::Clamp;
        let mut always = RecoveryPolicy::default();
        always.always = Some(AlwaysMode::default());
        let default = runtime(RecoveryPolicy::default());
        let (clamp, always) = (runtime(clamp), runtime(always));
        Ok(Self { tokio, stage, default, clamp, always, sabotage, brief: false })
    }

    /// Plays no more prompts than the script has.
    pub(crate) fn brief(self) -> Self {
        Self { brief: true, ..self }
    }

    const fn runtime(&self, policy: Policy) -> &Runtime {
        match policy {
            Policy::Default => &self.default,
            Policy::Clamp => &self.clamp,
            Policy::Always => &self.always,
        }
    }

    /// Plays a script to its end.
    pub(crate) fn play(&self, script: &Script) -> Played {
        self.tokio.block_on(async {
            self.stage.clear(script.crash, self.sabotage);
            let mut histories = None;
            let prompts = self.play_all(script, &mut histories).await;
            let state = self.stage.clear(None, None);
            let (asked, digests, tool_runs) = (state.asked, state.digests, state.tool_runs);
            let policy = script.policy;
            let mut played = Played { policy, histories, prompts, asked, digests, tool_runs };
            if let Some(sabotage) = self.sabotage {
                sabotage.tamper(&mut played);
            }
            played
        })
    }

    async fn play_all(
        &self,
        script: &Script,
        histories: &mut Option<[Vec<Message>; 2]>,
    ) -> Vec<PlayedPrompt> {
        let mut played = Vec::with_capacity(script.prompts.len() + 2);
        let mut session = self.runtime(script.policy).session(self.journal());
        for (at, prompt) in script.prompts.iter().enumerate() {
            let text = format!("user: {at}");
            played.push(self.play_prompt(&mut session, Role::Scripted, text, prompt).await);
            if self.survives(&played) {
                continue;
            }
            if played.last().is_some_and(|last| last.full) {
                let twin = self.reopen(script.policy).await;
                return self.close(played, twin).await;
            }
            // What was not played yet goes on after the restart.
            let attempts = self.stage.lock().left();
            let rest = PromptScript { attempts, ..PromptScript::default() };
            session = self.reopen(script.policy).await;
            let text = format!("user: {at} again");
            let role = if prompt.goes_on { Role::GoneOn } else { Role::Resumed };
            played.push(self.play_prompt(&mut session, role, text, &rest).await);
        }
        self.stage.lock().crash = None;
        if self.brief {
            let own = session.transcript().messages().to_vec();
            let records = std::mem::take(&mut self.stage.lock().records);
            let twin = self.reopened(script.policy, records).await;
            *histories = Some([own, twin.transcript().messages().to_vec()]);
            return played;
        }
        let before = self.stage.lock().records.clone();
        let next = PromptScript::default();
        played.push(self.play_prompt(&mut session, Role::Next, NEXT.into(), &next).await);
        let twin = self.reopened(script.policy, before).await;
        self.close(played, twin).await
    }

    fn journal(&self) -> Journal {
        Journal(Arc::clone(&self.stage))
    }

    /// Whether the session of the last prompt can go on.
    fn survives(&self, played: &[PlayedPrompt]) -> bool {
        played.last().is_some_and(|last| last.outcome.is_some() && !last.full)
    }

    /// The session as a new process finds it.
    async fn reopen(&self, policy: Policy) -> Session {
        let records = {
            let mut state = self.stage.lock();
            (state.dead, state.crash, state.refused) = (false, None, false);
            state.synced = state.records.len();
            state.records.clone()
        };
        self.reopened(policy, records).await
    }

    /// A session that cannot be reopened is a new one, whose requests lack
    /// everything.
    async fn reopened(&self, policy: Policy, records: Vec<Record>) -> Session {
        let runtime = self.runtime(policy);
        let resumed = runtime.resume_from(self.journal(), records).await;
        resumed.unwrap_or_else(|_| runtime.session(self.journal()))
    }

    async fn close(&self, mut played: Vec<PlayedPrompt>, mut twin: Session) -> Vec<PlayedPrompt> {
        let next = PromptScript::default();
        played.push(self.play_prompt(&mut twin, Role::Twin, NEXT.into(), &next).await);
        played
    }

    async fn play_prompt(
        &self,
        session: &mut Session,
        role: Role,
        text: String,
        script: &PromptScript,
    ) -> PlayedPrompt {
        let (first_asked, first_digest, first_run, beyond) = {
            let mut state = self.stage.lock();
            state.begin_prompt(&script.attempts);
            (state.asked.len(), state.digests.len(), state.tool_runs.len(), state.beyond)
        };
        let session_id = session.id().to_owned();
        let mut events = Vec::with_capacity(24);
        let mut user = User::new(script);
        let mut sent = Vec::new();
        let mut prompt = match role {
            Role::GoneOn => session.continue_(),
            _ => session.prompt(text.clone()),
        };
        let remote = prompt.remote();
        loop {
            let happened = poll_fn(|cx| {
                if user.kills(cx) {
                    return Poll::Ready(None);
                }
                while let Some((number, follows)) = user.says(cx) {
                    let text = format!("{text}, said {number}");
                    let put = if follows { remote.follow_up(&text) } else { remote.steer(&text) };
                    if put.is_ok() && self.sabotage != Some(Sabotage::LoseMail) {
                        let after = self.stage.lock().asked.len();
                        sent.push(Sent { text, follows, after });
                    }
                }
                if user.aborts(cx) {
                    let mut state = self.stage.lock();
                    state.aborted = true;
                    user.aborted_ms = Some(state.now_ms());
                    if self.sabotage != Some(Sabotage::Deaf) {
                        drop(state);
                        prompt.abort();
                    }
                }
                let event = pin!(prompt.next()).poll(cx);
                if self.stage.lock().dead { Poll::Ready(None) } else { event }
            })
            .await;
            let Some(mut event) = happened else { break };
            let at = self.stage.lock().now_ms();
            let times = self.sabotage.map_or(1, |sabotage| sabotage.pass(&mut event));
            events.extend(std::iter::repeat_n((at, event), times));
            if self.sabotage.is_some_and(|sabotage| sabotage != Sabotage::SkipSeq) {
                renumber(&mut events);
            }
        }
        let outcome = prompt.ended().cloned();
        drop(prompt);
        let mut state = self.stage.lock();
        let ended = outcome.is_some() && !state.refused;
        if !ended && self.sabotage == Some(Sabotage::LoseSteps) {
            state.records.truncate(2);
        }
        let records = if ended { Vec::new() } else { state.records.clone() };
        PlayedPrompt {
            role,
            text,
            attempts: script.attempts.clone(),
            events,
            outcome,
            asked: first_asked..state.asked.len(),
            digests: first_digest..state.digests.len(),
            tool_runs: first_run..state.tool_runs.len(),
            sent,
            ended_ms: state.now_ms(),
            aborted_ms: user.aborted_ms,
            hungry: state.beyond > beyond,
            left_open: state.open_streams,
            left_running: self.tokio.metrics().num_alive_tasks(),
            records,
            full: state.refused,
            session_id,
        }
    }
}

/// Leaves no gap where an event was taken out or told twice.
fn renumber(events: &mut [(u64, Event)]) {
    for ((_, event), seq) in events.iter_mut().zip(1..) {
        event.seq = seq;
    }
}

/// Who speaks and cancels, and what kills.
struct User {
    /// Each with its number and whether it waits for the answer.
    says: Vec<(Timer, usize, bool)>,
    abort: Option<Timer>,
    kill: Option<Timer>,
    aborted_ms: Option<u64>,
}

type Timer = Pin<Box<tokio::time::Sleep>>;

impl User {
    fn new(script: &PromptScript) -> Self {
        let began = Instant::now();
        let at = |ms: u64| Box::pin(tokio::time::sleep_until(began + Duration::from_millis(ms)));
        let mut said: Vec<_> = script.said.iter().zip(0..).collect();
        said.sort_by_key(|((ms, _), _)| *ms);
        let says = said.into_iter().map(|((ms, follows), number)| (at(*ms), number, *follows));
        Self {
            says: says.collect(),
            abort: script.abort_ms.map(at),
            kill: script.kill_ms.map(at),
            aborted_ms: None,
        }
    }

    /// The next message that it is time for.
    fn says(&mut self, cx: &mut Context<'_>) -> Option<(usize, bool)> {
        let (timer, number, follows) = self.says.first_mut()?;
        let said = (*number, *follows);
        let now = timer.as_mut().poll(cx).is_ready();
        now.then(|| self.says.remove(0)).map(|_| said)
    }

    /// True once, when it is time.
    fn aborts(&mut self, cx: &mut Context<'_>) -> bool {
        let now = self.abort.as_mut().is_some_and(|timer| timer.as_mut().poll(cx).is_ready());
        if now {
            self.abort = None;
        }
        now
    }

    fn kills(&mut self, cx: &mut Context<'_>) -> bool {
        self.kill.as_mut().is_some_and(|timer| timer.as_mut().poll(cx).is_ready())
    }
}

/// A world without surprises: the date stands still, ids are counted, jitter
/// goes from one end of its range to the other.
struct Still(Arc<Stage>);

impl World for Still {
    fn now(&self) -> jiff::Timestamp {
        jiff::Timestamp::UNIX_EPOCH
    }

    fn new_id(&self) -> String {
        let mut state = self.0.lock();
        state.ids += 1;
        format!("id-{}", state.ids)
    }

    fn jitter(&self) -> f64 {
        let mut state = self.0.lock();
        state.samples += 1;
        match state.samples % 3 {
            0 => 1.0,
            1 => 0.0,
            _ => 0.37,
        }
    }
}
