//! `assay plan distribute`: computes how ZFS spreads writes over unequal vdevs.

use super::read;
use super::show::{print_json, write_page};
use crate::context::print;
use crate::context::wrap;
use crate::status::Status;
use assay_model::size::Convention::Binary;
use assay_model::units::mb_per_s;
use assay_planner::PlannerError;
use assay_planner::distribute::{
    AllocationRules, Distribution, Vdev, WriterModel, distribute_writes, parse_zpool_iostat,
    parse_zpool_list,
};
use assay_planner::zfs::Version;
use assay_render::units::format_duration;
use assay_report::plan as picture;
use serde::Serialize;
use std::fmt::Write as _;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  assay plan distribute 512MiB 2GiB --write 512MiB        unequal sizes
  assay plan distribute 2T@80% 2T --write 500G            an old and a new vdev
  assay plan distribute 2T,180MB/s 2T,12MB/s --write 50G  one of them fails slowly
  assay plan distribute 512G 2T --write 50G --rate 40MB/s a writer slower than the disks
  assay plan distribute --zfs 2.4 2T,500MB/s 2T,150MB/s
  assay plan distribute --pool tank --write 10G           vdevs of a pool here, by zpool list

  assay plan distribute --pool tank --watch 10            beside what it writes now

A vdev is SIZE[@FILL%][,RATE]; RATE is 150MB/s unless given.

Sizes: 4T and 4TB are 4·10¹² bytes, as disks are sold; 4TiB is 4·2⁴⁰.";

/// Sentence that explains the busy times, printed below the table.
const BUSY: &str =
    "A vdev that is always busy while the others wait is the one that the pool waits for.";

/// Show how writes spread over vdevs of unequal size, fill and speed
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Vdevs as SIZE[@FILL%][,RATE]
    #[arg(value_name = "VDEV", required_unless_present = "pool")]
    vdevs: Vec<String>,
    /// Use the vdevs of this ZFS pool of this machine
    #[arg(long, value_name = "POOL", conflicts_with = "vdevs")]
    pool: Option<String>,
    /// Compare with the real writes of the ZFS pool for so many seconds
    #[arg(long, value_name = "SECONDS", requires = "pool", value_parser = clap::value_parser!(u32).range(1..=50))]
    watch: Option<u32>,
    /// Set the speed of each vdev
    #[arg(long, default_value = "150MB/s", value_parser = read::rate, value_name = "RATE")]
    speed: u64,
    /// Write this much
    #[arg(long, default_value = "1GiB", value_parser = read::size, value_name = "SIZE")]
    write: u64,
    /// Set the block size
    #[arg(long, default_value = "128KiB", value_parser = read::size, value_name = "SIZE")]
    block: u64,
    /// Set the size of a transaction group
    #[arg(long, default_value = "64MiB", value_parser = read::size, value_name = "SIZE")]
    txg: u64,
    /// Write at this rate [default: the highest rate of the vdevs]
    #[arg(long, value_parser = read::rate, value_name = "RATE")]
    rate: Option<u64>,
    /// Apply this version's rules [default: before 0.7, 0.7 to 2.3, 2.4]
    #[arg(long, value_name = "VERSION")]
    zfs: Option<Version>,
    /// Assume zio_dva_throttle_enabled=0
    #[arg(long)]
    no_throttle: bool,
    /// Write a self-contained page with diagrams (no scripts)
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print JSON; sizes in bytes
    #[arg(long)]
    json: bool,
}

#[derive(Serialize, schemars::JsonSchema)]
pub(super) struct Answer {
    vdevs: Vec<Vdev>,
    writer: WriterModel,
    outcomes: Vec<Distribution>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    measured: Vec<Measured>,
}

/// Measured write rate of a vdev in bytes per second.
#[derive(Serialize, schemars::JsonSchema)]
struct Measured {
    name: String,
    bytes_per_second: f64,
    share: f64,
}

/// Measures the write rate of each vdev of a pool for `seconds`.
fn watch(pool: &str, seconds: u32, vdevs: &[Vdev]) -> anyhow::Result<Vec<Measured>> {
    let seconds = seconds.to_string();
    let argv = ["zpool", "iostat", "-vHp", pool, &seconds, "2"];
    let rates = parse_zpool_iostat("zpool iostat -vHp", &read::command(&argv)?)?;
    let of = |name: &str| {
        let found = rates.iter().find(|(seen, _)| seen == name);
        found.map_or(0.0, |(_, rate)| *rate)
    };
    let total: f64 = vdevs.iter().map(|vdev| of(&vdev.name)).sum();
    Ok(vdevs
        .iter()
        .map(|vdev| Measured {
            name: vdev.name.clone(),
            bytes_per_second: of(&vdev.name),
            share: of(&vdev.name) / total.max(1.0),
        })
        .collect())
}

fn vdev(text: &str, index: usize) -> Result<Vdev, PlannerError> {
    let (rest, speed) = match text.split_once(',') {
        Some((rest, rate)) => (rest, read::rate(rate)?),
        None => (text, 150_000_000),
    };
    let (size, fill) = match rest.split_once('@') {
        Some((size, fill)) => (read::size(size)?, read::share(fill)?),
        None => (read::size(rest)?, 0.0),
    };
    Ok(Vdev {
        name: format!("vdev-{index}"),
        size,
        used: (size as f64 * fill) as u64,
        speed: speed as f64,
        data_disks: 1,
    })
}

/// Computes the answer of `assay plan distribute` and prints it.
pub fn run(args: &Args) -> anyhow::Result<Status> {
    let vdevs = match &args.pool {
        Some(pool) => {
            if pool.starts_with('-') {
                return Err(PlannerError::value("pool", "a name cannot begin with -").into());
            }
            let argv = ["zpool", "list", "-vHp", pool];
            parse_zpool_list("zpool list -vHp", &read::command(&argv)?, args.speed as f64)?
        }
        None => args
            .vdevs
            .iter()
            .enumerate()
            .map(|(i, text)| vdev(text, i))
            .collect::<Result<_, _>>()?,
    };
    let writer = WriterModel {
        bytes: args.write,
        block: args.block,
        txg: args.txg,
        rate: args.rate.map(|rate| rate as f64),
    };
    let rules = match args.zfs {
        Some(version) => vec![AllocationRules::of(version, !args.no_throttle)],
        None if args.no_throttle => vec![AllocationRules::FreeSpace],
        None => vec![
            AllocationRules::FreeSpace,
            AllocationRules::Throttle,
            AllocationRules::Performance,
        ],
    };
    let outcomes = rules
        .into_iter()
        .map(|rules| distribute_writes(&vdevs, rules, writer))
        .collect::<Result<Vec<_>, _>>()?;
    let measured = match (&args.pool, args.watch) {
        (Some(pool), Some(seconds)) => watch(pool, seconds, &vdevs)?,
        _ => Vec::new(),
    };
    let answer = Answer {
        vdevs,
        writer,
        outcomes,
        measured,
    };
    let title = format!(
        "{} in blocks of {}",
        Binary.show(args.write),
        Binary.show(args.block)
    );
    let mut intro = vec![BUSY.to_owned()];
    intro.extend(answer.measured.iter().map(|vdev| {
        format!(
            "Measured now: {} writes {} MB/s, {:.1} %.",
            vdev.name,
            mb_per_s(vdev.bytes_per_second),
            vdev.share * 100.0
        )
    }));
    let sections: Vec<_> = answer
        .outcomes
        .iter()
        .map(picture::build_distribution_section)
        .collect();
    write_page(args.html.as_deref(), &title, &intro, &sections)?;
    if args.json {
        print_json("distribute", &answer)?;
        return Ok(Status::Ok);
    }
    let mut text = format!("{title}\n");
    for outcome in &answer.outcomes {
        let name = match outcome.rules {
            AllocationRules::FreeSpace => "before 0.7, or without the allocation throttle",
            AllocationRules::Throttle => "0.7 to 2.3",
            AllocationRules::Performance => "2.4",
        };
        let line = format!(
            "OpenZFS {name}: {} MB/s, {:.0} % of what the vdevs could do together, {}",
            mb_per_s(outcome.speed),
            outcome.of_possible * 100.0,
            format_duration(outcome.seconds)
        );
        let _ = writeln!(text, "\n{}", wrap(&line, 0));
        for vdev in &outcome.vdevs {
            let bar = "█".repeat((vdev.share * 30.0).round() as usize);
            let _ = writeln!(
                text,
                "  {:<14} {bar:<30} {:>5.1} %  busy {:>3.0} %  {:>3.0} % full",
                vdev.name.escape_debug().to_string(),
                vdev.share * 100.0,
                vdev.busy * 100.0,
                vdev.full * 100.0
            );
        }
    }
    if !answer.measured.is_empty() {
        text.push_str("\nMeasured now\n");
        for vdev in &answer.measured {
            let _ = writeln!(
                text,
                "  {:<14} {:>5.1} %  {} MB/s",
                vdev.name.escape_debug().to_string(),
                vdev.share * 100.0,
                mb_per_s(vdev.bytes_per_second)
            );
        }
    }
    let _ = writeln!(text, "\n{}", wrap(BUSY, 0));
    print(&text)?;
    Ok(Status::Ok)
}
