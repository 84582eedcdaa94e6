//! Redundancy, rebuild time and speed of btrfs, Linux software RAID and declustered stripes.

use super::describe::{BlockShare, Content, Facts, Scaling, proportional_part, space_bar};
use super::stripes::place_declustered;
use super::{Context, Md};
use crate::btrfs::{self, Profile};
use crate::durability::DiskGroup;
use crate::error::PlannerError;
use assay_model::size::Convention::Decimal;

pub(super) fn btrfs_facts(
    sizes: &[u64],
    data: Profile,
    metadata: Profile,
    context: &Context,
) -> Result<Facts, PlannerError> {
    let fs = btrfs::simulate_filesystem(sizes, data, metadata)?;
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
            Decimal.show(shown), Decimal.show(shown - fs.stored)
        ));
    }
    let idle: u64 = fs.devices.iter().map(|d| d.unallocated).sum();
    if idle > fs.device_size / 100 {
        warnings.push(format!(
            "{} cannot be used: no other device has room for the other copies or stripes",
            Decimal.show(idle)
        ));
    }
    let disks = fs
        .devices
        .iter()
        .map(|d| {
            let (copy, par) = match data {
                Profile::Raid5 | Profile::Raid6 => (
                    0,
                    proportional_part(d.data, raw.saturating_sub(fs.stored), raw),
                ),
                _ => (d.data - (d.data as f64 / copies) as u64, 0),
            };
            space_bar(&[
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
        groups: vec![DiskGroup {
            disks: sizes.len() as u64,
            survives,
            rebuild_reads: largest * if parity > 0.0 { n - parity } else { 1.0 },
        }],
        warnings,
        blocks: vec![BlockShare {
            block: 4096,
            allocated: None,
            refreservation: None,
            share: fs.stored as f64 / raw.max(1) as f64,
            fits: fs.stored,
            pointers: None,
        }],
        disks,
        raw: sizes.iter().sum(),
        zfs: None,
        btrfs: Some(fs),
    })
}

/// Offset of the data with mdadm's 1.2 superblock on disks above 128 GiB: 264,192 sectors
/// (`add_to_super1`/`init_super1`, super1.c, mdadm 4.2). Smaller disks have a smaller offset.
const MD_OFFSET: u64 = 264_192 * 512;
/// Default chunk size of mdadm in bytes.
const MD_CHUNK: u64 = 512 << 10;

pub(super) fn md_facts(level: Md, sizes: &[u64], context: &Context) -> Result<Facts, PlannerError> {
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
        return Err(PlannerError::layout(
            name,
            format!("needs at least {least} disks, {n} are given"),
        ));
    }
    let min = sizes.iter().copied().min().unwrap_or(0);
    let component = min.saturating_sub(MD_OFFSET) / MD_CHUNK * MD_CHUNK;
    if component == 0 {
        return Err(PlannerError::layout(name, "the smallest disk is too small"));
    }
    let components = |disk: u64| disk.saturating_sub(MD_OFFSET) / MD_CHUNK * MD_CHUNK;
    let usable = match level {
        Md::Raid0 => sizes.iter().map(|&disk| components(disk)).sum(),
        Md::Raid1 => component,
        Md::Raid10 => proportional_part(component, n, 2) / MD_CHUNK * MD_CHUNK,
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
                _ => (0, proportional_part(used, parity, n)),
            };
            space_bar(&[
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
        // md rebuilds the whole component, including unused space.
        rebuild: (level != Md::Raid0).then_some(component as f64 / speed),
        scaling,
        groups: match level {
            Md::Raid10 => vec![
                DiskGroup {
                    disks: 2,
                    survives: 1,
                    rebuild_reads: component as f64
                };
                (n / 2) as usize
            ],
            _ => vec![DiskGroup {
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

pub(super) fn declustered_facts(
    data: u64,
    parity: u64,
    sizes: &[u64],
    context: &Context,
) -> Result<Facts, PlannerError> {
    let placed = place_declustered(sizes, data, parity)?;
    let n = sizes.len() as u64;
    let width = data + parity;
    let lost = placed.per_disk.iter().copied().max().unwrap_or(0) as f64 * context.fill;
    let groups = n as f64 / width as f64;
    let disks = placed
        .per_disk
        .iter()
        .zip(sizes)
        .map(|(&used, &disk)| {
            let par = proportional_part(used, parity, width);
            space_bar(&[
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
        groups: vec![DiskGroup { disks: n, survives: parity, rebuild_reads: lost * data as f64 }],
        warnings: vec!["a bound: no file system in wide use lays stripes out like this (bcachefs' erasure coding and Ceph come near)".into()],
        blocks: vec![BlockShare {
            block: 0,
            allocated: None,
            refreservation: None,
            share: data as f64 / width as f64,
            fits: placed.data,
            pointers: None,
        }],
        disks,
        raw: sizes.iter().sum(),
        zfs: None,
        btrfs: None,
    })
}
