//! `assay plan capacity`: computes how much storage to buy, how the data grows, and when the storage is full.

use super::read;
use super::show::{print_json, write_page};
use crate::context::{columns, print};
use crate::status::Status;
use anyhow::bail;
use assay_planner::PlannerError;
use assay_planner::capacity::{
    CapacityQuestion, Grown, Recorded, SNAPSHOT_COLUMNS, answer_question,
};
use assay_report::plan::capacity_bill::{build_answer_sections, describe_snapshots, format_answer};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  assay plan capacity 1TiB                              21.45 TB, 8:1 a system
  assay plan capacity 600GiB --factor growth=1.5 --factor backup=1 --factor hotspare=1
  assay plan capacity 1TiB --exact-units
  assay plan capacity --history used.txt --size 8TiB    when 80 % and 90 % are reached
  assay plan capacity --snapshots snaps.txt --size 8TiB
  assay plan capacity --pool tank                       measured here, from its snapshots
  assay plan capacity 1TiB --sanoid /etc/sanoid/sanoid.conf --churn 0.5%

A history has a date and a size on each line: `2026-01-31 1.5TiB`. Snapshots are recorded with
`zfs list -Hp -t snapshot -o name,creation,used,referenced,written`.

Sizes: 4T and 4TB are 4·10¹² bytes, as disks are sold; 4TiB is 4·2⁴⁰.";

/// Work out how much to buy, how it grows and when it is full
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Amount of data today
    #[arg(value_name = "DATA", value_parser = read::size)]
    data: Option<u64>,
    /// Set a factor, such as growth=1.5 or backup=1, or add a new one
    #[arg(long, value_name = "NAME=VALUE")]
    factor: Vec<String>,
    /// Use 1.0995 instead of 1.1 to convert TiB to TB
    #[arg(long)]
    exact_units: bool,
    /// Plan for N years of measured growth
    #[arg(long, default_value_t = 5.0, value_name = "N")]
    years: f64,
    /// Read recorded sizes over time
    #[arg(long, value_name = "FILE")]
    history: Option<PathBuf>,
    /// Read recorded snapshots
    #[arg(long, value_name = "FILE", conflicts_with = "history")]
    snapshots: Option<PathBuf>,
    /// Read the snapshots of this ZFS pool or dataset
    #[arg(long, value_name = "POOL", conflicts_with_all = ["history", "snapshots"])]
    pool: Option<String>,
    /// Set the usable space, to compute when it is full
    #[arg(long, value_name = "SIZE", value_parser = read::size)]
    size: Option<u64>,
    /// Simulate the retention policies of this file
    #[arg(long, value_name = "FILE")]
    sanoid: Option<PathBuf>,
    /// Set the share of data rewritten per day [default: measured or derived]
    #[arg(long, value_name = "SHARE", value_parser = read::share)]
    churn: Option<f64>,
    /// Write a self-contained page with diagrams (no scripts)
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print JSON; sizes in bytes, times in seconds since 1970
    #[arg(long)]
    json: bool,
}

/// Computes the answer of `assay plan capacity` and prints it.
pub fn run(args: &Args) -> anyhow::Result<Status> {
    let answer = answer_question(&CapacityQuestion {
        data: args.data,
        size: args.size,
        grown: grown(args)?,
        sanoid: args.sanoid.as_deref().map(recorded).transpose()?,
        churn: args.churn,
        years: args.years,
        exact_units: args.exact_units,
        factors: args.factor.clone(),
    })?;
    write_page(
        args.html.as_deref(),
        "Capacity",
        &describe_snapshots(&answer),
        &build_answer_sections(&answer),
    )?;
    match args.json {
        true => print_json("capacity", &answer)?,
        false => print(&format_answer(&answer, columns()))?,
    }
    Ok(Status::Ok)
}

fn recorded(path: &Path) -> anyhow::Result<Recorded> {
    Ok(Recorded {
        source: path.display().to_string().escape_debug().to_string(),
        text: read::file(path)?,
    })
}

/// Reads the sizes over time from the source on the command line: a recorded history, snapshots, or a pool of this
/// machine.
fn grown(args: &Args) -> anyhow::Result<Grown> {
    if let Some(path) = &args.history {
        return Ok(Grown::History(recorded(path)?));
    }
    if let Some(path) = &args.snapshots {
        return Ok(Grown::Snapshots {
            snapshots: recorded(path)?,
            pool: None,
        });
    }
    let Some(pool) = &args.pool else {
        return Ok(Grown::Unknown);
    };
    if pool.starts_with('-') {
        bail!(PlannerError::value("pool", "a name cannot begin with -"));
    }
    let list = ["zfs", "list", "-Hp", "-r", "-t", "snapshot", "-o"];
    let text = read::command(&[&list[..], &[SNAPSHOT_COLUMNS, pool]].concat())?;
    let shown = read::command(&["zfs", "list", "-Hp", "-o", "used,available", pool])?;
    Ok(Grown::Snapshots {
        snapshots: Recorded {
            source: "zfs list -t snapshot".to_owned(),
            text,
        },
        pool: Some(shown),
    })
}
