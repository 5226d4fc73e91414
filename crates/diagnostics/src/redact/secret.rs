//! A value that prints masked.

use std::fmt;

use secrecy::{ExposeSecret, SecretBox, SecretString, zeroize::Zeroize};

use super::MASK;

/// A value that prints as `[redacted]`, and is wiped from memory when dropped.
///
/// It cannot be compared, hashed or serialised: whoever wants the value asks
/// for it, and can be found by searching for `expose`.
///
/// ```
/// use turnbuckle_diagnostics::Secret;
///
/// let key = Secret::new(String::from("a-key-of-sixteen"));
/// assert_eq!(format!("{key} {key:?}"), "[redacted] Secret([redacted])");
/// assert_eq!(key.expose(), "a-key-of-sixteen");
/// ```
///
/// ```compile_fail
/// use turnbuckle_diagnostics::Secret;
/// let key = Secret::new(String::from("a-key-of-sixteen"));
/// let _: turnbuckle_errors::SafeText = key.into();
/// ```
///
/// ```compile_fail
/// use turnbuckle_diagnostics::Secret;
/// let key = Secret::new(String::from("a-key-of-sixteen"));
/// let _: &str = &key;
/// ```
pub struct Secret<T: Zeroize>(SecretBox<T>);

impl<T: Zeroize> Secret<T> {
    /// Wraps a value.
    #[must_use]
    pub fn new(value: T) -> Self {
        Self(SecretBox::new(Box::new(value)))
    }

    /// The value itself.
    #[must_use]
    pub fn expose(&self) -> &T {
        self.0.expose_secret()
    }
}

impl Secret<String> {
    /// A copy for [`Redactor::new`](super::Redactor::new).
    #[must_use]
    pub fn to_secret_string(&self) -> SecretString {
        SecretString::from(self.expose().as_str())
    }
}

impl<T: Zeroize> From<T> for Secret<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: Zeroize + Clone> Clone for Secret<T> {
    fn clone(&self) -> Self {
        Self::new(self.expose().clone())
    }
}

impl<T: Zeroize> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({MASK})")
    }
}

impl<T: Zeroize> fmt::Display for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}
