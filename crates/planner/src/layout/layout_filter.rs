//! Filters and orders layouts, and computes the Pareto front.

use super::LayoutPlan;
use crate::error::PlannerError;
use crate::size;
use std::str::FromStr;

/// Kind of load for which layouts are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Io {
    /// Small random requests: volumes, databases.
    Random,
    /// Long sequential requests: backups, media.
    Stream,
}

/// A requirement on a property of a layout, such as `usable>=6TiB`.
#[derive(Clone, Debug, PartialEq)]
pub struct Want {
    field: Field,
    at_least: bool,
    bound: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Field {
    Usable,
    Efficiency,
    Cost,
    Rebuild,
    Loss,
    Survive,
}

impl FromStr for Want {
    type Err = PlannerError;
    fn from_str(text: &str) -> Result<Self, PlannerError> {
        let wrong = |reason: &str| {
            PlannerError::value(format!("want `{}`", text.escape_debug()), reason.to_owned())
        };
        let (field, at_least, bound) = if let Some((field, bound)) = text.split_once(">=") {
            (field, true, bound)
        } else if let Some((field, bound)) = text.split_once("<=") {
            (field, false, bound)
        } else {
            return Err(wrong(
                "write FIELD>=VALUE or FIELD<=VALUE, such as usable>=6TiB",
            ));
        };
        let (field, bound) = (field.trim(), bound.trim());
        let number = |text: &str| {
            text.parse::<f64>()
                .ok()
                .filter(|value| value.is_finite() && *value >= 0.0)
                .ok_or_else(|| wrong("the value is no number from 0 up"))
        };
        let (field, bound) = match field {
            "usable" => (Field::Usable, size::parse(bound)?.0 as f64),
            "efficiency" => match bound.strip_suffix('%') {
                Some(percent) => (Field::Efficiency, number(percent)? / 100.0),
                None => (Field::Efficiency, number(bound)?),
            },
            "cost" => (Field::Cost, number(bound)?),
            "rebuild" => (
                Field::Rebuild,
                bound
                    .parse::<assay_model::Nanos>()
                    .map_err(|error| wrong(&error.to_string()))?
                    .as_secs_f64(),
            ),
            "loss" => (Field::Loss, number(bound)?),
            "survive" => (Field::Survive, number(bound)?),
            _ => {
                return Err(wrong(
                    "fields are usable, efficiency, cost, rebuild, loss, survive",
                ));
            }
        };
        Ok(Self {
            field,
            at_least,
            bound,
        })
    }
}

impl Want {
    /// Creates the requirement that a layout survives any combination of `failures` failed disks.
    #[must_use]
    pub fn survive(failures: u64) -> Self {
        Self {
            field: Field::Survive,
            at_least: true,
            bound: failures as f64,
        }
    }

    /// Returns whether a layout meets the requirement. A layout of unknown cost never meets a requirement on cost.
    #[must_use]
    pub fn met(&self, plan: &LayoutPlan) -> bool {
        match (self.value(plan), self.at_least) {
            (None, _) => false,
            (Some(value), true) => value >= self.bound,
            (Some(value), false) => value <= self.bound,
        }
    }

    /// Returns how far a layout misses the requirement, as a fraction of the required value; 0 if it meets the
    /// requirement.
    fn shortfall(&self, plan: &LayoutPlan) -> f64 {
        match (self.met(plan), self.value(plan)) {
            (true, _) => 0.0,
            (false, None) => f64::MAX,
            (false, Some(value)) => (value - self.bound).abs() / self.bound.max(f64::MIN_POSITIVE),
        }
    }

    /// Returns the value of the required property for a layout; `None` if it is unknown.
    fn value(&self, plan: &LayoutPlan) -> Option<f64> {
        Some(match self.field {
            Field::Usable => plan.usable as f64,
            Field::Efficiency => plan.efficiency,
            Field::Cost => plan.cost?,
            Field::Rebuild => plan.rebuild_seconds.unwrap_or(0.0),
            Field::Loss => plan.loss_per_year,
            Field::Survive => plan.survives as f64,
        })
    }
}

/// Removes layouts that miss a requirement. Sorts the remaining layouts by these criteria, in this order: survival of a
/// failed disk (unless a requirement mentions failures), sensible layouts, the requested kind of speed, usable space.
pub fn rank(plans: &mut Vec<LayoutPlan>, wants: &[Want], io: Option<Io>) {
    plans.retain(|plan| wants.iter().all(|want| want.met(plan)));
    let any_loss = wants.iter().any(|want| want.field == Field::Survive);
    plans.sort_by(|a, b| {
        let safe = |plan: &LayoutPlan| any_loss || plan.survives > 0;
        let speed = |plan: &LayoutPlan| match io {
            None => 0.0,
            Some(Io::Random) => plan.scaling.random_read + plan.scaling.random_write,
            Some(Io::Stream) => plan.scaling.stream_read + plan.scaling.stream_write,
        };
        safe(b)
            .cmp(&safe(a))
            .then(is_sensible(b).cmp(&is_sensible(a)))
            .then(speed(b).total_cmp(&speed(a)))
            .then(b.usable.cmp(&a.usable))
            .then(b.survives.cmp(&a.survives))
            .then(a.loss_per_year.total_cmp(&b.loss_per_year))
            .then(a.layout.cmp(&b.layout))
    });
}

/// Returns the buildable layout that misses the requirements least.
#[must_use]
pub fn nearest_buildable<'p>(plans: &'p [LayoutPlan], wants: &[Want]) -> Option<&'p LayoutPlan> {
    let missed = |plan: &LayoutPlan| wants.iter().map(|want| want.shortfall(plan)).sum::<f64>();
    let built = plans.iter().filter(|plan| is_sensible(plan));
    built.min_by(|a, b| {
        missed(a)
            .total_cmp(&missed(b))
            .then(b.survives.cmp(&a.survives))
    })
}

/// Returns whether the layout can be built with a common file system or software RAID.
#[must_use]
pub fn is_buildable(plan: &LayoutPlan) -> bool {
    plan.family != "declustered"
}

/// Returns whether the layout can be built and its manual does not advise against it.
fn is_sensible(plan: &LayoutPlan) -> bool {
    is_buildable(plan) && !plan.advised_against()
}

/// Returns a rank for the reliability of the layout's figures:
///
/// - 0: the layout cannot be built.
/// - 1: its manual advises against it.
/// - 2: the space is an upper bound without a file system.
/// - 3: the space is as a file system reports it.
fn layout_rank(plan: &LayoutPlan) -> u8 {
    match (is_sensible(plan), plan.exact) {
        (false, _) if !is_buildable(plan) => 0,
        (false, _) => 1,
        (true, false) => 2,
        (true, true) => 3,
    }
}

/// Returns whether the pool has a common shape: all disks in one raidz vdev, or mirrors of two disks.
fn is_standard(plan: &LayoutPlan) -> bool {
    let layout = plan.layout.as_str();
    let alone = plan.family == "zfs" && !layout.contains('+');
    let mirrors = layout == "mirror:2" || layout.ends_with("*mirror:2");
    alone && (mirrors || (layout.starts_with("raidz") && !layout.contains('*')))
}

/// Removes each layout that another layout beats in every respect. Pools of a common shape stay, so that the user sees
/// the difference.
pub fn best(plans: &mut Vec<LayoutPlan>) {
    plans.retain(|plan| plan.pareto || is_standard(plan));
}

/// Marks the layouts that no other layout beats in usable space, survived failures, probability of loss, and random and
/// streaming speed. A layout beats only layouts whose figures are not more reliable than its own. For example, btrfs
/// raid6 or a bound for md does not hide any pool.
pub fn pareto(plans: &mut [LayoutPlan]) {
    let value = |plan: &LayoutPlan| {
        [
            plan.usable as f64,
            plan.survives as f64,
            -plan.loss_per_year,
            plan.scaling.random_read + plan.scaling.random_write,
            plan.scaling.stream_read + plan.scaling.stream_write,
        ]
    };
    let values: Vec<[f64; 5]> = plans.iter().map(value).collect();
    let worth: Vec<u8> = plans.iter().map(layout_rank).collect();
    for (i, plan) in plans.iter_mut().enumerate() {
        plan.pareto = !values.iter().zip(&worth).any(|(other, other_worth)| {
            if *other_worth < worth[i] {
                return false;
            }
            let no_worse = other.iter().zip(&values[i]).all(|(a, b)| a >= b);
            no_worse && other.iter().zip(&values[i]).any(|(a, b)| a > b)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn searched(disks: &[(usize, u64)]) -> Vec<LayoutPlan> {
        let disks: Vec<crate::layout::Disk> = disks
            .iter()
            .flat_map(|&(count, size)| vec![crate::layout::Disk { size, price: None }; count])
            .collect();
        let context = crate::layout::Context::default();
        let mut plans = crate::layout::search(&disks, &[], &context).unwrap().plans;
        rank(&mut plans, &[], None);
        pareto(&mut plans);
        plans
    }

    #[test]
    fn what_is_advised_against_hides_no_pool_and_is_never_first() {
        const T: u64 = 4_000_000_000_000;
        for disks in [
            &[(6, T)][..],
            &[(3, T)],
            &[(2, T), (2, T / 2)],
            &[(8, T / 4)],
        ] {
            let plans = searched(disks);
            assert!(
                !plans[0].advised_against(),
                "{disks:?}: {}",
                plans[0].layout
            );
            // Each beaten layout is beaten by one of the same or a better rank.
            let values = |plan: &LayoutPlan| (plan.usable, plan.survives);
            for plan in plans.iter().filter(|plan| !plan.pareto) {
                let beaten = plans.iter().any(|other| {
                    layout_rank(other) >= layout_rank(plan)
                        && values(other).0 >= values(plan).0
                        && values(other).1 >= values(plan).1
                });
                assert!(beaten, "{disks:?}: {}", plan.layout);
            }
        }
        let mut plans = searched(&[(6, T)]);
        best(&mut plans);
        for wanted in ["raidz1:6", "raidz2:6", "raidz3:6", "3*mirror:2"] {
            assert!(plans.iter().any(|plan| plan.layout == wanted), "{wanted}");
        }
    }

    #[test]
    fn demands_are_read_or_refused() {
        for good in [
            "usable>=6TiB",
            "efficiency>=50%",
            "cost<=900",
            "rebuild<=12h",
            "loss<=1e-6",
        ] {
            assert!(good.parse::<Want>().is_ok(), "{good}");
        }
        for bad in [
            "usable",
            "usable>6T",
            "speed>=3",
            "usable>=-1T",
            "cost<=NaN",
            "rebuild<=soon",
        ] {
            assert!(bad.parse::<Want>().is_err(), "{bad}");
        }
    }
}
