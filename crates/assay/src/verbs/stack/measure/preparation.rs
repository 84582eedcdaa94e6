//! Prepares a measurement: removes files that killed assay processes left, shows the plan, and asks the user. Creates
//! nothing.

use super::Measure;
use crate::progress::whole;
use anyhow::bail;
use assay_changes::Journal;
use assay_host::held::Directory;
use assay_loads::scratch;
use assay_model::Bytes;
use assay_model::ladder::RungPlace;
use assay_stack::ladder::{Made, PreparedLadder, Within};
use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::path::Path;

/// Removes scratch files, guests and scratch layers that killed assay processes left.
pub(super) fn sweep(
    journal: &Journal,
    guests: &assay_lab::GuestRegistry,
    target: &Path,
) -> anyhow::Result<()> {
    crate::sweep::said(&scratch::sweep_directory(&Directory::open(target)?));
    crate::sweep::guests_said(&guests.sweep()?);
    crate::sweep::journals(journal, |label| label == assay_stack::ladder::LABEL)
}

/// Describes which layers will be created, their size, and the duration.
pub(super) fn plan_text(prepared: &PreparedLadder) -> String {
    let run = &prepared.run;
    let mut text = String::new();
    let Some(ladder) = &run.ladder else {
        return text;
    };
    let mut places: Vec<&Within> = prepared.makes.iter().map(|made| &made.within).collect();
    places.sort();
    places.dedup();
    for place in places {
        let within = match place {
            Within::Directory => format!("In {}", ladder.target.escape_debug()),
            Within::Dataset(parent) => {
                format!("Below the ZFS file system {}", parent.escape_debug())
            }
            Within::Group(group) => format!("In the volume group {}", group.escape_debug()),
        };
        text += &format!("{within}, to be removed afterwards:\n");
        let ours = prepared.makes.iter().filter(|made| &made.within == place);
        let ours: Vec<&Made> = ours.collect();
        for made in &ours {
            text += &line(&made.rung, made.space, &made.what);
        }
        let space = ours.iter().map(|made| made.space.0).sum();
        text += &line("in all", Bytes(space), "at most");
    }
    for line in &ladder.left_out {
        text += &format!("left out: {line}\n");
    }
    let guest = ladder
        .rungs
        .iter()
        .any(|rung| rung.place == RungPlace::Guest);
    let workloads: Vec<String> = run
        .plan
        .workloads
        .iter()
        .map(|one| one.describe())
        .collect();
    text += &format!(
        "{} rounds of {} on {} rungs{}, bottom and top twice: {} samples, about {}\n",
        run.plan.rounds,
        workloads.join("; "),
        prepared.makes.len(),
        if guest {
            ", one guest for all that need one"
        } else {
            ""
        },
        run.plan.order.len(),
        whole(prepared.estimate),
    );
    for remark in &run.remarks {
        text += &format!("note: {}\n", remark.replace(char::is_control, "?"));
    }
    text
}

fn line(name: &str, space: Bytes, what: &str) -> String {
    format!("  {name:<12} {:>9}  {what}\n", space.to_string())
}

/// Asks the user whether to start.
pub(super) fn agreed(args: &Measure) -> anyhow::Result<bool> {
    if args.yes {
        return Ok(true);
    }
    if !std::io::stdin().is_terminal() {
        bail!(
            "cannot ask before creating files and loading the storage: there is no terminal. Use --yes, or \
             --dry-run to see the plan."
        );
    }
    eprint!("Begin? [y/N] ");
    std::io::stderr().flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
