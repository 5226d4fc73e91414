//! Deals the steps of a script: to each request the first step that is left
//! and is for it.
//!
//! A step that is not for a request waits for one that it is for. A step whose
//! dice say no is used up, and the request goes on to the next. No wait, no
//! clock and no socket: what is dealt depends on the requests and the seed.

use std::collections::HashMap;

use fastrand::Rng;

use super::{After, Asked, Scope, Script, Step};

/// What is left of a script, in each of its rows.
#[derive(Debug)]
pub(crate) struct Dealer {
    seed: u64,
    rows: HashMap<Row, Hand>,
}

/// Whose row of steps it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Row {
    Server,
    Connection(usize),
    /// Of the session of this name; `None` for requests that name none.
    Session(Option<String>),
}

/// What a request gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dealt {
    /// The step of this index.
    Step(usize),
    /// No step is for it: a whole answer.
    Whole,
    /// The next step is the handshake of a new connection.
    Reconnect,
}

/// How often each step may still be dealt in one row.
#[derive(Debug, PartialEq, Eq, serde::Serialize)]
pub(crate) struct LeftInRow {
    of: Row,
    /// `None` where it is always.
    left: Vec<Option<usize>>,
}

#[derive(Debug)]
struct Hand {
    cards: Vec<Card>,
    dice: Rng,
}

/// One step of one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Card {
    /// How often it may still be dealt; [`Step::ALWAYS`] stays what it is.
    left: usize,
    /// The dice were thrown and said yes, but the step is for a handshake.
    waits: bool,
}

impl Card {
    fn spend(&mut self) {
        if self.left != Step::ALWAYS {
            self.left = self.left.saturating_sub(1);
        }
        self.waits = false;
    }
}

impl Dealer {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, rows: HashMap::new() }
    }

    /// Deals a step to a request.
    pub(crate) fn deal_request(
        &mut self,
        script: &Script,
        asked: &Asked<'_>,
        connection: usize,
    ) -> Dealt {
        let dealing = script.dealing();
        let session = || asked.session(dealing.session_header.as_deref()).map(str::to_owned);
        let row = match dealing.scope {
            Scope::Server => Row::Server,
            Scope::Connection => Row::Connection(connection),
            Scope::Session => Row::Session(session()),
        };
        let hand = self.hand(script, row);
        let Some(index) = hand.next(script, |step| step.is_for().fits(asked)) else {
            return Dealt::Whole;
        };
        let is_handshake = script.steps().get(index).is_some_and(Step::fails_handshake);
        match hand.cards.get_mut(index) {
            Some(card) if is_handshake => {
                *card = Card { left: card.left.max(1), waits: true };
                Dealt::Reconnect
            }
            Some(card) => {
                card.spend();
                Dealt::Step(index)
            }
            None => Dealt::Whole,
        }
    }

    /// Deals a step to a handshake, if the next one is for it.
    pub(crate) fn deal_handshake(&mut self, script: &Script) -> Option<usize> {
        // Where the handshake fails there is one row alone.
        if script.dealing().scope != Scope::Server {
            return None;
        }
        let steps = script.steps();
        let hand = self.hand(script, Row::Server);
        let none_left = hand.cards.iter().all(|card| card.left == 0);
        if none_left && script.dealing().after == After::StartAgain {
            hand.fill(steps);
        }
        if none_left && script.dealing().after == After::RepeatLast {
            let last = steps.len().checked_sub(1)?;
            return (steps.get(last)?.fails_handshake() && hand.throw(steps.get(last)?))
                .then_some(last);
        }
        for (index, step) in steps.iter().enumerate() {
            let card = hand.cards.get(index).copied().filter(|card| card.left > 0);
            let Some(card) = card else { continue };
            if !step.fails_handshake() {
                return None;
            }
            let yes = card.waits || hand.throw(step);
            if let Some(card) = hand.cards.get_mut(index) {
                card.spend();
            }
            if yes {
                return Some(index);
            }
        }
        None
    }

    /// What is left in each row that was begun, in their order.
    pub(crate) fn left(&self) -> Vec<LeftInRow> {
        let counted = |card: &Card| Some(card.left).filter(|left| *left != Step::ALWAYS);
        let left = |hand: &Hand| hand.cards.iter().map(counted).collect();
        let row = |(row, hand): (&Row, &Hand)| LeftInRow { of: row.clone(), left: left(hand) };
        let mut rows: Vec<_> = self.rows.iter().map(row).collect();
        rows.sort_by(|a, b| a.of.cmp(&b.of));
        rows
    }

    fn hand(&mut self, script: &Script, row: Row) -> &mut Hand {
        let seed = row.seed(self.seed);
        self.rows.entry(row).or_insert_with(|| {
            let mut hand = Hand { cards: Vec::new(), dice: Rng::with_seed(seed) };
            hand.fill(script.steps());
            hand
        })
    }
}

impl Row {
    /// Dice of its own, so that rows beside each other do not share luck, and
    /// the order in which they come does not matter.
    fn seed(&self, seed: u64) -> u64 {
        let mix = |seed: u64, with: u64| Rng::with_seed(seed ^ with).u64(..);
        match self {
            Self::Server | Self::Session(None) => seed,
            Self::Connection(number) => mix(seed, u64::try_from(*number).unwrap_or(u64::MAX)),
            Self::Session(Some(name)) => name.bytes().map(u64::from).fold(seed, mix),
        }
    }
}

impl Hand {
    fn fill(&mut self, steps: &[Step]) {
        self.cards = steps.iter().map(|step| Card { left: step.plays(), waits: false }).collect();
    }

    /// The step that comes next, still in the hand.
    fn next(&mut self, script: &Script, fits: impl Fn(&Step) -> bool) -> Option<usize> {
        let steps = script.steps();
        let mut refused = vec![false; steps.len()];
        if let Some(found) = self.first(steps, &fits, &mut refused) {
            return Some(found);
        }
        match script.dealing().after {
            After::Answer => None,
            After::StartAgain => {
                // Only those for it: others are in the middle of theirs.
                for (card, step) in self.cards.iter_mut().zip(steps).filter(|(_, s)| fits(s)) {
                    card.left = step.plays();
                }
                self.first(steps, &fits, &mut refused)
            }
            After::RepeatLast => {
                let last = steps.iter().rposition(fits)?;
                let thrown = refused.get(last).is_some_and(|refused| *refused);
                (!thrown && self.throw(steps.get(last)?)).then_some(last)
            }
        }
    }

    /// The first step that is left, fits, and whose dice say yes; each is
    /// asked once for one request.
    fn first(
        &mut self,
        steps: &[Step],
        fits: &impl Fn(&Step) -> bool,
        refused: &mut [bool],
    ) -> Option<usize> {
        for (index, step) in steps.iter().enumerate() {
            let left = self.cards.get(index).is_some_and(|card| card.left > 0);
            let asked = refused.get(index).is_some_and(|refused| *refused);
            if !left || asked || !fits(step) {
                continue;
            }
            let waits = self.cards.get(index).is_some_and(|card| card.waits);
            if waits || self.throw(step) {
                return Some(index);
            }
            if let (Some(card), Some(refused)) = (self.cards.get_mut(index), refused.get_mut(index))
            {
                card.spend();
                *refused = true;
            }
        }
        None
    }

    fn throw(&mut self, step: &Step) -> bool {
        // A throw is below 1 always, so that 1 says yes and 0 says no.
        step.chance().is_none_or(|chance| self.dice.f64() < chance)
    }
}

#[cfg(test)]
mod tests;
