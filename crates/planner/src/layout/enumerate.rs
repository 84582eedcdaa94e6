//! Enumerates the layouts that are worth comparing.

use super::{Context, Disk, Layout, LayoutPlan, Md, check_disks, describe, on_zfs};
use crate::btrfs::Profile;
use crate::error::PlannerError;
use crate::zfs::{Class, Pool, PoolVdev, VdevKind};
use serde::Serialize;
use std::collections::HashSet;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Maximum number of disks in a proposed raidz group. A wider group would rebuild for days.
const WIDEST: usize = 16;
/// Maximum number of disks for a thorough search. With more disks, the search tries fewer group sizes and no groups of
/// unequal size.
const THOROUGH: usize = 32;

/// Layouts that a search found.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Search {
    /// Layouts, in the order in which they were found.
    pub plans: Vec<LayoutPlan>,
    /// Description of the layouts that a limited search omitted; `None` if the search was complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bounded: Option<String>,
}

/// Finds every sensible layout for the disks:
///
/// - ZFS stripes, mirrors, raidz1–3 and dRAID, in groups of equal width and, below 33 disks, of unequal width;
/// - all btrfs profiles;
/// - Linux software RAID;
/// - declustered stripes.
///
/// Sorts the disks by size. `special` contains the sizes of fast disks for a mirrored special vdev in each ZFS layout.
///
/// # Errors
/// The disks are invalid.
pub fn search(disks: &[Disk], special: &[u64], context: &Context) -> Result<Search, PlannerError> {
    check_disks(disks)?;
    context.failures.check()?;
    let mut sorted = disks.to_vec();
    sorted.sort_by(|a, b| {
        b.size
            .cmp(&a.size)
            .then(a.price.unwrap_or(0.0).total_cmp(&b.price.unwrap_or(0.0)))
    });
    let n = sorted.len();
    let mut layouts: Vec<Layout> = Vec::new();
    zfs_layouts(&sorted, special, context, &mut layouts)?;
    for data in Profile::ALL {
        // dup is for one device, striping for several.
        let fits = match data {
            Profile::Single => true,
            Profile::Dup => n == 1,
            _ => n > 1 && n >= data.min_devices(),
        };
        if !fits {
            continue;
        }
        layouts.push(Layout::Btrfs {
            data,
            metadata: data.metadata(n),
        });
    }
    for (level, least) in [
        (Md::Raid0, 2),
        (Md::Raid1, 2),
        (Md::Raid10, 3),
        (Md::Raid5, 3),
        (Md::Raid6, 4),
    ] {
        if n >= least {
            layouts.push(Layout::Md(level));
        }
    }
    for parity in 1..=3u64 {
        for data in 1..=8u64 {
            if data + parity <= n as u64 {
                layouts.push(Layout::Declustered { data, parity });
            }
        }
    }
    let mut seen = HashSet::new();
    layouts.retain(|layout| seen.insert(layout.spec()));
    let plans = describe_all(&layouts, &sorted, context);
    if plans.is_empty() {
        let first = layouts
            .first()
            .map(|layout| describe(layout, &sorted, context));
        return Err(match first {
            Some(Err(error)) => error,
            _ => PlannerError::value("disks", "no layout fits them"),
        });
    }
    Ok(Search {
        plans,
        bounded: (n > THOROUGH).then(|| {
            format!(
                "{n} disks: groups of equal width up to {WIDEST} only, fewer dRAID shapes; ask for \
                 any other with --only"
            )
        }),
    })
}

/// Computes the properties of layouts on all CPUs. Keeps the order of the layouts. Omits a layout that does not fit,
/// for example because a disk is smaller than the minimum of a file system.
fn describe_all(layouts: &[Layout], disks: &[Disk], context: &Context) -> Vec<LayoutPlan> {
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    let mut found: Vec<(usize, LayoutPlan)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    let mut mine = Vec::new();
                    loop {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        let Some(layout) = layouts.get(at) else {
                            return mine;
                        };
                        if let Ok(plan) = describe(layout, disks, context) {
                            mine.push((at, plan));
                        }
                    }
                })
            })
            .collect();
        workers
            .into_iter()
            .filter_map(|worker| worker.join().ok())
            .flatten()
            .collect()
    });
    found.sort_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, plan)| plan).collect()
}

fn zfs_layouts(
    sorted: &[Disk],
    special: &[u64],
    context: &Context,
    layouts: &mut Vec<Layout>,
) -> Result<(), PlannerError> {
    let sizes: Vec<u64> = sorted
        .iter()
        .filter_map(|disk| on_zfs(disk.size, context).ok())
        .collect();
    if sizes.len() != sorted.len() {
        return Ok(());
    }
    let n = sizes.len();
    let extra: Vec<PoolVdev> = match special {
        [] => Vec::new(),
        disks => {
            let disks: Vec<u64> = disks
                .iter()
                .map(|&size| on_zfs(size, context))
                .collect::<Result<_, _>>()?;
            vec![PoolVdev {
                class: Class::Special,
                kind: match disks.len() {
                    1 => VdevKind::Single,
                    children => VdevKind::Mirror {
                        children: children as u64,
                    },
                },
                disks,
            }]
        }
    };
    let mut push = |widths: &[usize], kind: &dyn Fn(u64) -> VdevKind| {
        let mut vdevs = Vec::new();
        let mut at = 0;
        for &width in widths {
            vdevs.push(PoolVdev {
                class: Class::Normal,
                kind: kind(width as u64),
                disks: sizes[at..at + width].to_vec(),
            });
            at += width;
        }
        vdevs.extend(sizes[at..].iter().map(|&size| PoolVdev {
            class: Class::Spare,
            kind: VdevKind::Single,
            disks: vec![size],
        }));
        vdevs.extend(extra.iter().cloned());
        layouts.push(Layout::Zfs(Pool {
            vdevs,
            ashift: context.ashift,
            version: context.zfs,
        }));
    };
    push(&vec![1; n], &|_| VdevKind::Single);
    for ways in 2..=n.min(4) {
        push(&vec![ways; n / ways], &|children| VdevKind::Mirror {
            children,
        });
    }
    if n > 4 && n <= 8 {
        push(&[n], &|children| VdevKind::Mirror { children });
    }
    for parity in 1..=3u64 {
        let kind = move |children| VdevKind::Raidz { parity, children };
        // With a single data disk, a mirror is better in every respect.
        let least = parity as usize + 2;
        for groups in 1..=n / least {
            let width = n / groups;
            if width > WIDEST.max(if n <= 24 { 24 } else { 0 }) || width > 255 {
                continue;
            }
            push(&vec![width; groups], &kind);
            if !n.is_multiple_of(groups) {
                // Distribute remaining disks over the first groups instead of keeping them as spares.
                let widths: Vec<usize> = (0..groups)
                    .map(|i| width + usize::from(i < n % groups))
                    .collect();
                push(&widths, &kind);
            }
            if n <= THOROUGH && groups == 1 {
                // Without the smallest disk, which limits all others and remains as a spare.
                for left_out in 1..n.saturating_sub(least).min(4) {
                    if sizes[n - left_out] < sizes[n - left_out - 1] {
                        push(&[n - left_out], &kind);
                    }
                }
            }
        }
        if n <= THOROUGH
            && let Some(widths) = best_groups(&sizes, parity as usize)
        {
            push(&widths, &kind);
        }
    }
    if context.zfs.draid() && n <= 255 {
        for parity in 1..=3u64 {
            for spares in 0..=2u64 {
                let most = (n as u64).saturating_sub(parity + spares);
                for data in [2, 4, 8, 16, most] {
                    if data < 1 || data > most || (data == most && spares == 0 && n > 12) {
                        continue;
                    }
                    if n > THOROUGH && !matches!((data, spares), (4 | 8, 1 | 2)) {
                        continue;
                    }
                    push(&[n], &|children| VdevKind::Draid {
                        parity,
                        data,
                        children,
                        spares,
                    });
                }
            }
        }
    }
    Ok(())
}

/// Divides the sorted disks into consecutive groups with the largest total capacity. Each group has at least `parity +
/// 2` disks. Uses dynamic programming over the start of the last group. Consecutive groups suffice: for given widths,
/// groups of disks with similar sizes are best.
fn best_groups(sizes: &[u64], parity: usize) -> Option<Vec<usize>> {
    let n = sizes.len();
    let least = parity + 2;
    let mut best: Vec<Option<(u128, usize)>> = vec![None; n + 1];
    best[0] = Some((0, 0));
    for end in least..=n {
        for width in least..=WIDEST.min(end) {
            let Some((before, _)) = best[end - width] else {
                continue;
            };
            let holds = u128::from(sizes[end - 1]) * (width - parity) as u128;
            let total = before + holds;
            if best[end].is_none_or(|(seen, _)| total > seen) {
                best[end] = Some((total, width));
            }
        }
    }
    let mut widths = Vec::new();
    let mut at = n;
    while at > 0 {
        let (_, width) = best[at]?;
        widths.push(width);
        at -= width;
    }
    widths.reverse();
    Some(widths)
}
