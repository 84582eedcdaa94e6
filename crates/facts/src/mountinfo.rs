//! Parses `/proc/self/mountinfo` (proc_pid_mountinfo(5)) and finds the mount of a path.

use assay_host::DeviceNumber;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

/// Path of the kernel's mount table.
pub(crate) const MOUNTINFO: &str = "/proc/self/mountinfo";

/// A mount: one line of mountinfo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Id of the mount, unique in this table.
    pub id: u32,
    /// Id of the parent mount.
    pub parent: u32,
    /// Device number of the files on the mount. The major number is 0 for btrfs, ZFS and file systems without a device.
    pub dev: DeviceNumber,
    /// Mounted directory within the file system: `/`, or another directory for a bind mount.
    pub root: PathBuf,
    /// Directory at which the file system is mounted.
    pub point: PathBuf,
    /// Mount options, which apply to this mount only.
    pub options: String,
    /// File system type, such as `ext4`.
    pub fs_type: String,
    /// Source of the mount, such as a device or a dataset; any name for some file systems.
    pub source: OsString,
    /// Options of the file system (superblock), which apply to all its mounts.
    pub super_options: String,
}

impl Mount {
    /// Returns the options of the mount and of the file system, each once.
    #[must_use]
    pub fn all_options(&self) -> String {
        let mut seen: Vec<&str> = Vec::new();
        for option in self.options.split(',').chain(self.super_options.split(',')) {
            if !option.is_empty() && !seen.contains(&option) {
                seen.push(option);
            }
        }
        seen.join(",")
    }

    /// Returns the value of an option of the file system.
    #[must_use]
    pub fn super_option(&self, name: &str) -> Option<&str> {
        self.super_options
            .split(',')
            .find_map(|option| option.strip_prefix(name)?.strip_prefix('='))
    }
}

/// Decodes the kernel's octal escapes (`\040` for a space).
#[must_use]
pub fn unescape(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, tail @ ..] = rest {
        let octal = |digit: &u8| {
            (b'0'..=b'7')
                .contains(digit)
                .then(|| u32::from(digit - b'0'))
        };
        if let ([b'\\', a, b, c, tail @ ..], Some(value)) = (
            rest,
            rest.get(1..4)
                .and_then(|d| Some((octal(&d[0])? << 6) | (octal(&d[1])? << 3) | octal(&d[2])?)),
        ) && let Ok(byte) = u8::try_from(value)
        {
            let _ = (a, b, c);
            out.push(byte);
            rest = tail;
        } else {
            out.push(*first);
            rest = tail;
        }
    }
    out
}

fn os(text: &[u8]) -> OsString {
    OsString::from_vec(unescape(text))
}

/// Parses all lines of mountinfo.
///
/// # Errors
/// The number of the first malformed line.
pub fn parse(text: &[u8]) -> Result<Vec<Mount>, usize> {
    let lines = text.split(|&byte| byte == b'\n').enumerate();
    lines
        .filter(|(_, line)| !line.is_empty())
        .map(|(at, line)| parse_line(line).ok_or(at + 1))
        .collect()
}

fn parse_line(line: &[u8]) -> Option<Mount> {
    let fields: Vec<&[u8]> = line.split(|&byte| byte == b' ').collect();
    // Optional fields end with a single hyphen.
    let hyphen = fields.iter().skip(6).position(|field| *field == b"-")? + 6;
    let string = |field: &[u8]| String::from_utf8_lossy(field).into_owned();
    let number = |field: &[u8]| std::str::from_utf8(field).ok()?.parse().ok();
    let (major, minor) = std::str::from_utf8(fields[2]).ok()?.split_once(':')?;
    Some(Mount {
        id: number(fields[0])?,
        parent: number(fields[1])?,
        dev: DeviceNumber {
            major: major.parse().ok()?,
            minor: minor.parse().ok()?,
        },
        root: os(fields[3]).into(),
        point: os(fields[4]).into(),
        options: string(fields[5]),
        fs_type: string(fields.get(hyphen + 1)?),
        source: os(fields.get(hyphen + 2)?),
        super_options: string(fields.get(hyphen + 3).unwrap_or(&&b""[..])),
    })
}

/// Returns the mount of an absolute path without symbolic links. Follows the kernel's lookup from the root mount
/// downwards, so the result is never a mount that a later mount hides.
#[must_use]
pub fn of<'a>(mounts: &'a [Mount], path: &Path) -> Option<&'a Mount> {
    let over = |mount: &&Mount| path.starts_with(&mount.point);
    let length = |mount: &&Mount| mount.point.components().count();
    let is_top = |mount: &&Mount| {
        mount.parent == mount.id || !mounts.iter().any(|other| other.id == mount.parent)
    };
    let mut current = mounts
        .iter()
        .filter(over)
        .filter(is_top)
        .max_by_key(length)?;
    // Each step goes to a child; the bound ends a list that contains a cycle.
    for _ in 0..mounts.len() {
        let children = mounts
            .iter()
            .filter(over)
            .filter(|mount| mount.parent == current.id && mount.id != current.id);
        match children.min_by_key(length) {
            Some(child) => current = child,
            None => break,
        }
    }
    Some(current)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const INFO: &[u8] = b"\
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
43 27 0:39 / /srv/with\\040space\\134x rw,relatime shared:1 master:2 - btrfs /dev/loop0 rw,subvol=/
44 27 0:40 / /tank rw,noatime - zfs tank/data rw,xattr,noacl
45 27 254:0 /home/a /mnt/bind rw,relatime - ext4 /dev/vda rw,discard
46 27 0:41 / /var/lib rw - overlay overlay rw,lowerdir=/l,upperdir=/home/u\\054p,workdir=/w
47 44 0:42 / /tank/under rw - tmpfs tmpfs rw,size=4k
50 27 8:1 / /hidden/below rw - ext4 /dev/sda1 rw
51 27 8:2 / /hidden rw - xfs /dev/sda2 rw
52 51 8:3 / /hidden rw - xfs /dev/sda3 rw
";

    fn found(path: &str) -> String {
        let mounts = parse(INFO).unwrap();
        of(&mounts, Path::new(path))
            .unwrap()
            .source
            .to_string_lossy()
            .into_owned()
    }

    #[test]
    fn the_mount_of_a_path() {
        assert_eq!(found("/"), "/dev/vda");
        assert_eq!(found("/srv/with space\\x/deep"), "/dev/loop0");
        assert_eq!(found("/srv/with space"), "/dev/vda");
        assert_eq!(found("/tank/under/x"), "tmpfs");
        assert_eq!(found("/tank/underneath"), "tank/data");
        assert_eq!(found("/tankard"), "/dev/vda");
    }

    #[test]
    fn a_later_mount_hides_what_was_below() {
        assert_eq!(found("/hidden/below/x"), "/dev/sda3");
    }

    #[test]
    fn fields() {
        let mounts = parse(INFO).unwrap();
        assert_eq!(mounts[3].root, Path::new("/home/a"));
        assert_eq!(mounts[4].super_option("upperdir"), Some("/home/u\\054p"));
        assert_eq!(mounts[4].super_option("upper"), None);
        assert_eq!(mounts[0].all_options(), "rw,relatime,discard");
        assert_eq!(
            mounts[1].dev,
            DeviceNumber {
                major: 0,
                minor: 39
            }
        );
    }

    #[test]
    fn a_line_that_is_no_mount_is_named() {
        assert_eq!(
            parse(b"27 1 254:0 / / rw - ext4 /dev/vda rw\nrubbish\n"),
            Err(2)
        );
        assert_eq!(parse(b"27 1 x / / rw - ext4 /dev/vda rw"), Err(1));
    }

    proptest! {
        #[test]
        fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes);
            let _ = unescape(&bytes);
        }

        #[test]
        fn escapes_are_undone(bytes in proptest::collection::vec(any::<u8>(), 0..50)) {
            let escaped: Vec<u8> = bytes.iter().flat_map(|byte| format!("\\{byte:03o}").into_bytes()).collect();
            prop_assert_eq!(unescape(&escaped), bytes);
        }
    }
}
