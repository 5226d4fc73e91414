//! What the server of a script speaks.

use std::path::{Path, PathBuf};

use super::{error::ScriptError, step::Step};
use crate::behaviour::{Needs, Protocol, Tls};

/// What the server of a script speaks: the `[server]` table.
///
/// ```
/// use turnbuckle_faults::{Protocol, Serving, Tls};
///
/// let serving = Serving::default().tls(Tls::Good).protocol(Protocol::Http2);
/// # let _ = serving;
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Serving {
    pub(crate) tls: Option<Tls>,
    pub(crate) protocol: Protocol,
    pub(crate) ca_file: Option<PathBuf>,
}

impl Serving {
    /// Speaks TLS, and does this in every handshake; without it, plain HTTP.
    #[must_use]
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Speaks this protocol; without it, HTTP/1.1.
    #[must_use]
    pub fn protocol(mut self, protocol: Protocol) -> Self {
        self.protocol = protocol;
        self
    }

    /// Writes the certificate of its authority to this file when it starts, in
    /// PEM; for clients in other processes.
    #[must_use]
    pub fn ca_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.ca_file = Some(path.into());
        self
    }

    /// Whether it speaks TLS.
    pub fn speaks_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// The file its authority is written to, if one is named.
    pub fn ca_file_path(&self) -> Option<&Path> {
        self.ca_file.as_deref()
    }

    /// What these steps need, where the script does not say what to speak:
    /// plain HTTP/1.1, or TLS, which is how ordinary clients come to HTTP/2.
    pub(super) fn for_steps(steps: &[Step]) -> Self {
        let needed = |needs| steps.iter().any(|step| step.behaviour().needs() == needs);
        if needed(Needs::Http2) {
            return Self::default().tls(Tls::Good).protocol(Protocol::Http2);
        }
        if needed(Needs::Tls) { Self::default().tls(Tls::Good) } else { Self::default() }
    }

    /// Whether this server can play the step.
    pub(super) fn check(&self, step: &Step, number: usize) -> Result<(), ScriptError> {
        let needs = step.behaviour().needs();
        let met = match needs {
            Needs::Plain => true,
            Needs::Http1 => self.protocol == Protocol::Http1,
            Needs::Tls => self.tls.is_some(),
            Needs::Http2 => self.protocol == Protocol::Http2,
        };
        if met {
            return Ok(());
        }
        Err(ScriptError::WrongServer {
            at: step.lines.of("behaviour").in_step(number),
            behaviour: step.name().unwrap_or("this composition").to_owned(),
            needs: match needs {
                Needs::Tls => "TLS: write `tls = \"good\"` under [server]",
                Needs::Http2 => "HTTP/2: write `protocol = \"http2\"` under [server]",
                Needs::Plain | Needs::Http1 => {
                    "HTTP/1.1: write `protocol = \"http1\"` under [server], and faults of HTTP/2 \
                     into a script of their own"
                }
            },
        })
    }
}
