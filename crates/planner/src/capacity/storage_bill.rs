//! Computes the storage bill: multiplies the size of the data by several factors, such as redundancy and backup. Each
//! factor is shown and can be replaced.

use crate::error::PlannerError;
use serde::Serialize;

/// A factor by which the bill multiplies the size of the data.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Factor {
    /// Short name that identifies the factor.
    pub name: String,
    /// Value, from 0.001 to 1000.
    pub value: f64,
    /// Why the factor is needed, or where its value comes from.
    pub why: String,
    /// Whether the factor multiplies whole systems (backup, hot spare). Other factors multiply disks within a system.
    pub systems: bool,
}

/// Returns the factors of the "Depressing Storage Calculator": 1.1 × 1.25 × 2 × 1.3 × 2 within each system, and 3
/// systems. With these factors, 21.45 TB are bought per TiB of data.
#[must_use]
pub fn default_factors() -> Vec<Factor> {
    [
        (
            "units",
            1.1,
            "a TiB is 1.0995 TB as disks are sold, rounded up",
            false,
        ),
        (
            "free",
            1.25,
            "full at 80 %: a copy-on-write file system slows down beyond",
            false,
        ),
        (
            "growth",
            2.0,
            "data doubles within the five years that the hardware lasts",
            false,
        ),
        (
            "snapshots",
            1.3,
            "30 hourly, 30 daily and 3 monthly snapshots hold about a third",
            false,
        ),
        ("redundancy", 2.0, "mirrors", false),
        (
            "backup",
            2.0,
            "production and one full backup on another system",
            true,
        ),
        (
            "hotspare",
            1.5,
            "a third system that takes over: with the backup, a factor of 3",
            true,
        ),
    ]
    .into_iter()
    .map(|(name, value, why, systems)| Factor {
        name: name.to_owned(),
        value,
        why: why.to_owned(),
        systems,
    })
    .collect()
}

/// A storage bill. Data is shown in binary units (TiB) and purchases in decimal units (TB), but both are stored as
/// bytes.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Bill {
    /// Size of the data today, in bytes.
    pub data: u64,
    /// Factors, each with the running total in bytes after it.
    pub lines: Vec<(Factor, u64)>,
    /// Bytes to buy for all systems.
    pub total: u64,
    /// Bytes to buy per system.
    pub per_system: u64,
    /// TB to buy per system for each TiB of data, rounded up; 8 for a rule of "8:1", for example.
    pub rule_of_thumb: u64,
    /// Product of all factors: TB to buy per TiB.
    pub factor: f64,
    /// TiB of data per TB of disk in one system, before redundancy.
    pub tib_per_tb: f64,
}

/// Multiplies the factors. The factor `units` converts TiB to TB and applies to the TiB of data. With the
/// exact value 1.099511627776, the result is `data` times the other factors.
///
/// # Errors
/// A factor is not a finite number from 0.001 to 1000, or the result exceeds 16 EiB.
pub fn compute_bill(data: u64, factors: &[Factor]) -> Result<Bill, PlannerError> {
    if data == 0 {
        return Err(PlannerError::value(
            "data",
            "is zero; say how much there is, such as 1TiB",
        ));
    }
    let tib = data as f64 / (1u64 << 40) as f64;
    let (mut all, mut own, mut raw) = (1.0, 1.0, 1.0);
    let mut lines = Vec::new();
    let mut units_seen = false;
    for factor in factors {
        if !(0.001..=1000.0).contains(&factor.value) {
            return Err(PlannerError::value(
                format!("factor {} = {}", factor.name, factor.value),
                "must be a number from 0.001 to 1000",
            ));
        }
        units_seen |= factor.name == "units";
        all *= factor.value;
        if !factor.systems {
            own *= factor.value;
            if factor.name != "redundancy" {
                raw *= factor.value;
            }
        }
        lines.push((factor.clone(), to_bytes(tib * all, units_seen)?));
    }
    Ok(Bill {
        data,
        lines,
        total: to_bytes(tib * all, units_seen)?,
        per_system: to_bytes(tib * own, units_seen)?,
        // A rounding error in the last digit must not round up.
        rule_of_thumb: (own - 1e-9).ceil() as u64,
        factor: all,
        tib_per_tb: 1.0 / raw,
    })
}

/// Converts an amount to bytes. The amount is in TB after the unit factor was applied (`vendor`), else in TiB.
fn to_bytes(amount: f64, vendor: bool) -> Result<u64, PlannerError> {
    let bytes = amount * if vendor { 1e12 } else { (1u64 << 40) as f64 };
    if bytes.is_finite() && bytes < u64::MAX as f64 {
        Ok(bytes.round() as u64)
    } else {
        Err(PlannerError::Overflow {
            what: "the bill".into(),
            reason: "more than 16 EiB".into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_bill() {
        let bill = compute_bill(1 << 40, &default_factors()).unwrap();
        assert!((bill.factor - 21.45).abs() < 1e-9);
        assert_eq!(bill.total, 21_450_000_000_000);
        assert_eq!(bill.per_system, 7_150_000_000_000);
        assert_eq!(bill.rule_of_thumb, 8);
        assert!((bill.tib_per_tb - 0.28).abs() < 0.001);
    }

    #[test]
    fn bad_factors_and_sums_are_refused() {
        for value in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let mut factors = default_factors();
            factors[2].value = value;
            assert!(
                compute_bill(1, &factors)
                    .unwrap_err()
                    .to_string()
                    .contains("growth")
            );
        }
        assert!(compute_bill(0, &default_factors()).is_err());
        assert!(
            compute_bill(1 << 60, &default_factors())
                .unwrap_err()
                .to_string()
                .contains("16 EiB")
        );
    }
}
