//! Converts the command line to the list of layers to measure (`Ladder` in code).

use super::super::layers::understand;
use super::Measure;
use crate::context;
use crate::verbs::run::{read_plan, set_times};
use anyhow::{Context as _, bail};
use assay_host::LiveHost;
use assay_lab::Disk;
use assay_model::plan::{PlanSpec, builtin_plan};
use assay_stack::StackTarget;
use assay_stack::ladder::follow::{Followed, FollowedSetting, follow};
use assay_stack::ladder::{DEFAULT_PLAN, LadderPart, Scratch, Wanted};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Default options of a scratch disk, as key and value. They apply if neither a virtual machine nor the user sets them.
const USUAL: [(&str, &str); 2] = [("format", "qcow2"), ("cache", "none")];
/// Options that exist only for qcow2 images.
const OF_QCOW2: [&str; 4] = ["cluster", "preallocation", "extended_l2", "lazy_refcounts"];

/// Returns what to measure, and remarks that are printed before the measurement.
pub(super) fn wanted(args: &Measure, target: &Path) -> anyhow::Result<Wanted> {
    let (dir, followed) = place(args, target)?;
    let parts: BTreeSet<LadderPart> = match args.layers.is_empty() {
        true => LadderPart::ALL.into(),
        false => args.layers.iter().copied().collect(),
    };
    let (disk, remarks) = disk(args.disk.as_deref(), followed.as_ref())?;
    let mut plan = plan(args)?;
    plan.rounds = args.rounds.or(plan.rounds);
    plan.file_size = args.size;
    plan.seed = args.seed.or(plan.seed);
    set_times(&mut plan, args.runtime, args.ramp);
    plan.targets.clear();
    // A criterion applies to one target.
    plan.want.clear();
    Ok(Wanted {
        target: dir,
        parts,
        scratch: scratch(args)?,
        disk,
        remarks,
        plan,
        memory_mib: u32::try_from(args.memory.0 >> 20).with_context(|| {
            format!(
                "cannot start a guest with {} of memory: it is too much",
                args.memory
            )
        })?,
        accel: args.accel.map(Into::into),
        uid: context::random_uid()?,
        seed: context::random_seed()?,
    })
}

/// Returns the directory for the scratch files. If the target is a virtual machine or an image, also returns the
/// virtual disk whose settings the scratch disk gets.
fn place(args: &Measure, target: &Path) -> anyhow::Result<(PathBuf, Option<Followed>)> {
    let real = |path: &Path| {
        path.canonicalize()
            .with_context(|| path.display().to_string().escape_debug().to_string())
    };
    let target = understand(target)?;
    if let StackTarget::Path(path) = &target
        && real(path)?.is_dir()
    {
        if args.scratch_dir.is_some() || args.vm_disk.is_some() {
            bail!(
                "--scratch-dir and --vm-disk need a virtual machine or an image as TARGET: {} is a directory",
                path.display()
            );
        }
        return Ok((real(path)?, None));
    }
    let followed = follow(&LiveHost, &target, args.vm_disk.as_deref())?;
    let dir = match (&args.scratch_dir, &followed.dir) {
        (Some(dir), _) | (None, Some(dir)) => real(dir)?,
        (None, None) => bail!(
            "cannot create files beside {}: it is on a device. Name a directory on the same storage with \
             --scratch-dir, and the ZFS pool or volume group with --scratch-dataset or --scratch-vg.",
            followed.name.escape_debug()
        ),
    };
    Ok((dir, Some(followed)))
}

/// Returns the scratch disk, and remarks on the source of its settings.
fn disk(asked: Option<&str>, followed: Option<&Followed>) -> anyhow::Result<(Disk, Vec<String>)> {
    let asked: Vec<&str> = asked
        .into_iter()
        .flat_map(|text| text.split(','))
        .filter(|word| !word.is_empty())
        .collect();
    let key = |word: &str| word.split('=').next().unwrap_or_default().to_owned();
    let own: BTreeSet<String> = asked.iter().map(|word| key(word)).collect();
    let usual = USUAL.map(|(key, value)| FollowedSetting {
        key,
        value: value.to_owned(),
        from: "what is usual".to_owned(),
    });
    let found = followed.map_or(&usual[..], |followed| &followed.taken);
    let kept = found.iter().filter(|taken| {
        let of_format = OF_QCOW2.contains(&taken.key) && own.contains("format");
        !own.contains(taken.key) && !of_format
    });
    let kept: Vec<&FollowedSetting> = kept.collect();
    let words = kept
        .iter()
        .map(|taken| format!("{}={}", taken.key, taken.value));
    // The plan determines the size of the test file.
    let words = std::iter::once("512".to_owned())
        .chain(words)
        .chain(asked.iter().map(|&word| word.to_owned()));
    let text = words.collect::<Vec<_>>().join(",");
    let disk = Disk::parse(&text, "stack").context("--disk")?;
    if disk.dir.is_some() || disk.device.is_some() {
        bail!("--disk: leave out dir= and device=, as images are created in TARGET");
    }
    let mut remarks = Vec::new();
    if let Some(followed) = followed {
        remarks.extend(told(followed, &kept, &asked));
    }
    Ok((disk, remarks))
}

/// Returns one line for each source of settings, and one line that lists the settings that are not copied.
fn told(followed: &Followed, kept: &[&FollowedSetting], asked: &[&str]) -> Vec<String> {
    let mut by_place: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for taken in kept {
        let word = format!("{}={}", taken.key, taken.value);
        by_place.entry(&taken.from).or_default().push(word);
    }
    if !asked.is_empty() {
        let words = asked.iter().map(|&word| word.to_owned()).collect();
        by_place.insert("--disk", words);
    }
    let mut lines: Vec<String> = by_place
        .into_iter()
        .map(|(from, words)| {
            format!(
                "scratch disks are like {}: {} (from {from})",
                followed.name,
                words.join(", ")
            )
        })
        .collect();
    if !followed.not.is_empty() {
        lines.push(format!(
            "not followed of {}: {}",
            followed.name,
            followed.not.join("; ")
        ));
    }
    lines
}

fn scratch(args: &Measure) -> anyhow::Result<Scratch> {
    let (group, thin_pool) = match args.scratch_vg.as_deref().map(|text| text.split_once('/')) {
        None => (None, None),
        Some(None) => (args.scratch_vg.clone(), None),
        Some(Some((group, pool))) => (Some(group.to_owned()), Some(pool.to_owned())),
    };
    let mut named = group.iter().chain(&thin_pool);
    if let Some(name) = named.find(|name| !assay_changes::is_lvm_name(name)) {
        bail!(
            "--scratch-vg: {:?} is not an LVM name (letters, digits, + _ . -): write VG or VG/THINPOOL",
            name
        );
    }
    let mut properties = BTreeMap::new();
    for pair in &args.scratch_set {
        let Some((name, value)) = pair.split_once('=') else {
            bail!("--scratch-set: {pair:?} is not PROPERTY=VALUE");
        };
        properties.insert(name.to_owned(), value.to_owned());
    }
    Ok(Scratch {
        dataset: args.scratch_dataset.clone(),
        properties,
        group,
        thin_pool,
    })
}

fn plan(args: &Measure) -> anyhow::Result<PlanSpec> {
    if let Some(path) = &args.plan_file {
        return read_plan(path);
    }
    if let Some(name) = &args.plan {
        let found = builtin_plan(name).with_context(|| {
            format!("unknown plan `{name}`: `assay run --help` lists the plans")
        })?;
        // The duration of a built-in plan does not apply to this measurement.
        return Ok(PlanSpec {
            rounds: None,
            runtime: None,
            ramp: None,
            ..found
        });
    }
    match args.one.plan() {
        Some(plan) => Ok(plan),
        None => Ok(PlanSpec::from_toml(DEFAULT_PLAN, "stack.toml")?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_lab::disk::DiskFormat;

    fn followed() -> Followed {
        let taken = [
            ("format", "qcow2", "the header of /srv/web.qcow2"),
            ("cluster", "128k", "the header of /srv/web.qcow2"),
            ("bus", "virtio-scsi", "its command line"),
            ("cache", "writeback", "its command line"),
            ("aio", "io_uring", "its command line"),
        ];
        let taken = taken.map(|(key, value, from)| FollowedSetting {
            key,
            value: value.to_owned(),
            from: from.to_owned(),
        });
        Followed {
            name: "disk scsi0 of web".to_owned(),
            dir: None,
            taken: taken.to_vec(),
            not: vec!["queues 4".to_owned()],
        }
    }

    #[test]
    fn a_disk_is_like_the_one_that_is_there_but_for_what_the_user_says() {
        let (found, lines) = disk(None, Some(&followed())).unwrap();
        assert_eq!(
            found.describe(),
            "qcow2 cluster=128k virtio-scsi writeback io_uring"
        );
        assert_eq!(lines.len(), 3, "{lines:?}");
        insta::assert_snapshot!(lines.join("\n"), @r"
        scratch disks are like disk scsi0 of web: bus=virtio-scsi, cache=writeback, aio=io_uring (from its command line)
        scratch disks are like disk scsi0 of web: format=qcow2, cluster=128k (from the header of /srv/web.qcow2)
        not followed of disk scsi0 of web: queues 4
        ");
        let (found, lines) =
            disk(Some("format=raw,cache=none,iothread"), Some(&followed())).unwrap();
        assert_eq!(found.describe(), "raw virtio-scsi none io_uring iothread");
        assert!(lines[0].contains("(from --disk)"), "{lines:?}");
        let (usual, lines) = disk(None, None).unwrap();
        assert_eq!((usual.format, lines.len()), (DiskFormat::QCOW2, 0));
        let (cached, _) = disk(Some("cache=writeback"), None).unwrap();
        assert_eq!(cached.describe(), "qcow2 virtio-blk writeback threads");
    }
}
