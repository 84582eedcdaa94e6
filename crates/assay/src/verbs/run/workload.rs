//! Defines the options of `assay run` that describe one workload without a plan.

use assay_model::Bytes;
use assay_model::plan::{PlanSpec, WorkloadSpec};
use assay_model::workload::{Durability, Pattern};

/// One workload instead of a plan.
#[derive(clap::Args, Clone)]
pub struct OneWorkload {
    /// Run one workload: read, write, randread, randwrite, rw or randrw
    #[arg(long, help_heading = "One workload", value_name = "PATTERN", value_parser = pattern)]
    rw: Option<Pattern>,
    /// Set the block size [default: 4k]
    #[arg(
        long,
        help_heading = "One workload",
        value_name = "SIZE",
        requires = "rw"
    )]
    bs: Option<Bytes>,
    /// Keep N requests in flight per job [default: 1]
    #[arg(long, help_heading = "One workload", value_name = "N", requires = "rw")]
    iodepth: Option<u32>,
    /// Run N jobs at once [default: 1]
    #[arg(long, help_heading = "One workload", value_name = "N", requires = "rw")]
    jobs: Option<u32>,
    /// Set the percentage of reads for rw and randrw [default: 50]
    #[arg(
        long,
        help_heading = "One workload",
        value_name = "PERCENT",
        requires = "rw"
    )]
    mix: Option<u8>,
    /// Sync writes by none, dsync, fdatasync or fsync [default: none]
    #[arg(long, help_heading = "One workload", value_name = "HOW", value_parser = durability, requires = "rw")]
    sync: Option<Durability>,
    /// Go through the page cache instead of using O_DIRECT
    #[arg(long, help_heading = "One workload", requires = "rw")]
    buffered: bool,
}

fn pattern(text: &str) -> Result<Pattern, String> {
    [
        Pattern::Read,
        Pattern::Write,
        Pattern::RandRead,
        Pattern::RandWrite,
        Pattern::Rw,
        Pattern::RandRw,
    ]
    .into_iter()
    .find(|pattern| pattern.fio() == text)
    .ok_or_else(|| "use read, write, randread, randwrite, rw or randrw".to_owned())
}

fn durability(text: &str) -> Result<Durability, String> {
    match text {
        "none" => Ok(Durability::None),
        "dsync" => Ok(Durability::Dsync),
        "fdatasync" => Ok(Durability::Fdatasync),
        "fsync" => Ok(Durability::Fsync),
        _ => Err("use none, dsync, fdatasync or fsync".to_owned()),
    }
}

impl OneWorkload {
    /// Returns a plan with the workload of these options; `None` if no option is given.
    pub(in crate::verbs) fn plan(&self) -> Option<PlanSpec> {
        let workload = WorkloadSpec {
            pattern: Some(self.rw?),
            block_size: Some(self.bs.unwrap_or(Bytes(4096))),
            queue_depth: self.iodepth,
            jobs: self.jobs,
            read_percent: self.mix,
            direct: self.buffered.then_some(false),
            durability: self.sync,
            ..WorkloadSpec::default()
        };
        Some(PlanSpec {
            name: "single".to_owned(),
            title: "One workload from the command line".to_owned(),
            workloads: vec![workload],
            ..PlanSpec::default()
        })
    }
}
