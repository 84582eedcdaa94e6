//! Reads the present configuration of a mounted file system.

use super::{FileSystem, MOUNT};
use crate::side_by_side::ArmError;
use crate::side_by_side::child::Program;
use crate::side_by_side::teardown::Things;
use assay_loads::Cancel;
use std::ffi::{OsStr, OsString};
use std::path::Path;

impl FileSystem {
    /// Returns type and options from the kernel (/proc/self/mounts), the features of the file system
    /// (dumpe2fs, xfs_info, btrfs), and how the loop device reads its file.
    pub fn read_back(&self, things: &Things<'_>) -> Result<String, ArmError> {
        let mounts = things.host.read_text(Path::new("/proc/self/mounts"))?;
        let options =
            find_mount_options(&mounts, &self.device).ok_or_else(|| ArmError::Server {
                program: things.kept(MOUNT).display().to_string(),
                source: format!("{} is no longer mounted", self.device).into(),
            })?;
        let mut parts = vec![options];
        match self.features(things) {
            Ok(Some(features)) => parts.push(features),
            Ok(None) => {}
            Err(error) => parts.push(format!("features unknown: {error}")),
        }
        let name = self.device.trim_start_matches("/dev/");
        let direct = Path::new("/sys/block").join(name).join("loop/dio");
        parts.push(match things.host.read_text(&direct)?.trim() {
            "1" => "loop device with direct I/O".to_owned(),
            _ => "loop device through the page cache".to_owned(),
        });
        Ok(parts.join(", "))
    }

    fn features(&self, things: &Things<'_>) -> Result<Option<String>, ArmError> {
        let device = self.device.as_str();
        let mount = things.kept(MOUNT);
        let words = |words: &[&'static str], last: &OsStr| {
            let words = words.iter().map(OsString::from);
            words.chain([last.to_owned()]).collect::<Vec<_>>()
        };
        let on = OsStr::new(device);
        let (tool, args) = match self.fstype.as_str() {
            "ext2" | "ext3" | "ext4" => ("dumpe2fs", words(&["-h"], on)),
            "xfs" => ("xfs_info", words(&[], mount.as_os_str())),
            "btrfs" => ("btrfs", words(&["inspect-internal", "dump-super"], on)),
            _ => return Ok(None),
        };
        let path = things.host.which(OsStr::new(tool));
        let Some(path) = path else {
            return Ok(Some(format!("features unknown: no {tool}")));
        };
        let program = Program {
            path: &path,
            dir: things.dir(),
            log: "features.log",
        };
        let text = program.run(&args, &Cancel::default())?;
        Ok(Some(match tool {
            "dumpe2fs" => read_ext_options(&text),
            "xfs_info" => read_xfs_options(&text),
            _ => read_btrfs_options(&text),
        }))
    }
}

/// Returns type and options (`ext4 rw,relatime`) of the file system mounted from a device.
fn find_mount_options(mounts: &str, device: &str) -> Option<String> {
    mounts.lines().find_map(|line| {
        let mut fields = line.split(' ');
        if fields.next() != Some(device) {
            return None;
        }
        let (fstype, options) = (fields.nth(1)?, fields.next()?);
        Some(format!("{fstype} {options}"))
    })
}

/// Returns the lines of `dumpe2fs -h` that depend only on the options of mkfs, so that file systems with equal options
/// have equal lines.
fn read_ext_options(text: &str) -> String {
    let wanted = [
        "Filesystem features",
        "Block size",
        "Inode size",
        "Journal features",
        "Total journal size",
        "Default mount options",
    ];
    let lines = text.lines().filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        let name = wanted.iter().find(|wanted| **wanted == name)?;
        Some(format!("{}: {}", name.to_lowercase(), value.trim()))
    });
    lines.collect::<Vec<_>>().join(", ")
}

/// Returns every `name=value` of xfs_info except the name of the device.
fn read_xfs_options(text: &str) -> String {
    let words = text.split_whitespace().filter(|word| {
        let pair = word.split_once('=');
        pair.is_some_and(|(name, value)| {
            !name.is_empty() && !value.is_empty() && name != "meta-data"
        })
    });
    let pairs = words.map(|word| word.trim_end_matches(','));
    pairs.collect::<Vec<_>>().join(" ")
}

/// Returns checksum, sizes and incompatible features from `btrfs inspect-internal dump-super`.
fn read_btrfs_options(text: &str) -> String {
    let mut parts = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap_or_default();
        let rest: Vec<_> = words.collect();
        match name {
            "csum_type" | "sectorsize" | "nodesize" => {
                parts.push(format!("{name}={}", rest.last().unwrap_or(&"")));
            }
            "incompat_flags" => inside = true,
            _ if inside && (name == "(" || name == "|") => {
                parts.extend(
                    rest.iter()
                        .filter(|word| **word != ")")
                        .map(|word| (*word).to_owned()),
                );
            }
            _ => inside = false,
        }
    }
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xfs_info_of_xfsprogs_6_1() {
        let text = "meta-data=/dev/loop0             isize=512    agcount=4, agsize=32768 blks\n\
            \x20        =                       sectsz=512   attr=2, projid32bit=1\n\
            data     =                       bsize=4096   blocks=131072, imaxpct=25\n\
            log      =internal log           bsize=4096   blocks=16384, version=2\n";
        assert_eq!(
            read_xfs_options(text),
            "isize=512 agcount=4 agsize=32768 sectsz=512 attr=2 projid32bit=1 bsize=4096 \
             blocks=131072 imaxpct=25 bsize=4096 blocks=16384 version=2"
        );
    }

    #[test]
    fn mounts_are_found_by_their_device() {
        let mounts = "/dev/loop1 /a ext4 rw 0 0\n/dev/loop10 /b\\040c xfs rw,noatime 0 0\n";
        assert_eq!(
            find_mount_options(mounts, "/dev/loop10").as_deref(),
            Some("xfs rw,noatime")
        );
        assert_eq!(find_mount_options(mounts, "/dev/loop2"), None);
    }
}
