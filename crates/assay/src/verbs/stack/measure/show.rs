//! What was measured, in every form.

use super::Form;
use crate::context::{self, print};
use crate::global::Global;
use crate::pages;
use crate::status::Status;
use anyhow::{Context as _, bail};
use assay_model::Sample;
use assay_model::run::Run;
use assay_report::waterfall::{self, View};

/// `--show`.
pub(super) fn show(asked: &str, form: Form<'_>, global: &Global) -> anyhow::Result<Status> {
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
            newest.context("no stack has been measured yet: `assay stack . --measure` does")?
        }
        name => store.resolve(name)?,
    };
    let (run, samples) = (store.run(id)?, store.samples(id)?);
    report(&run, &samples, form, global)?;
    Ok(Status::Ok)
}

/// Judges a run and shows it.
pub(super) fn report(
    run: &Run,
    samples: &[Sample],
    form: Form<'_>,
    global: &Global,
) -> anyhow::Result<()> {
    let ladder = run.ladder.as_ref().with_context(|| {
        format!(
            "run {0} is not of a stack: `assay show {0}` shows it",
            run.id
        )
    })?;
    let judged = assay_judge::judge(run, samples);
    let falls = assay_judge::waterfalls(ladder, &run.plan.workloads, &judged.samples);
    let view = View {
        run,
        ladder,
        judged: &judged,
        samples,
        falls: &falls,
    };
    if let Some(path) = form.html {
        context::write_file(path, &pages::html(run, &judged, samples, None))?;
        eprintln!("report written to {}", path.display());
    }
    print(&match (form.json, form.markdown) {
        (true, _) => format!("{:#}\n", waterfall::json(&view)),
        (_, true) => waterfall::markdown(&view),
        _ => waterfall::terminal(&view, context::style(global)),
    })
}
