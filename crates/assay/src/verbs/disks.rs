//! `assay stack disks`: finds a disk that is slower than its siblings.

use crate::context::{on_signals, print};
use crate::global::Global;
use crate::remote::{Remote, RemoteWork};
use crate::status::{Status, Unreadable};
use anyhow::bail;
use assay_host::LiveHost;
use assay_judge::sibling_disks::MATTERS;
use assay_model::siblings::{Comparison, DiskLatency, Siblings, SlowDisk};
use assay_model::{Nanos, SCHEMA_VERSION};
use indicatif::{ProgressBar, ProgressStyle};
use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  assay stack disks                     a minute of what is going on anyway
  assay stack disks tank --budget 10m   only groups whose names start with tank
  assay stack disks --list              which disks are siblings here
  assay stack disks --json
  assay stack disks --host root@box     on another machine, over ssh

Disks of one vdev of a ZFS pool, one md array or one btrfs share the same work, so each is the
others' control. Nothing is written and no load is made: watch while there is some. A disk is called
slow when its requests take at least twice as long as those of its siblings, beyond what equal disks
do by chance: one watch of equal disks in a thousand would say so. \"None is slow\" means that each is
shown to take less than twice as long; without enough load, neither can be shown.

Exit status: 0 none is slow, 1 one is, 2 error, 3 too little load, or the disks cannot be found
out, 130 interrupted.";

/// Find a disk that is slower than its siblings in a ZFS pool or array
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Names of ZFS pools, arrays or btrfs, or their beginnings [default: all]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Watch for this long; Ctrl-C ends early and keeps the result
    #[arg(
        long = "budget",
        alias = "for",
        value_name = "TIME",
        default_value = "60s"
    )]
    time: Nanos,
    /// Set the length of a window
    #[arg(long, value_name = "TIME", default_value = "1s")]
    window: Nanos,
    /// Only list which disks are siblings
    #[arg(long)]
    list: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

/// Document of `assay stack disks`: how disks with the same load differ.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub(super) struct Document<'a> {
    schema: u32,
    comparisons: &'a [Comparison],
}

/// Document of `--list`: groups of disks with the same load.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub(super) struct List<'a> {
    schema: u32,
    siblings: &'a [Siblings],
}

/// Runs `assay stack disks`, and returns the exit status.
pub fn run(args: &Args, global: &Global) -> anyhow::Result<Status> {
    if args.remote.is_meant()? {
        let asked = RemoteWork::default();
        let done = args.remote.go(false, |way| way.carry(&asked, global))?;
        done.pass_on(args.json)?;
        return Ok(done.status());
    }
    let (groups, unknown) = assay_facts::siblings(&LiveHost);
    for reason in &unknown {
        eprintln!("note: {reason}");
    }
    let wanted = |group: &Siblings| {
        args.names.is_empty() || args.names.iter().any(|name| group.name.starts_with(name))
    };
    let chosen: Vec<Siblings> = groups
        .iter()
        .filter(|group| wanted(group))
        .cloned()
        .collect();
    if chosen.is_empty() {
        if !unknown.is_empty() && groups.is_empty() {
            return Err(Unreadable(unknown.join("; ")).into());
        }
        bail!("{}", nothing(args, &groups));
    }
    if args.list {
        let list = |group: &Siblings| format!("{:<24} {}\n", group.name, group.disks.join(" "));
        print(&match args.json {
            true => format!(
                "{:#}\n",
                serde_json::json!(List {
                    schema: SCHEMA_VERSION,
                    siblings: &chosen,
                })
            ),
            false => chosen.iter().map(list).collect(),
        })?;
        return Ok(Status::Ok);
    }
    if args.window.0 < 100_000_000 || args.window > args.time {
        bail!("--window must be at least 100 ms and at most --budget");
    }
    let windows = u32::try_from(args.time.0 / args.window.0).unwrap_or(u32::MAX);
    let cancel = on_signals()?;
    let bar = bar(windows);
    let window = Duration::from_nanos(args.window.0);
    let watched = assay_loads::watch(&LiveHost, &chosen, window, windows, &cancel, &mut || {
        bar.inc(1);
    });
    bar.finish_and_clear();
    let found = assay_judge::sibling_disks::compare_siblings(&watched);
    print(&match args.json {
        true => format!(
            "{:#}\n",
            serde_json::json!(Document {
                schema: SCHEMA_VERSION,
                comparisons: &found,
            })
        ),
        false => table(&found),
    })?;
    Ok(match cancel.is_cancelled() {
        true => Status::Interrupted,
        false => status(&chosen, &found),
    })
}

/// Returns the exit status. A group passes if no disk is slow for reads or for writes, and if there is a verdict for at
/// least one of the two. The other may have too little data, because pools with only writes are common.
fn status(groups: &[Siblings], found: &[Comparison]) -> Status {
    if found
        .iter()
        .any(|one| matches!(one.finding, SlowDisk::Slow { .. }))
    {
        return Status::Findings;
    }
    let well = |group: &Siblings| {
        let of = found.iter().filter(|one| one.siblings == group.name);
        let mut cleared = false;
        for one in of {
            match one.finding {
                SlowDisk::Alike => cleared = true,
                SlowDisk::CannotTell { .. } => return false,
                SlowDisk::TooLittle { .. } | SlowDisk::Slow { .. } => {}
            }
        }
        cleared
    };
    match groups.iter().all(well) {
        true => Status::Ok,
        false => Status::Unreadable,
    }
}

/// Returns a message that explains why there is no group to watch, and what the user can do.
fn nothing(args: &Args, groups: &[Siblings]) -> String {
    let names: Vec<&str> = groups.iter().map(|group| group.name.as_str()).collect();
    match names.is_empty() {
        true => "no disks share work here: no ZFS vdev, md array or btrfs of two disks or more; a \
                 single disk has nothing to be compared with"
            .to_owned(),
        false => format!(
            "no group begins with {}; there are {}",
            args.names.join(" or "),
            names.join(", ")
        ),
    }
}

fn bar(windows: u32) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("[{bar:20}] watching, {eta} left, Ctrl-C ends it")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("=  ");
    ProgressBar::new(u64::from(windows)).with_style(style)
}

fn table(found: &[Comparison]) -> String {
    let mut text = String::new();
    if found.is_empty() {
        text.push_str("nothing was read or written on any of them: watch while there is load\n");
    }
    for one in found {
        let _ = writeln!(
            text,
            "{}, {}s, {} windows",
            one.siblings,
            one.way.name(),
            one.windows
        );
        for disk in &one.disks {
            let _ = writeln!(text, "  {}", figures(disk));
        }
        let said = match one.finding {
            SlowDisk::Slow { at, chance } => format!(
                "{} is slow: {:.1} times the time of its siblings; chance that equal disks look \
                 like this: below {}. Look at its SMART log, cable and port, and at what else uses it.",
                one.disks[at].disk,
                one.disks[at].ratio,
                power_of_ten(chance)
            ),
            SlowDisk::Alike => format!(
                "none is slow: each takes less than {MATTERS:.0} times as long as its siblings"
            ),
            SlowDisk::CannotTell { at } => cannot_tell(&one.disks[at]),
            SlowDisk::TooLittle { needed } => format!(
                "too little to say: {needed} windows with work for two of them are needed; watch \
                 longer (--budget) or under more load"
            ),
        };
        let _ = writeln!(text, "  {said}");
    }
    text
}

/// Formats the row of one disk in the table.
fn figures(disk: &DiskLatency) -> String {
    let most = disk
        .at_most
        .map_or("∞".to_owned(), |most| format!("{most:.2}"));
    let bounds = disk
        .at_least
        .map_or(String::new(), |least| format!(" ({least:.2} to {most})"));
    match disk.windows {
        0 => format!("{:<12} had too little to do", disk.disk),
        windows => format!(
            "{:<12} {:>8} requests  {:>9} each  {:>5.2} × its siblings{bounds}, {windows} windows",
            disk.disk,
            disk.requests,
            disk.mean.to_string(),
            disk.ratio
        ),
    }
}

/// Returns a message that explains why there is no verdict about a disk, and what the user can do.
fn cannot_tell(disk: &DiskLatency) -> String {
    let why = match (disk.at_least, disk.at_most) {
        (None, _) => format!("{} worked in too few windows", disk.disk),
        (_, Some(most)) => format!(
            "what was seen of {} allows up to {most:.1} times the time of its siblings",
            disk.disk
        ),
        (_, None) => format!("what was seen of {} allows any slowness", disk.disk),
    };
    format!("cannot tell: {why}; watch ten times as long (--budget) or under more load")
}

/// Formats a probability as the next higher power of ten, such as `1 in 1000000` for `10⁻⁶`.
fn power_of_ten(chance: f64) -> String {
    let zeros = (-chance.max(1e-12).log10()).floor().clamp(3.0, 12.0) as usize;
    format!("1 in 1{}", "0".repeat(zeros))
}
