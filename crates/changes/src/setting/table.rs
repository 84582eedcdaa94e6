//! The table of mounts, /proc/self/mounts (proc(5), fstab(5)).

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

/// A mounted file system, from one line of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    pub(crate) mountpoint: PathBuf,
    pub(crate) fstype: String,
    pub(crate) options: Vec<String>,
}

/// Parses the mounts in the order of the table. A later mount on the same directory hides the earlier ones.
pub(crate) fn parse_mounts(table: &[u8]) -> impl Iterator<Item = Mount> + '_ {
    table.split(|byte| *byte == b'\n').filter_map(|line| {
        let mut fields = line.split(|byte| *byte == b' ').map(unescape_field).skip(1);
        let mountpoint = OsString::from_vec(fields.next()?).into();
        let mut text = || Some(String::from_utf8_lossy(&fields.next()?).into_owned());
        Some(Mount {
            mountpoint,
            fstype: text()?,
            options: text()?.split(',').map(str::to_owned).collect(),
        })
    })
}

/// Decodes `\040` and similar sequences, which the kernel writes for blanks, tabs, line ends and backslashes.
fn unescape_field(field: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, tail @ ..] = rest {
        let octal = |bytes: &[u8]| {
            bytes.iter().try_fold(0u8, |value, byte| {
                let digit = matches!(byte, b'0'..=b'7').then(|| byte - b'0')?;
                value.checked_mul(8)?.checked_add(digit)
            })
        };
        match (first, tail.get(..3).and_then(octal)) {
            (b'\\', Some(byte)) => {
                out.push(byte);
                rest = &tail[3..];
            }
            _ => {
                out.push(*first);
                rest = tail;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn names_with_blanks_and_backslashes_are_read() {
        let table = b"/dev/loop0 /mnt/a\\040b\\134c ext4 rw,relatime 0 0\nproc /proc proc rw 0 0\n";
        let found: Vec<_> = parse_mounts(table).collect();
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].mountpoint, Path::new("/mnt/a b\\c"));
        assert_eq!(found[0].fstype, "ext4");
        assert_eq!(found[0].options, ["rw", "relatime"]);
        assert_eq!(unescape_field(b"\\999\\04"), b"\\999\\04");
    }
}
