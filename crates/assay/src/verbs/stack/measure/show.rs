//! Prints a measurement in all formats.

use crate::context;
use crate::global::Global;
use crate::pages;
use crate::shape::Shape;
use crate::status::Status;
use anyhow::{Context as _, bail};
use assay_model::Sample;
use assay_model::run::Run;
use assay_report::waterfall::{self, WaterfallView};

/// Shows a past measurement (`--show`).
pub(super) fn show(asked: &str, shape: &Shape, global: &Global) -> anyhow::Result<Status> {
    let Some(store) = context::existing_store(global)? else {
        bail!("{}", context::nothing_measured(global)?);
    };
    let id = match asked {
        "" | "last" => {
            let mut newest = None;
            for row in store.runs()? {
                if store.run(row.id)?.ladder.is_some() {
                    newest = Some(row.id);
                    break;
                }
            }
            newest.context("no stack was measured yet: run `assay stack . --measure` first")?
        }
        name => store.resolve(name)?,
    };
    let (run, samples) = (store.run(id)?, store.samples(id)?);
    report(&run, &samples, shape, global)?;
    Ok(Status::Ok)
}

/// Judges a run and prints it.
pub(super) fn report(
    run: &Run,
    samples: &[Sample],
    shape: &Shape,
    global: &Global,
) -> anyhow::Result<()> {
    let ladder = run.ladder.as_ref().with_context(|| {
        format!(
            "run {0} did not measure a stack: `assay report {0}` shows it",
            run.id
        )
    })?;
    let judged = assay_judge::judge_run(run, samples);
    let falls = assay_judge::build_waterfalls(ladder, &run.plan.workloads, &judged.samples);
    let view = WaterfallView {
        run,
        ladder,
        judged: &judged,
        samples,
        falls: &falls,
    };
    shape.report(|| pages::html(run, &judged, samples, None))?;
    shape.print(
        || format!("{:#}\n", waterfall::waterfall_to_json(&view)),
        || waterfall::render_waterfall_markdown(&view),
        || waterfall::render_waterfall_text(&view, context::style(global)),
    )
}
