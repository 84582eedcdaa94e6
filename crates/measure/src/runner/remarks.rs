//! Remarks on a whole run, which are printed before the run and stored with the run.

use crate::runner::targets::Checked;
use assay_model::target::TargetKind;
use assay_model::{Bytes, Facts, Plan, Planned, TargetInfo};

/// Collects remarks that a reader needs to interpret the results.
pub(crate) fn collect_remarks(plan: &Plan, targets: &[TargetInfo], facts: &Facts) -> Vec<String> {
    let mut remarks: Vec<String> = targets
        .iter()
        .flat_map(|info| remarks_on_target(plan, info, facts))
        .collect();
    remarks.dedup();
    remarks
}

/// Returns a remark if only a part of a disk is measured, because there seeks are shorter and caches cover a larger
/// fraction of the data.
pub(crate) fn part_of(target: &Checked) -> Option<String> {
    let (size, whole, name) = (target.info.size, target.whole, &target.info.name);
    (size < whole).then(|| {
        format!(
            "only the first {size} of {whole} of {name} are measured, where seeks are shorter and caches reach further than over all of it: use --size {} for the whole",
            whole.short()
        )
    })
}

fn remarks_on_target(plan: &Plan, info: &TargetInfo, facts: &Facts) -> Vec<String> {
    let mut out = Vec::new();
    let name = &info.name;
    let fs = info.fs_type.as_deref().unwrap_or_default();
    let buffered = plan
        .workloads
        .iter()
        .filter_map(Planned::fio)
        .any(|workload| !workload.direct);
    let ram = facts.u64("memory.total").map(Bytes);
    match fs {
        "tmpfs" | "ramfs" => out.push(format!(
            "{name} is {fs}: it lives in memory, and these figures say nothing about a disk"
        )),
        "overlay" => out.push(format!(
            "{name} is an overlay (container image): new files go to its upper directory; the first write to a file of a lower layer copies the whole file"
        )),
        "zfs" => {
            let arc = facts.u64("zfs.arc.c_max").map(Bytes);
            if let Some(arc) = arc.filter(|arc| info.size < *arc) {
                out.push(format!(
                    "the file of {} fits into the ARC of {arc}: on ZFS reads may be served from memory, also with O_DIRECT before OpenZFS 2.3; use --size {} to measure the disks",
                    info.size,
                    Bytes(arc.0.saturating_mul(2).next_multiple_of(1 << 30)).short()
                ));
            }
        }
        "nfs" | "nfs4" | "cifs" | "smb3" | "fuse.sshfs" | "9p" | "virtiofs" => out.push(format!(
            "{name} is {fs}: the network or the host is part of these figures, and O_DIRECT bypasses this machine's cache only"
        )),
        _ => {}
    }
    if info.kind == TargetKind::Directory
        && let Some(ram) = ram.filter(|_| buffered && fs != "zfs")
        && info.size < ram
    {
        out.push(format!(
            "the file of {} fits into memory ({ram}): workloads through the page cache measure memory as well",
            info.size
        ));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_model::FactKind;
    use assay_model::plan::{Settings, builtin_plan};
    use assay_model::workload::Engine;

    fn target(fs: &str) -> TargetInfo {
        TargetInfo {
            name: "/t".to_owned(),
            kind: TargetKind::Directory,
            fs_type: Some(fs.to_owned()),
            mount_point: None,
            mount_options: None,
            mount_source: None,
            devices: vec![],
            disks: vec![],
            size: Bytes(1 << 30),
            free: None,
        }
    }

    fn said(plan: &str, fs: &str) -> String {
        let settings = Settings {
            targets: vec!["/t".into()],
            engine: Engine::Libaio,
            seed: 1,
        };
        let plan = builtin_plan(plan).unwrap().resolve(&settings).unwrap();
        let mut facts = Facts::default();
        facts.known("memory.total", 16u64 << 30, FactKind::Runtime, "test");
        facts.known("zfs.arc.c_max", 8u64 << 30, FactKind::Runtime, "test");
        collect_remarks(&plan, &[target(fs)], &facts).join("\n")
    }

    #[test]
    fn each_kind_of_place_says_what_it_means() {
        insta::assert_snapshot!(said("quick", "tmpfs"), @"/t is tmpfs: it lives in memory, and these figures say nothing about a disk");
        insta::assert_snapshot!(said("quick", "overlay"), @"/t is an overlay (container image): new files go to its upper directory; the first write to a file of a lower layer copies the whole file");
        insta::assert_snapshot!(said("quick", "zfs"), @"the file of 1 GiB fits into the ARC of 8 GiB: on ZFS reads may be served from memory, also with O_DIRECT before OpenZFS 2.3; use --size 16G to measure the disks");
        insta::assert_snapshot!(said("quick", "nfs4"), @"/t is nfs4: the network or the host is part of these figures, and O_DIRECT bypasses this machine's cache only");
        insta::assert_snapshot!(said("sync", "ext4"), @"the file of 1 GiB fits into memory (16 GiB): workloads through the page cache measure memory as well");
        assert_eq!(
            said("quick", "ext4"),
            "",
            "direct I/O on a disk needs no remark"
        );
    }
}
