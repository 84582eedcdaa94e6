//! Figures of the same plan on the same machine over time: the points, their intervals, and where a figure shifted.
//! What is derived from a run is kept, because a run that has ended does not change.

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
use assay_store::{RunRow, Store, StoreError};
use jiff::Timestamp;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Fewer runs show no shift.
const FEWEST: usize = 7;
/// Digests that are kept; all are dropped when there are more.
pub(crate) const MOST_DIGESTS: usize = 50_000;

/// What is derived from a run for lists and curves.
#[derive(Debug)]
pub(crate) struct RunDigest {
    figures: Vec<DigestFigure>,
    /// Criteria that were missed, as sentences.
    pub(crate) missed: Vec<String>,
}

#[derive(Debug)]
struct DigestFigure {
    workload: String,
    target: String,
    metric: Metric,
    load: String,
    value: f64,
    interval: Option<[f64; 2]>,
    is_doubtful: bool,
}

/// Identifies a series: figures of different loads, plans or machines are not compared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SeriesKey {
    pub(crate) machine: Option<Machine>,
    pub(crate) plan: String,
    pub(crate) targets: Vec<String>,
    pub(crate) workload: String,
    pub(crate) target: String,
    pub(crate) metric: Metric,
    load: String,
}

/// A figure of one run.
#[derive(Clone, Debug)]
pub(crate) struct SeriesPoint {
    pub(crate) run: RunId,
    uid: String,
    pub(crate) at: Timestamp,
    pub(crate) value: f64,
    pub(crate) interval: Option<[f64; 2]>,
    pub(crate) is_doubtful: bool,
}

/// A figure over time.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    pub(crate) key: SeriesKey,
    /// Ascending by time.
    pub(crate) points: Vec<SeriesPoint>,
    /// Shifts, the oldest first.
    pub(crate) shifts: Vec<FigureShift>,
}

impl Series {
    /// Returns how a shift is to be judged: for a latency, less is better.
    pub(crate) fn judge_shift(&self, shift: &FigureShift) -> Change {
        let is_clear = shift
            .interval
            .is_none_or(|range| range.low > 1.0 || range.high < 1.0);
        let is_latency = self.key.metric.quantity.is_latency();
        match (is_clear, is_latency == (shift.ratio > 1.0)) {
            (false, _) => Change::Unclear,
            (true, true) => Change::Worse,
            (true, false) => Change::Better,
        }
    }
}

/// Machine, plan and targets: runs that are comparable.
type PlanKey<'a> = (&'a Option<Machine>, &'a str, &'a [String]);

/// Newest run and number of runs of a series, with its shifts.
type KnownShifts = (usize, String, Vec<FigureShift>);

/// Digests of runs, and shifts of series.
#[derive(Debug, Default)]
pub(crate) struct SeriesCache {
    digests: Mutex<HashMap<String, Arc<RunDigest>>>,
    shifts: Mutex<HashMap<SeriesKey, KnownShifts>>,
}

/// Series of runs, and whether some runs were not read because the time was over.
#[derive(Debug, Default)]
pub(crate) struct FoundSeries {
    pub(crate) all: Vec<Series>,
    pub(crate) is_partial: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SeriesCache {
    /// Returns the digest of a run, reading the run if it is not known yet.
    ///
    /// # Errors
    /// The run does not read back.
    pub(crate) fn digest(&self, store: &Store, row: &RunRow) -> Result<Arc<RunDigest>, StoreError> {
        if let Some(known) = lock(&self.digests).get(&row.uid) {
            return Ok(known.clone());
        }
        let digest = Arc::new(read_digest(store, row.id)?);
        let mut digests = lock(&self.digests);
        if digests.len() >= MOST_DIGESTS {
            digests.clear();
        }
        if row.state != RunState::Running {
            digests.insert(row.uid.clone(), digest.clone());
        }
        Ok(digest)
    }

    /// Returns whether the digest of a run is known.
    pub(crate) fn is_known(&self, row: &RunRow) -> bool {
        lock(&self.digests).contains_key(&row.uid)
    }

    /// Returns the series of these runs. Runs that are not known are read until `deadline`.
    ///
    /// # Errors
    /// A run does not read back.
    pub(crate) fn find_series(
        &self,
        store: &Store,
        rows: &[&RunRow],
        deadline: Option<Instant>,
    ) -> Result<FoundSeries, StoreError> {
        let mut plans: BTreeMap<PlanKey<'_>, Vec<&RunRow>> = BTreeMap::new();
        for row in rows.iter().filter(|row| row.state == RunState::Complete) {
            let key = (&row.machine, row.plan.as_str(), row.targets.as_slice());
            plans.entry(key).or_default().push(row);
        }
        let mut found = FoundSeries::default();
        for rows in plans.values_mut() {
            rows.sort_by_key(|row| std::cmp::Reverse(row.started));
            rows.truncate(LONGEST);
            rows.reverse();
            let is_late = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
            if is_late() && rows.iter().any(|row| !self.is_known(row)) {
                found.is_partial = true;
                continue;
            }
            found.all.extend(self.series_of_plan(store, rows)?);
        }
        Ok(found)
    }

    fn series_of_plan(&self, store: &Store, rows: &[&RunRow]) -> Result<Vec<Series>, StoreError> {
        let mut series: BTreeMap<SeriesKey, Vec<SeriesPoint>> = BTreeMap::new();
        for row in rows {
            for figure in &self.digest(store, row)?.figures {
                let key = SeriesKey {
                    machine: row.machine.clone(),
                    plan: row.plan.clone(),
                    targets: row.targets.clone(),
                    workload: figure.workload.clone(),
                    target: figure.target.clone(),
                    metric: figure.metric,
                    load: figure.load.clone(),
                };
                series.entry(key).or_default().push(SeriesPoint {
                    run: row.id,
                    uid: row.uid.clone(),
                    at: row.started,
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
        let newest = points
            .last()
            .map(|point| point.uid.clone())
            .unwrap_or_default();
        if let Some((count, uid, shifts)) = lock(&self.shifts).get(key).cloned()
            && (count, &uid) == (points.len(), &newest)
        {
            return shifts;
        }
        let figures: Vec<RunFigure> = points
            .iter()
            .map(|point| RunFigure {
                log: point.value.ln(),
                tie: tie_breaker(&point.uid),
            })
            .collect();
        let shifts = find_shifts(&figures, level);
        lock(&self.shifts).insert(key.clone(), (points.len(), newest, shifts.clone()));
        shifts
    }
}

/// Describes a shift as `assay fleet changed` does, without its causes.
pub(crate) fn describe_recent_shift(
    recent: &crate::fleet_state::RecentShift,
) -> Option<FigureChange> {
    let (series, shift) = (&recent.series, &recent.shift);
    let at = |point: usize| series.points.get(point);
    Some(FigureChange {
        machine: series.key.machine.clone(),
        plan: series.key.plan.clone(),
        workload: series.key.workload.clone(),
        target: series.key.target.clone(),
        metric: series.key.metric,
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

/// Decides between equal figures by the random name of the run.
fn tie_breaker(uid: &str) -> u64 {
    let digits = uid.get(..16).unwrap_or_default();
    u64::from_str_radix(digits, 16).unwrap_or_default()
}

fn read_digest(store: &Store, id: RunId) -> Result<RunDigest, StoreError> {
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
                workload: figure.workload,
                target: figure.target,
                metric: figure.metric,
                load: figure.load,
                value: figure.value,
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
