//! The parts of a fault that a step puts together itself: what is answered,
//! where it breaks, and what is said in between.

use crate::behaviour::{Answer, Behaviour, How, Insert, Noise, Point};

/// What a step adds to its behaviour, or has instead of one with a name.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Parts {
    pub(super) answer: Option<Answer>,
    pub(super) status: Option<u16>,
    pub(super) cut: Option<Place>,
    pub(super) inserts: Vec<(Place, Insert)>,
    pub(super) without_terminal: bool,
}

impl Parts {
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The behaviour with these parts in it. A place that names no event is
    /// taken at `event`.
    pub(super) fn add_to(&self, behaviour: Behaviour, event: usize) -> Behaviour {
        let mut behaviour = behaviour;
        if let Some(answer) = &self.answer {
            behaviour.answer = answer.clone();
        }
        if let Some(status) = self.status {
            behaviour = behaviour.status(status);
        }
        for (place, insert) in &self.inserts {
            behaviour = behaviour.insert(place.point(event), insert.clone());
        }
        if let Some(place) = self.cut {
            let how = behaviour.cut.map_or(How::Reset, |cut| cut.how);
            behaviour = behaviour.cut(place.point(event), how);
        }
        if self.without_terminal {
            behaviour = behaviour.without_terminal();
        }
        behaviour
    }
}

/// A place in an exchange, and the number of its event if one is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// Its event, if it has one, counts for nothing.
    kind: Point,
    pub(super) event: Option<usize>,
}

impl Place {
    /// Where something is said unless the script says otherwise.
    pub(super) const AFTER_AN_EVENT: Self = Self { kind: Point::AfterEvent(0), event: None };

    /// The words a script may use.
    pub(super) const WORDS: &'static [&'static str] = &[
        "before_status",
        "inside_headers",
        "after_headers",
        "before_event",
        "after_event",
        "inside_event",
        "inside_character",
        "before_terminal",
        "after_terminal",
        "at_end",
        "inside_body",
    ];

    const KINDS: [Point; 11] = [
        Point::BeforeStatus,
        Point::InsideHeaders,
        Point::AfterHeaders,
        Point::BeforeEvent(0),
        Point::AfterEvent(0),
        Point::InsideEvent(0),
        Point::InsideCharacter,
        Point::BeforeTerminal,
        Point::AfterTerminal,
        Point::AtEnd,
        Point::InsideBody,
    ];

    pub(super) fn from_word(word: &str) -> Option<Self> {
        let index = Self::WORDS.iter().position(|known| *known == word)?;
        Some(Self { kind: *Self::KINDS.get(index)?, event: None })
    }

    pub(super) fn as_str(self) -> &'static str {
        let index = Self::KINDS.iter().position(|kind| *kind == self.kind);
        index.and_then(|index| Self::WORDS.get(index)).copied().unwrap_or("at_end")
    }

    pub(super) fn at(self, event: Option<usize>) -> Self {
        Self { event, ..self }
    }

    /// Whether it is at, before or after an event of some number.
    pub(super) fn is_at_an_event(self) -> bool {
        matches!(self.kind, Point::BeforeEvent(_) | Point::AfterEvent(_) | Point::InsideEvent(_))
    }

    fn point(self, event: usize) -> Point {
        let event = self.event.unwrap_or(event);
        match self.kind {
            Point::BeforeEvent(_) => Point::BeforeEvent(event),
            Point::AfterEvent(_) => Point::AfterEvent(event),
            Point::InsideEvent(_) => Point::InsideEvent(event),
            other => other,
        }
    }
}

pub(super) fn noise_of(word: &str) -> Option<Noise> {
    let all = [Noise::Comment, Noise::Ping, Noise::Delta];
    all.into_iter().find(|noise| word_of(*noise) == word)
}

pub(super) fn word_of(noise: Noise) -> &'static str {
    match noise {
        Noise::Comment => "comment",
        Noise::Ping => "ping",
        Noise::Delta => "delta",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_read_back_and_made_of_the_words_of_its_point() {
        for word in Place::WORDS {
            let place = Place::from_word(word).unwrap();
            assert_eq!(place.as_str(), *word);
            let point = place.point(3).to_string();
            let told: Vec<&str> = word.split('_').collect();
            assert!(told.iter().all(|told| point.contains(told)), "{word}: {point}");
        }
    }
}
