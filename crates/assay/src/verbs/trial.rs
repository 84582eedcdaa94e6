//! `assay trial`: tests a piece of advice on this machine.

mod begin;
mod carry;
mod live;
mod pages_together;
pub(super) mod past_trials;
mod remote;
mod undo;

#[cfg(feature = "schemas")]
pub(super) use past_trials::Recovery;

pub(super) use begin::asks;
pub(crate) use past_trials::told;
pub(in crate::verbs) use remote::{agree_there, report_after_loss};
pub(in crate::verbs) use undo::revert_kept;

use super::advice::{Own, assignment};
use crate::global::Global;
use crate::open_changes::Despite;
use crate::remote::Remote;
use crate::shape::Shape;
use crate::status::Status;
use assay_host::{Host as _, LiveHost};
use assay_model::advice::Guard;
use assay_model::{Bytes, Nanos};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  assay trial qcow2-cluster-size /srv       try it in /srv: on images that assay creates and removes
  assay trial read-ahead /dev/sdb --dry-run what would be changed, and how long it takes
  assay trial nginx-sendfile http://localhost/big.bin --yes --keep
                                            keep it if, and only if, it is better
  assay trial io-scheduler read-ahead noatime /srv --budget 20m
                                            several: one session under one load, as assay tune
  assay trial ./my-advice.md /srv           a piece of advice of your own
  assay trial read-ahead /srv --set kib=1024 --margin 5% --guard p99:10%
  assay trial --aa noatime /srv             no change at all: the noise of this machine
  assay trial --confirm 3                   repeat trial 3: do both agree?
  assay trial --undo 3                      revert what trial 3 with --keep kept
  assay trial --recover                     undo what a crash left behind
  assay trial noatime /srv --host root@box  on another machine, over ssh
  assay trial --list; assay trial --show 3 --html trial.html

Verdicts: better, worse, no practical difference, undecided, unsafe. At most one in twenty trials
of a useless change ends with \"better\"; see the chapter on trials in the book.

Exit status: 0 done, whatever the verdict; 1 --keep was asked for and the verdict did not allow
it, the advice does not apply, or a second session does not confirm the first; 2 error; 130
interrupted (what was measured is kept).";

/// Test advice here: measure with and without it, then undo it
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Advice by id or as a file, one or more; then the target
    #[arg(value_name = "ADVICE|TARGET", num_args = 0..)]
    words: Vec<String>,
    /// Set a parameter of the advice, such as kib=1024 (repeatable)
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment)]
    set: Vec<(String, String)>,

    /// Show what would be done and stop
    #[arg(long)]
    dry_run: bool,
    /// Start without asking
    #[arg(long, short)]
    yes: bool,
    /// Keep the change if the verdict is better
    #[arg(long, conflicts_with = "aa")]
    keep: bool,
    /// With --keep: keep it even if another figure got clearly worse
    #[arg(long, requires = "keep")]
    despite_worse: bool,
    /// Change nothing: both sides are the baseline; shows the noise
    #[arg(long)]
    aa: bool,

    /// Ignore smaller differences [default: as in the advice, or 3%]
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    margin: Option<f64>,
    /// Require that a figure gets no worse than this, such as p99:10%
    #[arg(long, value_name = "METRIC:PERCENT", value_parser = guard)]
    guard: Vec<Guard>,
    /// Stop after this time
    #[arg(long, value_name = "TIME")]
    budget: Option<Nanos>,
    /// Measure at most N pairs [default: 60]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pairs: Option<u32>,
    /// Measure each side of a pair for this long [default: the advice's]
    #[arg(long, value_name = "TIME")]
    slot: Option<Nanos>,
    /// Run the load this long after each change [default: the advice's]
    #[arg(long, value_name = "TIME")]
    washout: Option<Nanos>,
    /// Set the size of the test file or image [default: the advice's]
    #[arg(long, value_name = "SIZE")]
    size: Option<Bytes>,
    /// Set the random seed of order, offsets and data
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Continue a stopped trial: the newest, or the named one
    #[arg(long, value_name = "TRIAL", num_args = 0..=1, default_missing_value = "last", conflicts_with_all = ["words", "aa", "dry_run"])]
    resume: Option<String>,
    /// Repeat a trial, best after a reboot, and report whether both agree
    #[arg(long, value_name = "TRIAL", num_args = 0..=1, default_missing_value = "last", conflicts_with_all = ["words", "aa", "dry_run", "resume", "recover", "list", "show", "keep", "set"])]
    confirm: Option<String>,
    /// Revert what a trial with --keep kept: the newest, or the named one
    #[arg(long, value_name = "TRIAL", num_args = 0..=1, default_missing_value = "last",
          conflicts_with_all = ["words", "aa", "dry_run", "resume", "confirm", "recover", "list", "show", "keep",
                                "set"])]
    undo: Option<String>,
    /// Undo changes and remove files left by a crash
    #[arg(long, conflicts_with_all = ["words", "resume", "list", "show"])]
    recover: bool,
    /// With --recover: also revert values that were changed since
    #[arg(long, requires = "recover")]
    force: bool,
    /// With --recover: keep current values and drop the journal entries
    #[arg(long, requires = "recover", conflicts_with = "force")]
    accept: bool,
    /// List past trials
    #[arg(long, conflicts_with_all = ["words", "resume", "show"])]
    list: bool,
    /// Show a trial, judged by today's rules
    #[arg(long, value_name = "TRIAL", num_args = 0..=1, default_missing_value = "last", conflicts_with_all = ["words", "resume"])]
    show: Option<String>,

    #[command(flatten)]
    despite: Despite,
    #[command(flatten)]
    shape: Shape,
    #[command(flatten)]
    own: Own,
    #[command(flatten)]
    remote: Remote,
    /// Use this fio instead of the one on PATH
    #[arg(long, value_name = "PROGRAM")]
    fio: Option<PathBuf>,
    /// No progress on standard error
    #[arg(long, short)]
    quiet: bool,
}

/// Parses a percentage above 0 and below 100, such as `3%` or `3`.
pub(super) fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim();
    match number.parse::<f64>() {
        Ok(percent) if percent > 0.0 && percent < 100.0 => Ok(percent / 100.0),
        _ => Err("a percentage above 0 and below 100, such as 3%".to_owned()),
    }
}

pub(super) fn guard(text: &str) -> Result<Guard, String> {
    let (metric, margin) = text
        .split_once(':')
        .ok_or_else(|| "write METRIC:PERCENT, such as p99:10%".to_owned())?;
    Ok(Guard {
        metric: metric.parse().map_err(|error| format!("{error}"))?,
        margin: percent(margin)?,
    })
}

/// Lists on standard error the changes that assay processes with other state directories left. Reverts nothing.
pub fn name_left_elsewhere() -> anyhow::Result<()> {
    match LiveHost.exists(&crate::context::journal_dir()?) {
        Ok(true) => past_trials::left_elsewhere(&past_trials::journal()?).map(drop),
        _ => Ok(()),
    }
}

impl Args {
    /// Returns whether the command line requests to revert changes of other processes (`--recover`).
    pub fn recovers(&self) -> bool {
        self.recover
    }
}

/// Runs `assay trial`, and returns the exit status.
pub fn run(args: &Args, global: &Global) -> anyhow::Result<Status> {
    if args.remote.is_meant()? {
        remote::run(args, global)
    } else if args.recover {
        past_trials::recover(args)
    } else if args.list {
        past_trials::list(args, global)
    } else if let Some(asked) = &args.show {
        past_trials::show(args, asked, global)
    } else if let Some(asked) = &args.undo {
        undo::undo(asked, global)
    } else {
        begin::run(args, global)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_and_guards_as_people_write_them() {
        assert_eq!(percent("3%"), Ok(0.03));
        assert_eq!(percent("2.5"), Ok(0.025));
        for bad in ["", "%", "0", "-1%", "100%", "nan", "x"] {
            assert!(percent(bad).is_err(), "{bad}");
        }
        let p99 = guard("read.p99:10%").unwrap();
        assert_eq!(
            (p99.metric.to_string().as_str(), p99.margin),
            ("read.p99", 0.1)
        );
        for bad in ["p99", "p99:", "speed:10%", ":10%"] {
            assert!(guard(bad).is_err(), "{bad}");
        }
    }
}
