//! Step 1: what a broken connection means, by its typed cause.

use super::Verdict;
use crate::{ErrorCode, Origin, Phase, Transport};

pub(super) fn conclude(cause: Transport, phase: Phase) -> Verdict {
    let (rule, sentence) = match cause {
        Transport::Refused => ("transport.refused", "the connection was refused"),
        Transport::Unresolved => ("transport.unresolved", "the host name could not be resolved"),
        Transport::Unreachable => ("transport.unreachable", "the host cannot be reached"),
        Transport::Tls => ("transport.tls", "the TLS handshake failed"),
        Transport::TlsBroken => ("transport.tls_broken", "TLS broke after its handshake"),
        Transport::Proxy => ("transport.proxy", "the proxy did not connect"),
        Transport::Connect => ("transport.connect", "connecting failed"),
        Transport::Reset => ("transport.reset", "the peer reset the connection"),
        Transport::Incomplete => {
            ("transport.incomplete", "the connection ended before the answer was complete")
        }
        Transport::BadChunk => ("transport.bad_chunk", "a chunk of the answer is malformed"),
        Transport::BadCompression => {
            ("transport.bad_compression", "the compressed answer is malformed")
        }
        Transport::Http2Reset(_) => ("transport.http2_reset", "the peer reset the HTTP/2 stream"),
        Transport::Http2GoAway(_) => {
            ("transport.http2_goaway", "the peer closed the HTTP/2 connection")
        }
        Transport::Other => ("transport.other", "the connection failed"),
    };
    let code = match phase {
        Phase::Request => ErrorCode::NetworkError,
        Phase::Stream => ErrorCode::StreamFailed,
    };
    let verdict = Verdict::new(code, Origin::Transport, rule, sentence);
    match cause {
        // A wrong certificate or name does not become right by asking again.
        Transport::Tls if phase == Phase::Request => verdict.never(),
        _ => verdict,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Http2Reason;

    #[test]
    fn the_phase_names_the_code_and_the_cause_names_the_rule() {
        let all = [
            Transport::Refused,
            Transport::Unresolved,
            Transport::Unreachable,
            Transport::Tls,
            Transport::TlsBroken,
            Transport::Proxy,
            Transport::Connect,
            Transport::Reset,
            Transport::Incomplete,
            Transport::BadChunk,
            Transport::BadCompression,
            Transport::Http2Reset(Http2Reason(2)),
            Transport::Http2GoAway(Http2Reason(0)),
            Transport::Other,
        ];
        let mut rules = std::collections::BTreeSet::new();
        for cause in all {
            let request = conclude(cause, Phase::Request);
            let stream = conclude(cause, Phase::Stream);
            assert_eq!(request.code, ErrorCode::NetworkError);
            assert_eq!(request.retriable, cause != Transport::Tls, "{cause:?}");
            assert_eq!(stream.code, ErrorCode::StreamFailed);
            assert!(stream.retriable);
            assert_eq!(request.rule, stream.rule);
            assert!(rules.insert(request.rule), "{} twice", request.rule);
        }
    }
}
