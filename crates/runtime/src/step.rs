//! Asking the model until it answers completely, within the step's allowance.

use tracing::{Instrument as _, debug_span, field::Empty};
use turnbuckle_diagnostics::record;
use turnbuckle_errors::{ErrorCode, Failure};
use turnbuckle_providers::CompletedMessage;

use crate::{
    EventKind, MessageFinish,
    attempt::{Ask, Shown},
    compaction::explained,
    recovery::{Decision, StepAllowance, decide},
    retry::Chain,
    turn::{LastMessage, Turn},
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
        let mut chain = Chain::default();
        let mut ask = Ask::first();
        let unchanged = self.compact_at_boundary(&mut allowance).await?;
        loop {
            let failure = match self.watched_attempt(&ask, shown).await {
                Ok(completed) => {
                    self.account.healed = self.account.retries.len();
                    chain.succeeded(parts.quota.as_deref());
                    return Ok(completed);
                }
                Err(failure) => failure,
            };
            let decision = decide(&failure, &parts.policy, &mut allowance, parts.world.jitter());
            match decision {
                Decision::Stop(reason) => {
                    tracing::debug!(code = %failure.code(), ?reason, "the step ends");
                    return Err(explained(failure, unchanged.as_ref()));
                }
                Decision::Retry(claim) => {
                    self.begin_retry(&mut chain, &ask, claim, &failure).await?;
                }
            }
            ask = ask.again(&failure);
            shown.void(failure);
        }
    }

    /// One attempt in a span of its own.
    async fn watched_attempt(
        &mut self,
        ask: &Ask,
        shown: &mut Shown,
    ) -> Result<CompletedMessage, Failure> {
        let span = debug_span!(
            "attempt",
            number = ask.attempt,
            code = Empty,
            rule = Empty,
            message = Empty
        );
        let failure = match self.attempt(ask, shown).instrument(span.clone()).await {
            Ok(completed) => return Ok(completed),
            Err(failure) => {
                failure.with_details(|details| details.retry_attempt = Some(ask.attempt))
            }
        };
        record(&span, "code", failure.code());
        record(&span, "rule", failure.details().rule.unwrap_or("none"));
        record(&span, "message", failure.message());
        Err(failure)
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
            message: Box::new(completed.message().into()),
            finish,
            usage: Box::new(*completed.usage()),
            failure: None,
            retries: Vec::new(),
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
            message: Box::new(message),
            finish,
            usage: Box::new(usage),
            failure: Some(failure.clone()),
            retries: self.account.open_retries(),
        })
        .await;
    }
}
