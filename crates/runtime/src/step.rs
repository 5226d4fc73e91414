//! Asking the model until it answers completely, within the step's allowance.

use tokio::time::Instant;
use tracing::{Instrument as _, debug_span, field::Empty};
use turnbuckle_diagnostics::record;
use turnbuckle_errors::{ErrorCode, Failure, Origin, Phase};
use turnbuckle_providers::CompletedMessage;

use crate::{
    EventKind, MessageFinish, Record, RetrySummary,
    attempt::{Ask, Shown},
    recovery::{Claim, Decision, StepAllowance, decide},
    turn::{LastMessage, Turn, aborted, wire},
};

impl Turn<'_> {
    /// Gets one complete message from the model, and its id.
    ///
    /// The purse is born here, is lent to every attempt, and ends here.
    pub(crate) async fn ask(&mut self) -> Result<(String, CompletedMessage), Failure> {
        let world = self.parts().world.clone();
        let mut shown = Shown::new(world.new_id());
        let answer = self.ask_until_whole(&mut shown).await;
        match answer {
            Ok(completed) => {
                let completed = completed.with_ids_apart_from(&mut self.session.call_ids);
                self.close_whole(&shown, &completed).await;
                Ok((shown.into_id(), completed))
            }
            Err(failure) => {
                self.close_failed(shown, &failure).await;
                Err(failure)
            }
        }
    }

    async fn ask_until_whole(&mut self, shown: &mut Shown) -> Result<CompletedMessage, Failure> {
        let parts = self.parts();
        let mut allowance = StepAllowance::new(&parts.policy);
        let mut retries = None;
        let mut ask = Ask::first();
        loop {
            let span = debug_span!(
                "attempt",
                number = ask.attempt,
                code = Empty,
                rule = Empty,
                message = Empty
            );
            let failure = match self.attempt(&ask, shown).instrument(span.clone()).await {
                Ok(completed) => return Ok(completed),
                Err(failure) => {
                    failure.with_details(|details| details.retry_attempt = Some(ask.attempt))
                }
            };
            record(&span, "code", failure.code());
            record(&span, "rule", failure.details().rule.unwrap_or("none"));
            record(&span, "message", failure.message());
            match decide(&failure, &parts.policy, &mut allowance, parts.world.jitter()) {
                Decision::Stop(reason) => {
                    tracing::debug!(code = %failure.code(), ?reason, "the step ends");
                    return Err(failure);
                }
                Decision::Retry(claim) => {
                    let retry_id = retries.get_or_insert_with(|| parts.world.new_id()).clone();
                    self.back_off(retry_id, &ask, &claim, &failure).await?;
                    ask = Ask {
                        attempt: ask.attempt + 1,
                        nudge: ask.nudge || claim.nudges(),
                        fresh_connection: failure.origin() == Origin::Transport,
                    };
                    shown.void(failure);
                }
            }
        }
    }

    /// Says that a retry comes, waits, says that it begins. A cancellation ends
    /// the wait, and wins over a timer that fires in the same instant.
    async fn back_off(
        &mut self,
        retry_id: String,
        ask: &Ask,
        claim: &Claim,
        failure: &Failure,
    ) -> Result<(), Failure> {
        let phase = failure.phase().unwrap_or(Phase::Request);
        let delay_ms = u64::try_from(claim.delay.as_millis()).unwrap_or(u64::MAX);
        tracing::warn!(code = %failure.code(), budget = %claim.budget, delay_ms, attempt = ask.attempt, "retry scheduled");
        self.account.retries.push(RetrySummary {
            retry_id: retry_id.clone(),
            attempt: ask.attempt,
            budget: claim.budget,
            phase,
            code: failure.code(),
            delay_ms,
            bytes_received: failure.details().bytes_received.unwrap_or(0),
            usage: failure.details().usage,
            delivered: failure.details().delivered,
        });
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
            phase,
            failure: failure.clone(),
        })
        .await;

        let wait = self.parts().paced(claim.delay);
        let began = Instant::now();
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => {}
            () = tokio::time::sleep(wait) => {}
        }
        self.account.timing.backoff += began.elapsed();
        if self.cancel.is_cancelled() {
            return Err(aborted());
        }
        self.note(Record::RetryStarted { retry_id: retry_id.clone() }).await?;
        self.emit(EventKind::RetryStarted { retry_id }).await;
        Ok(())
    }

    async fn close_whole(&mut self, shown: &Shown, completed: &CompletedMessage) {
        let finish = MessageFinish::from(completed.finish());
        self.account.last = Some(LastMessage {
            id: shown.id().to_owned(),
            text: completed.message().text.clone(),
            finish,
        });
        self.emit(EventKind::MessageEnd {
            message_id: shown.id().into(),
            message: completed.message().into(),
            finish,
            usage: *completed.usage(),
            failure: None,
        })
        .await;
    }

    /// Ends a message that failed for good, if the host has seen it begin.
    async fn close_failed(&mut self, shown: Shown, failure: &Failure) {
        let Some((message, usage)) = shown.part() else { return };
        let finish = match failure.code() {
            ErrorCode::TurnAborted => MessageFinish::Aborted,
            // A filter that cut a stream is how the message ended, not an accident.
            ErrorCode::ContentFiltered => MessageFinish::ContentFilter,
            _ => MessageFinish::Error,
        };
        let id = shown.into_id();
        self.account.last =
            Some(LastMessage { id: id.clone(), text: message.text.clone(), finish });
        self.emit(EventKind::MessageEnd {
            message_id: id.into(),
            message,
            finish,
            usage,
            failure: Some(failure.clone()),
        })
        .await;
    }
}
