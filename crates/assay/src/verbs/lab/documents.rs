//! JSON documents of `assay lab`. `assay lab net` prints the documents of `assay net`.

#[cfg(feature = "schemas")]
use crate::verbs::dev::form::{Form, form};
use assay_lab::experiments::crypto::{Comparison, CryptoSide, Finding, Model};
use assay_lab::experiments::disks::{DiskSample, GuestSide, HostSide};
use assay_lab::experiments::full_disk::{self, Ending, RefusedWrite};
use assay_lab::experiments::powercut;
use assay_lab::{Disk, GuestEntry, GuestSnapshot, Image};
use assay_model::workload::Workload;
use assay_model::{Doubt, SCHEMA_VERSION};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Serialises a document as JSON text.
pub fn printed(document: &impl Serialize) -> anyhow::Result<String> {
    Ok(format!("{}\n", serde_json::to_value(document)?))
}

/// Document of `assay lab up`: the started guest.
#[derive(Serialize, JsonSchema)]
pub struct Up {
    pub schema: u32,
    #[serde(flatten)]
    pub guest: Guest,
}

/// A guest in the JSON documents.
#[derive(Serialize, JsonSchema)]
pub struct Guest {
    name: String,
    /// Whether the guest continues to run after the assay process that started it has ended.
    detached: bool,
    /// Process id of QEMU; 0 before its start.
    pid: u32,
    /// Kind of acceleration: `kvm` or `tcg`.
    accel: String,
    memory_mib: u32,
    cpus: u32,
    disks: Vec<Size>,
    /// Hash of the recipe of the guest image.
    image: String,
}

#[derive(Serialize, JsonSchema)]
struct Size {
    name: String,
    bytes: u64,
}

impl Guest {
    pub fn of(entry: &GuestEntry) -> Self {
        let size = |(name, bytes): &(String, u64)| Size {
            name: name.clone(),
            bytes: *bytes,
        };
        Self {
            name: entry.name.clone(),
            detached: entry.detached,
            pid: entry.pid,
            accel: entry.accel.clone(),
            memory_mib: entry.memory_mib,
            cpus: entry.cpus,
            disks: entry.disks.iter().map(size).collect(),
            image: entry.image.clone(),
        }
    }
}

/// Document of `assay lab list`: guests and images.
#[derive(Serialize, JsonSchema)]
pub struct List {
    schema: u32,
    guests: Vec<Guest>,
    images: Vec<Listed>,
}

#[derive(Serialize, JsonSchema)]
struct Listed {
    /// Hash of the recipe from which the image was built.
    image: String,
    dir: PathBuf,
    disk_bytes: u64,
    /// Whether this version of assay uses this image.
    current: bool,
    /// Version of OpenZFS in the image.
    zfs: Option<&'static str>,
}

impl List {
    pub fn of(guests: &[GuestEntry], images: &[Image]) -> Self {
        let listed = |image: &Image| Listed {
            image: image.hash(),
            dir: image.dir().to_owned(),
            disk_bytes: image.disk_bytes(),
            current: image.zfs().is_some(),
            zfs: image.zfs().map(assay_lab::Zfs::name),
        };
        Self {
            schema: SCHEMA_VERSION,
            guests: guests.iter().map(Guest::of).collect(),
            images: images.iter().map(listed).collect(),
        }
    }
}

/// Document of `assay lab build`: the guest image.
#[derive(Serialize, JsonSchema)]
pub struct Built<'a> {
    schema: u32,
    /// Hash of the recipe from which the image was built.
    image: String,
    dir: &'a Path,
    /// File that lists the packages of the image.
    packages: PathBuf,
    disk_bytes: u64,
}

impl<'a> Built<'a> {
    pub fn of(image: &'a Image) -> Self {
        Self {
            schema: SCHEMA_VERSION,
            image: image.hash(),
            dir: image.dir(),
            packages: image.packages(),
            disk_bytes: image.disk_bytes(),
        }
    }
}

/// Document of `assay lab plug`: the new disks.
#[derive(Serialize, JsonSchema)]
pub struct Plugged {
    pub schema: u32,
    pub guest: String,
    pub disks: Vec<PluggedDisk>,
}

#[derive(Serialize, JsonSchema)]
pub struct PluggedDisk {
    #[serde(flatten)]
    disk: Described,
    /// Device node of the disk in the guest.
    device: PathBuf,
}

impl PluggedDisk {
    pub fn of(disk: &Disk, device: PathBuf) -> Self {
        Self {
            disk: Described::of(disk),
            device,
        }
    }
}

/// A disk of a guest.
#[derive(Serialize, JsonSchema)]
struct Described {
    name: String,
    /// Format, bus, cache mode and aio mode of the disk.
    what: String,
    bytes: u64,
}

impl Described {
    fn of(disk: &Disk) -> Self {
        Self {
            name: disk.name.clone(),
            what: disk.describe(),
            bytes: disk.size,
        }
    }
}

/// Document of `assay lab snapshot`: the snapshots of a guest.
#[derive(Serialize, JsonSchema)]
pub struct Snapshots<'a> {
    schema: u32,
    guest: &'a str,
    snapshots: Vec<Kept<'a>>,
}

#[derive(Serialize, JsonSchema)]
struct Kept<'a> {
    tag: &'a str,
    /// Time when the snapshot was taken.
    #[schemars(with = "String")]
    time: Option<Timestamp>,
    memory_bytes: u64,
}

impl<'a> Snapshots<'a> {
    pub fn of(guest: &'a str, snapshots: &'a [GuestSnapshot]) -> Self {
        let kept = |one: &'a GuestSnapshot| Kept {
            tag: &one.tag,
            time: Timestamp::from_second(one.seconds).ok(),
            memory_bytes: one.memory,
        };
        Self {
            schema: SCHEMA_VERSION,
            guest,
            snapshots: snapshots.iter().map(kept).collect(),
        }
    }
}

/// Document of `assay lab power-cut`: what the disks kept after power cuts.
#[derive(Serialize, JsonSchema)]
pub struct PowerCuts<'a> {
    schema: u32,
    disks: Vec<PowerCut<'a>>,
}

#[derive(Serialize, JsonSchema)]
struct PowerCut<'a> {
    disk: &'a str,
    /// Format, bus, cache mode and aio mode of the disk.
    what: &'a str,
    /// Whether the cache mode promises durability; `unsafe` does not.
    claims_durability: bool,
    /// Number of records for which the guest's kernel confirmed the flush.
    acknowledged: u64,
    /// Number of flushes that QEMU sent to the host before the kill.
    flushes: u64,
    cuts: u64,
    /// Number of cuts after which an acknowledged record was missing.
    cuts_with_loss: u64,
    /// Largest number of acknowledged records that were missing after one cut.
    most_lost: u64,
    /// Whether the disk behaved as its cache mode promises.
    as_promised: bool,
    /// Reason why records could not be read; null if they could.
    note: Option<&'a str>,
}

impl<'a> PowerCuts<'a> {
    pub fn of(outcomes: &'a [powercut::PowerCutOutcome]) -> Self {
        let one = |one: &'a powercut::PowerCutOutcome| PowerCut {
            disk: &one.disk,
            what: &one.what,
            claims_durability: one.claims,
            acknowledged: one.acknowledged,
            flushes: one.flushes,
            cuts: one.cuts,
            cuts_with_loss: one.lossy,
            most_lost: one.lost,
            as_promised: one.as_promised(),
            note: one.note.as_deref(),
        };
        Self {
            schema: SCHEMA_VERSION,
            disks: outcomes.iter().map(one).collect(),
        }
    }
}

/// Document of `assay lab full`: what the disks kept after the host ran out of space.
#[derive(Serialize, JsonSchema)]
pub struct Full<'a> {
    schema: u32,
    seed: u64,
    /// The host's file system that was filled.
    file_system: &'a str,
    disks: Vec<Filled<'a>>,
}

#[derive(Serialize, JsonSchema)]
struct Filled<'a> {
    disk: &'a str,
    /// Format, bus, cache mode and aio mode of the disk.
    what: &'a str,
    /// How the guest makes each record durable, such as `dsync`.
    sync: &'static str,
    /// Free bytes on the host when writing began.
    free_bytes: u64,
    ending: Ending,
    /// Number of times that QEMU paused the guest.
    pauses: u32,
    events: &'a [RefusedWrite],
    /// Error that the writer in the guest got from its kernel.
    guest_error: Option<GuestError<'a>>,
    /// Whether the guest continued when space was available again.
    resumed: bool,
    /// Number of records that were acknowledged before the host ran out of space.
    acknowledged_before: u64,
    /// Number of records that were acknowledged after space was available again.
    acknowledged_after: u64,
    acknowledged: u64,
    /// Number of acknowledged records that are not on the disk.
    lost: u64,
    kept: bool,
}

#[derive(Serialize, JsonSchema)]
struct GuestError<'a> {
    /// Error number (errno); 0 if unknown.
    errno: i32,
    reason: &'a str,
}

impl<'a> Full<'a> {
    pub fn of(seed: u64, file_system: &'a str, outcomes: &'a [full_disk::FullDiskOutcome]) -> Self {
        let one = |one: &'a full_disk::FullDiskOutcome| Filled {
            disk: &one.disk,
            what: &one.what,
            sync: one.sync.name(),
            free_bytes: one.free,
            ending: one.ending(),
            pauses: one.pauses,
            events: &one.events,
            guest_error: one.error.as_ref().map(|(errno, reason)| GuestError {
                errno: *errno,
                reason,
            }),
            resumed: one.resumed(),
            acknowledged_before: one.before,
            acknowledged_after: one.after,
            acknowledged: one.acknowledged,
            lost: one.lost,
            kept: one.kept(),
        };
        Self {
            schema: SCHEMA_VERSION,
            seed,
            file_system,
            disks: outcomes.iter().map(one).collect(),
        }
    }
}

/// Document of `assay lab measure`: samples of each disk.
#[derive(Serialize, JsonSchema)]
pub struct Measured<'a> {
    schema: u32,
    seed: u64,
    disks: Vec<Described>,
    workloads: Vec<&'a Workload>,
    samples: Vec<Sample<'a>>,
}

#[derive(Serialize, JsonSchema)]
struct Sample<'a> {
    disk: &'a str,
    workload: &'a str,
    /// Number of the round, counted from 0.
    round: u32,
    guest: &'a GuestSide,
    host: &'a HostSide,
    /// Reasons why this sample may be misleading.
    doubts: &'a [Doubt],
    /// JSON+ document of fio for this sample.
    fio: serde_json::Value,
}

impl<'a> Measured<'a> {
    pub fn of(
        disks: &[Disk],
        seed: u64,
        workloads: Vec<&'a Workload>,
        samples: &'a [DiskSample],
    ) -> Result<Self, serde_json::Error> {
        let one = |taken: &'a DiskSample| {
            Ok(Sample {
                disk: &taken.sample.target,
                workload: &taken.sample.workload,
                round: taken.sample.round - 1,
                guest: &taken.guest,
                host: &taken.host,
                doubts: &taken.doubts,
                fio: serde_json::from_slice(&taken.fio)?,
            })
        };
        Ok(Self {
            schema: SCHEMA_VERSION,
            seed,
            disks: disks.iter().map(Described::of).collect(),
            workloads,
            samples: samples
                .iter()
                .map(one)
                .collect::<Result<_, serde_json::Error>>()?,
        })
    }
}

/// Document of `assay lab crypto`: cost of encryption by CPU model.
#[derive(Serialize, JsonSchema)]
pub struct Crypto<'a> {
    schema: u32,
    host: &'a CryptoSide,
    models: &'a [Model],
    findings: &'a [Finding],
    /// Limitations of the comparison; null if there are none.
    note: Option<&'a str>,
}

impl<'a> Crypto<'a> {
    pub fn of(comparison: &'a Comparison, findings: &'a [Finding], note: Option<&'a str>) -> Self {
        Self {
            schema: SCHEMA_VERSION,
            host: &comparison.host,
            models: &comparison.models,
            findings,
            note,
        }
    }
}

/// Returns the JSON schemas of all documents of `assay lab`.
#[cfg(feature = "schemas")]
pub(in crate::verbs) fn all() -> Vec<Form> {
    vec![
        ("lab-up", "assay lab up --json", form::<Up>()),
        ("lab-list", "assay lab list --json", form::<List>()),
        ("lab-build", "assay lab build --json", form::<Built<'_>>()),
        ("lab-plug", "assay lab plug --json", form::<Plugged>()),
        (
            "lab-snapshots",
            "assay lab snapshot --json",
            form::<Snapshots<'_>>(),
        ),
        (
            "lab-power-cut",
            "assay lab power-cut --json",
            form::<PowerCuts<'_>>(),
        ),
        ("lab-full", "assay lab full --json", form::<Full<'_>>()),
        (
            "lab-measure",
            "assay lab measure --json",
            form::<Measured<'_>>(),
        ),
        (
            "lab-crypto",
            "assay lab crypto --json",
            form::<Crypto<'_>>(),
        ),
    ]
}
