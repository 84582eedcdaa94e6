//! Computes how much memory and flash the caches of ZFS need, and how much they help.

use crate::error::PlannerError;
use crate::zfs::Version;
use assay_model::size::Convention::Binary;
use serde::Serialize;
use std::collections::HashMap;

/// Bytes of memory for each block in L2ARC. This is `sizeof (arc_buf_hdr_t)` without the L1 part, `HDR_L2ONLY_SIZE`
/// (arc.c): 96 in OpenZFS 2.1 to 2.4 on 64-bit Linux. `l2_hdr_size` in arcstats shows the total of a running system.
pub const L2_HEADER: u64 = 96;

/// Seconds between two transaction groups (`zfs_txg_timeout`).
const TXG_SECONDS: f64 = 5.0;

/// Memory in bytes that is reserved for the kernel and the host's own programs; as in OpenZFS 2.3.
const SYSTEM: u64 = 1 << 30;
/// Minimum of `zfs_arc_max` in bytes. ZFS ignores smaller values (`arc_init`: 64 MiB).
const SMALLEST_ARC: u64 = 64 << 20;

/// Description of the load and the machine for which caches are planned. Sizes are in bytes; `None` if unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct CacheQuestion {
    /// Total memory of the machine.
    pub memory: Option<u64>,
    /// Memory used by guests and other programs.
    pub guests: Option<u64>,
    /// OpenZFS version; `None` if unknown.
    pub zfs: Option<Version>,
    /// Size of the data that is read repeatedly (working set).
    pub working_set: Option<u64>,
    /// Size of the planned L2ARC device.
    pub l2arc: Option<u64>,
    /// Block size of the data: recordsize or volblocksize.
    pub block: u64,
    /// Synchronous writes in bytes per second.
    pub sync_writes: Option<f64>,
    /// Value of `zfs_dirty_data_max`; the default is 10 % of memory, at most 4 GiB.
    pub dirty_max: Option<u64>,
}

/// Counters of a running ARC.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ArcCounters {
    /// Bytes that the ARC uses.
    pub size: u64,
    /// Maximum size of the ARC in bytes (`c_max`).
    pub max: u64,
    /// Fraction of reads served from memory, 0 to 1.
    pub hit_ratio: f64,
    /// Fraction of the ARC's misses served from L2ARC, 0 to 1; `None` without L2ARC.
    pub l2_hit_ratio: Option<f64>,
    /// Bytes of memory that the headers of the L2ARC use.
    pub l2_header: u64,
    /// Fraction of misses on blocks that were evicted recently (ghost hits). A larger ARC would have served these
    /// reads.
    pub ghost_ratio: f64,
}

/// Recommended cache sizes, and what they achieve.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct CacheAnswer {
    /// Memory that L2ARC headers use, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub l2_header_bytes: Option<u64>,
    /// Fraction of the machine's memory that L2ARC headers use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub l2_header_share: Option<f64>,
    /// Default limit of the ARC in bytes without `zfs_arc_max`; `None` if counters contain the actual limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arc_default: Option<u64>,
    /// Memory in bytes that remains after guests, other programs and 1 GiB for the system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<u64>,
    /// Value of `zfs_arc_max` in bytes that keeps the ARC within the free memory; `None` if the default already does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arc_limit: Option<u64>,
    /// Fraction of the working set that fits into the ARC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub working_set_in_arc: Option<f64>,
    /// Fraction of the working set that fits into ARC and L2ARC together, after the L2ARC headers are subtracted from
    /// the ARC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub working_set_with_l2: Option<f64>,
    /// Maximum bytes that a separate intent log can use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slog_bytes: Option<u64>,
    /// Counters of the running ARC, if they were given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arc: Option<ArcCounters>,
    /// Recommendations, one sentence each.
    pub advice: Vec<String>,
}

/// Computes cache sizes.
///
/// # Errors
/// The block size is not a power of two from 512 bytes to 16 MiB, or guests use all memory.
pub fn size_caches(
    question: &CacheQuestion,
    counters: Option<ArcCounters>,
) -> Result<CacheAnswer, PlannerError> {
    crate::size::check_block(question.block, &question.block.to_string())?;
    let mut answer = CacheAnswer {
        arc: counters,
        ..CacheAnswer::default()
    };
    let version = question.zfs.unwrap_or(Version::CHECKED);
    if counters.is_none()
        && let Some(memory) = question.memory
    {
        let size = version.arc_default_max(memory);
        answer.arc_default = Some(size);
        let other = match question.zfs {
            Some(_) => "",
            None => "; another version with --zfs",
        };
        answer.advice.push(format!(
            "taken for the ARC: {} of {}, the default of OpenZFS {version} on Linux ({}){other}",
            Binary.show(size),
            Binary.show(memory),
            match version.arc_takes_most() {
                true => "all but 1 GiB since 2.3",
                false => "half of memory before 2.3",
            }
        ));
    }
    let mut arc = counters.map(|c| c.max).or(answer.arc_default);
    if let (Some(memory), Some(guests)) = (question.memory, question.guests) {
        let left = memory
            .checked_sub(guests)
            .and_then(|left| left.checked_sub(SYSTEM));
        let left = left.filter(|left| *left >= SMALLEST_ARC).ok_or_else(|| {
            PlannerError::value(
                format!("guests of {}", Binary.show(guests)),
                format!(
                    "leave less than {} of {} beside 1 GiB for the system; give the guests less",
                    Binary.show(SMALLEST_ARC),
                    Binary.show(memory)
                ),
            )
        })?;
        answer.left = Some(left);
        if let Some(most) = arc.filter(|most| *most > left) {
            answer.arc_limit = Some(left);
            answer.advice.push(format!(
                "the ARC may grow to {} and the guests take {} of {}: it gives memory back slowly, so guests \
                 swap or are killed; set zfs_arc_max={left}",
                Binary.show(most),
                Binary.show(guests),
                Binary.show(memory)
            ));
            arc = Some(left);
        }
    }
    let headers = question.l2arc.map(|size| size / question.block * L2_HEADER);
    answer.l2_header_bytes = headers;
    if let (Some(headers), Some(memory)) = (headers, question.memory) {
        let share = headers as f64 / memory.max(1) as f64;
        answer.l2_header_share = Some(share);
        if share > 0.1 {
            answer.advice.push(format!(
                "the L2ARC's headers alone take {:.0} % of the memory; use larger blocks or a smaller device",
                share * 100.0
            ));
        }
    }
    if let (Some(set), Some(arc)) = (question.working_set, arc) {
        let set = set.max(1) as f64;
        let without = (arc as f64 / set).min(1.0);
        answer.working_set_in_arc = Some(without);
        if without >= 1.0 {
            answer.advice.push(
                "the working set fits the ARC: an L2ARC would only take memory from it".into(),
            );
        }
        if let (Some(l2), Some(headers)) = (question.l2arc, headers) {
            let left = arc.saturating_sub(headers) as f64;
            answer.working_set_with_l2 = Some(((left + l2 as f64) / set).min(1.0));
        }
    }
    if let Some(rate) = question.sync_writes {
        if !(rate.is_finite() && rate >= 0.0) {
            return Err(PlannerError::value(
                "sync writes",
                "must be a rate from 0 up",
            ));
        }
        let dirty = question
            .dirty_max
            .or(question.memory.map(|memory| (memory / 10).min(4 << 30)))
            .unwrap_or(4 << 30);
        // Three transaction groups exist at a time (open, quiescing, syncing). The limit of dirty data applies
        // to all of them.
        let slog = (rate * TXG_SECONDS * 3.0).min(dirty as f64 * 2.0) as u64;
        answer.slog_bytes = Some(slog);
        answer.advice.push(
            "a log device needs power-loss protection and low latency, not size; it is read only after a crash, and asynchronous writes never touch it".into(),
        );
    }
    if let Some(counters) = counters {
        if counters.hit_ratio > 0.95 {
            answer.advice.push(
                "more than 95 % of reads are served from memory; more cache has little left to win"
                    .into(),
            );
        } else if counters.ghost_ratio > 0.2 {
            answer.advice.push(format!(
                "{:.0} % of the misses are for blocks that were evicted a moment ago: more memory for the ARC would help before an L2ARC does",
                counters.ghost_ratio * 100.0
            ));
        } else if counters.hit_ratio < 0.8 {
            answer.advice.push("misses ask for blocks that were not there recently either: a cache of twice the size would hardly change that".into());
        }
    }
    Ok(answer)
}

/// Parses /proc/spl/kstat/zfs/arcstats.
///
/// # Errors
/// [`PlannerError::Record`] if counters are missing, for example in a truncated file.
pub fn parse_arcstats(source: &str, text: &str) -> Result<ArcCounters, PlannerError> {
    let mut values: HashMap<&str, u64> = HashMap::new();
    for (index, line) in text.lines().enumerate().skip(2) {
        let mut words = line.split_whitespace();
        let (Some(name), Some(_), Some(value)) = (words.next(), words.next(), words.next()) else {
            return Err(PlannerError::record(
                source,
                index + 1,
                "expected name, type and value; was the file cut off?",
            ));
        };
        // Some counters are signed, but none of those used here.
        if let Ok(value) = value.parse() {
            values.insert(name, value);
        }
    }
    let get = |name: &str| {
        values.get(name).copied().ok_or_else(|| {
            PlannerError::record(
                source,
                text.lines().count().max(1),
                format!("no counter `{name}`; was the file cut off?"),
            )
        })
    };
    let (hits, misses) = (get("hits")?, get("misses")?);
    let ghosts = get("mru_ghost_hits")? + get("mfu_ghost_hits")?;
    let (l2_hits, l2_misses) = (get("l2_hits")?, get("l2_misses")?);
    let share = |part: u64, rest: u64| part as f64 / (part as f64 + rest as f64).max(1.0);
    Ok(ArcCounters {
        size: get("size")?,
        max: get("c_max")?,
        hit_ratio: share(hits, misses),
        l2_hit_ratio: (l2_hits + l2_misses > 0).then(|| share(l2_hits, l2_misses)),
        l2_header: get("l2_hdr_size")?,
        ghost_ratio: (ghosts as f64 / misses.max(1) as f64).min(1.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_have_their_place_in_memory() {
        const GIB: u64 = 1 << 30;
        let ask = |memory: u64, guests: u64, zfs: &str, set: u64| {
            let question = CacheQuestion {
                memory: Some(memory * GIB),
                guests: Some(guests * GIB),
                zfs: Some(zfs.parse().unwrap()),
                working_set: Some(set * GIB),
                block: 16 << 10,
                ..CacheQuestion::default()
            };
            size_caches(&question, None)
        };
        // Memory, guests, version: free memory, limit, fitting fraction of 32 GiB.
        for (memory, guests, zfs, left, limit, part) in [
            (64, 48, "2.1", 15, Some(15), 15.0 / 32.0),
            (64, 48, "2.3", 15, Some(15), 15.0 / 32.0),
            (64, 16, "2.1", 47, None, 1.0),
            (64, 16, "2.3", 47, Some(47), 1.0),
            (128, 8, "2.2", 119, None, 1.0),
            (8, 6, "2.4", 1, Some(1), 1.0 / 32.0),
        ] {
            let answer = ask(memory, guests, zfs, 32).unwrap();
            assert_eq!(answer.left, Some(left * GIB), "{memory} {guests} {zfs}");
            assert_eq!(
                answer.arc_limit,
                limit.map(|limit: u64| limit * GIB),
                "{memory} {guests} {zfs}"
            );
            assert!((answer.working_set_in_arc.unwrap() - part).abs() < 1e-9);
        }
        for (memory, guests) in [(64, 64), (64, 63), (8, 16)] {
            assert!(ask(memory, guests, "2.1", 1).is_err(), "{memory} {guests}");
        }
    }

    #[test]
    fn the_header_bill_of_120_gib() {
        for (block, gib) in [
            (4u64 << 10, 2.81),
            (8 << 10, 1.41),
            (16 << 10, 0.70),
            (128 << 10, 0.09),
        ] {
            let answer = size_caches(
                &CacheQuestion {
                    l2arc: Some(120 << 30),
                    block,
                    ..CacheQuestion::default()
                },
                None,
            )
            .unwrap();
            let ours = answer.l2_header_bytes.unwrap() as f64 / (1u64 << 30) as f64;
            assert!((ours - gib).abs() < 0.006, "{block}: {ours}");
        }
    }

    #[test]
    fn the_arc_is_what_the_version_makes_it() {
        let fits = |zfs: &str, memory: u64| {
            let question = CacheQuestion {
                memory: Some(memory),
                zfs: Some(zfs.parse().unwrap()),
                working_set: Some(64 << 30),
                block: 128 << 10,
                ..CacheQuestion::default()
            };
            let answer = size_caches(&question, None).unwrap();
            (
                answer.arc_default.unwrap(),
                answer.working_set_in_arc.unwrap(),
            )
        };
        assert_eq!(fits("2.2.7", 64 << 30), (32 << 30, 0.5));
        assert_eq!(fits("2.3.0", 64 << 30).0, 63 << 30);
        // On a small machine 5/8 is more than all but 1 GiB.
        assert_eq!(fits("2.4", 2 << 30).0, 5 << 28);
        // Actual counters take precedence over a default.
        let counters = ArcCounters {
            size: 1,
            max: 16 << 30,
            hit_ratio: 0.9,
            l2_hit_ratio: None,
            l2_header: 0,
            ghost_ratio: 0.0,
        };
        let question = CacheQuestion {
            memory: Some(64 << 30),
            working_set: Some(64 << 30),
            block: 128 << 10,
            ..CacheQuestion::default()
        };
        let answer = size_caches(&question, Some(counters)).unwrap();
        assert_eq!(
            (answer.arc_default, answer.working_set_in_arc),
            (None, Some(0.25))
        );
    }

    #[test]
    fn a_log_device_needs_little() {
        let question = CacheQuestion {
            memory: Some(64 << 30),
            block: 16 << 10,
            sync_writes: Some(200e6),
            ..CacheQuestion::default()
        };
        assert_eq!(
            size_caches(&question, None).unwrap().slog_bytes,
            Some(3_000_000_000)
        );
        assert!(
            size_caches(
                &CacheQuestion {
                    block: 1,
                    ..question
                },
                None
            )
            .is_err()
        );
    }

    #[test]
    fn arcstats_are_read_or_refused() {
        let text = "9 1 0x01 147 39984 1 2\nname type data\nhits 4 900\nmisses 4 100\nmru_ghost_hits 4 20\nmfu_ghost_hits 4 10\nl2_hits 4 0\nl2_misses 4 0\nsize 4 5\nc_max 4 10\nl2_hdr_size 4 0\n";
        let counters = parse_arcstats("arcstats", text).unwrap();
        assert!((counters.hit_ratio - 0.9).abs() < 1e-12 && counters.l2_hit_ratio.is_none());
        insta::assert_snapshot!(parse_arcstats("a", "1\n2\nhits 4")
                .unwrap_err()
                .to_string(), @"a, line 3: expected name, type and value; was the file cut off?");
        assert!(
            parse_arcstats("a", "")
                .unwrap_err()
                .to_string()
                .contains("hits")
        );
    }
}
