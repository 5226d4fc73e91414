//! From what the clients took to rows, and from rows to checks.

use anyhow::Result;

use super::{
    case::{Case, Reader, Shape},
    client::Took,
    plan::{LINEAR, Planned},
};
use crate::{counts::Tally, terminal};

/// One case, as both readers took it in each round.
pub(super) struct Row {
    planned: Planned,
    /// Ours, then the yardstick's.
    rounds: Vec<[Took; 2]>,
}

/// A median and what lies around it.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Spread {
    median: f64,
    least: f64,
    most: f64,
}

impl Spread {
    fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let at = |place: usize| values.get(place).copied().unwrap_or_default();
        let half = values.len() / 2;
        let median = match values.len() % 2 {
            0 => f64::midpoint(at(half.saturating_sub(1)), at(half)),
            _ => at(half),
        };
        Self { median, least: at(0), most: at(values.len().saturating_sub(1)) }
    }

    fn show(self, digits: usize) -> String {
        let Self { median, least, most } = self;
        format!("{median:.digits$} ({least:.digits$}-{most:.digits$})")
    }
}

impl Row {
    /// Lets both readers read in turn, in an order that `turns` decides.
    pub(super) fn measure(
        planned: Planned,
        runs: u32,
        mut read: impl FnMut(Case, Reader) -> Result<Took>,
        turns: &mut fastrand::Rng,
    ) -> Result<Self> {
        let mut rounds = Vec::new();
        for _ in 0..runs {
            let [first, second] = match turns.bool() {
                true => Reader::BOTH,
                false => [Reader::L2, Reader::Ours],
            };
            let (one, other) = (read(planned.case, first)?, read(planned.case, second)?);
            rounds.push(if first == Reader::Ours { [one, other] } else { [other, one] });
        }
        Ok(Self { planned, rounds })
    }

    fn ours(&self, of: impl Fn(&Took) -> f64) -> Spread {
        Spread::of(self.rounds.iter().map(|[ours, _]| of(ours)))
    }

    fn l2(&self, of: impl Fn(&Took) -> f64) -> Spread {
        Spread::of(self.rounds.iter().map(|[_, l2]| of(l2)))
    }

    /// Round by round, so that what slowed both down is in neither.
    fn ratio(&self) -> Spread {
        Spread::of(self.rounds.iter().map(|[ours, l2]| cpu_ms(ours) / cpu_ms(l2)))
    }

    /// What was measured, in one line.
    pub(super) fn line(&self) -> String {
        let mut line = format!(
            "{:<26} CPU ms {:<24} L2 {:<24} ratio {}",
            self.planned.case.to_string(),
            self.ours(cpu_ms).show(1),
            self.l2(cpu_ms).show(1),
            self.ratio().show(2),
        );
        match self.planned.case.shape {
            Shape::First => line.push_str(&format!(
                ", first text after {} us, L2 {}",
                self.ours(|took| took.first_us).show(0),
                self.l2(|took| took.first_us).show(0),
            )),
            Shape::Long | Shape::Paced | Shape::Big | Shape::Rest => line.push_str(&format!(
                ", memory +{} KiB, L2 +{}",
                self.ours(grown_kib).show(0),
                self.l2(grown_kib).show(0),
            )),
            _ => {}
        }
        line
    }
}

fn cpu_ms(took: &Took) -> f64 {
    std::time::Duration::from_nanos(took.cpu_ns).as_secs_f64() * 1e3
}

#[expect(clippy::cast_precision_loss, reason = "a count of KiB is far below 2^52")]
fn grown_kib(took: &Took) -> f64 {
    took.grown_kib.unwrap_or_default() as f64
}

/// Something that was asked of a number.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Check {
    pub(super) what: String,
    pub(super) measured: String,
    pub(super) target: String,
    pub(super) holds: bool,
    /// Whether missing it fails the run. CPU time moves with what else the machine does,
    /// so that it is only shown.
    pub(super) gate: bool,
}

/// What is asked of the rows.
pub(super) fn checks(rows: &[Row]) -> Vec<Check> {
    let mut checks = Vec::new();
    let mut before: Option<&Row> = None;
    for row in rows {
        let case = row.planned.case;
        if let Some(target) = row.planned.ratio {
            let ratio = row.ratio();
            checks.push(Check {
                what: format!("{case}: CPU / L2"),
                measured: ratio.show(2),
                target: format!("<= {target}"),
                holds: ratio.median <= target,
                gate: false,
            });
        }
        if let Some(half) = before.filter(|_| row.planned.doubled) {
            // The two were measured at different times, and noise can only add to either.
            let growth = row.ours(cpu_ms).least / half.ours(cpu_ms).least;
            checks.push(Check {
                what: format!("{case}: CPU / that of half of it"),
                measured: format!("{growth:.2}"),
                target: format!("< {LINEAR}"),
                holds: growth < LINEAR,
                gate: true,
            });
        }
        let seen = row.rounds.iter().all(|[ours, _]| ours.grown_kib.is_some());
        if let Some(most) = row.planned.memory.filter(|_| seen) {
            checks.push(memory(row, most));
        }
        before = Some(row);
    }
    checks
}

fn memory(row: &Row, target: u64) -> Check {
    let above = |took: &Took| {
        let answer = u64::try_from(took.text_bytes).unwrap_or(u64::MAX) / 1024;
        took.grown_kib.unwrap_or_default().saturating_sub(answer)
    };
    let most = row.rounds.iter().map(|[ours, _]| above(ours)).max().unwrap_or_default();
    Check {
        what: format!("{}: KiB above the answer", row.planned.case),
        measured: most.to_string(),
        target: format!("<= {target}"),
        holds: most <= target,
        gate: true,
    }
}

pub(super) fn table(checks: &[Check]) -> String {
    let head = ["asked", "measured", "target", ""].map(str::to_owned).to_vec();
    let rows = checks.iter().map(|check| {
        let verdict = match (check.holds, check.gate) {
            (true, _) => "ok",
            (false, true) => "MISSED",
            (false, false) => "above",
        };
        vec![check.what.clone(), check.measured.clone(), check.target.clone(), verdict.to_owned()]
    });
    terminal::table(&[head].into_iter().chain(rows).collect::<Vec<_>>())
}

pub(super) fn tally(checks: &[Check]) -> Tally {
    let mut sum = Tally::default();
    let gates = checks.iter().filter(|check| check.gate);
    gates.for_each(|check| sum += Tally::one(check.holds));
    sum
}

#[cfg(test)]
mod tests {
    use super::{super::case::Dialect, *};

    fn took(cpu_ms: u64, grown_kib: u64) -> Took {
        Took {
            cpu_ns: cpu_ms * 1_000_000,
            first_us: 0.0,
            grown_kib: Some(grown_kib),
            text_bytes: 2048,
        }
    }

    fn row(size: usize, ours: u64, ratio: Option<f64>, doubled: bool) -> Row {
        let case = Case { dialect: Dialect::Chat, shape: Shape::Big, size };
        let planned = Planned { case, ratio, doubled, memory: ratio.map(|_| 10_240) };
        let rounds = [1, 2, 30].map(|noise| [took(ours * noise, 12_000), took(100 * noise, 0)]);
        Row { planned, rounds: rounds.to_vec() }
    }

    #[test]
    fn the_median_of_an_even_count_lies_between_two() {
        let spread = Spread::of([4.0, 1.0, 3.0, 2.0]);
        assert_eq!(spread, Spread { median: 2.5, least: 1.0, most: 4.0 });
        assert_eq!(spread.show(1), "2.5 (1.0-4.0)");
    }

    #[test]
    fn what_slows_both_readers_moves_no_ratio() {
        assert_eq!(row(1, 120, None, false).ratio().show(2), "1.20 (1.20-1.20)");
    }

    #[test]
    fn cpu_time_fails_no_run() {
        let all = checks(&[row(1, 101, Some(1.0), false)]);
        assert_eq!((tally(&all[..1]).failed, tally(&all).failed), (0, 1));
        assert!(table(&all).contains("above") && table(&all).contains("MISSED"));
    }

    #[test]
    fn a_check_fails_above_its_target_alone() {
        let verdicts = |rows: &[Row]| checks(rows).iter().map(|c| c.holds).collect::<Vec<_>>();
        assert_eq!(verdicts(&[row(1, 100, Some(1.0), false)]), [true, false]);
        assert_eq!(verdicts(&[row(1, 101, Some(1.0), false)]), [false, false]);
        assert_eq!(verdicts(&[row(1, 100, None, false), row(2, 229, None, true)]), [true]);
        assert_eq!(verdicts(&[row(1, 100, None, false), row(2, 231, None, true)]), [false]);
    }
}
