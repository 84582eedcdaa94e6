//! The report of a run as a page, with the fio job files for repeating the run by hand.

use assay_model::Sample;
use assay_model::result::{Judged, RunComparison};
use assay_model::run::{Origin, Run};
use assay_model::target::TargetKind;
use std::path::Path;

/// Renders the page of a run, alone or compared with another run.
#[must_use]
pub fn render_run_record(
    run: &Run,
    judged: &Judged,
    samples: &[Sample],
    against: Option<(&Run, &Judged, &RunComparison)>,
) -> String {
    if let (Some(stored), None) = (find_web_results(run, samples), against) {
        return assay_report::web::page(&stored.web());
    }
    match (&run.ladder, against) {
        (Some(ladder), None) => {
            let falls = assay_judge::build_waterfalls(ladder, &run.plan.workloads, &judged.samples);
            assay_report::waterfall::render_waterfall_page(
                &assay_report::waterfall::WaterfallView {
                    run,
                    ladder,
                    judged,
                    samples,
                    falls: &falls,
                },
            )
        }
        _ => assay_report::html::render_run_page(run, judged, samples, against, &job_files(run)),
    }
}

/// Returns the results of `assay web`; `None` if another command measured the run.
#[must_use]
pub fn find_web_results(run: &Run, samples: &[Sample]) -> Option<assay_report::web::Stored> {
    let steps = assay_web::record::steps(run, samples)?;
    let judged = assay_judge::web::judge(&steps, run.targets.len());
    Some(assay_report::web::Stored::of(run, steps, judged))
}

/// Returns the name and the text of every fio job file. The scratch files of the run do not exist any more, so for a
/// directory target the first job creates a new file with a descriptive name.
fn job_files(run: &Run) -> Vec<(String, String)> {
    if run.origin != Origin::Measured {
        return Vec::new();
    }
    let mut files = Vec::new();
    for target in &run.targets {
        let directory = target.kind == TargetKind::Directory;
        let path = match directory {
            true => Path::new(&target.name).join("assay-test-file"),
            false => Path::new(&target.name).to_owned(),
        };
        let on = match run.targets.len() {
            1 => String::new(),
            _ => format!(" on {}", target.name),
        };
        let mut add = |name: String, text: Result<String, assay_fio::job::RenderError>| {
            let text = text.unwrap_or_else(|error| format!("# {error}\n"));
            files.push((name, text));
        };
        if run.plan.needs_file() && (directory || run.plan.writes()) {
            let layout = assay_fio::job::layout_job(&path, target.size, run.plan.seed);
            add(format!("layout, first{on}"), layout);
        }
        for (index, workload) in run.plan.workloads.iter().enumerate() {
            let Some(fio) = workload.fio() else { continue };
            let first = run.plan.order.iter().find(|slot| slot.workload == index);
            let seed = first.map_or(run.plan.seed, |slot| slot.seed);
            let job = assay_fio::job::render(fio, &path, target.size, seed);
            add(format!("{}{on}", workload.name), job);
        }
    }
    files
}
