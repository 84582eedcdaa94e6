//! Describes on one line what a job really does.

use super::engines::{EngineKind, find_engine};
use super::{JobOptions, SyncOption};

impl JobOptions {
    /// Returns a description on one line: `random read, 4 KiB, queue depth 32, direct, libaio`. It describes what fio
    /// does, not what the options request: for an engine that executes one I/O at a time, the queue depth is 1. Options
    /// with an unknown value are left out.
    #[must_use]
    pub fn describe(&self) -> String {
        let is_known = |option: &str| !self.unknown.contains(option);
        let mut parts = Vec::new();
        if is_known("rw") {
            parts.push(self.describe_pattern());
        }
        if is_known("bs") && find_engine(&self.engine) != Some(EngineKind::NoData) {
            let (read, write) = self.block_size;
            parts.push(
                match self.access.reads && self.access.writes && read != write {
                    true => format!("{read} reads and {write} writes"),
                    false if self.access.reads => read.to_string(),
                    false => write.to_string(),
                },
            );
        }
        if is_known("iodepth") && is_known("ioengine") && is_known("direct") {
            let depth = match self.depth_limit() {
                Some(_) => 1,
                None => self.iodepth.max(1),
            };
            parts.push(format!("queue depth {depth}"));
        }
        if is_known("numjobs") && self.numjobs > 1 {
            parts.push(format!("{} jobs", self.numjobs));
        }
        if is_known("direct") {
            let path = if self.direct {
                "direct"
            } else {
                "through the page cache"
            };
            parts.push(path.to_owned());
        }
        if self.access.writes && is_known("sync") {
            parts.extend(self.describe_durability());
        }
        if is_known("ioengine") {
            parts.push(self.engine.clone());
        }
        parts.join(", ")
    }

    fn describe_pattern(&self) -> String {
        let order = if self.access.random {
            "random"
        } else {
            "sequential"
        };
        let percent = || {
            let given = self
                .given("rwmixread")
                .and_then(|text| text.parse::<u32>().ok());
            let rest = self
                .given("rwmixwrite")
                .and_then(|text| text.parse::<u32>().ok());
            given
                .or(rest.map(|writes| 100_u32.saturating_sub(writes)))
                .unwrap_or(50)
        };
        match (self.access.reads, self.access.writes, self.access.trims) {
            (true, true, _) => format!("{order} mix, {} % reads", percent()),
            (_, true, true) => format!("{order} trim and write"),
            (_, _, true) => format!("{order} trim"),
            (_, true, _) => format!("{order} write"),
            _ => format!("{order} read"),
        }
    }

    fn describe_durability(&self) -> Option<String> {
        let after = |call: &str, writes: u64| match writes {
            1 => format!("{call} after every write"),
            more => format!("{call} after every {more} writes"),
        };
        match self.sync {
            SyncOption::Sync => Some("durable (O_SYNC)".to_owned()),
            SyncOption::Dsync => Some("durable (O_DSYNC)".to_owned()),
            SyncOption::No if self.fsync > 0 => Some(after("fsync", self.fsync)),
            SyncOption::No if self.fdatasync > 0 => Some(after("fdatasync", self.fdatasync)),
            SyncOption::No if self.end_fsync => Some("fsync at the end".to_owned()),
            SyncOption::No => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::options::{JobOptions, OptionSource};

    fn described(options: &[(&str, &str)]) -> String {
        let given = options
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        JobOptions::from_given("t", given, OptionSource::default())
            .unwrap()
            .describe()
    }

    #[test]
    fn what_fio_does_and_not_what_was_asked_for() {
        let cases: [(&[(&str, &str)], &str); 9] = [
            (
                &[("iodepth", "8"), ("ioengine", "posixaio")],
                "sequential read, 4 KiB, queue depth 1, through the page cache, posixaio",
            ),
            (
                &[
                    ("iodepth", "8"),
                    ("ioengine", "posixaio"),
                    ("filename", "/dev/nvd0"),
                ],
                "sequential read, 4 KiB, queue depth 8, through the page cache, posixaio",
            ),
            (
                &[
                    ("iodepth", "8"),
                    ("ioengine", "psync"),
                    ("io_submit_mode", "offload"),
                ],
                "sequential read, 4 KiB, queue depth 8, through the page cache, psync",
            ),
            (
                &[],
                "sequential read, 4 KiB, queue depth 1, through the page cache, psync",
            ),
            (
                &[
                    ("rw", "randread"),
                    ("iodepth", "32"),
                    ("ioengine", "libaio"),
                    ("direct", "1"),
                ],
                "random read, 4 KiB, queue depth 32, direct, libaio",
            ),
            (
                &[
                    ("rw", "randread"),
                    ("iodepth", "64"),
                    ("ioengine", "libaio"),
                ],
                "random read, 4 KiB, queue depth 1, through the page cache, libaio",
            ),
            (
                &[
                    ("rw", "randrw"),
                    ("rwmixwrite", "30"),
                    ("iodepth", "8"),
                    ("ioengine", "psync"),
                    ("numjobs", "4"),
                ],
                "random mix, 70 % reads, 4 KiB, queue depth 1, 4 jobs, through the page cache, psync",
            ),
            (
                &[
                    ("rw", "write"),
                    ("bs", "128k"),
                    ("fdatasync", "8"),
                    ("ioengine", "sync"),
                ],
                "sequential write, 128 KiB, queue depth 1, through the page cache, \
                 fdatasync after every 8 writes, sync",
            ),
            (
                &[("rw", "rw"), ("bs", "4k,64k"), ("sync", "dsync")],
                "sequential mix, 50 % reads, 4 KiB reads and 64 KiB writes, queue depth 1, through the page cache, \
                 durable (O_DSYNC), psync",
            ),
        ];
        for (options, expected) in cases {
            assert_eq!(described(options), expected, "{options:?}");
        }
    }

    #[test]
    fn what_is_not_known_is_left_out() {
        let mut job = JobOptions::from_given("t", [], OptionSource::default()).unwrap();
        job.unknown = ["bs", "iodepth"].map(str::to_owned).into();
        assert_eq!(
            job.describe(),
            "sequential read, through the page cache, psync"
        );
    }
}
