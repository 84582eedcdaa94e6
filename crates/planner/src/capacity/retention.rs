//! Simulates how much space the snapshots of a retention policy occupy.

use crate::error::PlannerError;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Number of snapshots of each kind that a retention policy keeps, as in sanoid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Policy {
    /// Number of snapshots that are kept of those taken every 15 minutes.
    pub frequently: u32,
    /// Number of hourly snapshots that are kept.
    pub hourly: u32,
    /// Number of daily snapshots that are kept.
    pub daily: u32,
    /// Number of weekly snapshots that are kept.
    pub weekly: u32,
    /// Number of monthly snapshots that are kept.
    pub monthly: u32,
    /// Number of yearly snapshots that are kept.
    pub yearly: u32,
}

/// Snapshots of a policy in the steady state, when all of them exist.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Retention {
    /// Number of snapshots that exist.
    pub snapshots: usize,
    /// Age of the oldest snapshot in days.
    pub days: f64,
    /// Space of the snapshots ÷ size of the data.
    pub share: f64,
}

impl Policy {
    /// Policy that the "Depressing Storage Calculator" assumes: 30 hourly, 30 daily and 3 monthly snapshots.
    pub const CALCULATOR: Self = Self {
        frequently: 0,
        hourly: 30,
        daily: 30,
        weekly: 0,
        monthly: 3,
        yearly: 0,
    };

    /// Returns the ages of the kept snapshots in minutes, in the steady state.
    fn ages(self) -> BTreeSet<u64> {
        let mut ages = BTreeSet::new();
        for (count, minutes) in [
            (self.frequently, 15),
            (self.hourly, 60),
            (self.daily, 1440),
            (self.weekly, 10_080),
            (self.monthly, 43_830),
            (self.yearly, 525_960),
        ] {
            ages.extend((1..=u64::from(count)).map(|i| i * minutes));
        }
        ages
    }

    /// Computes the space of the snapshots if the fraction `churn` of the data is overwritten or deleted per day,
    /// evenly distributed. In a time t, the fraction 1 − exp(−churn·t) is removed. All data removed since the oldest
    /// snapshot counts once, in the interval between two snapshots in which it was removed.
    ///
    /// # Errors
    /// `churn` is not between 0 and 1000.
    pub fn simulate(self, churn: f64) -> Result<Retention, PlannerError> {
        if !(0.0..=1000.0).contains(&churn) {
            return Err(PlannerError::value(
                format!("churn {churn}"),
                "must be the share of the data rewritten a day, 0 to 1000",
            ));
        }
        let ages = self.ages();
        let mut before = 0;
        let mut share = 0.0;
        for &age in &ages {
            share += -(-churn * (age - before) as f64 / 1440.0).exp_m1();
            before = age;
        }
        Ok(Retention {
            snapshots: ages.len(),
            days: before as f64 / 1440.0,
            share,
        })
    }

    /// Returns the churn at which the snapshots occupy `share` of the size of the data (by bisection); `None` if the
    /// policy never occupies so much.
    #[must_use]
    pub fn churn_for(self, share: f64) -> Option<f64> {
        let held = |churn: f64| self.simulate(churn).map_or(0.0, |r| r.share);
        if share <= 0.0 || held(1000.0) < share {
            return None;
        }
        let (mut low, mut high) = (0.0, 1000.0);
        for _ in 0..100 {
            let middle = (low + high) / 2.0;
            if held(middle) < share {
                low = middle;
            } else {
                high = middle;
            }
        }
        Some(high)
    }
}

/// A line of sanoid.conf, as (key, value, line number).
type Setting = (String, String, usize);

/// Parses sanoid.conf. Returns the policy of each dataset section, with templates resolved. Missing values come from
/// `template_default`, else from sanoid's defaults (sanoid.defaults.conf, 2.1: 48 hourly, 90 daily, 0 weekly, 6
/// monthly, 0 yearly).
///
/// # Errors
/// [`PlannerError::Record`] for an invalid line, an invalid count, or a missing template.
pub fn parse_sanoid(source: &str, text: &str) -> Result<BTreeMap<String, Policy>, PlannerError> {
    let mut sections: BTreeMap<String, Vec<Setting>> = BTreeMap::new();
    let mut current: Option<String> = None;
    for (index, line) in text.lines().enumerate() {
        let line = line.split(['#', ';']).next().unwrap_or_default().trim();
        let number = index + 1;
        if line.is_empty() {
            continue;
        }
        if let Some(name) = line
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            sections.entry(name.trim().to_owned()).or_default();
            current = Some(name.trim().to_owned());
            continue;
        }
        let setting = line.split_once('=');
        let (Some((key, value)), Some(section)) = (setting, &current) else {
            return Err(PlannerError::record(
                source,
                number,
                "expected `[dataset]`, or `key = value` below one",
            ));
        };
        if let Some(settings) = sections.get_mut(section) {
            settings.push((key.trim().to_owned(), value.trim().to_owned(), number));
        }
    }
    let defaults = Policy {
        hourly: 48,
        daily: 90,
        monthly: 6,
        ..Policy::default()
    };
    let apply = |policy: &mut Policy, settings: &[Setting]| {
        for (key, value, number) in settings {
            let field = match key.as_str() {
                "frequently" => &mut policy.frequently,
                "hourly" => &mut policy.hourly,
                "daily" => &mut policy.daily,
                "weekly" => &mut policy.weekly,
                "monthly" => &mut policy.monthly,
                "yearly" => &mut policy.yearly,
                _ => continue,
            };
            *field = value
                .parse()
                .ok()
                .filter(|&count| count <= 100_000)
                .ok_or_else(|| {
                    PlannerError::record(
                        source,
                        *number,
                        format!(
                            "{key} is `{}`, not a count up to 100000",
                            value.escape_debug()
                        ),
                    )
                })?;
        }
        Ok::<(), PlannerError>(())
    };
    let mut policies = BTreeMap::new();
    for (name, settings) in &sections {
        if name.starts_with("template_") {
            continue;
        }
        let mut policy = defaults;
        if let Some(template) = sections.get("template_default") {
            apply(&mut policy, template)?;
        }
        for (key, value, number) in settings {
            if key != "use_template" {
                continue;
            }
            for template in value.split(',').map(str::trim) {
                let Some(settings) = sections.get(&format!("template_{template}")) else {
                    return Err(PlannerError::record(
                        source,
                        *number,
                        format!("template `{}` is not defined", template.escape_debug()),
                    ));
                };
                apply(&mut policy, settings)?;
            }
        }
        apply(&mut policy, settings)?;
        policies.insert(name.clone(), policy);
    }
    Ok(policies)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calculators_third_needs_a_churn_of_three_per_mille_a_day() {
        let churn = Policy::CALCULATOR.churn_for(0.33).unwrap();
        let held = Policy::CALCULATOR.simulate(churn).unwrap();
        assert!(
            (held.share - 0.33).abs() < 1e-9 && (0.002..0.006).contains(&churn),
            "{churn}"
        );
        assert_eq!(held.snapshots, 62);
        assert_eq!(Policy::default().churn_for(0.1), None);
    }

    #[test]
    fn sanoid_conf_is_read() {
        let text = include_str!("../../fixtures/sanoid.conf");
        let policies = parse_sanoid("sanoid.conf", text).unwrap();
        assert_eq!(policies["data/images"], Policy::CALCULATOR);
        assert_eq!(policies["data"].hourly, 4);
        assert_eq!(policies.len(), 2);
        for (bad, why) in [
            ("hourly = 3", "line 1"),
            ("[a]\nhourly = many", "not a count"),
            ("[a]\nuse_template = x", "not defined"),
            ("[a", "line 1"),
        ] {
            assert!(
                parse_sanoid("c", bad)
                    .unwrap_err()
                    .to_string()
                    .contains(why),
                "{bad}"
            );
        }
    }
}
