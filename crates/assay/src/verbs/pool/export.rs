//! `assay fleet pool export`: shows every byte that would be published, then writes the file.

use super::key;
use crate::context::{self, print, tell};
use crate::global::Global;
use crate::status::Status;
use anyhow::{Context as _, bail};
use assay_advice::Catalogue;
use assay_judge::trial::judge_trial;
use assay_model::trial::TrialId;
use assay_pool::bundle::{Bundle, BundleMachine, FORMAT};
use assay_pool::{OwnerKey, build_contribution, check_trial};
use assay_render::text::escape_line;
use assay_store::Store;
use std::collections::BTreeMap;
use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  assay fleet pool export                      print what would be disclosed, and write nothing
  assay fleet pool export --output mine.pool   print it, ask, and write it
  assay fleet pool export --output mine.pool --yes
                                               for scripts, once you have seen it

What is printed is the bundle to the last byte. Of a trial it contains: the page of the catalogue, its
parameters where the page names them, the randomised order and the plan, the gain of each pair, how it ended, the
verdict, kernel and fio to their second number, and what the page declares to matter (`moderators`).
Trials are not chosen: all that were started are in it, and a later export adds the new ones.

Exit status: 0 done, 2 nothing to disclose, not agreed, or it cannot be written.";

/// Show what your trials would disclose, and write it to a file
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Write the bundle to FILE after showing it
    #[arg(long = "output", alias = "to", value_name = "FILE")]
    to: Option<PathBuf>,
    /// Write without asking
    #[arg(long, requires = "to")]
    yes: bool,
}

pub(super) fn run(args: &Args, global: &Global) -> anyhow::Result<Status> {
    let Some(store) = context::existing_store(global)? else {
        bail!("{}", context::nothing_measured(global)?);
    };
    let key = key::key()?;
    let Gathered {
        bundle,
        own,
        unsound,
    } = gather(&store, &key)?;
    if own > 0 {
        tell(format_args!(
            "{own} trials are not in it: their pages are not those of this catalogue\n"
        ));
    }
    for (id, why) in unsound {
        tell(format_args!(
            "trial {id} is not in it: what the store holds of it is no whole trial ({why})\n"
        ));
    }
    if bundle.machines.is_empty() {
        bail!(
            "nothing to export: no trial of the catalogue was made yet. `assay trial ADVICE` makes one."
        );
    }
    let bytes = key.write(&bundle)?;
    let text = String::from_utf8(bytes).context("a bundle is text")?;
    print(&text)?;
    let Some(to) = &args.to else {
        tell(format_args!(
            "These {} bytes would be shared. Nothing was written; write them with `--output FILE`.\n",
            text.len()
        ));
        return Ok(Status::Ok);
    };
    if !agreed(args, to, text.len())? {
        tell(format_args!("Nothing was written.\n"));
        return Ok(Status::Error);
    }
    context::write_file(to, &text)?;
    Ok(Status::Ok)
}

fn agreed(args: &Args, to: &Path, bytes: usize) -> anyhow::Result<bool> {
    if args.yes {
        return Ok(true);
    }
    if !std::io::stdin().is_terminal() {
        bail!("nothing was written: use --yes once you have read the bundle above");
    }
    let to = escape_line(&to.to_string_lossy());
    eprint!("Write these {bytes} bytes to {to}? [y/N] ");
    std::io::stderr().flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Trials of a store, sorted by whether they are exported.
struct Gathered {
    /// All trials of built-in advice by machine, which are exported.
    bundle: Bundle,
    /// Number of trials of the user's own advice. They are not exported.
    own: usize,
    /// Damaged trials, each with the reason. They are not exported, but do not prevent the export of other trials.
    unsound: Vec<(TrialId, &'static str)>,
}

fn gather(store: &Store, key: &OwnerKey) -> anyhow::Result<Gathered> {
    let catalogue = Catalogue::builtin()?;
    let version = env!("CARGO_PKG_VERSION");
    let mut machines: BTreeMap<String, Vec<_>> = BTreeMap::new();
    let (mut own, mut unsound) = (0, Vec::new());
    for stored in store.trials()? {
        let told = match catalogue.get(&stored.plan.advice) {
            Ok(page) => {
                let slots = store.slots(stored.id)?;
                let (pairs, judgement) = judge_trial(&stored, &slots);
                build_contribution(key, page, &stored, &pairs, &judgement, version)
            }
            Err(_) => None,
        };
        let Some(told) = told else {
            own += 1;
            continue;
        };
        if let Err(fault) = check_trial(&told) {
            unsound.push((stored.id, fault.what));
            continue;
        }
        // Trials without a known machine are treated as those of one machine.
        let machine = store.machine_of_trial(stored.id)?;
        let id = machine.map_or_else(String::new, |machine| machine.id);
        machines
            .entry(key.name("machine", &id))
            .or_default()
            .push(told);
    }
    let machines = machines.into_iter().map(|(id, mut trials)| {
        // Sorted by id, which does not reveal the time of a trial.
        trials.sort_by(|a, b| a.id.cmp(&b.id));
        BundleMachine { id, trials }
    });
    let bundle = Bundle {
        format: FORMAT.to_owned(),
        owner: key.owner(),
        simulated: false,
        assay: version.to_owned(),
        machines: machines.collect(),
    };
    Ok(Gathered {
        bundle,
        own,
        unsound,
    })
}
