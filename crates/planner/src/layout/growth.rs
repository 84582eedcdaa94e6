//! What to add next, and what it gives.

use super::describe::Growth;
use super::families::md_facts;
use super::stripes::declustered;
use super::{Context, Layout, Md};
use crate::btrfs;
use crate::zfs::{self, Class, Kind, Pool, PoolVdev};
use assay_model::size::Convention::Decimal;

/// Usable bytes of a layout, without the rest.
fn usable(layout: &Layout, sizes: &[u64], context: &Context) -> Option<u64> {
    Some(match layout {
        Layout::Zfs(pool) => pool.capacity().ok()?.zfs_usable,
        Layout::Btrfs { data, metadata } => btrfs::simulate(sizes, *data, *metadata).ok()?.stored,
        Layout::Md(level) => md_facts(*level, sizes, context).ok()?.usable,
        Layout::Declustered { data, parity } => declustered(sizes, *data, *parity).ok()?.data,
    })
}

/// Above this many disks the growth of btrfs is not simulated again for every step.
const GROWTH_LIMIT: usize = 40;

pub(super) fn growth(layout: &Layout, sizes: &[u64], now: u64, context: &Context) -> Vec<Growth> {
    let mut steps = Vec::new();
    let mut add = |action: String, then: Option<u64>| {
        if let Some(gives) = then.and_then(|then| then.checked_sub(now)) {
            steps.push(Growth { action, gives });
        }
    };
    match layout {
        Layout::Zfs(pool) => {
            let Some(first) = pool.vdevs.iter().find(|v| v.class == Class::Normal) else {
                return Vec::new();
            };
            let grown = |vdevs: Vec<PoolVdev>| {
                Layout::Zfs(Pool {
                    vdevs,
                    ..pool.clone()
                })
            };
            let mut more = pool.vdevs.clone();
            more.push(first.clone());
            let smallest = first.disks.iter().copied().min().unwrap_or(0);
            add(
                format!(
                    "add {} of {} (zpool add)",
                    first.kind,
                    Decimal.show(smallest)
                ),
                usable(&grown(more), sizes, context),
            );
            if let Kind::Raidz { parity, children } = first.kind
                && pool.version.raidz_expansion()
            {
                let wide = Kind::Raidz {
                    parity,
                    children: children + 1,
                };
                let mut disks = first.disks.clone();
                disks.push(smallest);
                // The pool keeps the deflate ratio of the old width (vdev_set_deflate_ratio, 2.3).
                let gain = zfs::geometry(wide, &disks, pool.ashift, pool.version)
                    .ok()
                    .and_then(|new| {
                        let old =
                            zfs::geometry(first.kind, &first.disks, pool.ashift, pool.version)
                                .ok()?;
                        Some(
                            (new.space.saturating_sub(old.space) >> 9)
                                * first.kind.deflate_ratio(pool.ashift),
                        )
                    });
                add(
                    format!(
                        "widen one vdev by a disk of {} (zpool attach)",
                        Decimal.show(smallest)
                    ),
                    gain.and_then(|gain| now.checked_add(gain)),
                );
            }
            if let Some((at, _)) = pool.vdevs.iter().enumerate().rfind(|(_, v)| {
                v.class == Class::Normal && v.disks.iter().max() > v.disks.iter().min()
            }) {
                let mut vdevs = pool.vdevs.clone();
                let largest = vdevs[at].disks.iter().copied().max().unwrap_or(0);
                let small = vdevs[at].disks.iter().copied().min().unwrap_or(0);
                let count = vdevs[at].disks.iter().filter(|&&d| d == small).count();
                vdevs[at]
                    .disks
                    .iter_mut()
                    .filter(|d| **d == small)
                    .for_each(|d| *d = largest);
                add(
                    format!(
                        "replace {count} × {} by {} (zpool replace)",
                        Decimal.show(small),
                        Decimal.show(largest)
                    ),
                    usable(&grown(vdevs), sizes, context),
                );
            }
        }
        _ if matches!(layout, Layout::Btrfs { .. }) && sizes.len() > GROWTH_LIMIT => {}
        Layout::Md(Md::Raid0 | Md::Raid1 | Md::Raid10) => {}
        _ => {
            let largest = sizes.iter().copied().max().unwrap_or(0);
            let smallest = sizes.iter().copied().min().unwrap_or(0);
            for size in [largest, smallest] {
                let mut more = sizes.to_vec();
                more.push(size);
                add(
                    format!("add a disk of {}", Decimal.show(size)),
                    usable(layout, &more, context),
                );
                if largest == smallest {
                    break;
                }
            }
        }
    }
    steps
}
