//! Computes declustered stripes of n data and p parity chunks over unequal disks. All chunks of a stripe must be on
//! different disks; otherwise a chunk may be anywhere.

use crate::error::PlannerError;
use serde::Serialize;

/// Space of declustered stripes, in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Placement {
    /// Bytes of file data that fit.
    pub data: u64,
    /// Used bytes on all disks together, including parity.
    pub raw_used: u64,
    /// Unusable bytes on all disks together.
    pub unusable: u64,
    /// Used bytes on each disk.
    pub per_disk: Vec<u64>,
}

/// Computes the maximum amount of data in stripes of `data` + `parity` chunks.
///
/// `t` stripes with one byte per chunk fit if and only if `Σ min(sizeᵢ, t) ≥ t·(n + p)`: a disk holds at most one chunk
/// of each stripe, so at most `t` bytes of the disk count. If the sum suffices, McNaughton's wrap-around rule (1959)
/// places the chunks: it cuts the shares of the disks into columns of height `t`, so that no disk gets two chunks of a
/// stripe. The result equals the maximum flow from stripes to disks. Bisection finds the largest `t`.
///
/// # Errors
/// There are fewer disks than chunks, no data chunk, or more than 8 EiB.
pub fn place_declustered(sizes: &[u64], data: u64, parity: u64) -> Result<Placement, PlannerError> {
    let spec = format!("stripes:{data}+{parity}");
    let width = data.saturating_add(parity);
    if data == 0 {
        return Err(PlannerError::layout(spec, "needs at least one data chunk"));
    }
    if (sizes.len() as u64) < width {
        return Err(PlannerError::layout(
            spec,
            format!("needs at least {width} disks, {} are given", sizes.len()),
        ));
    }
    let total: u128 = sizes.iter().map(|&size| u128::from(size)).sum();
    let holds = |t: u64| -> bool {
        let room: u128 = sizes.iter().map(|&size| u128::from(size.min(t))).sum();
        room >= u128::from(t) * u128::from(width)
    };
    let (mut low, mut high) = (0u64, u64::try_from(total).unwrap_or(u64::MAX));
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        match holds(middle) {
            true => low = middle,
            false => high = middle - 1,
        }
    }
    // Shares: at most t of each disk, and exactly t·width in total.
    let wanted = u128::from(low) * u128::from(width);
    let mut per_disk: Vec<u64> = sizes.iter().map(|&size| size.min(low)).collect();
    let mut spare = per_disk.iter().map(|&s| u128::from(s)).sum::<u128>() - wanted;
    for share in per_disk.iter_mut() {
        let off = u64::try_from(spare).unwrap_or(u64::MAX).min(*share);
        *share -= off;
        spare -= u128::from(off);
    }
    let narrow = |value: u128| {
        u64::try_from(value).map_err(|_| PlannerError::Overflow {
            what: spec.clone(),
            reason: "more than 16 EiB".into(),
        })
    };
    Ok(Placement {
        data: narrow(u128::from(low) * u128::from(data))?,
        raw_used: narrow(wanted)?,
        unusable: narrow(total - wanted)?,
        per_disk,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MUTT: [u64; 5] = [
        4_000_787_030_016,
        2_000_398_934_016,
        2_000_398_934_016,
        1_000_204_886_016,
        750_156_374_016,
    ];

    #[test]
    fn as_recorded() {
        let rows: Vec<serde_json::Value> =
            serde_json::from_str(include_str!("../../fixtures/declustered.json")).unwrap();
        assert_eq!(rows.len(), 7);
        for row in rows {
            let number = |key: &str| row[key].as_u64().unwrap();
            let ours = place_declustered(&MUTT, number("n"), number("p")).unwrap();
            assert_eq!(ours.data, number("data_bytes"), "{row}");
            assert_eq!(ours.raw_used, number("raw_used"), "{row}");
            assert_eq!(ours.unusable, number("unusable"), "{row}");
        }
    }

    /// Places the stripes one by one, always on the disks with the most free space. Returns the number of stripes.
    fn greedy(sizes: &[u64], width: usize) -> u64 {
        let mut left = sizes.to_vec();
        let mut stripes = 0;
        loop {
            left.sort_unstable_by(|a, b| b.cmp(a));
            if left[width - 1] == 0 {
                return stripes;
            }
            left[..width].iter_mut().for_each(|disk| *disk -= 1);
            stripes += 1;
        }
    }

    proptest! {
        #[test]
        fn equals_the_slow_oracle(
            sizes in prop::collection::vec(1u64..60, 1..7), data in 1u64..4, parity in 0u64..3,
        ) {
            prop_assume!(sizes.len() as u64 >= data + parity);
            let ours = place_declustered(&sizes, data, parity).unwrap();
            prop_assert_eq!(ours.data, greedy(&sizes, (data + parity) as usize) * data);
            prop_assert_eq!(ours.per_disk.iter().sum::<u64>(), ours.raw_used);
            for (share, size) in ours.per_disk.iter().zip(&sizes) {
                prop_assert!(share <= size && *share <= ours.data / data);
            }
        }
    }
}
