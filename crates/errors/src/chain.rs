//! The cause chain of an error, rendered once: bounded, redacted, without repeats.

use std::{error::Error, ptr};

use crate::{Redact, SafeText};

/// The most links of a chain that are looked at.
pub const MAX_CAUSES: usize = 16;

/// Renders `error` and its `source()`s, outermost first.
///
/// A link whose text only repeats what the link above it already said is left
/// out (many libraries print their source in their own text); a chain that
/// comes back to itself, or is longer than [`MAX_CAUSES`], ends there.
#[must_use]
pub fn render_chain(error: &(dyn Error + 'static), redact: &dyn Redact) -> Vec<SafeText> {
    let mut causes: Vec<SafeText> = Vec::new();
    let mut seen: Vec<*const ()> = Vec::new();
    let mut link = Some(error);
    while let Some(current) = link.take_if(|_| seen.len() < MAX_CAUSES) {
        let identity = ptr::from_ref(current).cast::<()>();
        // A wrapper of the same address as its content is no cycle; a third visit is.
        if seen.iter().filter(|&&known| known == identity).count() > 1 {
            break;
        }
        seen.push(identity);
        let text = SafeText::redacted(&current.to_string(), redact);
        let repeated = causes.last().is_some_and(|above| above.as_str().contains(text.as_str()));
        if !repeated && !text.as_str().is_empty() && !causes.contains(&text) {
            causes.push(text);
        }
        link = current.source();
    }
    causes
}

#[cfg(test)]
mod tests {
    use std::{borrow::Cow, fmt, sync::OnceLock};

    use super::*;

    struct Plain;

    impl Redact for Plain {
        fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
            Cow::Borrowed(text)
        }
    }

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Link {
        text: &'static str,
        #[source]
        next: Option<Box<Self>>,
    }

    fn chain(texts: &[&'static str]) -> Link {
        let (first, rest) = texts.split_first().unwrap();
        let next = (!rest.is_empty()).then(|| Box::new(chain(rest)));
        Link { text: first, next }
    }

    fn rendered(error: &(dyn Error + 'static)) -> Vec<String> {
        render_chain(error, &Plain).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_chain_is_told_outermost_first_without_repeats() {
        let error =
            chain(&["sending failed: reset", "reset", "os error 104", "sending failed: reset"]);
        assert_eq!(rendered(&error), ["sending failed: reset", "os error 104"]);
    }

    #[test]
    fn a_chain_longer_than_the_bound_ends_there() {
        let texts: Vec<&'static str> =
            (0..100).map(|n| &*Box::leak(format!("link {n:03}").into_boxed_str())).collect();
        assert_eq!(rendered(&chain(&texts)).len(), MAX_CAUSES);
    }

    /// An error that is its own source.
    #[derive(Debug)]
    struct Ouroboros;

    impl fmt::Display for Ouroboros {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            static COUNT: OnceLock<std::sync::atomic::AtomicUsize> = OnceLock::new();
            let count = COUNT.get_or_init(Default::default);
            write!(f, "visit {}", count.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
        }
    }

    impl Error for Ouroboros {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            static SELF: Ouroboros = Ouroboros;
            Some(&SELF)
        }
    }

    #[test]
    fn a_cycle_is_contained() {
        assert!(rendered(&Ouroboros).len() <= 3);
    }
}
