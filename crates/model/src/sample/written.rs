//! The stored form of workers and rates. assay 0.1 stored reads, writes, trims and flushes as fields of a fio job. It
//! counted requests, logins, files and commands as reads, and stored rates only of reads and writes.

use super::{FioJob, Latency, Operation, Operations, Rate};
use crate::units::Nanos;
use crate::web::Step;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A worker in any form that a version of assay stored.
#[derive(Deserialize)]
pub(super) struct Worker {
    name: String,
    #[serde(default)]
    runtime: Nanos,
    #[serde(default)]
    operations: BTreeMap<Operation, Operations>,
    #[serde(default)]
    usr_cpu: f64,
    #[serde(default)]
    sys_cpu: f64,
    #[serde(default)]
    fio: FioJob,
    #[serde(default)]
    http: Option<Box<Step>>,
    // Form of 0.1.
    read: Option<Operations>,
    write: Option<Operations>,
    trim: Option<Operations>,
    sync: Option<Latency>,
    #[serde(default)]
    options: BTreeMap<String, String>,
    #[serde(default)]
    error: i32,
    #[serde(default)]
    ctx: u64,
    #[serde(default)]
    iodepth_level: BTreeMap<String, f64>,
    #[serde(default)]
    group: u32,
}

/// Returns the kind of operation that the load with this name executes. assay 0.1 counted these operations as reads.
fn operation_of_load(name: &str) -> Operation {
    match name {
        "http" => Operation::Request,
        "imap" => Operation::Login,
        "attributes" => Operation::File,
        "command" => Operation::Run,
        _ => Operation::Read,
    }
}

impl From<Worker> for super::Worker {
    fn from(written: Worker) -> Self {
        let old = FioJob {
            options: written.options,
            error: written.error,
            ctx: written.ctx,
            iodepth_level: written.iodepth_level,
            group: written.group,
            open: false,
        };
        let reads = match old.is_empty() {
            true => operation_of_load(&written.name),
            false => Operation::Read,
        };
        let old_operations = [
            (reads, written.read),
            (Operation::Write, written.write),
            (Operation::Trim, written.trim),
            (Operation::Flush, written.sync.map(Operations::flushes)),
        ];
        let old_operations = old_operations
            .into_iter()
            .filter_map(|(kind, done)| Some((kind, done?)));
        Self {
            name: written.name,
            runtime: written.runtime,
            operations: written
                .operations
                .into_iter()
                .chain(old_operations)
                .collect(),
            usr_cpu: written.usr_cpu,
            sys_cpu: written.sys_cpu,
            fio: match written.fio.is_empty() {
                true => old,
                false => written.fio,
            },
            http: written.http,
        }
    }
}

/// A point of the rate over time in any form that a version of assay stored.
#[derive(Deserialize)]
pub(super) struct RatePoint {
    at_ms: u64,
    #[serde(default)]
    rates: BTreeMap<Operation, Rate>,
    // Form of 0.1.
    #[serde(default)]
    read_iops: f64,
    #[serde(default)]
    write_iops: f64,
    #[serde(default)]
    read_bytes_per_s: f64,
    #[serde(default)]
    write_bytes_per_s: f64,
}

impl From<RatePoint> for super::RatePoint {
    fn from(written: RatePoint) -> Self {
        let old = [
            (Operation::Read, written.read_iops, written.read_bytes_per_s),
            (
                Operation::Write,
                written.write_iops,
                written.write_bytes_per_s,
            ),
        ];
        let old = old
            .into_iter()
            .filter(|(_, per_s, bytes_per_s)| per_s + bytes_per_s != 0.0)
            .map(|(kind, per_s, bytes_per_s)| (kind, Rate { per_s, bytes_per_s }));
        Self {
            at_ms: written.at_ms,
            rates: old.chain(written.rates).collect(),
        }
    }
}

impl Operations {
    /// Creates flush operations with this latency. Bytes and duration are zero, because fio does not report them for
    /// flushes.
    #[must_use]
    pub fn flushes(lat: Latency) -> Self {
        Self {
            count: lat.n,
            lat,
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Operation, RatePoint, Worker};

    #[test]
    fn a_rate_of_0_1_is_read_and_written_as_of_today() {
        let old: RatePoint = serde_json::from_str(
            r#"{"at_ms":100,"read_iops":3.0,"write_iops":0.0,"read_bytes_per_s":12.5,"write_bytes_per_s":0.0}"#,
        )
        .unwrap();
        assert_eq!(old.rates.keys().collect::<Vec<_>>(), [&Operation::Read]);
        assert_eq!(
            (old.at_ms, old.per_s(), old.bytes_per_s()),
            (100, 3.0, 12.5)
        );
        let text = serde_json::to_string(&old).unwrap();
        assert_eq!(serde_json::from_str::<RatePoint>(&text).unwrap(), old);
    }

    fn read(text: &str) -> Worker {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_job_of_0_1_is_read_and_written_as_of_today() {
        let old = read(
            r#"{"name":"mix","options":{"rw":"randrw"},"runtime":5,"ctx":7,
                "read":{"bytes":8192,"ios":2,"runtime":5,"iops":3.0,"bytes_per_s":4.0,"short_ios":1},
                "write":{"bytes":4096,"ios":1,"runtime":5,"iops":1.0,"bytes_per_s":2.0},
                "sync":{"n":9,"min":1,"max":2,"mean":1.5,"stddev":0.1}}"#,
        );
        let reads = old.read().unwrap();
        assert_eq!((reads.count, reads.bytes.0, reads.short), (2, 8192, 1));
        assert!((reads.per_s - 3.0).abs() < 1e-9);
        let flushes = old.flush().unwrap();
        assert_eq!((flushes.count, flushes.lat.max), (9, 2));
        assert_eq!((old.fio.ctx, old.fio.options["rw"].as_str()), (7, "randrw"));
        assert_eq!(
            old.asked().map(|(kind, _)| kind).collect::<Vec<_>>(),
            [Operation::Read, Operation::Write]
        );
        let again = read(&serde_json::to_string(&old).unwrap());
        assert_eq!(again, old);
    }

    #[test]
    fn what_0_1_called_reads_is_what_it_was() {
        for (name, kind) in [
            ("http", Operation::Request),
            ("imap", Operation::Login),
            ("attributes", Operation::File),
            ("command", Operation::Run),
            ("anything", Operation::Read),
        ] {
            let old = format!(
                r#"{{"name":"{name}","runtime":5,
                    "read":{{"bytes":0,"ios":2,"runtime":5,"iops":3.0,"bytes_per_s":0.0}}}}"#
            );
            assert_eq!(read(&old).of(kind).unwrap().count, 2, "{name}");
        }
        // A fio job of this name has options, and reads.
        let fio = read(
            r#"{"name":"http","options":{"rw":"read"},
                "read":{"bytes":0,"ios":2,"runtime":5,"iops":3.0,"bytes_per_s":0.0}}"#,
        );
        assert!(fio.read().is_some());
    }
}
