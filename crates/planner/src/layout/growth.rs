//! Computes ways to extend a layout, and the capacity that each way adds.

use super::describe::Growth;
use super::families::md_facts;
use super::stripes::place_declustered;
use super::{Context, Layout, Md};
use crate::btrfs;
use crate::zfs::{self, Class, Pool, PoolVdev, VdevKind};
use assay_model::size::Convention::Decimal;

/// Computes the usable bytes of a layout, without its other properties.
fn usable_bytes(layout: &Layout, sizes: &[u64], context: &Context) -> Option<u64> {
    Some(match layout {
        Layout::Zfs(pool) => pool.capacity().ok()?.zfs_usable,
        Layout::Btrfs { data, metadata } => {
            btrfs::simulate_filesystem(sizes, *data, *metadata)
                .ok()?
                .stored
        }
        Layout::Md(level) => md_facts(*level, sizes, context).ok()?.usable,
        Layout::Declustered { data, parity } => place_declustered(sizes, *data, *parity).ok()?.data,
    })
}

/// Maximum number of disks for which every step of extending btrfs is simulated.
const GROWTH_LIMIT: usize = 40;

/// Number of steps to show for each way of extending a layout.
const STEPS: u64 = 3;

pub(super) fn list_growth(
    layout: &Layout,
    sizes: &[u64],
    now: u64,
    context: &Context,
) -> Vec<Growth> {
    match layout {
        Layout::Zfs(pool) => of_pool(pool, now, context),
        Layout::Btrfs { .. } if sizes.len() > GROWTH_LIMIT => Vec::new(),
        Layout::Md(Md::Raid0 | Md::Raid1 | Md::Raid10) => Vec::new(),
        _ => {
            let mut ends = vec![
                sizes.iter().copied().max().unwrap_or(0),
                sizes.iter().copied().min().unwrap_or(0),
            ];
            ends.dedup();
            let step = |size: u64, times: u64| {
                let mut more = sizes.to_vec();
                more.extend(std::iter::repeat_n(size, times as usize));
                Growth::new(
                    format!("add {}", format_disks(times, size)),
                    times,
                    now,
                    usable_bytes(layout, &more, context)?,
                )
            };
            ends.iter()
                .flat_map(|&size| (1..=STEPS).filter_map(move |times| step(size, times)))
                .collect()
        }
    }
}

/// Formats `times` disks of `size` bytes as text.
fn format_disks(times: u64, size: u64) -> String {
    match times {
        1 => format!("a disk of {}", Decimal.show(size)),
        _ => format!("{times} disks of {}", Decimal.show(size)),
    }
}

impl Growth {
    /// Creates a step that changes the usable bytes from `now` to `then`. Returns `None` if the capacity would shrink.
    fn new(action: String, disks: u64, now: u64, then: u64) -> Option<Self> {
        Some(Self {
            action,
            disks,
            gives: then.checked_sub(now)?,
            holds: None,
            holds_rewritten: None,
        })
    }
}

/// Computes the ways to extend a ZFS pool: additional vdevs, wider vdevs and larger disks.
fn of_pool(pool: &Pool, now: u64, context: &Context) -> Vec<Growth> {
    let Some(first) = pool.vdevs.iter().find(|v| v.class == Class::Normal) else {
        return Vec::new();
    };
    let grown = |vdevs: Vec<PoolVdev>| {
        let pool = Pool {
            vdevs,
            ..pool.clone()
        };
        Some(pool.capacity().ok()?.zfs_usable)
    };
    let smallest = first.disks.iter().copied().min().unwrap_or(0);
    let more = (1..=STEPS).filter_map(|times| {
        let mut vdevs = pool.vdevs.clone();
        vdevs.extend(std::iter::repeat_n(first.clone(), times as usize));
        let what = match times {
            1 => first.kind.to_string(),
            _ => format!("{times} × {}", first.kind),
        };
        Growth::new(
            format!("add {what} of {} (zpool add)", Decimal.show(smallest)),
            times * first.kind.children(),
            now,
            grown(vdevs)?,
        )
    });
    let wider = (1..=STEPS).filter_map(|times| widen_raidz(pool, first, times, context));
    let mut steps: Vec<Growth> = more.chain(wider).collect();
    steps.extend(replace_smallest(pool, now, &grown));
    steps
}

/// Widens a raidz vdev by `times` disks.
///
/// `zfs list` continues to use the deflate ratio of the old width (`vdev_set_deflate_ratio`, vdev.c, 2.3). Existing
/// blocks keep their old fraction of parity until they are rewritten (zpool-attach(8)). So there are three figures: the
/// output of the tools, the capacity while the old blocks remain, and the capacity after a rewrite (`zfs rewrite`, or
/// copy and delete).
fn widen_raidz(pool: &Pool, vdev: &PoolVdev, times: u64, context: &Context) -> Option<Growth> {
    let VdevKind::Raidz { parity, children } = vdev.kind else {
        return None;
    };
    if !pool.version.raidz_expansion() {
        return None;
    }
    let wide = VdevKind::Raidz {
        parity,
        children: children + times,
    };
    let smallest = vdev.disks.iter().copied().min()?;
    let mut disks_then = vdev.disks.clone();
    disks_then.extend(std::iter::repeat_n(smallest, times as usize));
    let cut = |kind, disks: &[u64]| zfs::vdev_geometry(kind, disks, pool.ashift, pool.version).ok();
    let old = cut(vdev.kind, &vdev.disks)?.space;
    let new = cut(wide, &disks_then)?.space;
    let ratio = |kind: VdevKind| kind.deflate_ratio(pool.ashift) as f64 / 512.0;
    let (before, after) = (ratio(vdev.kind), ratio(wide));
    let used = old as f64 * context.fill;
    let today = old as f64 * before;
    let beside = used * before + (new as f64 - used) * after;
    Some(Growth {
        action: format!(
            "widen one vdev by {} (zpool attach)",
            format_disks(times, smallest)
        ),
        disks: times,
        gives: (new.saturating_sub(old) >> 9) * vdev.kind.deflate_ratio(pool.ashift),
        holds: Some((beside - today).max(0.0) as u64),
        holds_rewritten: Some((new as f64 * after - today).max(0.0) as u64),
    })
}

/// Finds the last vdev with unequal disks, and replaces its smallest disks by disks of the size of its largest disk.
fn replace_smallest(
    pool: &Pool,
    now: u64,
    grown: &dyn Fn(Vec<PoolVdev>) -> Option<u64>,
) -> Option<Growth> {
    let (at, _) =
        pool.vdevs.iter().enumerate().rfind(|(_, v)| {
            v.class == Class::Normal && v.disks.iter().max() > v.disks.iter().min()
        })?;
    let mut vdevs = pool.vdevs.clone();
    let largest = vdevs[at].disks.iter().copied().max()?;
    let small = vdevs[at].disks.iter().copied().min()?;
    let count = vdevs[at].disks.iter().filter(|&&d| d == small).count();
    vdevs[at]
        .disks
        .iter_mut()
        .filter(|d| **d == small)
        .for_each(|d| *d = largest);
    Growth::new(
        format!(
            "replace {count} × {} by {} (zpool replace)",
            Decimal.show(small),
            Decimal.show(largest)
        ),
        count as u64,
        now,
        grown(vdevs)?,
    )
}

#[cfg(test)]
mod tests {
    use super::super::{Disk, describe};
    use super::*;

    fn steps(spec: &str, count: usize, version: &str) -> Vec<Growth> {
        let context = Context {
            zfs: version.parse().unwrap(),
            ..Context::default()
        };
        let disks = vec![
            Disk {
                size: 4_000_787_030_016,
                price: None
            };
            count
        ];
        let layout = Layout::parse(spec, &disks, None, &context).unwrap();
        describe(&layout, &disks, &context).unwrap().growth
    }

    #[test]
    fn every_step_gives_more_than_the_one_before() {
        for (spec, count) in [
            ("raidz1:4", 4),
            ("2*mirror:2", 4),
            ("btrfs-raid1", 4),
            ("md-raid5", 4),
        ] {
            let steps = steps(spec, count, "2.3");
            assert!(steps.len() >= 3, "{spec}");
            for pair in steps
                .windows(2)
                .filter(|pair| pair[0].disks < pair[1].disks)
            {
                assert!(pair[0].gives < pair[1].gives, "{spec}: {pair:?}");
            }
        }
    }

    #[test]
    fn old_blocks_keep_their_parity_until_they_are_rewritten() {
        let wide: Vec<Growth> = steps("raidz1:4", 4, "2.3")
            .into_iter()
            .filter(|step| step.holds.is_some())
            .collect();
        assert_eq!(wide.iter().map(|s| s.disks).collect::<Vec<_>>(), [1, 2, 3]);
        for step in &wide {
            let (holds, rewritten) = (step.holds.unwrap(), step.holds_rewritten.unwrap());
            // The tools use the old fraction of parity; new blocks have less.
            assert!(step.gives < holds && holds < rewritten, "{step:?}");
        }
        // Three more disks make raidz1:7. A new pool of seven disks has the capacity of the rewritten pool.
        // The tools show a new pool by its own ratio, less the slop.
        let new = |count| {
            zfs::vdev_geometry(
                VdevKind::Raidz {
                    parity: 1,
                    children: count,
                },
                &vec![4_000_787_030_016; count as usize],
                12,
                "2.3".parse().unwrap(),
            )
            .unwrap()
            .space as f64
                * VdevKind::Raidz {
                    parity: 1,
                    children: count,
                }
                .deflate_ratio(12) as f64
                / 512.0
        };
        let gain = wide[2].holds_rewritten.unwrap() as f64;
        assert!((gain / (new(7) - new(4)) - 1.0).abs() < 1e-9);
        assert!(
            steps("raidz1:4", 4, "2.2")
                .iter()
                .all(|s| s.holds.is_none())
        );
    }
}
