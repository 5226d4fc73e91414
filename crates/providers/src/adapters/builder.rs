//! What every adapter is made with, whatever it speaks.

use std::{fmt, sync::Arc};

use secrecy::SecretString;
use turnbuckle_errors::Redact;

use super::settings::{ConfigError, KeyHeader, Settings};
use crate::{Clocks, Provider, profiles::Profile, transport::HttpTransport};

/// Makes an adapter; every wrong setting is found in [`build`](Self::build), before
/// any request. `O` holds what one dialect alone can be told.
///
/// ```
/// use std::sync::Arc;
/// use turnbuckle_providers::{AdapterBuilder, AdapterOptions, ConfigError, Provider};
///
/// fn keyed<O: AdapterOptions>(
///     builder: AdapterBuilder<O>,
///     key: &str,
/// ) -> Result<Arc<dyn Provider>, ConfigError> {
///     Ok(Arc::new(builder.api_key(key).user_agent("my-app/1.0").build()?))
/// }
/// ```
#[must_use]
pub struct AdapterBuilder<O> {
    pub(super) id: &'static str,
    pub(super) key: KeyHeader,
    pub(super) settings: Settings,
    pub(super) options: O,
}

/// What one dialect alone can be told. Nothing outside of this crate implements it.
pub trait AdapterOptions: sealed::Sealed + fmt::Debug + Sized {
    /// What is made of it.
    type Adapter: Provider + 'static;

    /// Checks the settings.
    #[doc(hidden)]
    fn adapter(builder: AdapterBuilder<Self>) -> Result<Self::Adapter, ConfigError>;
}

pub(super) mod sealed {
    pub trait Sealed {}
}

impl<O> AdapterBuilder<O> {
    /// For a kind of server that is known; the adapter bears the profile's name.
    pub(super) fn of(profile: &Profile, options: O) -> Self {
        let mut settings = Settings::new(profile.name, profile.base_url.unwrap_or_default());
        if let Some(byte_idle) = profile.byte_idle {
            settings.clocks.byte_idle = byte_idle;
        }
        let key = KeyHeader { name: profile.key.header, prefix: profile.key.prefix };
        Self { id: profile.name, key, settings, options }
    }

    /// The API's address: what comes before `/chat/completions`, `/responses`,
    /// `/messages`, or `/models/…`. A URL that ends in one of the first three is taken
    /// as well. That of the profile if it is not set.
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.settings.base_url = url.into();
        self
    }

    /// The key, sent in the header that the profile or the dialect has for it, and never
    /// in the URL. Without one no such header is sent, as local servers like it.
    pub fn api_key(mut self, key: impl Into<SecretString>) -> Self {
        self.settings.api_key = Some(key.into());
        self
    }

    /// Another header, for example `anthropic-beta`, or the `authorization` of a
    /// gateway; its value is kept as secret as the key. A header of the same name
    /// that we would send ourselves is replaced.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<SecretString>) -> Self {
        self.settings.headers.push((name.into(), value.into()));
        self
    }

    /// What is sent as `User-Agent`; `turnbuckle/VERSION` without it.
    pub fn user_agent(mut self, user_agent: impl Into<String>) -> Self {
        self.settings.user_agent = Some(user_agent.into());
        self
    }

    /// How long an attempt waits for what, in place of the defaults and of what the
    /// profile knows.
    pub const fn clocks(mut self, clocks: Clocks) -> Self {
        self.settings.clocks = clocks;
        self
    }

    /// Masks secrets in what servers say. The key and the header values are masked
    /// besides, whatever this one knows.
    pub fn redactor(mut self, redactor: Arc<dyn Redact>) -> Self {
        self.settings.redactor = Some(redactor);
        self
    }

    /// Sends through `transport`, for instance one that is shared with others.
    /// Without it the adapter makes its own
    /// [`ReqwestTransport`](crate::transport::ReqwestTransport).
    pub fn transport(mut self, transport: Arc<dyn HttpTransport>) -> Self {
        self.settings.transport = Some(transport);
        self
    }
}

impl<O: AdapterOptions> AdapterBuilder<O> {
    /// Checks the settings and makes the adapter. Nothing is sent.
    ///
    /// # Errors
    ///
    /// A [`ConfigError`] that names the setting. As a
    /// [`Failure`](turnbuckle_errors::Failure) it reads `PROVIDER_SECRET_INVALID` for a
    /// key that cannot be sent, else `INVALID_CONFIG`.
    pub fn build(self) -> Result<O::Adapter, ConfigError> {
        O::adapter(self)
    }
}

impl<O: fmt::Debug> fmt::Debug for AdapterBuilder<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdapterBuilder")
            .field("id", &self.id)
            .field("settings", &self.settings)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
