//! Determines the file system of a name, and whether two names provably refer to different files.
//!
//! Device and inode number distinguish files only within one file system with its own inode numbers. One file can have
//! two pairs of numbers on file systems that pass through other files (overlayfs, FUSE, ecryptfs), on network file
//! systems (NFS), and on a disk that is mounted twice. Therefore two names count as two files only if the mount table
//! proves it.

use crate::sys;
use assay_facts::mountinfo::{self, Mount};
use assay_host::DeviceNumber;
use std::collections::{HashMap, HashSet};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::OnceLock;

/// Where a file system stores its files, which decides whether its inode numbers are reliable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// A disk whose format belongs to this family, such as "ext". File systems of one family can mount each other's
    /// disks.
    Disk(&'static str),
    /// A storage pool, which a machine imports once. Each data set has its own files.
    Pool,
    /// The memory of the machine, as for tmpfs.
    Memory,
    /// Another file system or a remote machine whose inode numbers are reliable within one mount, or the layers of an
    /// overlay. (NFS file numbers are unique within a file system, RFC 8881 section 5.8.1.20.)
    Numbered,
    /// Another file system, whose inode numbers are not reliable.
    Unknown,
}

/// Returns the source for a file system type of mountinfo.
fn to_source(fs_type: &str) -> Source {
    match fs_type {
        "ext2" | "ext3" | "ext4" => Source::Disk("ext"),
        "xfs" => Source::Disk("xfs"),
        "btrfs" => Source::Disk("btrfs"),
        "f2fs" => Source::Disk("f2fs"),
        "bcachefs" => Source::Disk("bcachefs"),
        "jfs" => Source::Disk("jfs"),
        "nilfs2" => Source::Disk("nilfs2"),
        "reiserfs" => Source::Disk("reiserfs"),
        "squashfs" => Source::Disk("squashfs"),
        "iso9660" | "udf" => Source::Disk("disc"),
        "hfs" | "hfsplus" => Source::Disk("hfs"),
        // fuseblk is FUSE over its own block device (NTFS, exFAT) and passes nothing through.
        "vfat" | "msdos" | "exfat" | "ntfs" | "ntfs3" | "fuseblk" => Source::Disk("dos"),
        "zfs" => Source::Pool,
        "tmpfs" | "ramfs" | "devtmpfs" | "rootfs" => Source::Memory,
        "nfs" | "nfs4" | "overlay" => Source::Numbered,
        _ => Source::Unknown,
    }
}

/// UUID and family of the file system on each device.
type Uuids = HashMap<DeviceNumber, (&'static str, Option<[u8; 16]>)>;

/// The mount table, as read from `/proc`.
#[derive(Debug, Default)]
pub(crate) struct CurrentMounts {
    text: Vec<u8>,
    mounts: Vec<Mount>,
    uuids: OnceLock<Uuids>,
}

const MOUNTINFO: &str = "/proc/self/mountinfo";

impl CurrentMounts {
    /// Reads the current mounts.
    ///
    /// # Errors
    /// `/proc` cannot be read.
    pub fn now() -> Result<Self, String> {
        let mut grounds = Self::default();
        grounds.refresh().map(|()| grounds)
    }

    /// Reads the mount table again if it has changed.
    ///
    /// # Errors
    /// As [`CurrentMounts::now`].
    pub fn refresh(&mut self) -> Result<(), String> {
        let text = std::fs::read(MOUNTINFO)
            .map_err(|error| format!("cannot tell what is mounted: {MOUNTINFO}: {error}"))?;
        if text != self.text {
            let mounts = mountinfo::parse(&text).map_err(|line| {
                format!("{MOUNTINFO}:{line}: expected a mount as in proc_pid_mountinfo(5)")
            })?;
            *self = Self {
                text,
                mounts,
                uuids: OnceLock::new(),
            };
        }
        Ok(())
    }

    /// Returns the mount with this number.
    pub fn mount(&self, id: u64) -> Option<&Mount> {
        self.mounts.iter().find(|mount| u64::from(mount.id) == id)
    }

    /// Checks that two files with different device and inode numbers on these mounts are provably different files.
    ///
    /// # Errors
    /// The reason why this is not provable.
    pub fn apart(&self, a: Option<&Mount>, b: Option<&Mount>) -> Result<(), String> {
        let (Some(a), Some(b)) = (a, b) else {
            return Err("it is not known on which mount it lies".into());
        };
        let (one, other) = (to_source(&a.fs_type), to_source(&b.fs_type));
        if a.dev == b.dev {
            return match one {
                Source::Unknown => Err(format!(
                    "{} does not say which of its names are one file; act on the file system below it",
                    a.fs_type
                )),
                _ => Ok(()),
            };
        }
        let proved = match (one, other) {
            (Source::Unknown | Source::Numbered, _) | (_, Source::Unknown | Source::Numbered) => {
                false
            }
            (Source::Disk(x), Source::Disk(y)) if x == y => {
                self.uuid(a).is_some() && self.uuid(b).is_some() && self.uuid(a) != self.uuid(b)
            }
            _ => true,
        };
        match proved && !self.is_double(a) && !self.is_double(b) {
            true => Ok(()),
            false => Err(format!(
                "it may be one file with the other copy: nothing proves that {} ({}) and {} ({}) hold different files",
                describe_mount(a),
                a.fs_type,
                describe_mount(b),
                b.fs_type
            )),
        }
    }

    /// Returns whether the disk of a mount is also mounted through another device, such as a loop device. One of the
    /// two mounts may then show outdated data.
    fn is_double(&self, mount: &Mount) -> bool {
        let uuids = self.uuids();
        let Some(own @ (_, Some(_))) = uuids.get(&mount.dev) else {
            return false;
        };
        let same = |one: &(&DeviceNumber, &(&str, Option<[u8; 16]>))| one.1 == own;
        uuids.iter().filter(same).count() > 1
    }

    fn uuid(&self, mount: &Mount) -> Option<[u8; 16]> {
        self.uuids().get(&mount.dev).and_then(|one| one.1)
    }

    fn uuids(&self) -> &Uuids {
        self.uuids.get_or_init(|| {
            let mut found = Uuids::new();
            for mount in &self.mounts {
                if let Source::Disk(family) = to_source(&mount.fs_type) {
                    let entry = found.entry(mount.dev).or_insert((family, None));
                    if entry.1.is_none() {
                        entry.1 = uuid_at(mount);
                    }
                }
            }
            found
        })
    }
}

/// Returns the UUID of the file system mounted at a folder, unless another mount hides it.
fn uuid_at(mount: &Mount) -> Option<[u8; 16]> {
    use rustix::fs::OFlags;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fd = rustix::fs::open(&mount.point, flags, rustix::fs::Mode::empty()).ok()?;
    let id = sys::mount_id(&fd)?;
    (id == u64::from(mount.id)).then(|| sys::read_fs_uuid(&fd, &mount.fs_type))?
}

fn describe_mount(mount: &Mount) -> String {
    crate::name::format_readable(sys::path_bytes(&mount.point))
}

/// Numbers the file systems below some folders, and records the pairs of file systems that may show the same files.
#[derive(Debug, Default)]
pub(crate) struct FileSystemMap {
    /// Root folders and mount points with the numbers of their file systems, longest paths first.
    stands: Vec<(Vec<u8>, usize)>,
    /// For each pair of file system numbers: whether the two may show the same files.
    tangled: Vec<Vec<bool>>,
}

impl FileSystemMap {
    /// Examines the file systems below open folders. Each folder is given with the path that its files' paths begin
    /// with.
    pub fn survey<'a, F: AsFd>(roots: impl IntoIterator<Item = (&'a [u8], F)>) -> Self {
        let Ok(grounds) = CurrentMounts::now() else {
            return Self::default();
        };
        let mut land = Self::default();
        let mut numbers: Vec<&Mount> = Vec::new();
        for (path, fd) in roots {
            let Some(mount) = sys::mount_id(&fd).and_then(|id| grounds.mount(id)) else {
                continue;
            };
            land.stand(path.to_vec(), mount, &mut numbers);
            let Ok(real) = sys::real_path(&fd) else {
                continue;
            };
            let within = |point: &'_ Path| {
                let below = point.strip_prefix(sys::path_from_bytes(&real)).ok()?;
                let below = sys::path_bytes(below);
                (!below.is_empty()).then(|| crate::table::join(path, below))
            };
            let mut seen = HashSet::new();
            for found in &grounds.mounts {
                if let Some(prefix) = within(&found.point)
                    && seen.insert(&found.point)
                    && let Some(top) = mountinfo::of(&grounds.mounts, &found.point)
                {
                    land.stand(prefix, top, &mut numbers);
                }
            }
        }
        land.stands
            .sort_by_key(|one| std::cmp::Reverse(one.0.len()));
        let doubt = |a: &Mount, b: &Mount| grounds.apart(Some(a), Some(b)).is_err();
        land.tangled = numbers
            .iter()
            .map(|a| numbers.iter().map(|b| doubt(a, b)).collect())
            .collect();
        land
    }

    fn stand<'a>(&mut self, prefix: Vec<u8>, mount: &'a Mount, numbers: &mut Vec<&'a Mount>) {
        let known = numbers.iter().position(|one| one.dev == mount.dev);
        let number = known.unwrap_or_else(|| {
            numbers.push(mount);
            numbers.len() - 1
        });
        self.stands.push((prefix, number));
    }

    /// Returns whether inode numbers distinguish all files.
    pub fn is_plain(&self) -> bool {
        !self.tangled.iter().flatten().any(|one| *one)
    }

    /// Returns the number of the file system that contains a folder.
    pub fn ground(&self, folder: &[u8]) -> Option<usize> {
        let folder = sys::path_from_bytes(folder);
        let stand = self
            .stands
            .iter()
            .find(|one| folder.starts_with(sys::path_from_bytes(&one.0)))?;
        Some(stand.1)
    }

    /// Returns whether a file on file system `a` may be the same as a file on `b`.
    pub fn doubt(&self, a: usize, b: usize) -> bool {
        let row = self.tangled.get(a);
        row.and_then(|row| row.get(b)).is_some_and(|one| *one)
    }
}

/// For each file, returns whether it may be the same file as another file in the list. A file is given by the number of
/// its file system, or `None` for another machine.
pub(crate) fn find_possible_aliases(
    files: &[Option<usize>],
    doubt: impl Fn(usize, usize) -> bool,
) -> Vec<bool> {
    let mut counts: HashMap<usize, usize> = HashMap::new();
    for ground in files.iter().flatten() {
        *counts.entry(*ground).or_default() += 1;
    }
    let lost: HashSet<usize> = counts
        .iter()
        .filter(|(a, count)| {
            counts
                .keys()
                .any(|b| (*a != b || **count > 1) && doubt(**a, *b))
        })
        .map(|one| *one.0)
        .collect();
    files
        .iter()
        .map(|ground| ground.is_some_and(|one| lost.contains(&one)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grounds(lines: &str) -> CurrentMounts {
        let grounds = CurrentMounts {
            text: Vec::new(),
            mounts: mountinfo::parse(lines.as_bytes()).unwrap(),
            uuids: OnceLock::new(),
        };
        // None of these file systems is mounted on the test machine.
        grounds.uuids.set(HashMap::new()).unwrap();
        grounds
    }

    fn with_uuids(grounds: &mut CurrentMounts, uuids: &[(u32, u32, u8)]) {
        let list = uuids.iter().map(|(major, minor, byte)| {
            let device = DeviceNumber {
                major: *major,
                minor: *minor,
            };
            (device, ("ext", Some([*byte; 16])))
        });
        grounds.uuids = OnceLock::from(list.collect::<Uuids>());
    }

    #[test]
    fn only_what_follows_from_the_mounts_is_proved() {
        let mut all = grounds(
            "1 0 8:1 / / rw - ext4 /dev/sda1 rw
2 1 8:2 / /b rw - ext4 /dev/sdb rw
3 1 7:1 / /image rw - ext4 /dev/loop1 ro
4 1 0:40 / /over rw - overlay overlay rw,lowerdir=/l,upperdir=/u,workdir=/w
5 1 0:41 / /fuse rw - fuse.bindfs /b rw
6 1 0:42 / /tmp rw - tmpfs tmpfs rw
7 1 0:43 / /nfs rw - nfs4 host:/b rw
8 1 0:43 /x /nfs-too rw - nfs4 host:/b/x rw
9 1 0:44 / /pool rw - zfs pool rw
10 1 8:1 /home /home rw - ext4 /dev/sda1 rw
11 1 0:45 / /over2 rw - overlay overlay rw,lowerdir=/l
12 1 8:9 / /stick rw - vfat /dev/sdc1 rw
13 1 8:10 / /stick2 rw - exfat /dev/sdd1 rw
",
        );
        with_uuids(&mut all, &[(8, 1, 1), (8, 2, 2), (7, 1, 2)]);
        let apart = |a, b| {
            let (one, other) = (all.mount(a), all.mount(b));
            let forth = all.apart(one, other).is_ok();
            assert_eq!(forth, all.apart(other, one).is_ok(), "{a} {b}");
            forth
        };
        for (a, b) in [
            (1, 1),
            (1, 10),
            (4, 4),
            (6, 6),
            (6, 1),
            (7, 7),
            (7, 8),
            (9, 1),
            (12, 1),
        ] {
            assert!(apart(a, b), "{a} {b}");
        }
        // 2 and 3 are one disk through two devices. One of them is outdated for all others, too.
        for (a, b) in [
            (2, 3),
            (1, 2),
            (1, 3),
            (3, 6),
            (4, 1),
            (4, 6),
            (4, 11),
            (5, 5),
            (5, 1),
        ] {
            assert!(!apart(a, b), "{a} {b}");
        }
        for (a, b) in [(7, 1), (7, 6), (12, 13), (1, 99), (99, 99)] {
            assert!(!apart(a, b), "{a} {b}");
        }
        with_uuids(&mut all, &[(8, 1, 1), (8, 2, 2)]);
        assert!(all.apart(all.mount(1), all.mount(2)).is_ok());
        assert!(all.apart(all.mount(1), all.mount(3)).is_err(), "no UUID");
    }

    #[test]
    fn what_may_be_another_is_left_out_of_account() {
        // 0 and 1 may show the same files; 2 does not even distinguish its own files.
        let doubt = |a, b| (a, b) == (0, 1) || (a, b) == (1, 0) || (a, b) == (2, 2);
        let found = |list: &[usize]| {
            let list: Vec<Option<usize>> = list.iter().copied().map(Some).collect();
            find_possible_aliases(&list, doubt)
        };
        assert_eq!(found(&[0, 0, 3]), [false, false, false]);
        assert_eq!(found(&[0, 1, 3]), [true, true, false]);
        assert_eq!(found(&[2, 3]), [false, false]);
        assert_eq!(found(&[2, 3, 2]), [true, false, true]);
        assert_eq!(
            find_possible_aliases(&[None, Some(2), None], doubt),
            [false; 3]
        );
    }
}
