//! `assay trial A B C`: runs one tuning session that tries several pages under the load of the first page.

use super::{Args, begin};
use crate::global::Global;
use crate::open_changes::Despite;
use crate::shape::Shape;
use crate::status::Status;
use crate::verbs::advice::Own;
use assay_model::advice::{Guard, RiskLevel};
use assay_model::criterion::Metric;
use assay_model::{Load, Nanos};
use std::path::PathBuf;

/// Parameters with which `assay trial` tries several pages together.
pub struct PagesRequest {
    /// Pages by id or file.
    pub pages: Vec<String>,
    /// Target in the form that the first page needs: an absolute path, a URL or an address.
    pub target: String,
    /// Load under which all pages are measured.
    pub load: Load,
    /// Figure that decides the verdict.
    pub metric: Metric,
    /// Figures that must not get worse.
    pub guards: Vec<Guard>,
    /// Smallest difference that counts as a gain, as a fraction: 0.03 for 3 %.
    pub margin: f64,
    /// Highest risk level that a page may have to be tried.
    pub risk: RiskLevel,
    /// Time limit of the whole session.
    pub budget: Option<Nanos>,
    /// Duration of the measurement in one slot.
    pub slot: Nanos,
    /// Time for which the load runs before each slot.
    pub washout: Nanos,
    /// Parameters of the pages, as (name, value).
    pub set: Vec<(String, String)>,
    /// Seed of all random choices.
    pub seed: Option<u64>,
    /// Whether to keep changes that improve the machine according to their trial.
    pub keep: bool,
    /// Whether to only show the plan.
    pub dry_run: bool,
    /// Whether to start without asking.
    pub yes: bool,
    /// Whether to show no progress.
    pub quiet: bool,
    /// Path of fio; `None` for the fio in PATH.
    pub fio: Option<PathBuf>,
    /// Requested formats of the output.
    pub shape: Shape,
    /// Directory of the user's own pages.
    pub own: Own,
    /// Whether to measure although killed processes left open changes.
    pub despite: Despite,
}

#[derive(clap::Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

/// Runs the tuning session that `assay trial A B C` requests.
pub fn run_pages(request: PagesRequest, global: &Global) -> anyhow::Result<Status> {
    let line: Line = clap::Parser::try_parse_from(["tune"])?;
    let direction = match request.metric.quantity.is_lower_better() {
        true => "less",
        false => "more",
    };
    let args = Args {
        target: (!request.target.is_empty()).then_some(request.target),
        want: vec![format!("{direction} {}", request.metric)],
        no_tail_guard: true,
        guard: request.guards,
        margin: Some(request.margin),
        may: Some(
            match request.risk {
                RiskLevel::None | RiskLevel::Low => "low",
                _ => "service",
            }
            .to_owned(),
        ),
        only: request.pages,
        page_load: Some(request.load),
        keep_nothing: !request.keep,
        budget: request.budget,
        slot: Some(request.slot),
        washout: Some(request.washout),
        set: request.set,
        seed: request.seed,
        dry_run: request.dry_run,
        yes: request.yes,
        quiet: request.quiet,
        fio: request.fio,
        shape: request.shape,
        own: request.own,
        despite: request.despite,
        ..line.args
    };
    begin::run(&args, global)
}
