//! `assay fleet pool`: shares trials between the owners of many machines, and combines the results.

mod export;
mod keep;
mod key;

use crate::context::{self, print};
use crate::global::Global;
use crate::status::Status;
use assay_advice::Catalogue;
use assay_model::advice::Advice;
use assay_pool::{Pooled, USUAL_MARGIN, page_effects, pool_effects};
use assay_render::text::escape_line;
use keep::Kept;
pub(super) use keep::pool_dir;
use std::collections::BTreeSet;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  assay fleet pool export                     show every byte that your trials would disclose
  assay fleet pool export --output mine.pool  the same, written to a file once you agree
  assay fleet pool add mine.pool box7.pool    add the bundles of others
  assay fleet pool show noatime               the verdict of all trials of one advice
  assay fleet pool show --json                everything, for programs
  assay fleet pool remove 3f9a0c21            remove the trials of an owner

Nothing is ever sent: a bundle is a file, and you decide who gets it. It holds every trial of the
catalogue that was started, also those that were stopped or stayed undecided, and no names, paths,
addresses or serial numbers. The key that signs your bundles is made at the first export, in the
state directory; a person who has the key can sign as you. Copy it to your other machines, so that all of them
count as yours. What is added lies beside the store, in FILE.pool.";

/// Share trials between machines and judge them together
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Show what your trials would disclose, and write it to a file
    Export(export::Args),
    /// Add bundles that others, or you, exported
    Add(Add),
    /// Show the verdict of shared trials for one advice or all
    Show(Show),
    /// Remove the shared trials of an owner
    Remove(Remove),
}

/// Arguments of `add`.
#[derive(clap::Args)]
struct Add {
    /// Files that `assay fleet pool export` wrote
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

/// Arguments of `show`.
#[derive(clap::Args)]
struct Show {
    /// Advice to show [default: all shared trials]
    #[arg(value_name = "ADVICE")]
    advice: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Arguments of `remove`.
#[derive(clap::Args)]
struct Remove {
    /// Public key of the owner, or its first eight digits
    #[arg(value_name = "OWNER")]
    owner: String,
}

/// Runs `assay fleet pool`, and returns the exit status.
pub fn run(args: &Args, global: &Global) -> anyhow::Result<Status> {
    match &args.action {
        Action::Export(args) => export::run(args, global),
        Action::Add(args) => add(args, global),
        Action::Show(args) => show(args, global),
        Action::Remove(args) => remove(args, global),
    }
}

fn add(args: &Add, global: &Global) -> anyhow::Result<Status> {
    let kept = Kept::of(global)?;
    for file in &args.files {
        let (owner, added) = kept.add(file)?;
        print(&format!(
            "{}: of owner {owner}: {} new, {} that went on, {} known before\n",
            escape_line(&file.to_string_lossy()),
            trials(added.new),
            added.longer,
            added.known
        ))?;
    }
    Ok(Status::Ok)
}

fn trials(count: usize) -> String {
    match count {
        1 => "1 trial".to_owned(),
        more => format!("{more} trials"),
    }
}

fn show(args: &Show, global: &Global) -> anyhow::Result<Status> {
    let catalogue = Catalogue::builtin()?;
    let pool = Kept::of(global)?.load()?;
    let known: BTreeSet<&str> = pool
        .trials()
        .map(|held| held.trial.plan.advice.as_str())
        .collect();
    let chosen: Vec<&str> = match &args.advice {
        Some(id) if known.contains(id.as_str()) => vec![id],
        // An unknown name is an error; a page without shared trials is not.
        Some(id) => vec![catalogue.get(id)?.id.as_str()],
        None => known.into_iter().collect(),
    };
    let mut all = Vec::new();
    for id in chosen {
        all.extend(match catalogue.get(id) {
            Ok(page) => page_effects(&pool, page),
            // The page may exist in a newer assay.
            Err(_) => pool_effects(&pool, id, USUAL_MARGIN, &[]),
        });
    }
    if args.json {
        print(&format!("{:#}\n", assay_report::pool::pool_to_json(&all)))?;
    } else if all.is_empty() {
        print("There are no shared trials yet: `assay fleet pool add FILE` adds a bundle.\n")?;
    } else {
        print(&assay_report::pool::format_pooled_results(
            &all,
            context::style(global),
        ))?;
    }
    Ok(Status::Ok)
}

/// Returns the combined results for an advice page. Returns an empty list if there is no pool of shared trials, or if
/// the pool cannot be read.
pub fn elsewhere(page: &Advice, global: &Global) -> Vec<Pooled> {
    let pool = Kept::of(global).and_then(|kept| kept.load());
    match pool {
        Ok(pool) => page_effects(&pool, page),
        Err(error) => {
            context::tell(format_args!("shared trials are left out: {error:#}\n"));
            Vec::new()
        }
    }
}

/// Returns sentences about how long trials of this advice took on other machines, without their results. `pair` is the
/// duration of one pair here.
pub fn length_elsewhere(page: &str, pair: assay_model::Nanos, global: &Global) -> Vec<String> {
    let Ok(catalogue) = Catalogue::builtin() else {
        return Vec::new();
    };
    let Ok(page) = catalogue.get(page) else {
        return Vec::new();
    };
    let all = elsewhere(page, global);
    let sentence = |one: &Pooled| {
        let pairs = one.median_pairs?;
        let owners = one.owners >= assay_pool::stats::LEAST_OWNERS;
        let time = assay_model::Nanos(pair.0.saturating_mul(u64::from(pairs)));
        (owners && !one.simulated).then(|| {
            format!("on {} machines elsewhere half of the trials took up to {pairs} pairs, here about {time}",
                one.machines)
        })
    };
    all.iter().find_map(sentence).into_iter().collect()
}

fn remove(args: &Remove, global: &Global) -> anyhow::Result<Status> {
    let (owner, files) = Kept::of(global)?.remove(&args.owner)?;
    let noun = if files == 1 { "bundle" } else { "bundles" };
    print(&format!(
        "Owner {owner} is forgotten: {files} {noun} removed.\n"
    ))?;
    Ok(Status::Ok)
}
