//! From a retry that the policy allows to its start: the host's word, the shared
//! quota, the announcement, the wait.

use tokio::time::Instant;
use turnbuckle_errors::{Failure, Phase};

use crate::{
    EventKind, PlannedRetry, Record, RetrySummary, RetryVerdict,
    attempt::Ask,
    compaction::{Compacted, CompactionReason, explained},
    outcome::whole_millis,
    recovery::{Budget, Claim, RetryQuota},
    turn::{Turn, aborted, wire},
};

/// The retries of one step.
#[derive(Default)]
pub(crate) struct Chain {
    /// One id for all of them, once there is one.
    id: Option<String>,
    /// What the shared quota took for the last of them.
    paid: Option<u32>,
}

impl Chain {
    /// A complete answer pays back into the shared quota.
    pub(crate) fn succeeded(&self, quota: Option<&RetryQuota>) {
        if let Some(quota) = quota {
            quota.deposit_success(self.paid);
        }
    }
}

impl Turn<'_> {
    /// All that comes between a failed attempt and the next one.
    ///
    /// # Errors
    ///
    /// What the step ends with: `failure` if the host or the quota says no or the
    /// request cannot be made smaller, or that the prompt was cancelled or the
    /// journal could not be written.
    pub(crate) async fn begin_retry(
        &mut self,
        chain: &mut Chain,
        ask: &Ask,
        claim: Claim,
        failure: &Failure,
    ) -> Result<(), Failure> {
        // Nobody is asked about a retry that cannot come.
        let plan = if claim.compacts() {
            let plan = self.plan_compaction(CompactionReason::Overflow);
            Some(plan.map_err(|why| explained(failure.clone(), Some(&why)))?)
        } else {
            None
        };
        let Some(claim) = self.permit(claim, ask, failure, chain).await? else {
            return Err(failure.clone());
        };
        if let Some(plan) = plan
            && let Compacted::Unchanged(why) = self.compact(plan).await?
        {
            return Err(explained(failure.clone(), Some(&why)));
        }
        self.back_off(chain, ask, &claim, failure).await
    }

    /// Asks the host, then pays the shared quota. `None` if either says no.
    ///
    /// # Errors
    ///
    /// The prompt was cancelled while the host was asked.
    async fn permit(
        &mut self,
        claim: Claim,
        ask: &Ask,
        failure: &Failure,
        chain: &mut Chain,
    ) -> Result<Option<Claim>, Failure> {
        let parts = self.parts();
        let planned = PlannedRetry {
            session_id: self.session.id.clone(),
            attempt: ask.attempt,
            budget: claim.budget,
            delay: claim.delay,
            failure: failure.clone(),
        };
        let verdict = tokio::select! {
            biased;
            () = self.cancel.cancelled() => return Err(aborted()),
            verdict = parts.watcher.judge(planned) => verdict,
        };
        let mut delay = match verdict {
            RetryVerdict::Go => claim.delay,
            RetryVerdict::Delay(longer) => claim.delay.saturating_add(longer),
            RetryVerdict::Veto => {
                tracing::debug!(code = %failure.code(), "the host vetoes the retry");
                return Ok(None);
            }
        };
        if let Some(quota) = &parts.quota {
            let cost = quota.costs().of(claim.budget, failure);
            if quota.withdraw(cost) {
                chain.paid = Some(cost);
            } else if let (Budget::Always, Some(mode)) = (claim.budget, &parts.policy.always) {
                // It may not end, so it slows down instead.
                delay = delay.max(mode.cap);
            } else {
                tracing::debug!(code = %failure.code(), "the shared retry quota is spent");
                return Ok(None);
            }
        }
        Ok(Some(Claim { delay, ..claim }))
    }

    /// Says that a retry comes, waits, says that it begins. A cancellation ends
    /// the wait, and wins over a timer that fires in the same instant.
    async fn back_off(
        &mut self,
        chain: &mut Chain,
        ask: &Ask,
        claim: &Claim,
        failure: &Failure,
    ) -> Result<(), Failure> {
        let world = self.parts().world.clone();
        let retry_id = chain.id.get_or_insert_with(|| world.new_id()).clone();
        let delay_ms = whole_millis(claim.delay);
        tracing::warn!(code = %failure.code(), budget = %claim.budget, delay_ms, attempt = ask.attempt, "retry scheduled");
        let summary = RetrySummary::of(retry_id.clone(), ask.attempt, claim, failure);
        self.account.retries.push(summary);
        let record = Record::RetryScheduled {
            retry_id: retry_id.clone(),
            attempt: ask.attempt,
            delay_ms,
            failure: wire(failure),
        };
        self.note(record).await?;
        self.emit(EventKind::RetryScheduled {
            retry_id: retry_id.clone(),
            attempt: ask.attempt,
            budget: claim.budget,
            delay_ms,
            phase: failure.phase().unwrap_or(Phase::Request),
            failure: failure.clone(),
        })
        .await;
        self.wait(claim).await;
        if self.cancel.is_cancelled() {
            return Err(aborted());
        }
        self.note(Record::RetryStarted { retry_id: retry_id.clone() }).await?;
        self.emit(EventKind::RetryStarted { retry_id }).await;
        Ok(())
    }

    async fn wait(&mut self, claim: &Claim) {
        let wait = self.parts().paced(claim.delay);
        let began = Instant::now();
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => {}
            () = tokio::time::sleep(wait) => {}
        }
        let waited = began.elapsed();
        self.account.timing.backoff += waited;
        if let Some(summary) = self.account.retries.last_mut() {
            summary.waited_ms = whole_millis(waited);
        }
    }
}
