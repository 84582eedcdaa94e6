//! A btrfs on loop devices of unequal sizes, with operations that fill, break and repair the file system.

use crate::{BenchContext, StudyError};
use assay_changes::{Made, MadeId, OwnDirectory};
use assay_host::Limits;
use assay_host::held::{Access, Held};
use assay_model::Bytes;
use assay_planner::btrfs::Profile;
use rustix::fs::FallocateFlags;
use std::ffi::OsStr;
use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(600);
/// Block size of file system allocations, in bytes.
const BLOCK: u64 = 4096;

/// A disk of the array, on a loop device.
#[derive(Clone, Debug)]
struct Member {
    /// Path of the disk's loop device, such as `/dev/loop7`.
    device: String,
    size: u64,
    made: MadeId,
}

/// A mounted btrfs with its loop devices. Dropping the value unmounts the file system and removes the devices.
pub(super) struct Array<'a> {
    place: &'a BenchContext<'a>,
    dir: OwnDirectory,
    mountpoint: PathBuf,
    members: Vec<Member>,
    mount: Option<MadeId>,
    /// Number of disks created until now, from which unique file names are built.
    count: usize,
}

/// How much of one device of the array is in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Use {
    /// Path such as `/dev/loop7`, or `missing`.
    pub device: String,
    /// Size of the device in bytes.
    pub size: u64,
    /// Bytes of the device that belong to no chunk.
    pub unallocated: u64,
}

impl<'a> Array<'a> {
    /// Creates and mounts the file system.
    pub fn new(
        place: &'a BenchContext<'a>,
        name: &str,
        sizes: &[u64],
        data: Profile,
        metadata: Profile,
    ) -> Result<Self, StudyError> {
        let dir = place.scratch_dir(name)?;
        let mut array = Self {
            place,
            dir,
            mountpoint: place.kept_dir(name)?,
            members: Vec::new(),
            mount: None,
            count: 0,
        };
        for size in sizes {
            array.attach(*size)?;
        }
        let (data, metadata) = (data.to_string(), metadata.to_string());
        let mut argv = vec!["mkfs.btrfs", "-f", "-K", "-q", "-d", &data, "-m", &metadata];
        argv.extend(array.members.iter().map(|member| member.device.as_str()));
        run(place, &argv)?;
        array.mount(false)?;
        Ok(array)
    }

    /// Creates a new disk outside of the array, and returns the index of the disk.
    pub fn attach(&mut self, size: u64) -> Result<usize, StudyError> {
        let name = format!("disk{}", self.count);
        self.count += 1;
        let held = self.dir.held.create(OsStr::new(&name))?;
        let backing = self.dir.shown().join(&name);
        let sized = held.file().set_len(size);
        sized.map_err(StudyError::io(&backing))?;
        let made = self.place.session.made(&Made::Loop { backing })?;
        self.place.session.identify(made, held.file())?;
        let node = assay_host::loops::attach(held.file(), false)?;
        self.members.push(Member {
            device: node.display().to_string(),
            size,
            made,
        });
        Ok(self.members.len() - 1)
    }

    fn target(&self) -> String {
        self.mountpoint.display().to_string()
    }

    /// Mounts the array by its device names. With `degraded`, one device may be missing.
    fn mount(&mut self, degraded: bool) -> Result<(), StudyError> {
        let mountpoint = self.mountpoint.clone();
        self.mount = Some(self.place.session.made(&Made::Mount { mountpoint })?);
        let devices = self.members.iter().map(|member| &member.device);
        let mut options: Vec<String> = devices.map(|device| format!("device={device}")).collect();
        if degraded {
            options.push("degraded".to_owned());
        }
        let first = self.members.first().map(|member| member.device.clone());
        let argv = [
            "mount",
            "-t",
            "btrfs",
            "-o",
            &options.join(","),
            &first.unwrap_or_default(),
            &self.target(),
        ];
        run(self.place, &argv).map(drop)
    }

    /// Unmounts, drops caches, and mounts all disks again.
    pub fn again(&mut self) -> Result<(), StudyError> {
        if let Some(mount) = self.mount.take() {
            self.place.remove(mount)?;
        }
        self.mount(false)
    }

    /// Detaches a disk as if it had failed, and mounts the array with the remaining disks.
    pub fn lose(&mut self, at: usize) -> Result<(), StudyError> {
        if let Some(mount) = self.mount.take() {
            self.place.remove(mount)?;
        }
        let gone = self.members.remove(at);
        // The kernel remembers known devices; make it forget only this one. Another process that scans new
        // devices may hold it for a moment.
        let forget = ["btrfs", "device", "scan", "--forget", &gone.device];
        let mut tries = 50;
        while let Err(error) = run(self.place, &forget) {
            tries -= 1;
            if tries == 0 {
                return Err(error);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        self.place.remove(gone.made)?;
        self.mount(true)
    }

    /// Rebuilds the missing device with the btrfs number `id` on a new disk. Returns the bytes written to the new disk
    /// and to all other disks.
    pub fn replace(&mut self, id: usize, size: u64) -> Result<(u64, u64), StudyError> {
        let at = self.attach(size)?;
        self.sync()?;
        let before = self.written()?;
        let device = self.members[at].device.clone();
        let id = id.to_string();
        let argv = [
            "btrfs",
            "replace",
            "start",
            "-B",
            "-f",
            &id,
            &device,
            &self.target(),
        ];
        run(self.place, &argv)?;
        self.sync()?;
        let after = self.written()?;
        let moved = |at: usize| after[at].saturating_sub(before[at]);
        let others = (0..at).map(moved).sum();
        Ok((moved(at), others))
    }

    /// Adds a new disk of this size to the array.
    pub fn add(&mut self, size: u64) -> Result<(), StudyError> {
        let at = self.attach(size)?;
        let device = self.members[at].device.clone();
        run(
            self.place,
            &["btrfs", "device", "add", "-f", &device, &self.target()],
        )
        .map(drop)
    }

    /// Reserves space for a file with fallocate, without writing data: at most `most` bytes, or until no space is left.
    /// Returns the size of the file in bytes.
    pub fn reserve(&self, most: u64) -> Result<u64, StudyError> {
        let path = self.mountpoint.join("reserved");
        let file = File::options().create(true).append(true).open(&path);
        let file = file.map_err(StudyError::io(&path))?;
        let size = || file.metadata().map(|found| found.len());
        let mut at = size().map_err(StudyError::io(&path))?;
        let mut step: u64 = 1 << 30;
        while step >= BLOCK && at < most {
            self.place.go_on()?;
            let next = step.min((most - at).next_multiple_of(BLOCK));
            match rustix::fs::fallocate(&file, FallocateFlags::empty(), at, next) {
                Ok(()) => at += next,
                Err(rustix::io::Errno::NOSPC) => step /= 2,
                Err(error) => return Err(StudyError::io(&path)(error.into())),
            }
        }
        Ok(at)
    }

    /// Writes a file of incompressible data.
    pub fn write(&self, size: u64) -> Result<(), StudyError> {
        let path = self.mountpoint.join("data");
        File::create_new(&path).map_err(StudyError::io(&path))?;
        let (place, size) = (self.place, Bytes(size));
        let held = Held::open(&path, Access::ReadWrite)?;
        assay_loads::layout::fill(&held, size, place.seed, place.env.cancel, &mut |_, _| {})
            .map_err(|error| StudyError::measure("writing onto the array", error))?;
        self.sync()
    }

    /// Returns the checksum of the written file. Fails if the file cannot be read.
    pub fn sum(&self) -> Result<String, StudyError> {
        let path = self.mountpoint.join("data");
        let argv = [OsStr::new("sha256sum"), path.as_os_str()];
        run_os(self.place, &argv)
    }

    fn sync(&self) -> Result<(), StudyError> {
        run(self.place, &["btrfs", "filesystem", "sync", &self.target()]).map(drop)
    }

    /// Returns the bytes written to each disk since it was attached.
    fn written(&self) -> Result<Vec<u64>, StudyError> {
        let of = |member: &Member| {
            let name = member.device.trim_start_matches("/dev/");
            let path = PathBuf::from(format!("/sys/block/{name}/stat"));
            let text = self.place.env.host.read_text(&path)?;
            let sectors = text.split_whitespace().nth(6).and_then(|n| n.parse().ok());
            let sectors: u64 = sectors
                .ok_or_else(|| StudyError::measure(path.display().to_string(), "cut off"))?;
            Ok(sectors * 512)
        };
        self.members.iter().map(of).collect()
    }

    /// Returns the usage of each device of the array.
    pub fn usage(&self) -> Result<Vec<Use>, StudyError> {
        let text = run(
            self.place,
            &["btrfs", "device", "usage", "-b", &self.target()],
        )?;
        let found = parse_usage(&text);
        match found.len() == self.members.len() {
            true => Ok(found),
            false => Err(StudyError::measure(
                "btrfs device usage",
                "devices are missing in it",
            )),
        }
    }

    /// Returns the sizes of the array's disks in bytes.
    pub fn sizes(&self) -> Vec<u64> {
        self.members.iter().map(|member| member.size).collect()
    }
}

impl Drop for Array<'_> {
    fn drop(&mut self) {
        // Failures are in the journal and are retried when the session closes.
        if let Some(mount) = self.mount.take() {
            let _ = self.place.remove(mount);
        }
        for member in self.members.drain(..).rev() {
            let _ = self.place.remove(member.made);
        }
        let _ = std::fs::remove_dir(&self.mountpoint);
        let _ = self.place.remove(self.dir.id);
    }
}

/// Parses the output of `btrfs device usage -b`.
pub(super) fn parse_usage(text: &str) -> Vec<Use> {
    let mut found: Vec<Use> = Vec::new();
    for line in text.lines() {
        if let Some((device, _)) = line.split_once(", ID:") {
            found.push(Use {
                device: device.to_owned(),
                size: 0,
                unallocated: 0,
            });
        }
        let (Some(last), Some((name, value))) = (found.last_mut(), line.trim().split_once(':'))
        else {
            continue;
        };
        let value = value.trim().parse().unwrap_or(0);
        match name {
            "Device size" => last.size = value,
            "Unallocated" => last.unallocated = value,
            _ => {}
        }
    }
    found
}

fn run(place: &BenchContext<'_>, argv: &[&str]) -> Result<String, StudyError> {
    let words: Vec<&OsStr> = argv.iter().map(OsStr::new).collect();
    run_os(place, &words)
}

fn run_os(place: &BenchContext<'_>, argv: &[&OsStr]) -> Result<String, StudyError> {
    let output = place.env.host.run(argv, Limits { timeout: LIMIT })?;
    match output.success() {
        true => Ok(output.text()),
        false => {
            let words: Vec<_> = argv.iter().map(|word| word.to_string_lossy()).collect();
            Err(StudyError::measure(words.join(" "), output.complaint()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_usage_is_read() {
        // btrfs-progs 6.2 on Linux 6.18.
        let text = include_str!("../../../fixtures/btrfs-device-usage-6.2.txt");
        let found = parse_usage(text);
        assert_eq!(found.len(), 6);
        assert_eq!(
            found[5],
            Use {
                device: "/dev/loop8".to_owned(),
                size: 536_870_912,
                unallocated: 463_470_592
            }
        );
        assert!(parse_usage("ERROR: not a btrfs filesystem\n").is_empty());
    }
}
