//! `assay trial A B C`: several pages under the load of the first, as one session of tuning.

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

/// Several pages of advice, as `assay trial` names them.
pub struct PagesRequest {
    /// Pages by id or file.
    pub pages: Vec<String>,
    /// Target as the first page needs it: an absolute path, a URL or an address.
    pub target: String,
    /// Load that all of them are measured under.
    pub load: Load,
    /// Figure that decides.
    pub metric: Metric,
    /// Figures that must not get worse.
    pub guards: Vec<Guard>,
    /// Smallest relevant change, 0.03 for 3 %.
    pub margin: f64,
    /// Highest risk of the pages.
    pub risk: RiskLevel,
    /// Time of the whole session.
    pub budget: Option<Nanos>,
    /// Length of a slot.
    pub slot: Nanos,
    /// Load before each slot.
    pub washout: Nanos,
    /// Parameters of the pages.
    pub set: Vec<(String, String)>,
    /// Seed of all random choices.
    pub seed: Option<u64>,
    /// Keep what is proved.
    pub keep: bool,
    /// Only show the plan.
    pub dry_run: bool,
    /// Do not ask.
    pub yes: bool,
    /// No progress.
    pub quiet: bool,
    /// fio to use.
    pub fio: Option<PathBuf>,
    /// Forms of the output.
    pub shape: Shape,
    /// Directory of the user's own pages.
    pub own: Own,
    /// Whether to go on beside open changes.
    pub despite: Despite,
}

#[derive(clap::Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

/// Runs the session.
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
