//! How large the next request will be, in tokens: what the provider itself counted
//! last, and an estimate of what was added since.

use turnbuckle_providers::{Message, Usage};

/// What an image weighs. Providers count about 1,600 tokens for one, whatever its
/// bytes.
const IMAGE_BYTES: u64 = 6_400;

/// What stands around each message on the wire.
const FRAME_BYTES: u64 = 16;

/// Bytes of a token, until a provider has counted. The usual rule of thumb.
const BYTES_PER_TOKEN: u64 = 4;

/// How many bytes the rule of thumb counts for beside what a provider has counted: a
/// first request of two words is mostly what the server puts around them, and says
/// little of what comes.
const THUMB_BYTES: u64 = 4_000;

/// Weighs a growing history. Each message is weighed once.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    weighed: usize,
    bytes: u64,
    counted: Option<Counted>,
    /// No compaction at the boundary below this weight: it failed last time.
    hold_off: u64,
}

/// A request as we weigh it and as the provider counted it.
#[derive(Debug, Clone, Copy)]
struct Counted {
    bytes: u64,
    tokens: u64,
}

impl Meter {
    /// The weight of a request in bytes: `fixed` for what is before the history,
    /// then all of `messages`, the same as last time but for what was added.
    pub(crate) fn weigh<'a>(
        &mut self,
        fixed: u64,
        messages: impl ExactSizeIterator<Item = &'a Message>,
    ) -> u64 {
        let count = messages.len();
        self.bytes += messages.skip(self.weighed).map(weight).sum::<u64>();
        self.weighed = count;
        fixed.saturating_add(self.bytes)
    }

    /// A request of this weight was answered, and this is what it cost.
    pub(crate) fn counted(&mut self, bytes: u64, usage: &Usage) {
        let tokens = [usage.input_tokens, usage.cached_tokens, usage.cache_write_tokens];
        let tokens = tokens.into_iter().flatten().fold(0, u64::saturating_add);
        // Some servers say zero where they do not count.
        if tokens > 0 && bytes > 0 {
            self.counted = Some(Counted { bytes, tokens });
        }
    }

    /// The history is another one now.
    pub(crate) const fn replaced(&mut self) {
        (self.weighed, self.bytes, self.hold_off) = (0, 0, 0);
    }

    /// What a request of this weight will count.
    pub(crate) fn tokens(&self, bytes: u64) -> u64 {
        match self.counted {
            None => bytes / BYTES_PER_TOKEN,
            // The provider's own count stands for what it has seen.
            Some(last) => match bytes.checked_sub(last.bytes) {
                Some(added) => last.tokens.saturating_add(last.rate().tokens(added)),
                None => last.rate().tokens(bytes),
            },
        }
    }

    /// What so many tokens weigh.
    pub(crate) fn bytes(&self, tokens: u64) -> u64 {
        match self.counted {
            None => tokens.saturating_mul(BYTES_PER_TOKEN),
            Some(last) => last.rate().bytes(tokens),
        }
    }

    /// Whether the boundary counts at this weight.
    pub(crate) const fn is_held_off(&self, bytes: u64) -> bool {
        bytes < self.hold_off
    }

    /// Nothing could be done at this weight; not again before it is an eighth more.
    pub(crate) const fn hold_off(&mut self, bytes: u64) {
        self.hold_off = bytes.saturating_add(bytes / 8);
    }
}

impl Counted {
    /// Its tokens by its bytes, as far as text can explain them: from 16 bytes a token
    /// to one. A server that counts otherwise is taken at its word for what it has
    /// seen, and not for what comes.
    fn rate(self) -> Rate {
        let tokens = self.tokens.clamp((self.bytes / 16).max(1), self.bytes);
        Rate {
            tokens: tokens.saturating_add(THUMB_BYTES / BYTES_PER_TOKEN),
            bytes: self.bytes.saturating_add(THUMB_BYTES),
        }
    }
}

/// So many tokens for so many bytes.
struct Rate {
    tokens: u64,
    bytes: u64,
}

impl Rate {
    fn tokens(&self, bytes: u64) -> u64 {
        scaled(bytes, self.tokens, self.bytes)
    }

    fn bytes(&self, tokens: u64) -> u64 {
        scaled(tokens, self.bytes, self.tokens)
    }
}

/// `amount * by / of`, without overflow.
fn scaled(amount: u64, by: u64, of: u64) -> u64 {
    let scaled = u128::from(amount) * u128::from(by) / u128::from(of.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// What a message weighs in a request.
pub(super) fn weight(message: &Message) -> u64 {
    let images =
        |count: usize| u64::try_from(count).unwrap_or(u64::MAX).saturating_mul(IMAGE_BYTES);
    let text = |bytes: usize| u64::try_from(bytes).unwrap_or(u64::MAX);
    FRAME_BYTES
        + match message {
            Message::User(said) => text(said.text.len()) + images(said.images.len()),
            Message::Assistant(said) => match &said.native {
                Some(native) => native.parts.iter().map(|part| text(part.len())).sum(),
                None => {
                    let calls = said.tool_calls.iter().map(|call| {
                        text(call.id.len() + call.name.len() + call.arguments.as_json().len())
                    });
                    text(said.text.len()) + calls.sum::<u64>()
                }
            },
            Message::Tool(result) => {
                text(result.call_id.len() + result.text.len()) + images(result.images.len())
            }
            _ => 0,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(bytes: usize) -> Message {
        Message::User("x".repeat(bytes).into())
    }

    fn input(tokens: u64) -> Usage {
        Usage { input_tokens: Some(tokens), ..Usage::default() }
    }

    #[test]
    fn each_message_is_weighed_once_and_the_sum_is_that_of_all() {
        let history = [user(84), user(184), user(284)];
        let mut growing = Meter::default();
        let sums: Vec<u64> = (0..=3).map(|n| growing.weigh(1000, history[..n].iter())).collect();
        assert_eq!(sums, [1000, 1100, 1300, 1600]);
        assert_eq!(Meter::default().weigh(1000, history.iter()), 1600);
        growing.replaced();
        assert_eq!(growing.weigh(1000, history[..1].iter()), 1100);
    }

    #[test]
    fn before_a_provider_has_counted_four_bytes_are_a_token() {
        let meter = Meter::default();
        assert_eq!((meter.tokens(4000), meter.bytes(1000)), (1000, 4000));
    }

    #[test]
    fn the_count_of_the_provider_stands_and_what_was_added_is_estimated_at_its_rate() {
        let mut meter = Meter::default();
        let usage = Usage {
            input_tokens: Some(100),
            cached_tokens: Some(300),
            cache_write_tokens: Some(100),
            output_tokens: Some(9999),
            reasoning_tokens: Some(9999),
        };
        meter.counted(1000, &usage);
        // 500 tokens for 1000 bytes, and 1000 for the 4000 of the rule of thumb.
        for (bytes, tokens) in [(1000, 500), (2000, 800), (500, 150), (0, 0)] {
            assert_eq!(meter.tokens(bytes), tokens, "{bytes}");
        }
        assert_eq!(meter.bytes(300), 1000);
    }

    #[test]
    fn a_long_request_outweighs_the_rule_of_thumb_and_a_short_one_does_not() {
        let after = |bytes: u64, tokens: u64| {
            let mut meter = Meter::default();
            meter.counted(bytes, &input(tokens));
            meter.tokens(bytes + 100_000) - tokens
        };
        // Both were counted at half a token a byte, twice the rule of thumb.
        assert_eq!(after(18, 9), 25_111);
        assert_eq!(after(400_000, 200_000), 49_752);
    }

    #[test]
    fn a_count_that_text_cannot_explain_says_nothing_of_what_comes() {
        // A system prompt of the server's own, and a server that counts nothing.
        let mut meter = Meter::default();
        meter.counted(100_000, &input(50_000_000));
        assert_eq!(meter.tokens(101_000), 50_000_971);
        let mut meter = Meter::default();
        meter.counted(160_000, &input(1));
        assert_eq!(meter.tokens(176_000), 1_074);
        let mut meter = Meter::default();
        meter.counted(100, &input(0));
        meter.counted(100, &Usage::default());
        assert_eq!(meter.tokens(400), 100);
    }

    #[test]
    fn the_largest_numbers_do_not_overflow() {
        let mut meter = Meter::default();
        meter.counted(1, &input(u64::MAX));
        assert_eq!(meter.tokens(u64::MAX), u64::MAX);
        assert_eq!(Meter::default().bytes(u64::MAX), u64::MAX);
    }

    #[test]
    fn after_a_failure_the_boundary_is_an_eighth_further() {
        let mut meter = Meter::default();
        meter.hold_off(800);
        assert!(meter.is_held_off(899) && !meter.is_held_off(900));
    }
}
