//! Looking at studies that were carried out.

use crate::context::{self, print};
use crate::global::Global;
use crate::shape::Shape;
use crate::status::Status;
use assay_model::study::{StudyResult, StudyRun};
use assay_report::study::{self, View};
use assay_studies::catalogue;

/// Arguments of `assay study show`.
#[derive(clap::Args)]
pub(super) struct Show {
    /// Study run: `last`, `last~1`, a number or a study's name
    #[arg(value_name = "RUN", default_value = "last")]
    run: String,
    #[command(flatten)]
    shape: Shape,
}

/// Prints a study as the user wants it; writes the report where asked.
pub(super) fn shown(
    run: &StudyRun,
    id: Option<i64>,
    shape: &Shape,
    global: &Global,
) -> anyhow::Result<()> {
    let result = assay_judge::study::judge(run);
    let view = View {
        run,
        result: &result,
        id,
    };
    shape.report(|| study::html(&view))?;
    shape.print(
        || format!("{:#}\n", study::json(&view)),
        || study::markdown(&view),
        || study::terminal(&view, context::style(global)),
    )
}

/// `assay study show`.
pub(super) fn show(show: &Show, global: &Global) -> anyhow::Result<Status> {
    let Some(store) = context::existing_store(global)? else {
        anyhow::bail!("no study was run yet: `assay study` lists the studies");
    };
    let id = store.resolve_study(&show.run)?;
    let mut run = store.study(id)?;
    run.study = catalogue::renewed(run.study);
    shown(&run, Some(id.0), &show.shape, global)?;
    Ok(Status::Ok)
}

/// `assay study --list`.
pub(super) fn list(shape: &Shape, global: &Global) -> anyhow::Result<Status> {
    let mut all = Vec::new();
    if let Some(store) = context::existing_store(global)? {
        for (id, run) in store.studies()? {
            let result: StudyResult = assay_judge::study::judge(&run);
            all.push((id, run, result));
        }
    }
    let views: Vec<View<'_>> = all
        .iter()
        .map(|(id, run, result)| View {
            run,
            result,
            id: Some(id.0),
        })
        .collect();
    print(&match shape.json {
        true => format!("{:#}\n", study::runs_json(&views)),
        false => study::runs(&views, context::style(global)),
    })?;
    Ok(Status::Ok)
}
