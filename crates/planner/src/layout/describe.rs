//! What a layout is worth: every figure of one row.

use super::{Context, Disk, Layout, Md, check_disks, stripes::declustered};
use crate::btrfs::{self, Profile};
use crate::durability::{Group, loss_of_groups};
use crate::error::PlanError;
use crate::size::vendor;
use crate::zfs::{self, Class, Kind, Pool, PoolVdev};
use serde::Serialize;

/// Block sizes for which the efficiency is shown.
const BLOCKS: [u64; 6] = [4 << 10, 8 << 10, 16 << 10, 64 << 10, 128 << 10, 1 << 20];

/// Speed against one disk, by arithmetic, not by measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Scaling {
    /// Long reads.
    pub stream_read: f64,
    /// Long writes.
    pub stream_write: f64,
    /// Small reads.
    pub random_read: f64,
    /// Small writes.
    pub random_write: f64,
}

/// What lies on a part of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Content {
    /// First copy of data.
    Data,
    /// Further copies.
    Copy,
    /// Parity.
    Parity,
    /// Metadata and system chunks of btrfs.
    Metadata,
    /// Distributed or hot spare.
    Spare,
    /// Special, dedup, log or cache vdev.
    Special,
    /// Nothing: no other disk has room to pair with it.
    Idle,
}

/// A part of a disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Segment {
    /// What lies there.
    pub content: Content,
    /// Bytes.
    pub bytes: u64,
}

/// One step of growth.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Growth {
    /// What to do.
    pub action: String,
    /// Usable bytes that it gives.
    pub gives: u64,
}

/// Share of a block that is not parity, padding or a copy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BlockShare {
    /// recordsize or volblocksize in bytes, after compression.
    pub block: u64,
    /// Data bytes for each byte on the disks.
    pub share: f64,
    /// Bytes of such blocks that fit.
    pub fits: u64,
}

/// A layout and its figures. Sizes are bytes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// As `--only` reads it.
    pub layout: String,
    /// zfs, btrfs, mdraid or declustered.
    pub family: &'static str,
    /// All disks together.
    pub raw: u64,
    /// What can be stored: `zfs list` used + available; what btrfs takes until it is full.
    pub usable: u64,
    /// usable / raw.
    pub efficiency: f64,
    /// False where the figure is a bound or an approximation.
    pub exact: bool,
    /// ZFS: what the tools will show.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub zfs: Option<zfs::Capacity>,
    /// btrfs: what the tools will show.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub btrfs: Option<btrfs::Filesystem>,
    /// btrfs: the stored bytes again, for scripts that ask for one figure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored: Option<u64>,
    /// Failed disks survived, whichever they are.
    pub survives: u64,
    /// Failed disks survived if they are the right ones.
    pub survives_at_best: u64,
    /// Which one failure more is fatal, and how likely it is to be that one.
    pub unlucky: String,
    /// Share of the sets of `survives + 1` failed disks that lose data.
    pub unlucky_share: f64,
    /// Efficiency by block size.
    pub blocks: Vec<BlockShare>,
    /// Seconds until redundancy is back, at the assumed speed and fill; none without redundancy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rebuild_seconds: Option<f64>,
    /// Speed in multiples of one disk.
    pub scaling: Scaling,
    /// Probability of losing data within a year, under the stated assumptions.
    pub loss_per_year: f64,
    /// What to add next.
    pub growth: Vec<Growth>,
    /// Price of all disks, when each has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Price of a usable TiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_per_tib: Option<f64>,
    /// What to know before choosing it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Not beaten in everything by another layout of the same answer.
    pub pareto: bool,
    /// Disks from front to back: what lies on each.
    pub disks: Vec<Vec<Segment>>,
}

/// What a family contributes.
pub(super) struct Facts {
    usable: u64,
    exact: bool,
    survives: u64,
    at_best: u64,
    unlucky: String,
    unlucky_share: f64,
    rebuild: Option<f64>,
    scaling: Scaling,
    groups: Vec<Group>,
    warnings: Vec<String>,
    blocks: Vec<BlockShare>,
    disks: Vec<Vec<Segment>>,
    raw: u64,
    zfs: Option<zfs::Capacity>,
    btrfs: Option<btrfs::Filesystem>,
}

/// All figures of one layout over disks in the given order.
///
/// # Errors
/// When the layout does not fit the disks.
pub fn describe(layout: &Layout, disks: &[Disk], context: &Context) -> Result<Plan, PlanError> {
    check_disks(disks)?;
    context.failures.check()?;
    let sizes: Vec<u64> = disks.iter().map(|disk| disk.size).collect();
    let facts = facts(layout, &sizes, context)?;
    let mut failures = context.failures;
    if let Some(seconds) = facts.rebuild {
        failures.rebuild_hours = (seconds / 3600.0).clamp(1e-3, 1e6);
    }
    let cost = disks
        .iter()
        .try_fold(0.0, |sum, disk| disk.price.map(|price| sum + price));
    Ok(Plan {
        layout: layout.spec(),
        family: match layout {
            Layout::Zfs(_) => "zfs",
            Layout::Btrfs { .. } => "btrfs",
            Layout::Md(_) => "mdraid",
            Layout::Declustered { .. } => "declustered",
        },
        raw: facts.raw,
        usable: facts.usable,
        efficiency: facts.usable as f64 / facts.raw.max(1) as f64,
        exact: facts.exact,
        stored: facts.btrfs.as_ref().map(|fs| fs.stored),
        zfs: facts.zfs,
        btrfs: facts.btrfs,
        survives: facts.survives,
        survives_at_best: facts.at_best,
        unlucky: facts.unlucky,
        unlucky_share: facts.unlucky_share,
        blocks: facts.blocks,
        rebuild_seconds: facts.rebuild,
        scaling: facts.scaling,
        loss_per_year: loss_of_groups(&facts.groups, &failures),
        growth: growth(layout, &sizes, facts.usable, context),
        cost,
        cost_per_tib: cost.map(|cost| cost / (facts.usable.max(1) as f64 / (1u64 << 40) as f64)),
        warnings: facts.warnings,
        pareto: false,
        disks: facts.disks,
    })
}

fn facts(layout: &Layout, sizes: &[u64], context: &Context) -> Result<Facts, PlanError> {
    match layout {
        Layout::Zfs(pool) => zfs_facts(pool, context),
        Layout::Btrfs { data, metadata } => btrfs_facts(sizes, *data, *metadata, context),
        Layout::Md(level) => md_facts(*level, sizes, context),
        Layout::Declustered { data, parity } => declustered_facts(*data, *parity, sizes, context),
    }
}

/// Binomial coefficient as a float.
fn choose(n: u64, k: u64) -> f64 {
    if k > n {
        return 0.0;
    }
    (0..k).fold(1.0, |product, i| product * (n - i) as f64 / (k - i) as f64)
}

fn bar(parts: &[(Content, u64)]) -> Vec<Segment> {
    parts
        .iter()
        .filter(|(_, bytes)| *bytes > 0)
        .map(|&(content, bytes)| Segment { content, bytes })
        .collect()
}

fn zfs_facts(pool: &Pool, context: &Context) -> Result<Facts, PlanError> {
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
            Kind::Single => None,
            Kind::Mirror { .. } | Kind::Raidz { .. } => Some(child / speed),
            Kind::Draid {
                data,
                children,
                spares,
                ..
            } if spares > 0 => {
                // Every disk reads its part of the other columns and writes its part of the spare.
                Some(child * (data + 1) as f64 / (children - 1) as f64 / speed)
            }
            Kind::Draid { .. } => Some(child / speed),
        };
        rebuild = match (rebuild, seconds) {
            (Some(a), Some(b)) => Some(f64::max(a, b)),
            (a, b) => a.or(b),
        };
        let reads = match vdev.kind {
            Kind::Single => 0.0,
            Kind::Mirror { .. } => child,
            Kind::Raidz { parity, children } => child * (children - parity) as f64,
            Kind::Draid { data, .. } => child * data as f64,
        };
        groups.push(Group {
            disks: vdev.kind.children(),
            survives: vdev.kind.survives(),
            rebuild_reads: reads,
        });
        if vdev.class != Class::Normal {
            continue;
        }
        let (stream_read, stream_write, random_read, random_write) = match vdev.kind {
            Kind::Single => (1.0, 1.0, 1.0, 1.0),
            Kind::Mirror { children } => (children as f64, 1.0, children as f64, 1.0),
            Kind::Raidz { parity, children } => {
                let data = (children - parity) as f64;
                (data, data, 1.0, 1.0)
            }
            Kind::Draid {
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
    if pool.vdevs.iter().any(|v| v.class == Class::Special) {
        warnings.push(
            "what lies on the special vdev also counts as used in zfs list, so AVAIL shrinks by it"
                .into(),
        );
    }
    let lost: u64 = normal
        .iter()
        .map(|v| {
            let min = v.disks.iter().min().unwrap_or(&0);
            v.disks.iter().map(|d| d - min).sum::<u64>()
        })
        .sum();
    if lost > 0 {
        warnings.push(format!("{} of the larger disks lie idle", vendor(lost)));
    }
    let widest = normal.iter().map(|v| v.kind.survives()).max()
        != normal.iter().map(|v| v.kind.survives()).min();
    if widest {
        warnings.push("vdevs of unequal redundancy; zpool create asks for -f".into());
    }
    let blocks = BLOCKS
        .iter()
        .map(|&block| {
            let (data, raw): (u64, u64) = normal.iter().fold((0, 0), |(d, r), v| {
                (d + block, r + v.kind.raw(block, pool.ashift))
            });
            BlockShare {
                block,
                share: data as f64 / raw.max(1) as f64,
                fits: pool.data_at(block, &capacity),
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
        Some(Kind::Single) | None => "any one disk".into(),
        Some(kind) if vital.len() == 1 => format!("any {} disks", kind.survives() + 1),
        Some(Kind::Mirror { children }) => format!("all {children} disks of one mirror"),
        Some(kind) => format!("{} disks of one {kind} vdev", survives + 1),
    }
}

fn vdev_bars(vdev: &PoolVdev) -> Vec<Vec<Segment>> {
    let min = vdev.disks.iter().copied().min().unwrap_or(0);
    vdev.disks
        .iter()
        .enumerate()
        .map(|(i, &disk)| match (vdev.class, vdev.kind) {
            (Class::Spare, _) => bar(&[(Content::Spare, disk)]),
            (Class::Normal, Kind::Single) => bar(&[(Content::Data, disk)]),
            (Class::Normal, Kind::Mirror { .. }) => {
                let content = if i == 0 { Content::Data } else { Content::Copy };
                bar(&[(content, min), (Content::Idle, disk - min)])
            }
            (Class::Normal, Kind::Raidz { parity, children }) => {
                let shared = part(min, parity, children);
                bar(&[
                    (Content::Data, min - shared),
                    (Content::Parity, shared),
                    (Content::Idle, disk - min),
                ])
            }
            (
                Class::Normal,
                Kind::Draid {
                    parity,
                    data,
                    children,
                    spares,
                },
            ) => {
                let spare = part(min, spares, children);
                let shared = part(min - spare, parity, data + parity);
                bar(&[
                    (Content::Data, min - spare - shared),
                    (Content::Parity, shared),
                    (Content::Spare, spare),
                    (Content::Idle, disk - min),
                ])
            }
            _ => bar(&[(Content::Special, min), (Content::Idle, disk - min)]),
        })
        .collect()
}

/// `whole · share / of`, rounded down.
fn part(whole: u64, share: u64, of: u64) -> u64 {
    u64::try_from(u128::from(whole) * u128::from(share) / u128::from(of.max(1))).unwrap_or(0)
}

fn btrfs_facts(
    sizes: &[u64],
    data: Profile,
    metadata: Profile,
    context: &Context,
) -> Result<Facts, PlanError> {
    let fs = btrfs::simulate(sizes, data, metadata)?;
    let n = sizes.len() as f64;
    let survives = data.survives().min(metadata.survives());
    let speed = context.disk_speed.max(1) as f64;
    let raw: u64 = fs.devices.iter().map(|d| d.data).sum();
    let largest = fs.devices.iter().map(|d| d.data).max().unwrap_or(0) as f64 * context.fill;
    let mirrored = matches!(data, Profile::Raid1 | Profile::Raid1c3 | Profile::Raid1c4);
    let rebuild = (survives > 0).then_some(largest / speed);
    let copies = match data {
        Profile::Raid1 | Profile::Raid10 | Profile::Dup => 2.0,
        Profile::Raid1c3 => 3.0,
        Profile::Raid1c4 => 4.0,
        _ => 1.0,
    };
    let parity = match data {
        Profile::Raid5 => 1.0,
        Profile::Raid6 => 2.0,
        _ => 0.0,
    };
    let scaling = match data {
        Profile::Single | Profile::Dup => Scaling {
            stream_read: 1.0,
            stream_write: 1.0 / copies,
            random_read: n,
            random_write: n / copies,
        },
        _ if mirrored => Scaling {
            stream_read: 1.0,
            stream_write: 1.0,
            random_read: n,
            random_write: n / copies,
        },
        Profile::Raid5 | Profile::Raid6 => Scaling {
            stream_read: n - parity,
            stream_write: n - parity,
            random_read: n,
            random_write: n / (2.0 * (parity + 1.0)),
        },
        _ => Scaling {
            stream_read: n / copies,
            stream_write: n / copies,
            random_read: n,
            random_write: n / copies,
        },
    };
    let mut warnings = Vec::new();
    if matches!(data, Profile::Raid5 | Profile::Raid6)
        || matches!(metadata, Profile::Raid5 | Profile::Raid6)
    {
        warnings.push("btrfs raid5/6 can lose data after a power cut during a write (write hole) and scrubs slowly; its own documentation advises against it except for testing".into());
    }
    if survives == 0 {
        warnings.push("one failed device loses data".into());
    }
    let shown = fs.usage_free_estimated;
    if shown > fs.stored && (shown - fs.stored) as f64 > 0.02 * fs.stored as f64 {
        warnings.push(format!(
            "btrfs filesystem usage promises {} free in the beginning, {} more than fits: it does not see that the devices are unequal",
            vendor(shown), vendor(shown - fs.stored)
        ));
    }
    let idle: u64 = fs.devices.iter().map(|d| d.unallocated).sum();
    if idle > fs.device_size / 100 {
        warnings.push(format!(
            "{} cannot be used: no other device has room for the other copies or stripes",
            vendor(idle)
        ));
    }
    let disks = fs
        .devices
        .iter()
        .map(|d| {
            let (copy, par) = match data {
                Profile::Raid5 | Profile::Raid6 => {
                    (0, part(d.data, raw.saturating_sub(fs.stored), raw))
                }
                _ => (d.data - (d.data as f64 / copies) as u64, 0),
            };
            bar(&[
                (Content::Data, d.data - copy - par),
                (Content::Copy, copy),
                (Content::Parity, par),
                (Content::Metadata, d.metadata + d.system),
                (Content::Idle, d.unallocated),
            ])
        })
        .collect();
    Ok(Facts {
        usable: fs.stored,
        exact: !fs.bulk,
        survives,
        at_best: match data {
            Profile::Raid10 => sizes.len() as u64 / 2,
            _ => survives,
        },
        unlucky: match survives {
            0 => "any one device".into(),
            _ => format!(
                "any {} devices that share a chunk; once full, almost any",
                survives + 1
            ),
        },
        unlucky_share: 1.0,
        rebuild,
        scaling,
        groups: vec![Group {
            disks: sizes.len() as u64,
            survives,
            rebuild_reads: largest * if parity > 0.0 { n - parity } else { 1.0 },
        }],
        warnings,
        blocks: vec![BlockShare {
            block: 4096,
            share: fs.stored as f64 / raw.max(1) as f64,
            fits: fs.stored,
        }],
        disks,
        raw: sizes.iter().sum(),
        zfs: None,
        btrfs: Some(fs),
    })
}

/// Data offset of mdadm's 1.2 superblock on disks above 128 GiB: 264,192 sectors
/// (`add_to_super1`/`init_super1`, super1.c, mdadm 4.2); less on small ones.
const MD_OFFSET: u64 = 264_192 * 512;
/// Default chunk of mdadm.
const MD_CHUNK: u64 = 512 << 10;

fn md_facts(level: Md, sizes: &[u64], context: &Context) -> Result<Facts, PlanError> {
    let n = sizes.len() as u64;
    let name = format!("md-{}", format!("{level:?}").to_lowercase());
    let (least, parity) = match level {
        Md::Raid0 => (2, 0),
        Md::Raid1 => (2, n.saturating_sub(1)),
        Md::Raid10 => (2, 1),
        Md::Raid5 => (3, 1),
        Md::Raid6 => (4, 2),
    };
    if n < least {
        return Err(PlanError::layout(
            name,
            format!("needs at least {least} disks, {n} are given"),
        ));
    }
    let min = sizes.iter().copied().min().unwrap_or(0);
    let component = min.saturating_sub(MD_OFFSET) / MD_CHUNK * MD_CHUNK;
    if component == 0 {
        return Err(PlanError::layout(name, "the smallest disk is too small"));
    }
    let components = |disk: u64| disk.saturating_sub(MD_OFFSET) / MD_CHUNK * MD_CHUNK;
    let usable = match level {
        Md::Raid0 => sizes.iter().map(|&disk| components(disk)).sum(),
        Md::Raid1 => component,
        Md::Raid10 => part(component, n, 2) / MD_CHUNK * MD_CHUNK,
        _ => component * (n - parity),
    };
    let speed = context.disk_speed.max(1) as f64;
    let f = n as f64;
    let scaling = match level {
        Md::Raid0 => Scaling {
            stream_read: f,
            stream_write: f,
            random_read: f,
            random_write: f,
        },
        Md::Raid1 => Scaling {
            stream_read: 1.0,
            stream_write: 1.0,
            random_read: f,
            random_write: 1.0,
        },
        Md::Raid10 => Scaling {
            stream_read: f / 2.0,
            stream_write: f / 2.0,
            random_read: f,
            random_write: f / 2.0,
        },
        _ => {
            let data = f - parity as f64;
            Scaling {
                stream_read: data,
                stream_write: data,
                random_read: f,
                random_write: f / (2.0 * (parity as f64 + 1.0)),
            }
        }
    };
    let mut warnings =
        vec!["the file system on top takes its own share; no checksums of data".to_owned()];
    if matches!(level, Md::Raid5 | Md::Raid6) {
        warnings.push(
            "a power cut while degraded can corrupt a stripe unless a journal or PPL is used"
                .into(),
        );
    }
    let idle = |disk: u64| if level == Md::Raid0 { 0 } else { disk - min };
    let disks = sizes
        .iter()
        .enumerate()
        .map(|(i, &disk)| {
            let used = disk - idle(disk);
            let (copy, par) = match level {
                Md::Raid0 => (0, 0),
                Md::Raid1 => (if i == 0 { 0 } else { used }, 0),
                Md::Raid10 => (used / 2, 0),
                _ => (0, part(used, parity, n)),
            };
            bar(&[
                (Content::Data, used - copy - par),
                (Content::Copy, copy),
                (Content::Parity, par),
                (Content::Idle, idle(disk)),
            ])
        })
        .collect();
    let unlucky_share = match level {
        Md::Raid10 if n.is_multiple_of(2) => 1.0 / (f - 1.0),
        _ => 1.0,
    };
    Ok(Facts {
        usable,
        exact: false,
        survives: if level == Md::Raid0 { 0 } else { parity },
        at_best: match level {
            Md::Raid10 => n / 2,
            _ => parity,
        },
        unlucky: match level {
            Md::Raid0 => "any one disk".into(),
            Md::Raid10 => "both disks that hold the same chunk".into(),
            _ => format!("any {} disks", parity + 1),
        },
        unlucky_share,
        // md rebuilds the whole component, used or not.
        rebuild: (level != Md::Raid0).then_some(component as f64 / speed),
        scaling,
        groups: match level {
            Md::Raid10 => vec![
                Group {
                    disks: 2,
                    survives: 1,
                    rebuild_reads: component as f64
                };
                (n / 2) as usize
            ],
            _ => vec![Group {
                disks: n,
                survives: if level == Md::Raid0 { 0 } else { parity },
                rebuild_reads: component as f64
                    * if matches!(level, Md::Raid5 | Md::Raid6) {
                        f - parity as f64
                    } else {
                        1.0
                    },
            }],
        },
        warnings,
        blocks: Vec::new(),
        disks,
        raw: sizes.iter().sum(),
        zfs: None,
        btrfs: None,
    })
}

fn declustered_facts(
    data: u64,
    parity: u64,
    sizes: &[u64],
    context: &Context,
) -> Result<Facts, PlanError> {
    let placed = declustered(sizes, data, parity)?;
    let n = sizes.len() as u64;
    let width = data + parity;
    let lost = placed.per_disk.iter().copied().max().unwrap_or(0) as f64 * context.fill;
    let groups = n as f64 / width as f64;
    let disks = placed
        .per_disk
        .iter()
        .zip(sizes)
        .map(|(&used, &disk)| {
            let par = part(used, parity, width);
            bar(&[
                (Content::Data, used - par),
                (Content::Parity, par),
                (Content::Idle, disk - used),
            ])
        })
        .collect();
    Ok(Facts {
        usable: placed.data,
        exact: true,
        survives: parity,
        at_best: parity,
        unlucky: format!("any {} disks that share a stripe; with many stripes, any", parity + 1),
        unlucky_share: 1.0,
        rebuild: (parity > 0).then(|| {
            lost * (data + 1) as f64 / (n.max(2) - 1) as f64 / context.disk_speed.max(1) as f64
        }),
        scaling: Scaling {
            stream_read: n as f64 * data as f64 / width as f64,
            stream_write: n as f64 * data as f64 / width as f64,
            random_read: n as f64,
            random_write: groups,
        },
        groups: vec![Group { disks: n, survives: parity, rebuild_reads: lost * data as f64 }],
        warnings: vec!["a bound: no file system in wide use lays stripes out like this (bcachefs' erasure coding and Ceph come near)".into()],
        blocks: vec![BlockShare {
            block: 0,
            share: data as f64 / width as f64,
            fits: placed.data,
        }],
        disks,
        raw: sizes.iter().sum(),
        zfs: None,
        btrfs: None,
    })
}

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

fn growth(layout: &Layout, sizes: &[u64], now: u64, context: &Context) -> Vec<Growth> {
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
                format!("add {} of {} (zpool add)", first.kind, vendor(smallest)),
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
                        vendor(smallest)
                    ),
                    gain.and_then(|gain| now.checked_add(gain)),
                );
            }
            if let Some((at, _)) = pool
                .vdevs
                .iter()
                .enumerate()
                .filter(|(_, v)| {
                    v.class == Class::Normal && v.disks.iter().max() > v.disks.iter().min()
                })
                .next_back()
            {
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
                        vendor(small),
                        vendor(largest)
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
                    format!("add a disk of {}", vendor(size)),
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
