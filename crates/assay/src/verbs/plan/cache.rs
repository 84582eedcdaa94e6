//! `assay plan cache`: estimates useful sizes of the ARC, the L2ARC and the log device of ZFS.

use super::read;
use super::show::{print_json, write_page};
use crate::context::print;
use crate::context::{columns, wrap};
use crate::status::Status;
use assay_model::size::Convention::Binary;
use assay_planner::cache::{CacheQuestion, parse_arcstats, size_caches};
use assay_planner::zfs::Version;
use assay_render::text::format_named_value;
use assay_report::plan as picture;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  assay plan cache --memory 32GiB --l2arc 120GiB --block 4KiB
  assay plan cache --memory 64GiB --working-set 200GiB --l2arc 480G --block 16KiB
  assay plan cache --memory 64GiB --working-set 200GiB --zfs 2.3
  assay plan cache --memory 64GiB --guests 40GiB --zfs 2.3
  assay plan cache --sync-writes 200MB/s --memory 64GiB
  assay plan cache --arcstats /proc/spl/kstat/zfs/arcstats --memory 64GiB

/proc/spl/kstat/zfs/arcstats is read by itself when this machine has it.

Sizes: 4T and 4TB are 4·10¹² bytes, as disks are sold; 4TiB is 4·2⁴⁰.";

/// Size the ARC, the L2ARC with its headers, and the log device
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Set the memory of the machine
    #[arg(long, value_name = "SIZE", value_parser = read::size)]
    memory: Option<u64>,
    /// Subtract memory of guests and other programs
    #[arg(long, value_name = "SIZE", value_parser = read::size, requires = "memory")]
    guests: Option<u64>,
    /// Assume this OpenZFS, 0.7 to 2.4 [default: the installed one, or 2.1.11]
    #[arg(long, value_name = "VERSION")]
    zfs: Option<Version>,
    /// Set the amount of data that is read repeatedly
    #[arg(long, value_name = "SIZE", value_parser = read::size)]
    working_set: Option<u64>,
    /// Set the size of the L2ARC device
    #[arg(long, value_name = "SIZE", value_parser = read::size)]
    l2arc: Option<u64>,
    /// Set recordsize or volblocksize
    #[arg(long, default_value = "128KiB", value_name = "SIZE", value_parser = read::size)]
    block: u64,
    /// Set the rate of synchronous writes
    #[arg(long, value_name = "RATE", value_parser = read::rate)]
    sync_writes: Option<u64>,
    /// Set zfs_dirty_data_max, if it was changed
    #[arg(long, value_name = "SIZE", value_parser = read::size)]
    dirty_max: Option<u64>,
    /// Read counters recorded from /proc/spl/kstat/zfs/arcstats
    #[arg(long, value_name = "FILE")]
    arcstats: Option<PathBuf>,
    /// Write a self-contained page with diagrams (no scripts)
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print JSON; sizes in bytes
    #[arg(long)]
    json: bool,
}

/// Returns the version of the loaded ZFS module, if the planner supports this version.
fn running() -> Option<Version> {
    let text = read::file(Path::new("/sys/module/zfs/version")).ok()?;
    // `2.1.11-1`, `2.2.2-0ubuntu9`.
    text.trim().split('-').next()?.parse().ok()
}

/// Computes the answer of `assay plan cache` and prints it.
pub fn run(args: &Args) -> anyhow::Result<Status> {
    let here = Path::new("/proc/spl/kstat/zfs/arcstats");
    let counters = match &args.arcstats {
        Some(path) => {
            let name = path.display().to_string();
            Some(parse_arcstats(
                &name.escape_debug().to_string(),
                &read::file(path)?,
            )?)
        }
        None if here.exists() => Some(parse_arcstats("arcstats", &read::file(here)?)?),
        None => None,
    };
    let sizes = [args.memory, args.working_set, args.l2arc, args.sync_writes];
    if counters.is_none() && sizes.iter().all(Option::is_none) {
        anyhow::bail!(
            "nothing to size: give --memory, --working-set, --l2arc, --sync-writes or --arcstats"
        );
    }
    let question = CacheQuestion {
        memory: args.memory,
        guests: args.guests,
        zfs: args.zfs.or_else(running),
        working_set: args.working_set,
        l2arc: args.l2arc,
        block: args.block,
        sync_writes: args.sync_writes.map(|rate| rate as f64),
        dirty_max: args.dirty_max,
    };
    let answer = size_caches(&question, counters)?;
    let sections = picture::build_cache_sections(&question, &answer);
    let intro = [match question.l2arc {
        Some(size) => format!(
            "Blocks of {}; an L2ARC of {}.",
            Binary.show(question.block),
            Binary.show(size)
        ),
        None => format!("Blocks of {}.", Binary.show(question.block)),
    }];
    write_page(args.html.as_deref(), "Caches", &intro, &sections)?;
    if args.json {
        print_json("cache", &answer)?;
        return Ok(Status::Ok);
    }
    let mut text = String::new();
    let mut line =
        |name: &str, value: String| text.push_str(&format_named_value(name, &value, 27, columns()));
    if let Some(arc) = &answer.arc {
        line(
            "ARC now",
            format!(
                "{} of at most {}",
                Binary.show(arc.size),
                Binary.show(arc.max)
            ),
        );
        line(
            "served from memory",
            format!("{:.1} %", arc.hit_ratio * 100.0),
        );
        if let Some(l2) = arc.l2_hit_ratio {
            line("misses served by L2ARC", format!("{:.1} %", l2 * 100.0));
        }
    }
    if let Some(left) = answer.left {
        line("left beside the guests", Binary.show(left));
    }
    if let Some(limit) = answer.arc_limit {
        line(
            "zfs_arc_max, at most",
            format!("{} ({limit})", Binary.show(limit)),
        );
    }
    if let Some(bytes) = answer.l2_header_bytes {
        let share = answer.l2_header_share.map_or(String::new(), |share| {
            format!(", {:.1} % of memory", share * 100.0)
        });
        line(
            "headers of the L2ARC",
            format!("{}{share}", Binary.show(bytes)),
        );
    }
    if let Some(part) = answer.working_set_in_arc {
        line("working set in ARC", format!("{:.0} %", part * 100.0));
    }
    if let Some(part) = answer.working_set_with_l2 {
        line("with the L2ARC", format!("{:.0} %", part * 100.0));
    }
    if let Some(bytes) = answer.slog_bytes {
        line("log device, at most", Binary.show(bytes));
    }
    for advice in &answer.advice {
        let advice = wrap(&format!("- {advice}"), 4);
        let _ = writeln!(text, "  {}", advice.trim_start());
    }
    for section in &sections {
        let bars = picture::format_section(section, 0, columns());
        if !bars.is_empty() {
            let _ = write!(text, "\n{bars}");
        }
    }
    print(&text)?;
    Ok(Status::Ok)
}
