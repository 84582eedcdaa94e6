//! Snapshots of a guest's memory, root disk and other disks (QEMU's internal snapshots).

use crate::error::LabError;
use crate::guest::Guest;
use assay_qemu::Qmp;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// A snapshot that was saved in the guest's disks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestSnapshot {
    /// Name that the user gave to the snapshot.
    pub tag: String,
    /// Time of the snapshot, in seconds since 1970.
    pub seconds: i64,
    /// Size of the guest's saved memory in bytes.
    pub memory: u64,
}

/// What QEMU does with a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Job {
    Save,
    Load,
    Delete,
}

impl Job {
    fn command(self) -> &'static str {
        match self {
            Self::Save => "snapshot-save",
            Self::Load => "snapshot-load",
            Self::Delete => "snapshot-delete",
        }
    }
}

/// Id of the snapshot job in QEMU. Only one job runs at a time.
const JOB: &str = "assay-snapshot";
/// Interval at which assay checks whether the guest runs and whether the user interrupted.
const SLICE: Duration = Duration::from_millis(200);
/// Id of the root drive on QEMU's command line.
const ROOT: &str = "root";

impl Guest {
    /// Saves a snapshot. `tag` consists of letters, digits and dashes.
    ///
    /// # Errors
    /// The name is used, a disk is not qcow2, or QEMU refuses (as it does with NVMe disks).
    pub fn save_snapshot(&mut self, tag: &str, limit: Duration) -> Result<(), LabError> {
        crate::state::GuestRegistry::check_name(tag)?;
        if self.snapshots()?.iter().any(|known| known.tag == tag) {
            return Err(LabError::Snapshot(format!(
                "there is a snapshot {tag} already"
            )));
        }
        self.snapshot_job(Job::Save, tag, limit)
    }

    /// Restores a snapshot. Work in the guest after the snapshot is lost; programs continue from the snapshot.
    ///
    /// # Errors
    /// The snapshot does not exist, or QEMU refuses.
    pub fn load_snapshot(&mut self, tag: &str, limit: Duration) -> Result<(), LabError> {
        self.known_snapshot(tag)?;
        self.snapshot_job(Job::Load, tag, limit)?;
        self.forget_channels();
        self.greet(limit)
    }

    /// Deletes a snapshot.
    ///
    /// # Errors
    /// The snapshot does not exist, or QEMU refuses.
    pub fn delete_snapshot(&mut self, tag: &str, limit: Duration) -> Result<(), LabError> {
        self.known_snapshot(tag)?;
        self.snapshot_job(Job::Delete, tag, limit)
    }

    /// Returns the snapshots, oldest first.
    ///
    /// # Errors
    /// The guest has ended.
    pub fn snapshots(&self) -> Result<Vec<GuestSnapshot>, LabError> {
        let blocks = self.qmp("query-block", json!({}))?;
        let root =
            find_root_drive(&blocks).map_or(&Value::Null, |root| &root["image"]["snapshots"]);
        let read = |one: &Value| {
            Some(GuestSnapshot {
                tag: one["name"].as_str()?.to_owned(),
                seconds: one["date-sec"].as_i64()?,
                memory: one["vm-state-size"].as_u64()?,
            })
        };
        Ok(root
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(read)
            .collect())
    }

    fn known_snapshot(&self, tag: &str) -> Result<(), LabError> {
        let known = self.snapshots()?;
        if known.iter().any(|one| one.tag == tag) {
            return Ok(());
        }
        let names: Vec<_> = known.iter().map(|one| &*one.tag).collect();
        Err(LabError::Snapshot(match names.as_slice() {
            [] => format!("there is no snapshot {tag}, nor any other"),
            names => format!("there is no snapshot {tag}; there are {}", names.join(", ")),
        }))
    }

    /// Returns the block nodes that a snapshot includes: first the node of the root disk, which also stores the memory,
    /// then the nodes of the other disks.
    fn snapshot_nodes(&self, monitor: &mut Qmp) -> Result<Vec<String>, LabError> {
        let blocks = monitor.execute("query-block", json!({}))?;
        let root = find_root_drive(&blocks).and_then(|root| root["node-name"].as_str());
        let root = root.ok_or_else(|| LabError::Snapshot("the guest has no root".to_owned()))?;
        let mut nodes = vec![root.to_owned()];
        let named = monitor.execute("query-named-block-nodes", json!({ "flat": true }))?;
        let named = named.as_array().map_or(&[][..], Vec::as_slice);
        for (disk, _) in &self.entry().disks {
            let top = format!("{disk}-top");
            let qcow2 = |node: &Value| node["node-name"] == *top && node["drv"] == "qcow2";
            if !named.iter().any(qcow2) {
                return Err(LabError::Snapshot(format!(
                    "disk {disk} cannot be wound back: only disks with format=qcow2 can"
                )));
            }
            nodes.push(top);
        }
        Ok(nodes)
    }

    fn snapshot_job(&mut self, job: Job, tag: &str, limit: Duration) -> Result<(), LabError> {
        let _one = self.alone()?;
        let mut monitor = self.monitor()?;
        let nodes = self.snapshot_nodes(&mut monitor)?;
        // A job of an interrupted process: it has ended by now, or cannot be dismissed.
        let _ = monitor.execute("job-dismiss", json!({ "id": JOB }));
        let mut arguments = json!({ "job-id": JOB, "tag": tag, "devices": nodes });
        if job != Job::Delete {
            arguments["vmstate"] = json!(nodes[0]);
        }
        monitor.execute(job.command(), arguments)?;
        let deadline = Instant::now() + limit;
        while Instant::now() < deadline {
            self.watch()?;
            let concluded = |event: &Value| {
                event["event"] == "JOB_STATUS_CHANGE" && event["data"]["status"] == "concluded"
            };
            if monitor.wait_for_events(SLICE)?.iter().any(concluded) {
                return ended(&mut monitor);
            }
        }
        Err(LabError::Snapshot(format!(
            "QEMU is not ready after {} s",
            limit.as_secs()
        )))
    }
}

/// Returns the result of the finished snapshot job.
fn ended(monitor: &mut Qmp) -> Result<(), LabError> {
    let jobs = monitor.execute("query-jobs", json!({}))?;
    let ours = jobs.as_array().into_iter().flatten();
    let error = ours
        .filter(|job| job["id"] == JOB)
        .find_map(|job| job["error"].as_str().map(str::to_owned));
    monitor.execute("job-dismiss", json!({ "id": JOB }))?;
    error.map_or(Ok(()), |error| Err(LabError::Snapshot(error)))
}

/// Returns QEMU's description of the root drive.
fn find_root_drive(blocks: &Value) -> Option<&Value> {
    let mut blocks = blocks.as_array()?.iter();
    let root = blocks.find(|block| block["device"] == ROOT)?;
    Some(&root["inserted"])
}
