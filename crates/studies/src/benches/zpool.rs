//! Creates, fills and destroys pools in a guest.

use crate::guest::{self, run_command};
use crate::{BenchContext, StudyError};
use assay_lab::disk::Throttle;
use assay_lab::{Disk, Guest};
use assay_planner::distribute::{Vdev, parse_zpool_list};
use assay_planner::zfs::Version;
use std::time::Duration;

/// Name of the pool.
pub(super) const POOL: &str = "study";
/// Time limit of a command in an emulated guest on a busy machine.
const LIMIT: Duration = Duration::from_secs(300);
/// Size in MiB of the random data in the guest's memory from which all files are written. The same data can be used
/// repeatedly, because the pools neither compress nor deduplicate.
const DATA_MIB: u64 = 16;
const DATA: &str = "/dev/shm/data";

/// A guest with disks for pools.
pub(super) struct Pools {
    guest: Guest,
    disks: Vec<Disk>,
    /// Device of each disk's only partition, which covers the whole disk.
    nodes: Vec<String>,
}

impl Pools {
    /// Boots the guest. Every disk has one partition, and its rate can be limited. The partitions save time: on whole
    /// disks, each new pool would create partitions and wait for udev.
    pub fn boot(
        place: &BenchContext<'_>,
        name: &str,
        disks: &[(String, u64)],
    ) -> Result<Self, StudyError> {
        let disk = |(name, size): &(String, u64)| Disk {
            throttle: Some(Throttle::default()),
            ..Disk::scratch(name, *size)
        };
        let disks: Vec<Disk> = disks.iter().map(disk).collect();
        let guest = place.boot(name, 1024, 2, disks.clone())?;
        let names: Vec<&str> = disks.iter().map(|disk| disk.name.as_str()).collect();
        let devices = guest.devices(&names)?;
        let mut pools = Self {
            guest,
            disks,
            nodes: Vec::new(),
        };
        (place.say)("partitioning the guest's disks");
        for device in &devices {
            let device = device.display().to_string();
            let label = "printf 'label: gpt\\n,\\n' | sfdisk --quiet \"$1\"";
            pools.run(&["sh", "-c", label, "sh", &device])?;
            pools.nodes.push(format!("{device}1"));
        }
        pools.run(&["udevadm", "settle"])?;
        let (input, count) = ("if=/dev/urandom".to_owned(), format!("count={DATA_MIB}"));
        let to = format!("of={DATA}");
        pools.run(&["dd", &input, &to, "bs=1M", &count, "status=none"])?;
        Ok(pools)
    }

    /// Runs a command in the guest and returns its output.
    pub fn run(&self, argv: &[&str]) -> Result<String, StudyError> {
        run_command(&self.guest, argv, LIMIT)
    }

    /// Returns whether a command in the guest succeeds.
    pub fn succeeds(&self, argv: &[&str]) -> Result<bool, StudyError> {
        let words: Vec<_> = argv.iter().map(std::ffi::OsStr::new).collect();
        let limits = assay_host::Limits { timeout: LIMIT };
        Ok(self.guest.run(&words, limits)?.success())
    }

    /// Returns the device of a disk's partition.
    pub fn node(&self, disk: &str) -> &str {
        let at = self.disks.iter().position(|known| known.name == disk);
        at.map_or("", |at| &self.nodes[at])
    }

    /// Limits a disk to `bytes` bytes per second; 0 removes the limit.
    pub fn slow(&self, disk: &str, bytes: u64) -> Result<(), StudyError> {
        let Some(disk) = self.disks.iter().find(|known| known.name == disk) else {
            return Ok(());
        };
        Ok(self.guest.set_throttle(disk, Throttle { iops: 0, bytes })?)
    }

    /// Creates the pool again without compression, with `record` bytes per record. `vdevs` are arguments of
    /// `zpool create`.
    pub fn create(&self, record: u64, vdevs: &[&str]) -> Result<(), StudyError> {
        self.destroy()?;
        let record = format!("recordsize={record}");
        let options = [
            "-o",
            "ashift=12",
            "-O",
            "compression=off",
            "-O",
            "atime=off",
            "-O",
            &record,
            POOL,
        ];
        let arguments = [&options[..], vdevs].concat();
        Ok(self.guest.create_pool(&arguments, LIMIT)?)
    }

    /// Destroys the pool, if it exists.
    pub fn destroy(&self) -> Result<(), StudyError> {
        if self.succeeds(&["zpool", "list", POOL])? {
            self.run(&["zpool", "destroy", POOL])?;
        }
        Ok(())
    }

    /// Writes `bytes` bytes, rounded up to pieces of 16 MiB, and waits until the data is on the disks. The data is
    /// written to new files whose names start with `prefix`. Returns the duration in seconds.
    pub fn write(&self, prefix: &str, bytes: u64) -> Result<f64, StudyError> {
        const WRITE: &str = "s=$(date +%s%N); i=0; while [ $i -lt $1 ]; do \
             dd if=$2 of=$3.$i bs=1M status=none || exit 1; i=$((i+1)); done; \
             zpool sync || exit 1; e=$(date +%s%N); echo $((e - s))";
        let count = count_pieces(bytes).to_string();
        let text = self.run(&["sh", "-c", WRITE, "sh", &count, DATA, prefix])?;
        let nanos: Option<u64> = text.trim().parse().ok();
        nanos
            .map(|nanos| nanos as f64 / 1e9)
            .filter(|seconds| *seconds > 0.0)
            .ok_or_else(|| StudyError::measure("writing in the guest", "its clock gave no time"))
    }

    /// Returns the vdevs of the pool from `zpool list`. `speed` is the rate of each vdev in bytes per second.
    pub fn vdevs(&self, speed: f64) -> Result<Vec<Vdev>, StudyError> {
        let text = self.run(&["zpool", "list", "-vHp", POOL])?;
        parse_zpool_list("zpool list -vHp", &text, speed)
            .map_err(|error| StudyError::measure("zpool list", error))
    }

    /// Reads a number from a file in the guest.
    pub fn number(&self, path: &str) -> Result<u64, StudyError> {
        let text = self.run(&["cat", path])?;
        text.trim()
            .parse()
            .map_err(|_| StudyError::measure(path, "not a number"))
    }

    /// Sets a parameter of the guest's ZFS module.
    pub fn set(&self, parameter: &str, value: u64) -> Result<(), StudyError> {
        let path = format!("/sys/module/zfs/parameters/{parameter}");
        let argv = ["sh", "-c", "echo $1 > $2", "sh", &value.to_string(), &path];
        self.run(&argv).map(drop)
    }

    /// Returns the version of OpenZFS as text. Also returns the version in the planner's type; `None` if the text
    /// cannot be parsed.
    pub fn version(&self) -> Result<(String, Option<Version>), StudyError> {
        let text = self.run(&["cat", "/sys/module/zfs/version"])?;
        let text = text.trim().to_owned();
        let number = text.split('-').next().unwrap_or_default().parse().ok();
        Ok((text, number))
    }

    /// Returns a description of the guest, as names and values.
    pub fn machine(&self) -> Vec<(String, String)> {
        let mut all = guest::describe_guest(&self.guest);
        all.retain(|(name, _)| name != "fio");
        if let Ok((version, _)) = self.version() {
            all.push(("OpenZFS".to_owned(), version));
        }
        all
    }

    /// Returns whether the guest is emulated.
    pub fn emulated(&self) -> bool {
        guest::is_emulated(&self.guest)
    }
}

/// Returns `bytes` rounded up to the number of bytes that [`Pools::write`] really writes.
pub(super) fn rounded_bytes(bytes: u64) -> u64 {
    count_pieces(bytes) * (DATA_MIB << 20)
}

fn count_pieces(bytes: u64) -> u64 {
    bytes.div_ceil(DATA_MIB << 20)
}
