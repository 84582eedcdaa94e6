//! Markov chain of a group of disks. A state is the number of failed disks; the last state is data loss.

use super::HOURS_A_YEAR;
use crate::error::PlannerError;
use serde::Serialize;

/// Text about what the model cannot predict. Every output of the model's figures must contain this text.
pub const CANNOT_TELL: &str = "The model knows disks that fail at a constant rate, rebuild times \
and unreadable sectors. It does not know your hand on the wrong cable, a firmware that fails a \
whole batch at once, a power supply, a fire, theft, a bug in the file system, or the years after \
the fifth. Real arrays lose data far more often than these figures say, mostly for those reasons: \
use them to compare layouts, never as a promise. Redundancy is not a backup.";

/// Assumptions about disks and repairs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Assumptions {
    /// Fraction of disks that fail per year (annualised failure rate), from 0 to below 1.
    pub afr: f64,
    /// Hours from a failure until the rebuild starts on a spare or replacement.
    pub replace_hours: f64,
    /// Duration of the rebuild in hours.
    pub rebuild_hours: f64,
    /// Unreadable sectors per bit read, 1e-15 in many data sheets. With 0, all sectors are readable.
    pub ure_per_bit: f64,
    /// Factor by which the failure rate of the other disks increases while one disk has failed (same batch, same
    /// enclosure, higher load). 1 means that failures are independent.
    pub correlation: f64,
}

impl Default for Assumptions {
    /// Returns the default values: a failure rate of 1.5 % per year, replacement after one day, a rebuild in 24 h, one
    /// unreadable bit in 10¹⁵, and factor 3.
    fn default() -> Self {
        Self {
            afr: 0.015,
            replace_hours: 24.0,
            rebuild_hours: 24.0,
            ure_per_bit: 1e-15,
            correlation: 3.0,
        }
    }
}

impl Assumptions {
    /// Checks that all values are in their ranges.
    ///
    /// # Errors
    /// [`PlannerError::Value`] with the value that is out of range.
    pub fn check(&self) -> Result<(), PlannerError> {
        let rules: [(&str, f64, f64, f64); 5] = [
            ("afr", self.afr, 0.0, 0.999_999),
            ("replace hours", self.replace_hours, 0.0, 1e6),
            ("rebuild hours", self.rebuild_hours, 1e-3, 1e6),
            ("unreadable bits per bit", self.ure_per_bit, 0.0, 1e-6),
            ("correlation", self.correlation, 1.0, 1e6),
        ];
        for (what, value, low, high) in rules {
            if !(low..=high).contains(&value) {
                return Err(PlannerError::value(
                    format!("{what} {value}"),
                    format!("must lie between {low} and {high}"),
                ));
            }
        }
        Ok(())
    }

    /// Returns the number of failures per hour of one disk.
    #[must_use]
    pub fn failures_an_hour(&self) -> f64 {
        -(-self.afr).ln_1p() / HOURS_A_YEAR
    }
}

/// A group of disks with common redundancy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[schemars(rename = "Group")]
pub struct DiskGroup {
    /// Number of disks in the group.
    pub disks: u64,
    /// Number of failures that the group survives.
    pub survives: u64,
    /// Number of bytes that must be read to rebuild a disk when no redundancy remains.
    pub rebuild_reads: f64,
}

/// Transition rates of each state of the chain, per hour.
pub(super) struct Rates {
    /// For each state, the rate at which one more disk fails. For the last state, the rate of data loss.
    pub fail: Vec<f64>,
    /// For each state, the rate at which one failed disk is rebuilt.
    pub repair: Vec<f64>,
    /// For each state, the rate at which data is lost because a sector without another copy is unreadable.
    pub unreadable: Vec<f64>,
}

/// Returns the transition rates of a group with n disks.
///
/// - From i to i + 1 failed disks: `(n − i)·λ·κ`.
/// - Back: `i·μ`, because all failed disks are rebuilt in parallel.
/// - In the last state before loss, a rebuild finds an unreadable sector with probability `1 − exp(−bits·ure)`, and
///   data is lost.
pub(super) fn group_rates(group: DiskGroup, assumptions: &Assumptions) -> Rates {
    let lambda = assumptions.failures_an_hour();
    let mu = 1.0 / (assumptions.replace_hours + assumptions.rebuild_hours);
    let unreadable = -(-group.rebuild_reads * 8.0 * assumptions.ure_per_bit).exp_m1();
    let last = group.survives;
    let mut rates = Rates {
        fail: Vec::new(),
        repair: Vec::new(),
        unreadable: Vec::new(),
    };
    for failed in 0..=last {
        let factor = if failed == 0 {
            1.0
        } else {
            assumptions.correlation
        };
        let down = failed as f64 * mu;
        let bad = if failed == last && failed > 0 {
            unreadable
        } else {
            0.0
        };
        rates
            .fail
            .push(group.disks.saturating_sub(failed) as f64 * lambda * factor);
        rates.repair.push(down * (1.0 - bad));
        rates.unreadable.push(down * bad);
    }
    rates
}

/// Returns the mean number of hours to data loss, starting with all disks healthy. Every step adds, multiplies or
/// divides positive numbers, so rates of 10⁻³⁰ lose no digits (after Grassmann, Taksar and Heyman, 1985).
#[must_use]
pub fn mean_hours_to_loss(group: DiskGroup, assumptions: &Assumptions) -> f64 {
    let rates = group_rates(group, assumptions);
    let mut total = 0.0;
    let mut before = 0.0;
    for state in 0..rates.fail.len() {
        let up = rates.fail[state] + rates.unreadable[state];
        before = (1.0 + rates.repair[state] * before) / up;
        total += before;
    }
    total
}

/// Probabilities of the transitions from one state at a tick of [`loss_in`].
struct Step {
    stay: f64,
    fail: f64,
    repair: f64,
    unreadable: f64,
}

impl Rates {
    /// Returns the probabilities of the transitions from `state` at a tick of a process with this rate.
    fn step(&self, state: usize, rate: f64) -> Step {
        let (fail, repair, unreadable) = (
            self.fail[state] / rate,
            self.repair[state] / rate,
            self.unreadable[state] / rate,
        );
        Step {
            stay: (1.0 - (fail + repair + unreadable)).max(0.0),
            fail,
            repair,
            unreadable,
        }
    }
}

/// Logarithm of the smallest Poisson weight that [`loss_in`] adds; the weights below sum to less than 10⁻³⁰⁰.
const SMALLEST_LOG: f64 = -710.0;

/// Maximum product of ticks and states in [`loss_in`], which limits its computing time.
const MOST_STEPS: f64 = 2e6;

/// Returns the probability, 0 to 1, that the group loses any data within `hours`, even if only one sector.
///
/// Uses uniformization: the chain is observed at the ticks of a Poisson process whose rate is at least the chain's
/// fastest rate. The probabilities of loss after k ticks are added with Poisson weights. All terms are positive, so
/// small probabilities keep their digits.
///
/// If ticks × states exceeds two million (rebuilds of seconds, mirrors of hundreds of disks), loss is so rare that its
/// time is exponentially distributed. The probability is then computed from the mean time to loss.
#[must_use]
pub fn loss_in(group: DiskGroup, assumptions: &Assumptions, hours: f64) -> f64 {
    let rates = group_rates(group, assumptions);
    let states = rates.fail.len();
    let fastest = (0..states)
        .map(|i| rates.fail[i] + rates.repair[i] + rates.unreadable[i])
        .fold(0.0, f64::max);
    let ticks = fastest * hours;
    if ticks <= 0.0 {
        return 0.0;
    }
    if ticks * states as f64 > MOST_STEPS {
        return -(-hours / mean_hours_to_loss(group, assumptions)).exp_m1();
    }
    let steps: Vec<Step> = (0..states)
        .map(|state| rates.step(state, fastest))
        .collect();
    let (mut alive, mut next) = (vec![0.0; states], vec![0.0; states]);
    alive[0] = 1.0;
    let (mut lost, mut result) = (0.0f64, 0.0f64);
    let last = (ticks + 12.0 * ticks.sqrt() + 60.0) as u64;
    // Weights are computed as logarithms, because exp(-ticks) underflows above 745.
    let mut log_weight = -ticks;
    for tick in 1..=last {
        next.fill(0.0);
        for (i, step) in steps.iter().enumerate() {
            next[i] += alive[i] * step.stay;
            match next.get_mut(i + 1) {
                Some(worse) => *worse += alive[i] * step.fail,
                None => lost += alive[i] * step.fail,
            }
            if i > 0 {
                next[i - 1] += alive[i] * step.repair;
            }
            lost += alive[i] * step.unreadable;
        }
        std::mem::swap(&mut alive, &mut next);
        log_weight += (ticks / tick as f64).ln();
        if log_weight > SMALLEST_LOG {
            result += lost * log_weight.exp();
        }
    }
    result.min(1.0)
}

/// Probabilities of data loss, 0 to 1, by how much is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Loss {
    /// Probability that any data is lost, even if only one sector.
    pub any: f64,
    /// Probability that the whole pool is lost, because more disks fail than the redundancy tolerates.
    pub pool: f64,
    /// Probability that only the blocks on an unreadable sector are lost, while there was no redundancy.
    pub blocks: f64,
}

/// Returns the probabilities of each kind of loss within `hours`.
///
/// An unreadable sector during the last rebuild destroys only the blocks on this sector: ZFS and btrfs identify these
/// blocks by checksums, md by its list of bad blocks (md(4), "BAD BLOCK LIST"). So only failed disks destroy the whole
/// pool, and the probability of this comes from the chain without unreadable sectors. Both kinds of loss occur in the
/// last state. So the probability that the first loss is a loss of blocks is the rate of this kind divided by the sum
/// of both rates.
#[must_use]
pub fn losses_in(group: DiskGroup, assumptions: &Assumptions, hours: f64) -> Loss {
    let any = loss_in(group, assumptions, hours);
    let rates = group_rates(group, assumptions);
    let (bad, fail) = match (rates.unreadable.last(), rates.fail.last()) {
        (Some(&bad), Some(&fail)) if bad > 0.0 => (bad, fail),
        _ => {
            return Loss {
                any,
                pool: any,
                blocks: 0.0,
            };
        }
    };
    let readable = Assumptions {
        ure_per_bit: 0.0,
        ..*assumptions
    };
    Loss {
        any,
        pool: loss_in(group, &readable, hours),
        blocks: any * bad / (bad + fail),
    }
}

/// Returns, for each kind of loss, the probability that it happens to at least one of the groups within a year.
#[must_use]
pub fn loss_of_groups(groups: &[DiskGroup], assumptions: &Assumptions) -> Loss {
    let mut known: Vec<(DiskGroup, u32)> = Vec::new();
    for &group in groups {
        match known.iter_mut().find(|(seen, _)| *seen == group) {
            Some((_, times)) => *times += 1,
            None => known.push((group, 1)),
        }
    }
    let each: Vec<(Loss, f64)> = known
        .into_iter()
        .map(|(group, times)| {
            (
                losses_in(group, assumptions, HOURS_A_YEAR),
                f64::from(times),
            )
        })
        .collect();
    let of_all = |part: fn(&Loss) -> f64| {
        let log_safe: f64 = each
            .iter()
            .map(|(loss, times)| (-part(loss)).ln_1p() * times)
            .sum();
        -log_safe.exp_m1()
    };
    Loss {
        any: of_all(|loss| loss.any),
        pool: of_all(|loss| loss.pool),
        blocks: of_all(|loss| loss.blocks),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(afr: f64, hours: f64) -> Assumptions {
        Assumptions {
            afr,
            replace_hours: 0.0,
            rebuild_hours: hours,
            ure_per_bit: 0.0,
            correlation: 1.0,
        }
    }

    #[test]
    fn without_redundancy_the_loss_is_the_failure_of_any_disk() {
        let group = DiskGroup {
            disks: 4,
            survives: 0,
            rebuild_reads: 0.0,
        };
        let loss = loss_in(group, &plain(0.02, 10.0), HOURS_A_YEAR);
        assert!((loss - (1.0 - 0.98f64.powi(4))).abs() < 1e-12, "{loss}");
    }

    #[test]
    fn a_mirror_agrees_with_the_textbook() {
        // MTTDL of a mirror: (3λ + μ) / 2λ².
        let assumptions = plain(0.03, 24.0);
        let (lambda, mu) = (assumptions.failures_an_hour(), 1.0 / 24.0);
        let group = DiskGroup {
            disks: 2,
            survives: 1,
            rebuild_reads: 0.0,
        };
        let ours = mean_hours_to_loss(group, &assumptions);
        let textbook = (3.0 * lambda + mu) / (2.0 * lambda * lambda);
        assert!((ours / textbook - 1.0).abs() < 1e-12);
    }

    #[test]
    fn tiny_rates_keep_their_digits() {
        let group = DiskGroup {
            disks: 11,
            survives: 3,
            rebuild_reads: 0.0,
        };
        let assumptions = plain(1e-6, 1.0);
        let loss = loss_in(group, &assumptions, HOURS_A_YEAR);
        let mean = mean_hours_to_loss(group, &assumptions);
        assert!(loss > 0.0 && loss < 1e-24, "{loss}");
        assert!(
            (loss * mean / HOURS_A_YEAR - 1.0).abs() < 1e-3,
            "{loss} {mean}"
        );
    }

    #[test]
    fn a_bad_sector_costs_blocks_and_not_the_pool() {
        let group = DiskGroup {
            disks: 6,
            survives: 1,
            rebuild_reads: 5.0 * 8e12,
        };
        let assumptions = Assumptions {
            ure_per_bit: 1e-14,
            ..Assumptions::default()
        };
        let with = losses_in(group, &assumptions, HOURS_A_YEAR);
        let readable = Assumptions {
            ure_per_bit: 0.0,
            ..assumptions
        };
        let without = losses_in(group, &readable, HOURS_A_YEAR);
        // 40 TB are 3.2·10¹⁴ bits: almost every rebuild finds a bad sector. This does not affect the loss of
        // the pool.
        assert_eq!(with.pool, without.any);
        assert!(with.blocks > 20.0 * with.pool, "{with:?}");
        assert!(with.any <= with.pool + with.blocks);
        assert_eq!((without.blocks, without.pool), (0.0, without.any));
        // A disk fails and its rebuild finds a bad sector, unless another disk fails before.
        let first = -(-6.0 * assumptions.failures_an_hour() * HOURS_A_YEAR).exp_m1();
        let bad = -(-40e12 * 8.0 * 1e-14f64).exp_m1();
        assert!((with.blocks / (first * bad) - 1.0).abs() < 0.05, "{with:?}");
        let many = loss_of_groups(&[group; 3], &assumptions);
        assert!((many.pool - (1.0 - (1.0 - with.pool).powi(3))).abs() < 1e-12);
    }

    #[test]
    fn wide_mirrors_take_no_time() {
        let group = DiskGroup {
            disks: 1024,
            survives: 1023,
            rebuild_reads: 4e12,
        };
        assert_eq!(
            losses_in(group, &Assumptions::default(), HOURS_A_YEAR).any,
            0.0
        );
    }

    #[test]
    fn out_of_range_is_named() {
        for (bad, what) in [
            (
                Assumptions {
                    afr: f64::NAN,
                    ..Assumptions::default()
                },
                "afr",
            ),
            (
                Assumptions {
                    afr: 1.5,
                    ..Assumptions::default()
                },
                "afr",
            ),
            (
                Assumptions {
                    rebuild_hours: 0.0,
                    ..Assumptions::default()
                },
                "rebuild",
            ),
            (
                Assumptions {
                    correlation: 0.5,
                    ..Assumptions::default()
                },
                "correlation",
            ),
        ] {
            assert!(bad.check().unwrap_err().to_string().contains(what));
        }
        assert!(Assumptions::default().check().is_ok());
    }
}
