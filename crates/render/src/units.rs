//! Formats figures with their units. Rates have the same unit everywhere: MB/s = 10⁶ bytes per second.

use assay_model::Nanos;
use assay_model::criterion::Quantity;
use assay_model::result::{Estimate, Interval};
use assay_model::units::{format_significant, mb_per_s};

/// Text that is shown in place of a missing figure.
pub const NONE: &str = "–";

/// Formats a value of a quantity. If the heading contains the unit (I/Os per second, MB/s), the value has no unit. If
/// the unit varies (latency), the value has a unit.
#[must_use]
pub fn format_value(quantity: Quantity, value: f64) -> String {
    if !value.is_finite() {
        return NONE.to_owned();
    }
    match quantity {
        Quantity::Iops | Quantity::Printed | Quantity::PrintedLess => format_significant(value),
        Quantity::Throughput => mb_per_s(value),
        _ => format_latency(value),
    }
}

/// Formats a value with its unit, as in `1,200 IOPS`, `43.1 MB/s` or `1.50 ms`.
#[must_use]
pub fn format_value_with_unit(quantity: Quantity, number: f64) -> String {
    let text = format_value(quantity, number);
    match quantity {
        _ if text == NONE => text,
        Quantity::Iops => format!("{text} IOPS"),
        Quantity::Throughput => format!("{text} MB/s"),
        _ => text,
    }
}

/// Formats nanoseconds with three significant digits and a suitable unit, as in `12.3 µs`.
#[must_use]
pub fn format_latency(nanos: f64) -> String {
    if !nanos.is_finite() || nanos < 0.0 {
        return NONE.to_owned();
    }
    // Rounding to three digits comes first, so that 999.6 µs becomes 1.00 ms and not 1000 µs.
    let rounded = if nanos >= 1000.0 {
        let unit = 10f64.powf(nanos.log10().floor() - 2.0);
        (nanos / unit).round() * unit
    } else {
        nanos.round()
    };
    Nanos(rounded.round() as u64).to_string()
}

/// Returns the column heading of a quantity, such as `IOPS`, `MB/s` or `p99`.
#[must_use]
pub fn quantity_heading(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::Iops => "IOPS",
        Quantity::Throughput => "MB/s",
        Quantity::Cpu => "CPU",
        other => other.name(),
    }
}

/// Formats half of the interval's width relative to the value, as in `±3.1 %`. Returns an empty text without an
/// interval.
#[must_use]
pub fn format_plus_minus(estimate: &Estimate) -> String {
    match compute_relative_half_width(estimate) {
        // Beyond 100 % the interval is clearly asymmetric, and an exact number would mislead.
        Some(share) if share > 1.0 => ">±100 %".to_owned(),
        Some(share) => format!("±{} %", format_percent(share * 100.0)),
        None => String::new(),
    }
}

/// Computes half of the interval's width, divided by the value; `None` without an interval or without a positive value.
#[must_use]
pub fn compute_relative_half_width(estimate: &Estimate) -> Option<f64> {
    let interval = estimate.interval?;
    let share = (interval.high - interval.low) / 2.0 / estimate.value;
    (share.is_finite() && share >= 0.0).then_some(share)
}

/// Formats a percentage with as many decimals as are significant, as in `0.4`, `3.1` or `12`.
#[must_use]
pub fn format_percent(percent: f64) -> String {
    match percent {
        p if !p.is_finite() => NONE.to_owned(),
        p if p.abs() < 9.95 => format!("{p:.1}"),
        p => format!("{p:.0}"),
    }
}

/// Formats an interval as `low to high` in the quantity's unit.
#[must_use]
pub fn format_range(quantity: Quantity, interval: &Interval) -> String {
    format!(
        "{} to {}",
        format_value(quantity, interval.low),
        format_value(quantity, interval.high)
    )
}

/// Formats a ratio B ÷ A, as in `×1.03`, `×0.51` or `×12`.
#[must_use]
pub fn format_ratio(ratio: f64) -> String {
    match ratio {
        r if !r.is_finite() => NONE.to_owned(),
        r if r >= 9.95 => format!("×{r:.0}"),
        r if r >= 0.1 => format!("×{r:.2}"),
        r => format!("×{r:.4}"),
    }
}

/// Formats a count with its noun, as in `1 workload`, `3 workloads` or `1,234 workloads`.
#[must_use]
pub fn format_count(n: usize, thing: &str) -> String {
    format_plural(n as u64, thing, &format!("{thing}s"))
}

/// Formats a count with an irregular plural, as in `1 copy` or `2 copies`.
#[must_use]
pub fn format_plural(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", format_grouped(n), if n == 1 { one } else { many })
}

/// Formats a count with thousands separators, as in `214,038`.
#[must_use]
pub fn format_grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Formats a fraction (0–1) as a percentage with one decimal, as in `12.5 %`.
#[must_use]
pub fn format_share(share: f64) -> String {
    match share.is_finite() {
        true => format!("{:.1} %", share * 100.0),
        false => NONE.to_owned(),
    }
}

/// Formats a probability with two digits, down to 10⁻³⁰⁰, as in `0.31 %` or `2.0e-7`.
#[must_use]
pub fn format_probability(value: f64) -> String {
    match value {
        v if !v.is_finite() => "unknown".to_owned(),
        v if v >= 0.001 => format!("{:.2} %", v * 100.0),
        v if v <= 0.0 => "0".to_owned(),
        v => format!("{v:.1e}"),
    }
}

/// Formats seconds in a suitable unit, as in `40.0 s`, `12 min`, `3.5 h` or `4.2 d`.
#[must_use]
pub fn format_duration(seconds: f64) -> String {
    match seconds / 3600.0 {
        hours if hours >= 48.0 => format!("{:.1} d", hours / 24.0),
        hours if hours >= 1.0 => format!("{hours:.1} h"),
        hours if hours * 60.0 >= 1.0 => format!("{:.0} min", hours * 60.0),
        _ => format!("{seconds:.1} s"),
    }
}

/// Formats the time of a run, as in `2026-11-21 09:30 UTC`.
#[must_use]
pub fn format_timestamp(at: jiff::Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M UTC").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn people_read_these() {
        assert_eq!(format_value(Quantity::Iops, 12_345.6), "12,346");
        assert_eq!(
            format_value_with_unit(Quantity::Throughput, 43_100_000.0),
            "43.1 MB/s"
        );
        assert_eq!(format_latency(999_600.0), "1.00 ms");
        assert_eq!(format_latency(0.0), "0 ns");
        assert_eq!(format_ratio(1.0), "×1.00");
        assert_eq!(format_percent(9.96), "10");
        let estimate = |low, high| Estimate {
            value: 100.0,
            interval: Some(Interval {
                low,
                high,
                confidence: 0.95,
            }),
            rounds: 5,
        };
        assert_eq!(format_plus_minus(&estimate(97.0, 103.0)), "±3.0 %");
        assert_eq!(format_plus_minus(&estimate(f64::NEG_INFINITY, 103.0)), "");
        assert_eq!(format_count(1, "round"), "1 round");
        assert_eq!(format_plural(214_038, "copy", "copies"), "214,038 copies");
        assert_eq!(format_probability(2e-7), "2.0e-7");
        assert_eq!(format_duration(7200.0), "2.0 h");
    }

    proptest! {
        #[test]
        fn no_number_panics_or_shows_nan(x in any::<f64>()) {
            for quantity in Quantity::ALL {
                let text = format_value_with_unit(quantity, x);
                prop_assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
            }
            prop_assert!(!format_ratio(x).contains("NaN"));
            prop_assert!(!format_percent(x).contains("inf"));
        }

        #[test]
        fn latencies_fit_their_column(ns in 0u64..59_900_000_000) {
            prop_assert!(format_latency(ns as f64).chars().count() <= 7);
        }
    }
}
