//! `assay study`: repeats published benchmarks.

mod carry;
mod past_studies;
mod progress;

use crate::context::{self, print};
use crate::global::Global;
use crate::open_changes::Despite;
use crate::shape::Shape;
use crate::status::Status;
use crate::verbs::lab::{AccelArg, ZfsArg};
use anyhow::Context as _;
use assay_host::{Host as _, LiveHost};
use assay_model::study::Study;
use assay_studies::catalogue;
use std::path::{Path, PathBuf};

/// Reproduce a published benchmark here and compare the conclusions
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  assay study                       list the studies
  assay study kvm-cache-modes /srv --dry-run
                                    what would be made in /srv, and how long it takes
  assay study kvm-cache-modes /srv  the quick form: minutes
  assay study kvm-cache-modes /srv --full --html study.html
  assay study kvm-cache-modes /srv --dir zfs=/tank/vm
                                    use your directory for a file system of the study
  assay study zfs-tuning --on tank/scratch
                                    on your pool: what is made below it is destroyed at the end
  assay study ./mine.toml           a study of your own
  assay study --list                past studies
  assay study show last --markdown  judged again, by today's rules

What a study makes is gone when it ends, also after Ctrl-C; what was measured until then is kept and
`--resume` goes on. Exit status: 0 done, whatever came of it; 2 error; 130 interrupted."
)]
pub struct Args {
    #[command(subcommand)]
    verb: Option<StudyVerb>,
    /// Study by name or as a file that ends in .toml
    #[arg(value_name = "NAME|FILE")]
    study: Option<String>,
    /// Directory on the storage to measure
    #[arg(value_name = "DIR", default_value = ".", hide_default_value = true)]
    dir: PathBuf,
    /// Work below this ZFS file system of yours instead of in a guest
    #[arg(long, value_name = "POOL/DATASET")]
    on: Option<String>,
    /// Use your directory for a file system, such as zfs=/tank/vm (repeatable)
    #[arg(long = "dir", value_name = "FS=DIR", value_parser = named)]
    dirs: Vec<(String, PathBuf)>,
    /// Run each experiment as long as the published study did
    #[arg(long)]
    full: bool,
    /// Show what would be done and stop
    #[arg(long)]
    dry_run: bool,
    /// Continue with the remaining parts when one fails
    #[arg(long)]
    keep_going: bool,
    /// Set the random seed of order, offsets and data
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Run guests with kvm or tcg [default: detected]
    #[arg(long, value_name = "HOW", value_enum, hide_possible_values = true)]
    accel: Option<AccelArg>,
    /// Choose OpenZFS for guests: from Debian stable or backports
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = ZfsArg::Stable)]
    zfs: ZfsArg,
    /// Build a missing guest image without asking
    #[arg(long)]
    yes: bool,
    /// Use this fio instead of the one on PATH
    #[arg(long, value_name = "PROGRAM")]
    fio: Option<PathBuf>,
    /// Continue an interrupted study: the newest, or the named one
    #[arg(long, value_name = "RUN", num_args = 0..=1, default_missing_value = "last",
        conflicts_with_all = ["full", "seed", "dry_run"])]
    resume: Option<String>,
    /// List past studies
    #[arg(long, conflicts_with_all = ["study", "resume"])]
    list: bool,
    #[command(flatten)]
    despite: Despite,
    #[command(flatten)]
    shape: Shape,
    /// No progress on standard error
    #[arg(long, short)]
    quiet: bool,
}

#[derive(clap::Subcommand)]
enum StudyVerb {
    /// Show a past study, judged by today's rules
    Show(past_studies::Show),
}

fn named(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((word, dir)) if !word.is_empty() && !dir.is_empty() => {
            Ok((word.to_owned(), PathBuf::from(dir)))
        }
        _ => Err("give a file system and a directory: zfs=/tank/vm".to_owned()),
    }
}

/// Runs `assay study`, and returns the exit status.
pub fn run(args: &Args, global: &Global) -> anyhow::Result<Status> {
    if let Some(StudyVerb::Show(show)) = &args.verb {
        return past_studies::show(show, global);
    }
    if args.list {
        return past_studies::list(&args.shape, global);
    }
    if let Some(asked) = &args.resume {
        return carry::resume(args, asked, global);
    }
    let Some(name) = &args.study else {
        let studies = catalogue::builtin_studies()?;
        print(&match args.shape.json {
            true => format!("{:#}\n", assay_report::study::catalogue_to_json(&studies)),
            false => assay_report::study::render_catalogue(&studies, context::style(global)),
        })?;
        return Ok(Status::Ok);
    };
    carry::run(args, study(name)?, global)
}

/// Returns a built-in study, or reads the user's own file.
fn study(name: &str) -> anyhow::Result<Study> {
    if Path::new(name).extension().is_none_or(|end| end != "toml") {
        return Ok(catalogue::builtin_study(name)?);
    }
    let path = std::path::absolute(name).with_context(|| name.escape_debug().to_string())?;
    let text = LiveHost.read_text(&path)?;
    Ok(catalogue::parse(&text, name)?)
}
