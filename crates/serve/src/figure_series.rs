//! Figures of one plan on one machine over time: the points with their intervals, and the times at which the figure
//! shifted. Values that are derived from a run are cached, because a run that has ended does not change.

use crate::fleet_run::{FleetRun, RunKey, SharedValues};
use crate::lock;
use assay_judge::shift::{
    FigureShift, LEVEL, LONGEST, RunFigure, collect_followed_figures, find_shifts,
};
use assay_model::Machine;
use assay_model::criterion::Metric;
use assay_model::doubt::Validity;
use assay_model::drift::FigureChange;
use assay_model::result::Change;
use assay_model::run::{RunId, RunState};
use assay_render::units::format_value_with_unit;
use assay_store::{Store, StoreError};
use jiff::Timestamp;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Minimum number of runs in which a shift can be detected.
const FEWEST: usize = 7;
/// Maximum number of cached digests. If it is exceeded, the cache is emptied.
pub(crate) const MOST_DIGESTS: usize = 50_000;

/// Figures and missed criteria of a run, for lists and charts.
#[derive(Debug)]
pub(crate) struct RunDigest {
    figures: Box<[DigestFigure]>,
    /// Criteria that the run missed, each as a sentence.
    pub(crate) missed: Box<[String]>,
}

/// Workload, target and metric of a figure. Runs of the same plan have figures with the same names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FigureName {
    pub(crate) workload: String,
    pub(crate) target: String,
    pub(crate) metric: Metric,
    load: String,
}

impl AsRef<Self> for FigureName {
    fn as_ref(&self) -> &Self {
        self
    }
}

#[derive(Debug)]
struct DigestFigure {
    name: Arc<FigureName>,
    value: f64,
    interval: Option<[f64; 2]>,
    is_doubtful: bool,
}

/// Identity of a series. Figures of different loads, plans or machines are not compared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SeriesKey {
    pub(crate) machine: Option<Arc<Machine>>,
    pub(crate) plan: Arc<str>,
    pub(crate) targets: Arc<[String]>,
    pub(crate) figure: Arc<FigureName>,
}

/// A figure of one run, as a point of a series.
#[derive(Clone, Debug)]
pub(crate) struct SeriesPoint {
    pub(crate) run: RunId,
    key: RunKey,
    tie: u64,
    pub(crate) at: Timestamp,
    pub(crate) value: f64,
    pub(crate) interval: Option<[f64; 2]>,
    pub(crate) is_doubtful: bool,
}

/// A figure over time, with the shifts of its level.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    pub(crate) key: SeriesKey,
    /// Points in ascending order of time.
    pub(crate) points: Vec<SeriesPoint>,
    /// Shifts, the oldest first.
    pub(crate) shifts: Vec<FigureShift>,
}

impl Series {
    /// Returns whether a shift is better, worse or unclear. For latencies, smaller is better.
    pub(crate) fn judge_shift(&self, shift: &FigureShift) -> Change {
        let is_clear = shift
            .interval
            .is_none_or(|range| range.low > 1.0 || range.high < 1.0);
        let is_latency = self.key.figure.metric.quantity.is_latency();
        match (is_clear, is_latency == (shift.ratio > 1.0)) {
            (false, _) => Change::Unclear,
            (true, true) => Change::Worse,
            (true, false) => Change::Better,
        }
    }
}

/// Runs that can be compared: they have the same machine, plan and targets.
pub(crate) type PlanKey = (Option<Arc<Machine>>, Arc<str>, Arc<[String]>);

/// Number of runs and newest run of a series. Values that are derived from the series stay valid while these are the
/// same.
pub(crate) type SeriesState = (usize, Option<RunKey>);

/// Cache of run digests and of the shifts in each series.
#[derive(Debug, Default)]
pub(crate) struct SeriesCache {
    digests: Mutex<HashMap<RunKey, Arc<RunDigest>>>,
    names: Mutex<SharedValues<FigureName>>,
    shifts: Mutex<HashMap<SeriesKey, (SeriesState, Vec<FigureShift>)>>,
}

/// Series that were found, and whether some runs were not read because the deadline passed.
#[derive(Debug, Default)]
pub(crate) struct FoundSeries {
    pub(crate) all: Vec<Series>,
    pub(crate) is_partial: bool,
}

/// Complete runs of a plan on a machine, the oldest first.
pub(crate) type PlanRuns<'a> = Vec<&'a FleetRun>;

/// Groups complete runs so that the runs of a group can be compared. Only the newest runs of a long history are used.
pub(crate) fn group_by_plan<'a>(
    runs: impl Iterator<Item = &'a FleetRun>,
) -> BTreeMap<PlanKey, PlanRuns<'a>> {
    let mut plans: BTreeMap<PlanKey, PlanRuns<'a>> = BTreeMap::new();
    for run in runs.filter(|run| run.state == RunState::Complete) {
        let key = (run.machine.clone(), run.plan.clone(), run.targets.clone());
        plans.entry(key).or_default().push(run);
    }
    for runs in plans.values_mut() {
        runs.sort_by_key(|run| std::cmp::Reverse(run.started));
        runs.truncate(LONGEST);
        runs.reverse();
    }
    plans
}

impl SeriesCache {
    /// Returns the digest of a run. Reads the run if its digest is not cached.
    ///
    /// # Errors
    /// The stored run cannot be read.
    pub(crate) fn digest(
        &self,
        store: &Store,
        run: &FleetRun,
    ) -> Result<Arc<RunDigest>, StoreError> {
        if let Some(known) = lock(&self.digests).get(&run.key) {
            return Ok(known.clone());
        }
        let digest = Arc::new(self.read_digest(store, run.id)?);
        let mut digests = lock(&self.digests);
        if digests.len() >= MOST_DIGESTS {
            digests.clear();
            *lock(&self.names) = SharedValues::default();
        }
        if run.state != RunState::Running {
            digests.insert(run.key, digest.clone());
        }
        Ok(digest)
    }

    /// Returns whether the digest of a run is cached.
    pub(crate) fn is_known(&self, run: &FleetRun) -> bool {
        lock(&self.digests).contains_key(&run.key)
    }

    /// Returns the series of these runs. Reads runs without a cached digest until `deadline`.
    ///
    /// # Errors
    /// A stored run cannot be read.
    pub(crate) fn find_series<'a>(
        &self,
        store: &Store,
        runs: impl Iterator<Item = &'a FleetRun>,
        deadline: Option<Instant>,
    ) -> Result<FoundSeries, StoreError> {
        let mut found = FoundSeries::default();
        for runs in group_by_plan(runs).values() {
            match self.series_of_plan(store, runs, deadline)? {
                Some(series) => found.all.extend(series),
                None => found.is_partial = true,
            }
        }
        Ok(found)
    }

    /// Returns the series of the runs of a plan. Returns `None` if the deadline has passed and the digests of some runs
    /// are missing.
    ///
    /// # Errors
    /// A stored run cannot be read.
    pub(crate) fn series_of_plan(
        &self,
        store: &Store,
        runs: &[&FleetRun],
        deadline: Option<Instant>,
    ) -> Result<Option<Vec<Series>>, StoreError> {
        let is_late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if is_late && runs.iter().any(|run| !self.is_known(run)) {
            return Ok(None);
        }
        self.build_series(store, runs).map(Some)
    }

    fn build_series(&self, store: &Store, runs: &[&FleetRun]) -> Result<Vec<Series>, StoreError> {
        let mut series: BTreeMap<SeriesKey, Vec<SeriesPoint>> = BTreeMap::new();
        for run in runs {
            for figure in &self.digest(store, run)?.figures {
                let key = SeriesKey {
                    machine: run.machine.clone(),
                    plan: run.plan.clone(),
                    targets: run.targets.clone(),
                    figure: figure.name.clone(),
                };
                series.entry(key).or_default().push(SeriesPoint {
                    run: run.id,
                    key: run.key,
                    tie: run.tie,
                    at: run.started,
                    value: figure.value,
                    interval: figure.interval,
                    is_doubtful: figure.is_doubtful,
                });
            }
        }
        // What is promised of false alarms is promised for all figures of a plan together.
        let long = series.values().filter(|points| points.len() >= FEWEST);
        let level = LEVEL / long.count().max(1) as f64;
        let build = |(key, points): (SeriesKey, Vec<SeriesPoint>)| Series {
            shifts: match points.len() >= FEWEST {
                true => self.find_shifts_of(&key, &points, level),
                false => Vec::new(),
            },
            key,
            points,
        };
        Ok(series.into_iter().map(build).collect())
    }

    fn find_shifts_of(
        &self,
        key: &SeriesKey,
        points: &[SeriesPoint],
        level: f64,
    ) -> Vec<FigureShift> {
        let state = (points.len(), points.last().map(|point| point.key));
        if let Some((known, shifts)) = lock(&self.shifts).get(key)
            && *known == state
        {
            return shifts.clone();
        }
        let figures: Vec<RunFigure> = points
            .iter()
            .map(|point| RunFigure {
                log: point.value.ln(),
                tie: point.tie,
            })
            .collect();
        let shifts = find_shifts(&figures, level);
        lock(&self.shifts).insert(key.clone(), (state, shifts.clone()));
        shifts
    }

    fn read_digest(&self, store: &Store, id: RunId) -> Result<RunDigest, StoreError> {
        let (run, samples) = (store.run(id)?, store.samples(id)?);
        let judged = assay_judge::judge_run(&run, &samples);
        let find = |workload: &str, target: &str| {
            let mut results = judged.results.iter();
            results.find(|result| result.workload == workload && result.target == target)
        };
        let figures = collect_followed_figures(&run, &samples)
            .into_iter()
            .map(|figure| {
                let result = find(&figure.workload, &figure.target);
                let estimate = result.and_then(|result| result.estimates.get(&figure.metric));
                DigestFigure {
                    interval: estimate
                        .and_then(|estimate| estimate.interval)
                        .map(|range| [range.low, range.high]),
                    is_doubtful: result.is_some_and(|result| result.validity != Validity::Valid),
                    value: figure.value,
                    name: lock(&self.names).share(FigureName {
                        workload: figure.workload,
                        target: figure.target,
                        metric: figure.metric,
                        load: figure.load,
                    }),
                }
            });
        let missed = judged.criteria.iter().filter(|one| !one.met);
        Ok(RunDigest {
            figures: figures
                .filter(|figure| figure.value.is_finite() && figure.value > 0.0)
                .collect(),
            missed: missed.map(describe_criterion_line).collect(),
        })
    }
}

/// Describes a shift in the same way as `assay fleet changed`, but without its causes.
pub(crate) fn describe_recent_shift(
    recent: &crate::fleet_state::RecentShift,
) -> Option<FigureChange> {
    let (series, shift) = (&recent.series, &recent.shift);
    let at = |point: usize| series.points.get(point);
    Some(FigureChange {
        machine: series.key.machine.as_deref().cloned(),
        plan: series.key.plan.to_string(),
        workload: series.key.figure.workload.clone(),
        target: series.key.figure.target.clone(),
        metric: series.key.figure.metric,
        run: at(shift.at)?.run.0,
        since: at(shift.at)?.at,
        between: [at(shift.between[0])?.at, at(shift.between[1])?.at],
        noticed: at(shift.noticed)?.at,
        runs: [shift.at - shift.span[0], shift.span[1] - shift.at],
        ratio: shift.ratio,
        interval: shift.interval,
        verdict: series.judge_shift(shift),
        evidence: shift.evidence,
        level: LEVEL,
        causes: Vec::new(),
        curve: series
            .points
            .iter()
            .map(|point| (point.at, point.value))
            .collect(),
    })
}

fn describe_criterion_line(result: &assay_model::result::CriterionResult) -> String {
    let quantity = result.criterion.metric.quantity;
    match &result.value {
        Some(value) => format!(
            "{} on {}: measured {}",
            result.criterion,
            result.target,
            format_value_with_unit(quantity, value.value)
        ),
        None => format!("{} on {}: no valid figure", result.criterion, result.target),
    }
}
