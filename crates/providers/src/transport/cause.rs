//! The typed cause of a broken connection, found by walking `source()` to its end.
//!
//! The deepest link with a name wins: what reqwest and hyper say above it is only
//! where they stood. `is_body` and `is_decode` of reqwest are not asked, because
//! with gzip on every body failure says it was one of decoding.

use std::{error::Error, io};

use turnbuckle_errors::{Http2Reason, Transport};

use super::TransportError;

/// A host name without an address, as our own resolver reports it.
#[derive(Debug, thiserror::Error)]
#[error("the host name could not be resolved")]
pub(super) struct Unresolved(#[source] pub(super) io::Error);

/// Wraps what reqwest reports, with its URL taken off.
pub(super) fn transport_error(error: reqwest::Error) -> TransportError {
    let error = error.without_url();
    if error.is_connect() && error.is_timeout() {
        return TransportError::connect_timeout(Some(Box::new(error)));
    }
    let cause = cause_of(&error, error.is_connect());
    let told = match cause {
        Transport::Http2Reset(reason) => Some(("RST_STREAM", reason)),
        Transport::Http2GoAway(reason) => Some(("GOAWAY", reason)),
        _ => None,
    };
    let source: Box<dyn Error + Send + Sync> = match told {
        Some((frame, Http2Reason(code))) => {
            Box::new(Http2Frame { frame, reason: code.into(), source: error })
        }
        None => Box::new(error),
    };
    TransportError::new(cause, Some(source))
}

/// Names the code, which `h2` describes in a sentence of its own.
#[derive(Debug, thiserror::Error)]
#[error("the server sent {frame} with {reason:?}")]
struct Http2Frame {
    frame: &'static str,
    reason: h2::Reason,
    #[source]
    source: reqwest::Error,
}

fn cause_of(error: &reqwest::Error, connecting: bool) -> Transport {
    let mut walk = Walk { connecting, found: None, links_left: 32 };
    walk.visit(error);
    walk.found.unwrap_or(if connecting { Transport::Connect } else { Transport::Other })
}

struct Walk {
    connecting: bool,
    found: Option<Transport>,
    links_left: u8,
}

impl Walk {
    fn visit(&mut self, link: &(dyn Error + 'static)) {
        let Some(left) = self.links_left.checked_sub(1) else { return };
        self.links_left = left;
        if let Some(named) = self.name(link) {
            self.found = Some(named);
        }
        // An `io::Error` hides its content from `source()` and shows what is below.
        let inner = link.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        match inner {
            Some(inner) => self.visit(inner),
            None => {
                if let Some(source) = link.source() {
                    self.visit(source);
                }
            }
        }
    }

    fn name(&self, link: &(dyn Error + 'static)) -> Option<Transport> {
        if link.is::<Unresolved>() {
            return Some(Transport::Unresolved);
        }
        if link.is::<rustls::Error>() {
            // After the handshake it is no matter of certificates.
            return Some(match self.connecting {
                true => Transport::Tls,
                false => Transport::TlsBroken,
            });
        }
        if link.is::<flate2::DecompressError>() {
            return Some(Transport::BadCompression);
        }
        if let Some(error) = link.downcast_ref::<h2::Error>() {
            // The end of the connection under a stream that was under way.
            if let Some(broken) = error.get_io() {
                return self.name_io(broken);
            }
            // What the library itself complains of was not sent by the server.
            if error.is_library() {
                return None;
            }
            let reason = error.reason().map(|reason| Http2Reason(reason.into()));
            return match reason {
                Some(reason) if error.is_go_away() => Some(Transport::Http2GoAway(reason)),
                Some(reason) => Some(Transport::Http2Reset(reason)),
                None => None,
            };
        }
        if let Some(error) = link.downcast_ref::<hyper::Error>() {
            return error.is_incomplete_message().then_some(Transport::Incomplete);
        }
        if let Some(error) = link.downcast_ref::<io::Error>() {
            return self.name_io(error);
        }
        // The types of the proxy layer are private; these are its own fixed words.
        let text = link.to_string();
        let by_proxy = ["tunnel error", "SOCKS error"].iter().any(|word| text.starts_with(word));
        by_proxy.then_some(Transport::Proxy)
    }

    fn name_io(&self, error: &io::Error) -> Option<Transport> {
        use io::ErrorKind as Kind;
        // What lies below our resolver's error is the resolver's own affair.
        if self.found == Some(Transport::Unresolved) {
            return None;
        }
        // The end of a handshake: with TLS it came before any request; with a proxy,
        // the proxy is the one to ask.
        if self.connecting
            && matches!(
                error.kind(),
                Kind::UnexpectedEof
                    | Kind::ConnectionReset
                    | Kind::ConnectionAborted
                    | Kind::BrokenPipe
            )
        {
            return Some(match self.found {
                Some(Transport::Proxy) => Transport::Proxy,
                _ => Transport::Connect,
            });
        }
        match error.kind() {
            Kind::ConnectionRefused => Some(Transport::Refused),
            Kind::ConnectionReset | Kind::ConnectionAborted | Kind::BrokenPipe => {
                Some(Transport::Reset)
            }
            Kind::HostUnreachable
            | Kind::NetworkUnreachable
            | Kind::NetworkDown
            | Kind::AddrNotAvailable => Some(Transport::Unreachable),
            // The kernel gave up on a silent peer.
            Kind::TimedOut if self.connecting => Some(Transport::Unreachable),
            Kind::TimedOut => Some(Transport::Reset),
            Kind::UnexpectedEof => Some(Transport::Incomplete),
            Kind::InvalidInput if !self.connecting => Some(Transport::BadChunk),
            Kind::InvalidData if !self.connecting => Some(Transport::BadCompression),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A wrapper as the libraries have them.
    #[derive(Debug, thiserror::Error)]
    #[error("outer")]
    struct Outer(#[source] Box<dyn Error + Send + Sync>);

    fn named(
        inner: impl Into<Box<dyn Error + Send + Sync>>,
        connecting: bool,
    ) -> Option<Transport> {
        let mut walk = Walk { connecting, found: None, links_left: 32 };
        walk.visit(&Outer(Box::new(Outer(inner.into()))));
        walk.found
    }

    #[test]
    fn the_deepest_link_with_a_name_wins() {
        use io::ErrorKind as Kind;
        for (kind, connecting, expected) in [
            (Kind::ConnectionRefused, true, Some(Transport::Refused)),
            (Kind::NetworkUnreachable, true, Some(Transport::Unreachable)),
            (Kind::TimedOut, true, Some(Transport::Unreachable)),
            (Kind::ConnectionReset, false, Some(Transport::Reset)),
            // Before the handshake is over, no request can have been sent.
            (Kind::ConnectionReset, true, Some(Transport::Connect)),
            (Kind::UnexpectedEof, true, Some(Transport::Connect)),
            (Kind::BrokenPipe, false, Some(Transport::Reset)),
            (Kind::UnexpectedEof, false, Some(Transport::Incomplete)),
            (Kind::InvalidInput, false, Some(Transport::BadChunk)),
            (Kind::InvalidInput, true, None),
            (Kind::InvalidData, false, Some(Transport::BadCompression)),
            (Kind::Other, false, None),
        ] {
            assert_eq!(named(io::Error::from(kind), connecting), expected, "{kind:?}");
        }
        // A TLS failure comes inside an `io::Error` of another kind.
        let tls = io::Error::new(Kind::InvalidData, rustls::Error::DecryptError);
        assert_eq!(named(tls, true), Some(Transport::Tls));
        let tls = io::Error::new(Kind::InvalidData, rustls::Error::DecryptError);
        assert_eq!(named(tls, false), Some(Transport::TlsBroken));
        // A name that was not found is that, whatever the resolver says below it.
        let below = io::Error::from(Kind::ConnectionRefused);
        assert_eq!(named(Unresolved(below), true), Some(Transport::Unresolved));
    }

    #[test]
    fn http2_and_the_proxy_are_told_apart() {
        let reset = h2::Error::from(h2::Reason::ENHANCE_YOUR_CALM);
        assert_eq!(named(reset, false), Some(Transport::Http2Reset(Http2Reason(0xb))));
        assert_eq!(named("tunnel error: unsuccessful", true), Some(Transport::Proxy));
        assert_eq!(named("something else", true), None);
    }
}
