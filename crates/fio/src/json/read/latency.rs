//! Parses latencies with their percentiles and bins.

use crate::json::scalars::{Key, Number};
use assay_model::Histogram;
use assay_model::sample::Latency;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use std::fmt;

/// log₂ of the number of histogram bins per power of two in fio 2.x (`FIO_IO_U_PLAT_BITS`, fio 2.x stat.h).
const PLAT_BITS: u32 = 6;

#[derive(Default)]
struct RawLatency {
    summary: Latency,
    bins: Bins,
}

/// Bins as printed by fio. The flag is true if the keys are bin numbers (fio 2.x), false if they are latencies.
#[derive(Default)]
struct Bins {
    pairs: Vec<(u64, u64)>,
    indices: bool,
}

/// Parses a latency section, and converts it to nanoseconds. `unit` is the time unit of the section in nanoseconds.
pub(super) fn read_latency<'de, A: MapAccess<'de>>(
    map: &mut A,
    unit: u64,
) -> Result<Latency, A::Error> {
    let mut raw = RawLatency::default();
    map.next_value_seed(LatencySeed(&mut raw))?;
    let RawLatency { mut summary, bins } = raw;
    summary.min = summary.min.saturating_mul(unit);
    summary.max = summary.max.saturating_mul(unit);
    summary.mean *= unit as f64;
    summary.stddev *= unit as f64;
    for (_, value) in &mut summary.percentiles {
        *value = value.saturating_mul(unit);
    }
    summary
        .percentiles
        .sort_by(|(left, _), (right, _)| left.total_cmp(right));
    summary.histogram = bins
        .pairs
        .into_iter()
        .map(|(key, count)| {
            let value = if bins.indices { bin_value(key) } else { key };
            (value.saturating_mul(unit), count)
        })
        .collect::<Histogram>();
    if summary.n == 0 {
        summary.n = summary.histogram.count();
    }
    Ok(summary)
}

/// Returns the middle of the bin with this index (`plat_idx_to_val`, fio 2.x stat.c).
fn bin_value(index: u64) -> u64 {
    let per_power = 1u64 << PLAT_BITS;
    if index < per_power << 1 {
        return index;
    }
    let error_bits = u32::try_from((index >> PLAT_BITS) - 1).unwrap_or(u32::MAX);
    let Some(base) = 1u64.checked_shl(error_bits.saturating_add(PLAT_BITS)) else {
        return u64::MAX;
    };
    let width = 1u64 << error_bits;
    base.saturating_add((index % per_power).saturating_mul(width))
        .saturating_add(width / 2)
}

object_seed!(LatencySeed, RawLatency, "a latency", |raw, key, map| {
    let summary = &mut raw.summary;
    match &*key {
        "min" => summary.min = map.next_value::<Number>()?.whole(),
        "max" => summary.max = map.next_value::<Number>()?.whole(),
        "mean" => summary.mean = map.next_value::<Number>()?.float(),
        "stddev" => summary.stddev = map.next_value::<Number>()?.float(),
        "N" => summary.n = map.next_value::<Number>()?.whole(),
        "percentile" => map.next_value_seed(PercentilesSeed(&mut summary.percentiles))?,
        "bins" => map.next_value_seed(BinsSeed(&mut raw.bins))?,
        _ => {
            let _: IgnoredAny = map.next_value()?;
        }
    }
});

object_seed!(
    PercentilesSeed,
    Vec<(f64, u64)>,
    "percentiles",
    |percentiles, key, map| {
        let value = map.next_value::<Number>()?.whole();
        // fio 2.x pads the list with "0.00".
        if let Ok(percent) = key.parse::<f64>()
            && percent > 0.0
            && percent <= 100.0
        {
            percentiles.push((percent, value));
        }
    }
);

object_seed!(BinsSeed, Bins, "bins", |bins, key, map| {
    let count = map.next_value::<Number>()?.whole();
    match key.parse::<u64>() {
        Ok(value) if count > 0 => bins.pairs.push((value, count)),
        Ok(_) => {}
        Err(_) => bins.indices |= key.starts_with("FIO_IO_U_PLAT"),
    }
});
