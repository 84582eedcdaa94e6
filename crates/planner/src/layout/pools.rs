//! Redundancy, rebuild time and speed of ZFS pools.

use super::Context;
use super::describe::{BlockShare, Content, Facts, Scaling, Segment, proportional_part, space_bar};
use crate::durability::DiskGroup;
use crate::error::PlannerError;
use crate::zfs::{self, Class, Pool, PoolVdev, VdevKind};
use assay_model::size::Convention::{Binary, Decimal};

/// Maximum number of disks in a raidz vdev without a warning; zpoolconcepts(7) recommends 3 to 9.
const WIDE: usize = 12;

/// Returns the binomial coefficient n over k.
fn choose(n: u64, k: u64) -> f64 {
    if k > n {
        return 0.0;
    }
    (0..k).fold(1.0, |product, i| product * (n - i) as f64 / (k - i) as f64)
}

pub(super) fn zfs_facts(pool: &Pool, context: &Context) -> Result<Facts, PlannerError> {
    let capacity = pool.capacity()?;
    let vital: Vec<&PoolVdev> = pool
        .vdevs
        .iter()
        .filter(|v| matches!(v.class, Class::Normal | Class::Special | Class::Dedup))
        .collect();
    let normal: Vec<&PoolVdev> = vital
        .iter()
        .copied()
        .filter(|v| v.class == Class::Normal)
        .collect();
    let survives = vital.iter().map(|v| v.kind.survives()).min().unwrap_or(0);
    let at_best = vital.iter().map(|v| v.kind.survives()).sum();
    let total: u64 = vital.iter().map(|v| v.kind.children()).sum();
    let fatal: f64 = vital
        .iter()
        .filter(|v| v.kind.survives() == survives)
        .map(|v| choose(v.kind.children(), survives + 1))
        .sum();
    let mut rebuild: Option<f64> = None;
    let mut scaling = Scaling::default();
    let mut groups = Vec::new();
    for vdev in &vital {
        let child = vdev.disks.iter().copied().min().unwrap_or(0) as f64 * context.fill;
        let speed = context.disk_speed.max(1) as f64;
        let seconds = match vdev.kind {
            VdevKind::Single => None,
            VdevKind::Mirror { .. } | VdevKind::Raidz { .. } => Some(child / speed),
            VdevKind::Draid {
                data,
                children,
                spares,
                ..
            } if spares > 0 => {
                // Every disk reads its part of the other columns and writes its part of the spare.
                Some(child * (data + 1) as f64 / (children - 1) as f64 / speed)
            }
            VdevKind::Draid { .. } => Some(child / speed),
        };
        rebuild = match (rebuild, seconds) {
            (Some(a), Some(b)) => Some(f64::max(a, b)),
            (a, b) => a.or(b),
        };
        let reads = match vdev.kind {
            VdevKind::Single => 0.0,
            VdevKind::Mirror { .. } => child,
            VdevKind::Raidz { parity, children } => child * (children - parity) as f64,
            VdevKind::Draid { data, .. } => child * data as f64,
        };
        groups.push(DiskGroup {
            disks: vdev.kind.children(),
            survives: vdev.kind.survives(),
            rebuild_reads: reads,
        });
        if vdev.class != Class::Normal {
            continue;
        }
        let (stream_read, stream_write, random_read, random_write) = match vdev.kind {
            VdevKind::Single => (1.0, 1.0, 1.0, 1.0),
            VdevKind::Mirror { children } => (children as f64, 1.0, children as f64, 1.0),
            VdevKind::Raidz { parity, children } => {
                let data = (children - parity) as f64;
                (data, data, 1.0, 1.0)
            }
            VdevKind::Draid {
                parity,
                data,
                children,
                spares,
            } => {
                let groups = (children - spares) as f64 / (data + parity) as f64;
                (groups * data as f64, groups * data as f64, groups, groups)
            }
        };
        scaling.stream_read += stream_read;
        scaling.stream_write += stream_write;
        scaling.random_read += random_read;
        scaling.random_write += random_write;
    }
    let mut warnings = Vec::new();
    if survives == 0 {
        warnings.push("one failed disk loses the pool".into());
    }
    if vital.iter().any(|v| {
        v.class == Class::Special
            && v.kind.survives() < normal.iter().map(|n| n.kind.survives()).min().unwrap_or(0)
    }) {
        warnings.push(
            "the special vdev survives fewer failures than the data; losing it loses the pool"
                .into(),
        );
    }
    let special: u64 = (capacity.vdevs.iter())
        .filter(|v| v.class == Class::Special)
        .map(|v| v.deflated)
        .sum();
    let usual = pool.data_at(zfs::DEFLATE_BLOCK, &capacity);
    let needed = zfs::block_pointer_bytes(usual, zfs::DEFLATE_BLOCK);
    if special > 0 && special < needed {
        warnings.push(format!(
            "the special vdev holds {}, and the block pointers of a pool full of 128 KiB records alone may take \
             {}: what does not fit goes to the other vdevs",
            Binary.show(special),
            Binary.show(needed)
        ));
    }
    if special > 0 {
        warnings.push(match pool.version.special_is_available() {
            true => "USED + AVAIL of zfs list grows by what lies on the special vdev".into(),
            false => "what lies on the special vdev counts as used in zfs list but never as \
                      available, so AVAIL shrinks by it"
                .into(),
        });
    }
    let lost: u64 = normal
        .iter()
        .map(|v| {
            let min = v.disks.iter().min().unwrap_or(&0);
            v.disks.iter().map(|d| d - min).sum::<u64>()
        })
        .sum();
    if lost > 0 {
        warnings.push(format!(
            "{} of the larger disks lie idle",
            Decimal.show(lost)
        ));
    }
    let wide = normal
        .iter()
        .filter(|v| matches!(v.kind, VdevKind::Raidz { .. }))
        .map(|v| v.disks.len())
        .max();
    if let Some(wide) = wide.filter(|wide| *wide > WIDE) {
        warnings.push(format!(
            "{wide} disks in one raidz vdev: rebuilds read all of them and it has the random speed of one \
             disk; zpoolconcepts(7) recommends 3 to 9, several vdevs or dRAID beyond"
        ));
    }
    let widest = normal.iter().map(|v| v.kind.survives()).max()
        != normal.iter().map(|v| v.kind.survives()).min();
    if widest {
        warnings.push("vdevs of unequal redundancy; zpool create asks for -f".into());
    }
    let kinds: Vec<VdevKind> = normal.iter().map(|v| v.kind).collect();
    let blocks = context
        .blocks
        .iter()
        .map(|&block| {
            let (data, raw): (u64, u64) = normal.iter().fold((0, 0), |(d, r), v| {
                (d + block, r + v.kind.raw(block, pool.ashift))
            });
            BlockShare {
                block,
                allocated: kinds.first().map(|kind| kind.allocated(block, pool.ashift)),
                refreservation: context.volume.map(|size| {
                    zfs::zvol_refreservation(&kinds, pool.ashift, size, block, pool.version)
                }),
                share: data as f64 / raw.max(1) as f64,
                fits: pool.data_at(block, &capacity),
                pointers: Some(zfs::block_pointer_bytes(
                    pool.data_at(block, &capacity),
                    block,
                )),
            }
        })
        .collect();
    let disks = pool.vdevs.iter().flat_map(vdev_bars).collect();
    Ok(Facts {
        usable: capacity.zfs_usable,
        exact: true,
        survives,
        at_best,
        unlucky: unlucky_zfs(&vital, survives),
        unlucky_share: fatal / choose(total, survives + 1).max(1.0),
        rebuild,
        scaling,
        groups,
        warnings,
        blocks,
        disks,
        raw: pool.vdevs.iter().flat_map(|v| &v.disks).sum(),
        zfs: Some(capacity),
        btrfs: None,
    })
}

fn unlucky_zfs(vital: &[&PoolVdev], survives: u64) -> String {
    let weakest = vital.iter().find(|v| v.kind.survives() == survives);
    match weakest.map(|v| v.kind) {
        Some(VdevKind::Single) | None => "any one disk".into(),
        Some(kind) if vital.len() == 1 => format!("any {} disks", kind.survives() + 1),
        Some(VdevKind::Mirror { children }) => format!("all {children} disks of one mirror"),
        Some(kind) => format!("{} disks of one {kind} vdev", survives + 1),
    }
}

fn vdev_bars(vdev: &PoolVdev) -> Vec<Vec<Segment>> {
    let min = vdev.disks.iter().copied().min().unwrap_or(0);
    vdev.disks
        .iter()
        .enumerate()
        .map(|(i, &disk)| match (vdev.class, vdev.kind) {
            (Class::Spare, _) => space_bar(&[(Content::Spare, disk)]),
            (Class::Normal, VdevKind::Single) => space_bar(&[(Content::Data, disk)]),
            (Class::Normal, VdevKind::Mirror { .. }) => {
                let content = if i == 0 { Content::Data } else { Content::Copy };
                space_bar(&[(content, min), (Content::Idle, disk - min)])
            }
            (Class::Normal, VdevKind::Raidz { parity, children }) => {
                let shared = proportional_part(min, parity, children);
                space_bar(&[
                    (Content::Data, min - shared),
                    (Content::Parity, shared),
                    (Content::Idle, disk - min),
                ])
            }
            (
                Class::Normal,
                VdevKind::Draid {
                    parity,
                    data,
                    children,
                    spares,
                },
            ) => {
                let spare = proportional_part(min, spares, children);
                let shared = proportional_part(min - spare, parity, data + parity);
                space_bar(&[
                    (Content::Data, min - spare - shared),
                    (Content::Parity, shared),
                    (Content::Spare, spare),
                    (Content::Idle, disk - min),
                ])
            }
            _ => space_bar(&[(Content::Special, min), (Content::Idle, disk - min)]),
        })
        .collect()
}
