//! Finds lines of fstab that hide each other, and options that do not exist.

use super::super::lines_of_files::read;
use super::Misuses;
use crate::gather::Gather;
use assay_model::FactPlace;
use std::collections::BTreeMap;

const FSTAB: &str = "/etc/fstab";
/// Options of btrfs(5) of Linux 6.1, and generic options that are often used with btrfs.
const BTRFS: &[&str] = &[
    "acl",
    "autodefrag",
    "barrier",
    "check_int",
    "clear_cache",
    "commit",
    "compress",
    "compress-force",
    "datacow",
    "datasum",
    "degraded",
    "device",
    "discard",
    "enospc_debug",
    "fatal_errors",
    "flushoncommit",
    "fragment",
    "max_inline",
    "metadata_ratio",
    "noacl",
    "noautodefrag",
    "nobarrier",
    "nodatacow",
    "nodatasum",
    "nodiscard",
    "noenospc_debug",
    "noflushoncommit",
    "norecovery",
    "nospace_cache",
    "nossd",
    "nossd_spread",
    "notreelog",
    "rescan_uuid_tree",
    "rescue",
    "skip_balance",
    "space_cache",
    "ssd",
    "ssd_spread",
    "subvol",
    "subvolid",
    "thread_pool",
    "treelog",
    "user_subvol_rm_allowed",
    "usebackuproot",
];
/// Options of ext4(5) of Linux 6.1.
const EXT4: &[&str] = &[
    "acl",
    "auto_da_alloc",
    "barrier",
    "block_validity",
    "bsddf",
    "bsdgroups",
    "commit",
    "data",
    "data_err",
    "dax",
    "debug",
    "delalloc",
    "dioread_lock",
    "dioread_nolock",
    "discard",
    "errors",
    "grpid",
    "grpjquota",
    "grpquota",
    "i_version",
    "init_itable",
    "inode_readahead_blks",
    "journal_async_commit",
    "journal_checksum",
    "journal_dev",
    "journal_ioprio",
    "journal_path",
    "jqfmt",
    "max_batch_time",
    "max_dir_size_kb",
    "min_batch_time",
    "minixdf",
    "nodelalloc",
    "nodiscard",
    "noacl",
    "noauto_da_alloc",
    "nobarrier",
    "noblock_validity",
    "nogrpid",
    "noinit_itable",
    "noload",
    "noquota",
    "nouid32",
    "nouser_xattr",
    "norecovery",
    "prjquota",
    "quota",
    "resgid",
    "resuid",
    "sb",
    "stripe",
    "sysvgroups",
    "user_xattr",
    "usrjquota",
    "usrquota",
    "lazytime",
    "nolazytime",
];
/// Options of xfs(5) of Linux 6.1.
const XFS: &[&str] = &[
    "allocsize",
    "attr2",
    "discard",
    "filestreams",
    "gqnoenforce",
    "gquota",
    "grpid",
    "grpquota",
    "ikeep",
    "inode32",
    "inode64",
    "largeio",
    "logbsize",
    "logbufs",
    "logdev",
    "noalign",
    "noattr2",
    "nodiscard",
    "nogrpid",
    "noikeep",
    "nolargeio",
    "noquota",
    "norecovery",
    "nouuid",
    "pqnoenforce",
    "pquota",
    "prjquota",
    "quota",
    "rtdev",
    "sunit",
    "swalloc",
    "swidth",
    "sysvgroups",
    "bsdgroups",
    "uqnoenforce",
    "uquota",
    "usrquota",
    "wsync",
    "lazytime",
];
/// Options of every file system: mount(8), fstab(5), systemd.mount(5).
const GENERIC: &[&str] = &[
    "async",
    "atime",
    "auto",
    "bind",
    "context",
    "defaults",
    "defcontext",
    "dev",
    "diratime",
    "dirsync",
    "exec",
    "fscontext",
    "group",
    "iversion",
    "lazytime",
    "loop",
    "mand",
    "move",
    "noatime",
    "noauto",
    "nodev",
    "nodiratime",
    "noexec",
    "nofail",
    "noiversion",
    "nolazytime",
    "nomand",
    "norelatime",
    "nostrictatime",
    "nosuid",
    "nosymfollow",
    "nouser",
    "offset",
    "owner",
    "private",
    "rbind",
    "relatime",
    "remount",
    "ro",
    "rootcontext",
    "rprivate",
    "rshared",
    "rslave",
    "rw",
    "shared",
    "sizelimit",
    "slave",
    "strictatime",
    "suid",
    "sync",
    "uhelper",
    "unbindable",
    "user",
    "users",
];

pub(super) fn collect(g: &mut Gather<'_>) {
    let mut found = Misuses::default();
    let mut seen: BTreeMap<String, FactPlace> = BTreeMap::new();
    for line in read(g, "fstab_line", FSTAB) {
        let fields: Vec<&str> = line.text.split_whitespace().collect();
        let [source, point, kind, rest @ ..] = &fields[..] else {
            continue;
        };
        if source.starts_with('#') || !point.starts_with('/') {
            continue;
        }
        let options: Vec<&str> = rest
            .first()
            .map_or(Vec::new(), |one| one.split(',').collect());
        let by_hand = options
            .iter()
            .any(|one| matches!(*one, "noauto" | "remount" | "bind" | "rbind"));
        if !by_hand {
            let point = match point.trim_end_matches('/') {
                "" => "/",
                bare => bare,
            };
            let before = seen.insert(point.to_owned(), line.place.clone());
            found.add("same_point", before.is_some(), line.place.clone());
        }
        let known = match *kind {
            "btrfs" => BTRFS,
            "ext4" => EXT4,
            "xfs" => XFS,
            _ => continue,
        };
        let wrong = options
            .iter()
            .any(|option| is_misspelt(option, known) || is_foreign(option, known));
        found.add("misspelt", wrong, line.place);
    }
    found.note(g, "fstab_line");
}

/// Returns whether an option is unknown but similar to a known option: it differs by at most one letter, in long names
/// by at most two. Options of newer kernels usually differ more.
fn is_misspelt(option: &str, known: &[&str]) -> bool {
    let name = option.split('=').next().unwrap_or(option);
    let is = |one: &&&str| **one == name;
    if name.len() < 4 || name.contains('-') && name.starts_with("x-") {
        return false;
    }
    if known.iter().chain(GENERIC).any(|one| is(&one)) {
        return false;
    }
    let most = if name.len() > 6 { 2 } else { 1 };
    known
        .iter()
        .chain(GENERIC)
        .any(|one| one.len() > 3 && (distance(name, one) <= most || is_swapped(name, one)))
}

/// Options of ext4 that the other file systems refuse, and that people copy from its lines.
const OF_EXT4: [&str; 5] = ["errors", "data", "user_xattr", "nouser_xattr", "nobh"];

/// Whether an option belongs to ext4, and this file system refuses it.
fn is_foreign(option: &str, known: &[&str]) -> bool {
    let name = option.split('=').next().unwrap_or(option);
    OF_EXT4.contains(&name) && !known.contains(&name) && known != EXT4
}

/// Returns whether two words are equal after two neighbouring letters of one are swapped.
fn is_swapped(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let Some(at) = a.iter().zip(b).position(|(one, other)| one != other) else {
        return false;
    };
    a.len() == b.len()
        && at + 1 < a.len()
        && a[at] == b[at + 1]
        && a[at + 1] == b[at]
        && a[at + 2..] == b[at + 2..]
}

/// Returns the minimum number of letters that must be changed, added or removed to convert one word into the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (at, letter) in a.chars().enumerate() {
        let mut corner = std::mem::replace(&mut row[0], at + 1);
        for (column, other) in b.iter().enumerate() {
            let same = corner + usize::from(letter != *other);
            corner = row[column + 1];
            row[column + 1] = same.min(corner + 1).min(row[column] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    #[test]
    fn lines_and_their_near_misses() {
        for (path, text, expected) in [
            (
                FSTAB,
                "a /srv nfs ro\nb /srv nfs ro\n".to_owned(),
                "same_point=false same_point=true",
            ),
            (
                FSTAB,
                "a /srv nfs ro\nb /srv nfs noauto\n".to_owned(),
                "same_point=false",
            ),
            (
                FSTAB,
                "a /srv btrfs noatime,compres=zstd\n".to_owned(),
                "same_point=false misspelt=true",
            ),
            (
                FSTAB,
                "a /srv btrfs noatime,compress=zstd:3,x-systemd.automount\n".to_owned(),
                "same_point=false misspelt=false",
            ),
            (
                FSTAB,
                "a /srv ext4 errors=remount-ro,nofial\n".to_owned(),
                "same_point=false misspelt=true",
            ),
        ] {
            assert_eq!(
                found(&[(path, &text)], collect).join(" "),
                expected,
                "{text}"
            );
        }
    }
}
