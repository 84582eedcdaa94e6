//! `assay plan layout`: compares storage layouts over disks of unequal size.

use super::read;
use super::show::print_json;
use crate::context::{columns, print, wrap};
use crate::status::Status;
use assay_model::size::Convention::Decimal;
use assay_model::size::Unit;
use assay_planner::btrfs::Profile;
use assay_planner::durability::{Assumptions, CANNOT_TELL};
use assay_planner::layout::{
    Context, Disk, Io, Layout, LayoutPlan, Ownership, Want, best, describe, is_buildable,
    nearest_buildable, pareto, rank, search,
};
use assay_planner::size;
use assay_planner::zfs::Version;
use assay_planner::{PlannerError, lsblk};
use assay_report::plan as picture;
use assay_report::plan::layout::layout_text::{
    choose_shown_plan, describe_disks, describe_units, format_layouts, format_plan, format_volumes,
    list_assumptions,
};
use serde::Serialize;
use std::fmt::Write as _;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  assay plan layout 4T 2T 2T 1T 750G                  every sensible layout, best first
  assay plan layout 8x12T@210 --survive 2 --io random  eight disks at 210 each
  assay plan layout 6x4T --want 'usable>=12TiB' --html plan.html
  assay plan layout --only raidz2:6 --ashift 12 6x10GiB --json
  assay plan layout --only 2*mirror:2+special/mirror:2 4x4T 2x400G
  assay plan layout --only raidz2:6 6x4T --special 400G --special 400G
  assay plan layout --only draid2:4d:8c:1s 8x4TB
  assay plan layout --only raidz2:6 6x4T --volume 1TiB   what a volume reserves by volblocksize
  assay plan layout 6x4T@95 --years 5 --watts 7 --kwh 0.35
  assay plan layout --only btrfs-raid1 --metadata raid1 4T 2T 1T --json
  assay plan layout --only stripes:4+1 4T 2T 2T 1T 750G
  assay plan layout --here                             this machine's disks, read only

Disks: SIZE, or COUNTxSIZE (also COUNT*SIZE), each with @PRICE if prices are known. 4T and 4TB are 4·10¹² bytes, as
disks are sold; 4TiB is 4·2⁴⁰; a bare number is bytes. The order of disks matters only with --only.
Layouts for --only: [N*][special/|log/|cache/|spare/]single|mirror:N|raidz1:N|raidz2:N|raidz3:N|
draidP:Dd:Cc:Ss, joined by +; btrfs-PROFILE; md-LEVEL; stripes:N+P.
Exit status: 0 done, 1 no layout meets what is wanted, 2 wrong question, 3 disks cannot be read.";

/// Compare ZFS, btrfs, md and stripe layouts over unequal disks
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Sizes of the disks, such as 4T 2T 750G, 6x4T or 6x4T@99.5
    #[arg(value_name = "DISK")]
    disks: Vec<String>,
    /// Use the disks of this machine; reads only their properties
    #[arg(long, conflicts_with = "disks")]
    here: bool,
    /// Describe this one layout over the disks in the given order
    #[arg(long, value_name = "LAYOUT")]
    only: Option<String>,
    /// Set the btrfs metadata profile [default: as safe as the data]
    #[arg(long, value_name = "PROFILE")]
    metadata: Option<Profile>,
    /// Add a fast disk as special vdev; repeat for a mirror
    #[arg(long, value_name = "SIZE", value_parser = read::size)]
    special: Vec<u64>,
    /// Set the sector size of ZFS as a power of two, 9 to 16
    #[arg(long, default_value_t = 12, value_name = "N", value_parser = clap::value_parser!(u32).range(9..=16))]
    ashift: u32,
    /// Show efficiency at this block size [default: 4 KiB to 1 MiB]
    #[arg(long, value_name = "SIZE", value_parser = read::block)]
    block: Vec<u64>,
    /// Show the reservation of a volume of this size for each block size
    #[arg(long, value_name = "SIZE", value_parser = read::size)]
    volume: Option<u64>,
    /// Assume this version of OpenZFS, 0.7 to 2.4
    #[arg(long, default_value_t = Version::CHECKED, value_name = "VERSION")]
    zfs: Version,
    /// Subtract the partitions that ZFS makes on whole disks (10 or 80 MiB)
    #[arg(long, value_name = "SECTOR", num_args = 0..=1, require_equals = true, default_missing_value = "512")]
    whole_disk: Option<u64>,
    /// Require a figure, such as usable>=6TiB or cost<=900 (repeatable)
    #[arg(long, value_name = "DEMAND")]
    want: Vec<Want>,
    /// Survive at least N failed disks, whichever they are
    #[arg(long, value_name = "N")]
    survive: Option<u64>,
    /// Sort by speed of this load instead of by usable space
    #[arg(long, value_enum, value_name = "KIND")]
    io: Option<Load>,
    /// Show at most N layouts
    #[arg(long, default_value_t = 20, value_name = "N")]
    limit: usize,
    /// Show only layouts that no other beats in everything, and common ones
    #[arg(long)]
    best: bool,
    /// Assume this share of disks fails in a year
    #[arg(long, default_value = "1.5%", value_parser = read::share, value_name = "SHARE")]
    afr: f64,
    /// Assume this rate of unreadable bits, such as 1e-14; 0 ignores them
    #[arg(long, default_value_t = 1e-15, value_name = "N")]
    ure: f64,
    /// Assume this speed of a disk during a rebuild
    #[arg(long, default_value = "150MB/s", value_parser = read::rate, value_name = "RATE")]
    disk_speed: u64,
    /// Assume this fill level of the file system when a disk fails
    #[arg(long, default_value = "80%", value_parser = read::share, value_name = "SHARE")]
    fill: f64,
    /// Show the cost over N years: disks, replacements, electricity
    #[arg(long, value_name = "N")]
    years: Option<f64>,
    /// With --years: watts of one disk
    #[arg(long, default_value_t = 6.0, value_name = "W", requires = "years")]
    watts: f64,
    /// With --years: price of a kilowatt hour
    #[arg(long, default_value_t = 0.3, value_name = "PRICE", requires = "years")]
    kwh: f64,
    /// Write a self-contained page with diagrams to FILE
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print JSON; all sizes in bytes
    #[arg(long)]
    json: bool,
}

#[derive(clap::ValueEnum, Clone, Copy)]
enum Load {
    /// Small random requests.
    Random,
    /// Long sequential requests.
    Stream,
}

#[derive(Serialize, schemars::JsonSchema)]
pub(super) struct Answer<'a> {
    disks: &'a [Disk],
    units: &'static str,
    assumptions: &'a Context,
    #[serde(skip_serializing_if = "Option::is_none")]
    bounded: &'a Option<String>,
    found: usize,
    /// Whether all results are theoretical upper bounds, which no existing file system achieves.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    nobody_builds: bool,
    cannot_tell: &'static str,
    layouts: &'a [LayoutPlan],
}

/// Parses a DISK argument, and notes in `units` which units it uses.
fn disks(text: &str, units: &mut Vec<Unit>) -> Result<Vec<Disk>, PlannerError> {
    let wrong = |reason: &str| PlannerError::Size {
        input: text.escape_debug().to_string(),
        reason: reason.to_owned(),
    };
    let (rest, price) = match text.split_once('@') {
        None => (text, None),
        Some((rest, price)) => (
            rest,
            Some(
                price
                    .parse::<f64>()
                    .ok()
                    .filter(|price| price.is_finite() && *price >= 0.0)
                    .ok_or_else(|| wrong("the price behind @ must be a number from 0 up"))?,
            ),
        ),
    };
    let (count, size) = match rest.split_once(['x', '×', '*']) {
        None => (1, rest),
        Some((count, size)) => (
            count
                .parse::<usize>()
                .ok()
                .filter(|count| (1..=size::MAX_DISKS).contains(count))
                .ok_or_else(|| {
                    wrong("the count before x or * must be 1 to 1024, as in 6x4T or 6*4T")
                })?,
            size,
        ),
    };
    let (size, unit) = size::parse(size)?;
    units.push(unit);
    Ok(vec![Disk { size, price }; count])
}

/// Returns a pool specification with the disks of `--special` as one special vdev after the other disks.
fn with_special(spec: &str, disks: usize, special: usize) -> Result<String, PlannerError> {
    if special == 0 {
        return Ok(spec.to_owned());
    }
    let other = ["btrfs-", "md-", "stripes:"];
    if other.iter().any(|begin| spec.starts_with(begin)) {
        return Err(PlannerError::layout(
            spec.escape_debug().to_string(),
            "only ZFS has special vdevs: leave --special out",
        ));
    }
    // A vdev without a number takes all remaining disks, but not the special ones.
    let alone = !spec.contains([':', '+', '*']) && spec != "single";
    let spec = match alone {
        true => format!("{spec}:{disks}"),
        false => spec.to_owned(),
    };
    Ok(match special {
        1 => format!("{spec}+special/single"),
        n => format!("{spec}+special/mirror:{n}"),
    })
}

/// Computes the answer of `assay plan layout` and prints it.
pub fn run(args: &Args) -> anyhow::Result<Status> {
    let mut units = Vec::new();
    let mut offered: Vec<Disk> = if args.here {
        let mut argv = vec!["lsblk"];
        argv.extend(lsblk::ARGUMENTS);
        let found = lsblk::parse(&read::command(&argv)?)?;
        if found.is_empty() {
            return Err(PlannerError::value("this machine", "lsblk shows no writable disk").into());
        }
        for disk in &found {
            let kind = if disk.rotational { "turning" } else { "flash" };
            eprintln!(
                "{}: {} ({kind})",
                disk.name.escape_debug(),
                Decimal.show(disk.size)
            );
        }
        let disk = |size| Disk { size, price: None };
        found.iter().map(|found| disk(found.size)).collect()
    } else {
        let mut all = Vec::new();
        for text in &args.disks {
            all.extend(disks(text, &mut units)?);
        }
        all
    };
    let blocks = match args.block.is_empty() {
        true => Context::default().blocks,
        false => args.block.clone(),
    };
    let failures = Assumptions {
        afr: args.afr,
        ure_per_bit: args.ure,
        ..Assumptions::default()
    };
    failures.check()?;
    let ownership = args.years.map(|years| Ownership {
        years,
        watts: args.watts,
        kwh: args.kwh,
    });
    if let Some(own) = &ownership {
        own.check()?;
        if offered.iter().any(|disk| disk.price.is_none()) {
            return Err(PlannerError::value(
                "--years",
                "needs the price of every disk, as in 6x4T@95",
            )
            .into());
        }
    }
    let context = Context {
        blocks,
        volume: args.volume,
        ashift: args.ashift,
        zfs: args.zfs,
        whole_disk: args.whole_disk,
        disk_speed: args.disk_speed,
        fill: args.fill,
        failures,
        ownership,
    };
    let mut bounded = None;
    let mut plans = match &args.only {
        Some(spec) => {
            let spec = with_special(spec, offered.len(), args.special.len())?;
            let special = |size: &u64| Disk {
                size: *size,
                price: None,
            };
            offered.extend(args.special.iter().map(special));
            assay_planner::layout::check_disks(&offered)?;
            let layout = Layout::parse(&spec, &offered, args.metadata, &context)?;
            vec![describe(&layout, &offered, &context)?]
        }
        None => {
            let found = search(&offered, &args.special, &context)?;
            bounded = found.bounded;
            found.plans
        }
    };
    let mut wants = args.want.clone();
    wants.extend(args.survive.map(Want::survive));
    let io = args.io.map(|load| match load {
        Load::Random => Io::Random,
        Load::Stream => Io::Stream,
    });
    let considered = plans.len();
    let near = nearest_buildable(&plans, &wants).map(|plan| (plan.layout.clone(), plan.efficiency));
    rank(&mut plans, &wants, io);
    // If only a bound meets the requirements, no file system does.
    let nobody = args.only.is_none() && !plans.is_empty() && !plans.iter().any(is_buildable);
    pareto(&mut plans);
    if args.best {
        best(&mut plans);
    }
    let found = plans.len();
    plans.truncate(args.limit.max(1));
    if let Some(path) = &args.html {
        let page = picture::render_layouts_page(
            &describe_disks(&offered),
            &list_assumptions(&context),
            &plans,
        );
        crate::context::write_file(path, &page)?;
    }
    if args.json {
        print_json(
            "layout",
            &Answer {
                disks: &offered,
                units: describe_units(&units),
                assumptions: &context,
                bounded: &bounded,
                found,
                nobody_builds: nobody,
                cannot_tell: CANNOT_TELL,
                layouts: &plans,
            },
        )?;
    } else if plans.is_empty() {
        print(&format!(
            "None of {considered} layouts meets what is wanted. Relax --want or --survive, or add disks.\n"
        ))?;
    } else {
        let mut text = format!(
            "{}\n",
            wrap(
                &format!("{} ({}).", describe_disks(&offered), describe_units(&units)),
                0
            )
        );
        if nobody {
            let near = near.map_or_else(String::new, |(layout, efficiency)| {
                format!(
                    "; the nearest is {layout} with {:.1} % of the disks usable",
                    efficiency * 100.0
                )
            });
            let said = format!(
                "No file system meets what is wanted{near}. What follows are bounds: nobody lays stripes out like this."
            );
            let _ = writeln!(text, "{}", wrap(&said, 0));
        }
        let described = match args.only.is_some() {
            true => &plans[0],
            false => {
                text.push_str(&format_layouts(&plans, found, columns()));
                choose_shown_plan(&plans)
            }
        };
        text.push_str(&format_plan(described, columns()));
        if let Some(volume) = args.volume {
            text.push_str(&format_volumes(described, volume, columns()));
        }
        if let Some(bounded) = &bounded {
            let _ = writeln!(
                text,
                "\n{}",
                wrap(&format!("Search bounded: {bounded}."), 0)
            );
        }
        text.push('\n');
        for line in list_assumptions(&context) {
            let _ = writeln!(text, "{}", wrap(&line, 0));
        }
        let _ = writeln!(text, "{}", wrap(CANNOT_TELL, 0));
        print(&text)?;
    }
    Ok(if plans.is_empty() || nobody {
        Status::Findings
    } else {
        Status::Ok
    })
}
