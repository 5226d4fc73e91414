//! One compaction: planned, announced, made, written down.

use std::{panic::AssertUnwindSafe, sync::Arc};

use futures_util::FutureExt as _;
use turnbuckle_errors::{ErrorCode, Failure};
use turnbuckle_providers::Message;

use super::{
    CompactionModel, CompactionReason, CompactionTask, Compactor, Cut, Meter, model::Spent,
};
use crate::{
    EventKind, Record, Transcript,
    cancel::unless_cancelled,
    recovery::{Budget, StepAllowance},
    turn::{Turn, aborted},
};

/// Of what one request may weigh, a summary's own request takes at most so many
/// percent: the estimate may be off, and the answer needs room.
const ROOM_PERCENT: u64 = 80;

/// What a compaction is to do.
pub(crate) struct Plan {
    reason: CompactionReason,
    compactor: Arc<dyn Compactor>,
    transcript: Transcript,
    cut: Cut,
    /// What the request weighs now.
    bytes: u64,
    target_bytes: u64,
    room_bytes: u64,
}

/// How a compaction ended.
pub(crate) enum Compacted {
    /// The next request is smaller.
    Smaller,
    /// The history is as it was, for this reason.
    Unchanged(Failure),
}

impl Turn<'_> {
    /// What the next request weighs.
    pub(crate) fn weigh(&mut self) -> u64 {
        let fixed = self.session.runtime.parts.fixed_bytes;
        self.session.meter.weigh(fixed, self.session.transcript.messages().iter())
    }

    /// Makes the history smaller if the next request comes close to the model's
    /// context, as far as it is known. Gives the reason if that did not work; the
    /// request is sent all the same then, since an estimate is no refusal.
    ///
    /// # Errors
    ///
    /// The prompt was cancelled, or the journal could not be written.
    pub(crate) async fn compact_at_boundary(
        &mut self,
        allowance: &mut StepAllowance,
    ) -> Result<Option<Failure>, Failure> {
        let parts = self.parts();
        let Some(limit) = parts.compaction.limit(parts.request.max_output_tokens) else {
            return Ok(None);
        };
        let bytes = self.weigh();
        let meter = &self.session.meter;
        let due = meter.tokens(bytes) >= limit && !meter.is_held_off(bytes);
        if !due || parts.compactor.is_none() || !allowance.spend(Budget::Overflow) {
            return Ok(None);
        }
        let unchanged = match self.plan_compaction(CompactionReason::Boundary) {
            Err(why) => why,
            Ok(plan) => match self.compact(plan).await? {
                Compacted::Smaller => return Ok(None),
                Compacted::Unchanged(why) => why,
            },
        };
        self.session.meter.hold_off(bytes);
        Ok(Some(unchanged))
    }

    /// What a compaction could do now.
    ///
    /// # Errors
    ///
    /// `CONTEXT_COMPACTION_FAILED` if it could do nothing.
    pub(crate) fn plan_compaction(&mut self, reason: CompactionReason) -> Result<Plan, Failure> {
        let parts = self.parts();
        let Some(compactor) = parts.compactor.clone() else {
            return Err(failed("compaction is switched off"));
        };
        let bytes = self.weigh();
        let limit = parts.compaction.limit(parts.request.max_output_tokens);
        let known = limit.map(|limit| self.session.meter.bytes(limit));
        let most = match reason {
            // The provider has said that this is too much, whatever is known.
            CompactionReason::Overflow => known.unwrap_or(bytes).min(bytes),
            CompactionReason::Boundary => known.unwrap_or(bytes),
        };
        let target_bytes = parts.compaction.target(most).saturating_sub(parts.fixed_bytes);
        let transcript = self.session.transcript.clone();
        let messages: Vec<&Message> = transcript.messages().iter().collect();
        let Some(cut) = Cut::plan(&messages, target_bytes) else {
            return Err(failed("too little of the conversation can be left out"));
        };
        drop(messages);
        let room_bytes = most / 100 * ROOM_PERCENT;
        Ok(Plan { reason, compactor, transcript, cut, bytes, target_bytes, room_bytes })
    }

    /// Makes the history smaller. What it was stays in the journal.
    ///
    /// # Errors
    ///
    /// The prompt was cancelled, which ends the request at once, or the journal could
    /// not be written.
    pub(crate) async fn compact(&mut self, plan: Plan) -> Result<Compacted, Failure> {
        let compaction_id = self.parts().world.new_id();
        self.emit(EventKind::CompactionStart {
            compaction_id: compaction_id.clone(),
            reason: plan.reason,
            messages: plan.cut.of,
            tokens: self.session.meter.tokens(plan.bytes),
        })
        .await;
        let ended = match self.digest(&plan).await {
            Ok(digest) => self.replace(&compaction_id, &plan, digest).await,
            Err(failure) => Err(failure),
        };
        let bytes = self.weigh();
        self.emit(EventKind::CompactionEnd {
            compaction_id,
            ok: ended.is_ok(),
            messages: self.session.transcript.messages().len(),
            tokens: self.session.meter.tokens(bytes),
            failure: ended.as_ref().err().cloned(),
        })
        .await;
        match ended {
            Ok(()) => Ok(Compacted::Smaller),
            Err(failure) if self.cancel.is_cancelled() || self.session.closed => Err(failure),
            Err(failure) => Ok(Compacted::Unchanged(failure)),
        }
    }

    async fn digest(&mut self, plan: &Plan) -> Result<String, Failure> {
        let parts = self.parts();
        let messages: Vec<&Message> = plan.transcript.messages().iter().collect();
        let (older, recent) = messages.split_at_checked(plan.cut.keep_from).unwrap_or_default();
        let mut request = self.request(&parts, false);
        // What is asked of answers to the user is not asked of a summary.
        request.tools = Default::default();
        request.tool_choice = Default::default();
        request.response_format = None;
        request.stop.clear();
        let spent = Spent::default();
        let task = CompactionTask {
            older,
            recent,
            target_tokens: self.session.meter.tokens(plan.target_bytes / 4),
            room_bytes: plan.room_bytes,
            model: CompactionModel::new(&*parts.provider, request, self.cancel.clone(), &spent),
        };
        let work = AssertUnwindSafe(plan.compactor.digest(task)).catch_unwind();
        let made = unless_cancelled(&self.cancel, work).await;
        let taken = spent.taken();
        self.account.usage.add(&taken.usage);
        self.account.timing.provider_wait += taken.provider_wait;
        self.account.timing.stream += taken.stream;
        match made {
            None => Err(aborted()),
            // What a panic says is outside text, and stays out of the failure.
            Some(Err(_)) => Err(failed("the compactor panicked")),
            Some(Ok(Err(_))) if self.cancel.is_cancelled() => Err(aborted()),
            Some(Ok(Err(failure))) => Err(as_cause(failure)),
            Some(Ok(Ok(digest))) if digest.trim().is_empty() => {
                Err(failed("the summary came back blank"))
            }
            Some(Ok(Ok(digest))) => Ok(digest),
        }
    }

    async fn replace(&mut self, id: &str, plan: &Plan, digest: String) -> Result<(), Failure> {
        let Some(smaller) = plan.transcript.compacted(&plan.cut, &digest) else {
            return Err(failed("the history cannot be cut there"));
        };
        let weight =
            |transcript: &Transcript| Meter::default().weigh(0, transcript.messages().iter());
        if weight(&smaller) >= weight(&plan.transcript) {
            return Err(failed("the summary is no shorter than what it replaces"));
        }
        let record =
            Record::Compaction { compaction_id: id.to_owned(), cut: plan.cut.clone(), digest };
        self.note(record).await?;
        self.session.transcript = smaller;
        self.session.meter.replaced();
        Ok(())
    }
}

/// The failure of a step whose request stays too large, with why nothing made it
/// smaller.
pub(crate) fn explained(failure: Failure, unchanged: Option<&Failure>) -> Failure {
    let Some(why) = unchanged.filter(|_| failure.code() == ErrorCode::ContextTooLarge) else {
        return failure;
    };
    let causes = [why.message()].into_iter().chain(&why.details().causes).cloned();
    failure
        .with_cause_code(ErrorCode::ContextCompactionFailed)
        .with_details(|details| details.causes.extend(causes))
}

fn failed(why: &'static str) -> Failure {
    Failure::new(ErrorCode::ContextCompactionFailed, why)
}

/// A host's compactor may fail with any code; it reads as what it is here.
fn as_cause(failure: Failure) -> Failure {
    if failure.code() == ErrorCode::ContextCompactionFailed {
        return failure;
    }
    let causes = [failure.message()].into_iter().chain(&failure.details().causes).cloned();
    failed("the compactor failed").with_cause_code(failure.code()).with_causes(causes.collect())
}
