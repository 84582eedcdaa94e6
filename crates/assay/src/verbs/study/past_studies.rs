//! Lists past studies, and shows one of them.

use crate::context::{self, print};
use crate::global::Global;
use crate::shape::Shape;
use crate::status::Status;
use assay_model::study::{StudyResult, StudyRun};
use assay_report::study::{self, StudyView};
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

/// Prints a study in the requested format. Writes the HTML report if requested.
pub(super) fn shown(
    run: &StudyRun,
    id: Option<i64>,
    shape: &Shape,
    global: &Global,
) -> anyhow::Result<()> {
    let result = assay_judge::study::judge_study(run);
    let view = StudyView {
        run,
        result: &result,
        id,
    };
    shape.report(|| study::render_study_page(&view))?;
    shape.print(
        || format!("{:#}\n", study::study_to_json(&view)),
        || study::render_study_markdown(&view),
        || study::render_study_text(&view, context::style(global)),
    )
}

/// Runs `assay study show`.
pub(super) fn show(show: &Show, global: &Global) -> anyhow::Result<Status> {
    let Some(store) = context::existing_store(global)? else {
        anyhow::bail!("no study was run yet: `assay study` lists the studies");
    };
    let id = store.resolve_study(&show.run)?;
    let mut run = store.study(id)?;
    run.study = catalogue::with_current_text(run.study);
    shown(&run, Some(id.0), &show.shape, global)?;
    Ok(Status::Ok)
}

/// Runs `assay study --list`.
pub(super) fn list(shape: &Shape, global: &Global) -> anyhow::Result<Status> {
    let mut all = Vec::new();
    if let Some(store) = context::existing_store(global)? {
        for (id, run) in store.studies()? {
            let result: StudyResult = assay_judge::study::judge_study(&run);
            all.push((id, run, result));
        }
    }
    let views: Vec<StudyView<'_>> = all
        .iter()
        .map(|(id, run, result)| StudyView {
            run,
            result,
            id: Some(id.0),
        })
        .collect();
    print(&match shape.json {
        true => format!("{:#}\n", study::study_runs_to_json(&views)),
        false => study::render_study_runs(&views, context::style(global)),
    })?;
    Ok(Status::Ok)
}
