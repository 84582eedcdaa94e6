//! Answers a capacity question: computes how much to buy, when storage is full, and the space of snapshots, from the
//! data and its growth.

use super::{
    Bill, Factor, Forecast, Policy, Retention, Trend, compute_bill, compute_outlook, daily_churn,
    default_factors, parse_history, parse_sanoid, parse_snapshots, referenced_series,
    snapshot_held_bytes,
};
use crate::PlannerError;
use assay_model::size::Convention::Binary;
use serde::Serialize;
use std::collections::BTreeMap;

/// A text, with its source for messages.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Name of the file, or the command that printed the text.
    pub source: String,
    /// Content of the file, or output of the command.
    pub text: String,
}

/// What is known about the growth of the data.
#[derive(Clone, Debug)]
pub enum Grown {
    /// No history is known.
    Unknown,
    /// Text of lines that contain a date and a size.
    History(Recorded),
    /// List of snapshots from `zfs list`, with the columns [`super::SNAPSHOT_COLUMNS`].
    Snapshots {
        /// Output of `zfs list` about the snapshots.
        snapshots: Recorded,
        /// Output of `zfs list -Hp` with `used` and `available` of the pool, in bytes.
        pool: Option<String>,
    },
}

/// A question about how much storage is needed. What is unknown is `None`.
#[derive(Clone, Debug)]
pub struct CapacityQuestion {
    /// Bytes of data today.
    pub data: Option<u64>,
    /// Usable space in bytes. Forecasts are about when this space is full.
    pub size: Option<u64>,
    /// What is known about the growth.
    pub grown: Grown,
    /// Text of a sanoid.conf with retention policies.
    pub sanoid: Option<Recorded>,
    /// Fraction of the data that is rewritten per day. If `None`, the fraction is measured from the snapshots.
    pub churn: Option<f64>,
    /// Years that the purchase has to last: 0 to 100.
    pub years: f64,
    /// Whether to convert TiB to TB with the exact factor 1.0995 instead of 1.1.
    pub exact_units: bool,
    /// Factors that replace or extend the default factors, as `NAME=VALUE`.
    pub factors: Vec<String>,
}

/// Simulated effect of a retention policy.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Simulated {
    /// Dataset to which the policy applies.
    pub dataset: String,
    /// Number of kept snapshots of each kind.
    pub policy: Policy,
    /// Space that the snapshots occupy.
    #[serde(flatten)]
    pub outcome: Retention,
}

/// Answer to a capacity question.
#[derive(Clone, Debug, Serialize, Default, schemars::JsonSchema)]
#[schemars(rename = "Answer")]
pub struct CapacityAnswer {
    /// How much storage to buy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bill: Option<Bill>,
    /// Growth of the data, from its history.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trend: Option<Trend>,
    /// Dates at which certain fractions of the space are full.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub forecasts: Vec<Forecast>,
    /// Fraction of the data that is rewritten per day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub churn_per_day: Option<f64>,
    /// Whether `churn_per_day` was measured from snapshots, instead of given by the user.
    pub churn_measured: bool,
    /// Bytes that snapshots occupy in addition to the data, computed from `zfs list`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_by_snapshots: Option<u64>,
    /// Simulated effect of each retention policy.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub retention: Vec<Simulated>,
    /// Usable space in bytes, if known.
    #[serde(skip)]
    pub size: Option<u64>,
}

/// Answers a capacity question.
///
/// # Errors
/// A text or value is invalid, or the amount of data is unknown.
pub fn answer_question(asked: &CapacityQuestion) -> Result<CapacityAnswer, PlannerError> {
    if !(asked.years.is_finite() && (0.0..=100.0).contains(&asked.years)) {
        return Err(PlannerError::value("years", "must be 0 to 100"));
    }
    let mut answer = CapacityAnswer::default();
    let mut size = asked.size;
    let mut now = asked.data;
    let mut points = Vec::new();
    let mut measured = None;
    // Data without the space of snapshots.
    let mut data = None;
    match &asked.grown {
        Grown::Unknown => {}
        Grown::History(file) => points = parse_history(&file.source, &file.text)?,
        Grown::Snapshots { snapshots, pool } => {
            let shown = pool.as_deref().unwrap_or_default();
            let mut shown = shown.split_whitespace().map(|n| n.parse::<u64>().ok());
            let used = shown.next().flatten();
            let available = shown.next().flatten();
            size = size.or(used
                .zip(available)
                .map(|(used, left)| used.saturating_add(left)));
            let snapshots = parse_snapshots(&snapshots.source, &snapshots.text)?;
            measured = daily_churn(&snapshots);
            points = referenced_series(&snapshots);
            data = points.last().map(|point| point.used);
            // Earlier amounts are unknown, so the current amount is used. On this machine the total is known,
            // including data written since the last snapshot.
            let held = snapshot_held_bytes(&snapshots);
            answer.held_by_snapshots = Some(held);
            let beside = used.map_or(held, |used| used.saturating_sub(data.unwrap_or(0)));
            for point in &mut points {
                point.used = point.used.saturating_add(beside);
            }
        }
    }
    let mut factors = default_factors();
    if !points.is_empty() {
        let ahead = compute_outlook(&points)?;
        let found = ahead.trend;
        let data = data.map_or(found.now, |data| data as f64).max(1.0);
        now = now.or(Some(data as u64));
        if let Some(size) = size {
            answer.forecasts = [0.8, 0.9].map(|share| ahead.forecast(size, share)).to_vec();
        }
        let grown = (data + found.per_day * 365.25 * asked.years) / data;
        if let Some(factor) = factors.iter_mut().find(|f| f.name == "growth") {
            factor.value = grown.clamp(1.0, 1000.0);
            factor.why = format!(
                "measured: {}{} a day over {:.0} days, carried on for {} years",
                if found.per_day < 0.0 { "-" } else { "" },
                Binary.show(found.per_day.abs() as u64),
                found.days,
                asked.years
            );
        }
        answer.trend = Some(found);
    }
    let policies: BTreeMap<String, Policy> = match &asked.sanoid {
        Some(file) => parse_sanoid(&file.source, &file.text)?,
        None => BTreeMap::from([(
            "30 hourly, 30 daily, 3 monthly".to_owned(),
            Policy::CALCULATOR,
        )]),
    };
    answer.churn_measured = asked.churn.is_none() && measured.is_some();
    let rate = asked
        .churn
        .or(measured)
        .or(Policy::CALCULATOR.churn_for(0.3));
    if let Some(rate) = rate {
        answer.churn_per_day = Some(rate);
        for (dataset, policy) in policies {
            let outcome = policy.simulate(rate)?;
            answer.retention.push(Simulated {
                dataset,
                policy,
                outcome,
            });
        }
        let worst = answer
            .retention
            .iter()
            .map(|r| r.outcome.share)
            .fold(0.0, f64::max);
        let simulated = asked.sanoid.is_some() || asked.churn.is_some();
        let held = answer.held_by_snapshots.zip(now).filter(|_| !simulated);
        if let Some(factor) = factors.iter_mut().find(|f| f.name == "snapshots") {
            if let Some((held, data)) = held {
                factor.value = (1.0 + held as f64 / data.max(1) as f64).clamp(1.0, 1000.0);
                factor.why = format!("measured: they hold {} now", Binary.show(held));
            } else if simulated || measured.is_some() {
                factor.value = 1.0 + worst;
                factor.why = format!(
                    "simulated: {:.2} % of the data rewritten a day",
                    rate * 100.0
                );
            }
        }
    }
    if asked.exact_units
        && let Some(factor) = factors.iter_mut().find(|f| f.name == "units")
    {
        factor.value = (1u64 << 40) as f64 / 1e12;
        factor.why = "a TiB is 1.0995 TB as disks are sold".into();
    }
    set(&mut factors, &asked.factors)?;
    match now {
        Some(data) => answer.bill = Some(compute_bill(data, &factors)?),
        None if asked.sanoid.is_none() => {
            return Err(PlannerError::value(
                "no data",
                "say how much there is (1TiB), or how it grew with --history, --snapshots or --pool",
            ));
        }
        None => {}
    }
    answer.size = size;
    Ok(answer)
}

/// Replaces factors with the user's values, or adds new factors.
fn set(factors: &mut Vec<Factor>, given: &[String]) -> Result<(), PlannerError> {
    for text in given {
        let (name, value) = text
            .split_once('=')
            .and_then(|(name, value)| Some((name.trim(), value.trim().parse::<f64>().ok()?)))
            .ok_or_else(|| {
                PlannerError::value(
                    format!("factor `{}`", text.escape_debug()),
                    "write NAME=VALUE, such as growth=1.5",
                )
            })?;
        match factors.iter_mut().find(|factor| factor.name == name) {
            Some(factor) => {
                factor.value = value;
                factor.why = "given".into();
            }
            None => factors.push(Factor {
                name: name.to_owned(),
                value,
                why: "given".into(),
                systems: false,
            }),
        }
    }
    Ok(())
}
