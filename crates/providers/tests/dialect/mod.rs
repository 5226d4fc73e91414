//! What the socket tests of the dialects share: one attempt, and every plain fault
//! of the core.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use turnbuckle_errors::Failure;
use turnbuckle_faults::{DEFAULT_TEXT, FaultServer, Needs, Script, Step, catalogue};
use turnbuckle_providers::{
    AttemptContext, ChatRequest, Clocks, CompletedMessage, Provider, StreamEvent,
};

/// The message of one attempt, and the text that was shown on the way.
pub(crate) async fn attempt(
    provider: &impl Provider,
    request: &ChatRequest,
) -> Result<(CompletedMessage, String), Failure> {
    let context = AttemptContext::new(CancellationToken::new(), true);
    let mut stream = provider.open(request, context).await?;
    let mut shown = String::new();
    loop {
        match stream.next().await {
            Some(Ok(StreamEvent::Finished(message))) => return Ok((*message, shown)),
            Some(Ok(StreamEvent::Text(text))) => shown += &text,
            Some(Ok(_)) => {}
            Some(Err(failure)) => return Err(failure),
            None => panic!("a stream without an end"),
        }
    }
}

/// Plays the core faults that need neither TLS nor HTTP/2, and holds the adapter to the
/// code and the phase that the catalogue expects. The key is a canary. The whole
/// catalogue is played through the runtime, by `cargo xtask test-faults`.
pub(crate) async fn meets_the_catalogue<P: Provider>(
    provider: impl Fn(&FaultServer, Clocks) -> P,
    request: &ChatRequest,
) {
    let mut held = 0;
    for entry in catalogue::core().filter(|entry| entry.needs() == Needs::Plain) {
        let step = Step::named(entry.name).unwrap();
        let server = FaultServer::start_anywhere(Script::new(vec![step]).unwrap()).await.unwrap();
        let mut clocks = Clocks::default();
        if entry.name.starts_with("stall") {
            clocks.first_event = Duration::from_secs(2);
            clocks.byte_idle = Duration::from_secs(2);
        }
        let outcome = attempt(&provider(&server, clocks), request).await;
        let got = match &outcome {
            Ok(_) => (None, None),
            Err(failure) => {
                let shown = format!("{failure:?} {}", serde_json::to_string(failure).unwrap());
                assert!(!shown.contains("canary"), "{}: {shown}", entry.name);
                (Some(failure.code().as_str()), failure.phase().map(|phase| phase.as_str()))
            }
        };
        let expected = entry.expected;
        assert_eq!(got, (expected.code, expected.phase), "{}: {outcome:?}", entry.name);
        if let Ok((message, shown)) = outcome {
            assert_eq!((&*message.message().text, &*shown), (DEFAULT_TEXT, DEFAULT_TEXT));
        }
        held += 1;
    }
    assert!(held > 8, "{held}");
}
