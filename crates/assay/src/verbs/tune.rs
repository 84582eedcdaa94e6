//! `assay tune`: tries advice until a goal is met. Keeps only changes that improve this machine according to a trial,
//! and reverts the others.

mod apply;
mod begin;
mod earlier;
mod goal;
mod goal_file;
mod interview;
mod live_view;
mod local_server;
mod outside_watch;
mod past_sessions;
mod private_words;
mod remote;
mod session_run;
mod several_pages;
mod undo;

pub(super) use several_pages::{PagesRequest, run_pages};

use super::advice::{Own, assignment};
use super::trial::{guard, percent};
use crate::global::Global;
use crate::open_changes::Despite;
use crate::remote::Remote;
use crate::shape::Shape;
use crate::status::Status;
use assay_model::advice::{Guard, RiskLevel};
use assay_model::{Bytes, Load, Nanos};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Default time limit of a session in nanoseconds: one hour.
const BUDGET: Nanos = Nanos(3_600_000_000_000);
/// Default of the smallest difference that counts as a gain, as a fraction.
const MARGIN: f64 = 0.03;

const EXAMPLES: &str = "\
Examples:
  assay tune /srv/mail --want 'randwrite-16k-qd1-fsync.p99 <= 30ms' --budget 2h
  assay tune /srv --want 'more randrw70-4k-qd4.iops' --dry-run
                                            goal, candidates in order, what is left out and why
  assay tune --load 'pgbench -n -T 5 bench' --want 'more tps' --may service
                                            any command, and a figure that it prints
  assay tune --load 'make -C /src' --want 'less p50'
                                            without a printed figure: its run time
  assay tune /srv --want 'less randread-4k-qd1.p99' --while-ok 'curl -fsS http://localhost/'
                                            stop and revert everything if that command fails
  assay tune http://localhost/ --want 'http.p99 <= 80ms' --rate 300 --may service
  assay tune /srv --want 'more randread-4k-qd16.iops' --only io-scheduler,./my-advice.md
  assay tune --list; assay tune --show 3 --html notebook.html
  assay tune --resume 3                     continue a stopped session
  assay tune --goal mail.toml               the goal from a file
  assay tune --undo 3                       revert what session 3 kept
  assay tune --undo 3 --only io-scheduler   revert one change of it
  assay tune --confirm 3                    measure again whether it helps
  assay tune /srv --want 'more randread-4k-qd4.iops' --host root@box --yes
                                            on another machine, over ssh
  assay tune --apply 3 --host web1 --host web2,web3
                                            try what session 3 kept on web1; if it helps there,
                                            on web2 and web3

A change is kept only if it is proved twice: by itself, and together with all the others against
the machine as it was. If assay is killed, a second process reverts everything within seconds.
For root, systemd, cron or atd does so after a reboot.
Settings named in /etc/assay/never.toml (settings = [\"vm.swappiness\"]) are never touched.

Exit status: 0 the goal is met, or something was kept; 1 nothing could be kept; 2 error;
130 interrupted (what was measured is stored).";

/// Reach a goal: try advice, keep what is proved, undo the rest
#[derive(Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Directory, URL, or device (which is only read)
    #[arg(value_name = "TARGET")]
    target: Option<String>,
    /// Goal: WORKLOAD.METRIC OP VALUE, or more|less FIGURE (repeatable)
    #[arg(long, value_name = "GOAL")]
    want: Vec<String>,
    /// Measure this command instead of a workload, over and over
    #[arg(long, value_name = "COMMAND")]
    load: Option<String>,
    /// With a URL: send N requests per second [default: no limit]
    #[arg(long, value_name = "N", conflicts_with = "load")]
    rate: Option<f64>,
    /// With a URL: connections at once, at most [default: 8]
    #[arg(long, value_name = "N", conflicts_with = "load", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    connections: Option<u32>,
    /// With https://, accept any certificate
    #[arg(long, conflicts_with_all = ["ca", "load"])]
    insecure: bool,
    /// With https://, trust the certificate authorities in this PEM file
    #[arg(long, value_name = "FILE", conflicts_with = "load")]
    ca: Option<PathBuf>,
    /// Read the goal from a TOML file; options given here override it
    #[arg(long, value_name = "FILE")]
    goal: Option<PathBuf>,
    /// Total time, including setup and revert [default: 1h]
    #[arg(long, value_name = "TIME")]
    budget: Option<Nanos>,
    /// Highest risk to accept [default: low]
    #[arg(long, value_name = "RISK", value_parser = ["none", "low", "service"])]
    may: Option<String>,
    /// Never touch these settings, by name or by prefix with *
    #[arg(long, value_name = "SETTING", value_delimiter = ',')]
    never: Vec<String>,
    #[arg(skip)]
    never_because: Option<String>,
    /// Whether to keep no change and only report. No command-line option sets this field.
    #[arg(skip)]
    keep_nothing: bool,
    /// Load of an advice page. If present, it replaces the load of the command line.
    #[arg(skip)]
    page_load: Option<Load>,
    /// Regular expressions for figures that the load prints, by name of the figure. They come from a goal file.
    #[arg(skip)]
    figures: BTreeMap<String, String>,
    /// Arguments that result from the interview, in addition to the command line.
    #[arg(skip)]
    asked: Vec<String>,
    /// Revert everything and stop if this command fails twice
    #[arg(long, value_name = "COMMAND")]
    while_ok: Option<String>,
    /// Try only these pages, by id or file
    #[arg(
        long,
        value_name = "ADVICE",
        value_delimiter = ',',
        hide_short_help = true
    )]
    only: Vec<String>,
    /// Prove the pages of --only together, and not one by one
    #[arg(long, requires = "only")]
    whole: bool,
    /// Set a parameter of a page; without ADVICE, of all in --only
    #[arg(long, value_name = "[ADVICE.]NAME=VALUE", value_parser = assignment)]
    set: Vec<(String, String)>,

    /// Show what would be done and stop
    #[arg(long)]
    dry_run: bool,
    /// Start without asking
    #[arg(long, short)]
    yes: bool,
    /// Continue although even the lowest layer alone misses the goal
    #[arg(long)]
    anyway: bool,
    /// Do not install a job that reverts after a reboot (systemd, cron, atd)
    #[arg(long)]
    no_boot_undo: bool,
    /// Ignore smaller differences [default: 3%]
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    margin: Option<f64>,
    /// Require that a figure gets no worse than this, such as p99:10%
    #[arg(long, value_name = "METRIC:PERCENT", value_parser = guard)]
    guard: Vec<Guard>,
    /// Do not require that p99 stays within 25 %
    #[arg(long)]
    no_tail_guard: bool,
    /// Measure each slot for this long [default: 4s; 400ms with --load]
    #[arg(long, value_name = "TIME")]
    slot: Option<Nanos>,
    /// Run the load this long before each slot [default: 1s; 0s with --load]
    #[arg(long, value_name = "TIME")]
    washout: Option<Nanos>,
    /// Size of the test file [default: 1G]
    #[arg(long, value_name = "SIZE")]
    size: Option<Bytes>,
    /// Set the random seed of order, offsets and data
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// List past sessions
    #[arg(long, conflicts_with_all = ["target", "want", "load", "show", "resume", "undo"])]
    list: bool,
    /// Show the notebook of a session: the newest, or the named one
    #[arg(long, value_name = "SESSION", num_args = 0..=1, default_missing_value = "last",
          conflicts_with_all = ["target", "want", "load", "resume", "undo"])]
    show: Option<String>,
    /// Continue a stopped session: the newest, or the named one
    #[arg(long, value_name = "SESSION", num_args = 0..=1, default_missing_value = "last",
          conflicts_with_all = ["want", "undo", "dry_run"])]
    resume: Option<String>,
    /// Revert what a session kept
    #[arg(long, value_name = "SESSION", num_args = 0..=1, default_missing_value = "last",
          conflicts_with_all = ["target", "want", "load"])]
    undo: Option<String>,
    /// Measure again whether the kept changes help, best after a reboot
    #[arg(long, value_name = "SESSION", num_args = 0..=1, default_missing_value = "last",
          conflicts_with_all = ["want", "show", "list", "resume", "undo", "dry_run"])]
    confirm: Option<String>,

    /// Try what a session kept on other machines, ring by ring
    #[arg(long, value_name = "SESSION", requires = "host",
          conflicts_with_all = ["target", "want", "goal", "show", "list", "resume", "undo", "confirm"])]
    apply: Option<String>,

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

impl Args {
    fn allowed_risk(&self) -> RiskLevel {
        match self.may.as_deref() {
            Some("none") => RiskLevel::None,
            Some("service") => RiskLevel::Service,
            _ => RiskLevel::Low,
        }
    }

    fn budget(&self) -> Nanos {
        self.budget.unwrap_or(BUDGET)
    }

    fn margin(&self) -> f64 {
        self.margin.unwrap_or(MARGIN)
    }
}

/// Runs `assay tune`, and returns the exit status.
pub fn run(args: &Args, global: &Global) -> anyhow::Result<Status> {
    if let Some(asked) = &args.apply {
        apply::run(args, asked, global)
    } else if args.remote.is_meant()? {
        remote::run(args, global)
    } else if args.list {
        past_sessions::list(args, global)
    } else if let Some(asked) = &args.show {
        past_sessions::show(args, asked, global)
    } else if let Some(asked) = &args.undo {
        undo::undo(args, asked, global)
    } else if let Some(asked) = &args.confirm {
        session_run::confirm(args, asked, global)
    } else if let Some(asked) = &args.resume {
        session_run::resume(args, asked, global)
    } else if let Some(path) = &args.goal {
        begin::run(&goal_file::add_goal_file(args, path)?, global)
    } else if interview::is_needed(args) {
        begin::run(&interview::ask_on_terminal(args)?, global)
    } else {
        begin::run(args, global)
    }
}
