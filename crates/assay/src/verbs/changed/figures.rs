//! Finds shifts over time in the figures of one plan on one machine, from the runs in the store.

use super::between;
use assay_fleet::History;
use assay_fleet::changed::of_facts;
use assay_judge::shift::{self, FigureShift, LEVEL, LONGEST, RunFigure, find_shifts};
use assay_model::advice::Advice;
use assay_model::criterion::Metric;
use assay_model::drift::{Change, FigureChange, Kind};
use assay_model::result;
use assay_model::run::RunState;
use assay_model::{Facts, Machine};
use assay_store::{RunRow, Store};
use jiff::Timestamp;
use std::collections::BTreeMap;

/// Minimum number of runs that are needed to detect a shift.
const FEWEST: usize = 7;

/// Sources in which causes of a shift are searched, besides the runs themselves.
pub(super) struct Kept<'a> {
    /// Stored bundles of the machines.
    pub history: &'a History,
    /// Pages of the catalogue, whose rules give the findings of a bundle.
    pub pages: &'a [&'a Advice],
}

/// Returns whether a stored machine is one of `names`. Returns true if `names` is empty.
pub(super) fn named(machine: Option<&Machine>, names: &[String]) -> bool {
    let Some(machine) = machine else {
        return names.is_empty();
    };
    let known = machine.name.as_deref();
    let is = |name: &String| known == Some(host(name)) || machine.id == **name;
    names.is_empty() || names.iter().any(is)
}

/// Returns the host without the user: `web1` for `root@web1`.
fn host(name: &str) -> &str {
    name.rsplit_once('@').map_or(name, |(_, host)| host)
}

/// A run with its facts and the version of assay that measured it.
struct Ran {
    row: RunRow,
    facts: Facts,
    assay: String,
}

/// A figure of one run, as (index of the run in chronological order, value).
type Value = (usize, f64);

/// Returns the figures that shifted. With `since`, a figure counts if its shift was detected after this time. Without
/// `since`, it counts if the shift was detected at the newest run of its plan.
pub(super) fn changed(
    store: &Store,
    names: &[String],
    since: Option<Timestamp>,
    kept: &Kept<'_>,
) -> anyhow::Result<Vec<FigureChange>> {
    let mut plans: BTreeMap<_, Vec<RunRow>> = BTreeMap::new();
    for row in store.runs()? {
        if row.state == RunState::Complete && named(row.machine.as_ref(), names) {
            let key = (row.machine.clone(), row.plan.clone(), row.targets.clone());
            plans.entry(key).or_default().push(row);
        }
    }
    let mut all = Vec::new();
    for mut rows in plans.into_values() {
        // Sorted by time of measurement, independent of the origin.
        rows.sort_by_key(|row| std::cmp::Reverse(row.started));
        rows.truncate(LONGEST);
        rows.reverse();
        all.extend(of_plan(store, rows, since, kept)?);
    }
    Ok(all)
}

fn of_plan(
    store: &Store,
    rows: Vec<RunRow>,
    since: Option<Timestamp>,
    kept: &Kept<'_>,
) -> anyhow::Result<Vec<FigureChange>> {
    if rows.len() < FEWEST {
        return Ok(Vec::new());
    }
    let mut ran: Vec<Ran> = Vec::new();
    // Grouped by workload, target, figure and exact load: another load under the same name is
    // another series.
    let mut series: BTreeMap<(String, String, Metric, String), Vec<Value>> = BTreeMap::new();
    for row in rows {
        let (run, samples) = (store.run(row.id)?, store.samples(row.id)?);
        for figure in shift::collect_followed_figures(&run, &samples) {
            let key = (figure.workload, figure.target, figure.metric, figure.load);
            series
                .entry(key)
                .or_default()
                .push((ran.len(), figure.value));
        }
        ran.push(Ran {
            row,
            facts: run.facts,
            assay: run.assay_version,
        });
    }
    series.retain(|_, values| values.len() >= FEWEST);
    // The error probability holds for all figures of a plan together.
    let level = LEVEL / series.len().max(1) as f64;
    let mut all = Vec::new();
    for ((workload, target, metric, _), values) in series {
        let points: Vec<RunFigure> = values
            .iter()
            .map(|&(at, value)| RunFigure {
                log: value.ln(),
                tie: tie(&ran[at].row.uid),
            })
            .collect();
        for shift in find_shifts(&points, level) {
            let noticed = values[shift.noticed].0;
            let told = match since {
                Some(since) => ran[noticed].row.started >= since,
                None => noticed + 1 == ran.len(),
            };
            if told {
                let row = &ran[values[shift.at].0].row;
                all.push(FigureChange {
                    machine: row.machine.clone(),
                    plan: row.plan.clone(),
                    workload: workload.clone(),
                    target: target.clone(),
                    metric,
                    run: row.id.0,
                    since: row.started,
                    between: shift.between.map(|at| ran[values[at].0].row.started),
                    noticed: ran[noticed].row.started,
                    runs: [shift.at - shift.span[0], shift.span[1] - shift.at],
                    ratio: shift.ratio,
                    interval: shift.interval,
                    verdict: verdict(metric, &shift),
                    evidence: shift.evidence,
                    level: LEVEL,
                    causes: causes(&ran, &values, &shift, kept)?,
                    curve: values
                        .iter()
                        .map(|&(at, value)| (ran[at].row.started, value))
                        .collect(),
                });
            }
        }
    }
    Ok(all)
}

fn verdict(metric: Metric, shift: &FigureShift) -> result::Change {
    // If the interval contains 1, only the ranks support the shift.
    let clear = shift
        .interval
        .is_none_or(|range| range.low > 1.0 || range.high < 1.0);
    match (clear, metric.quantity.is_latency() == (shift.ratio > 1.0)) {
        (false, _) => result::Change::Unclear,
        (true, true) => result::Change::Worse,
        (true, false) => result::Change::Better,
    }
}

/// Returns the number that determines the order of runs with equal figures: a part of the run's random id.
fn tie(uid: &str) -> u64 {
    let digits = uid.get(..16).unwrap_or_default();
    u64::from_str_radix(digits, 16).unwrap_or_default()
}

/// Finds other changes that may have caused a shift, from the facts of the runs and from stored bundles around the
/// shift.
fn causes(
    ran: &[Ran],
    values: &[Value],
    shift: &FigureShift,
    kept: &Kept<'_>,
) -> anyhow::Result<Vec<Change>> {
    let [first, last] = shift.between;
    let (old, new) = (
        &ran[values[first.saturating_sub(1)].0],
        &ran[values[last].0],
    );
    let mut all = of_facts(&old.facts, &new.facts);
    if old.assay != new.assay {
        all.push(Change {
            kind: Kind::Fact,
            what: "assay".to_owned(),
            severity: None,
            title: None,
            before: Some(old.assay.clone()),
            after: Some(new.assay.clone()),
            cause: Some("another version of assay measured".to_owned()),
        });
    }
    let name = new.row.machine.as_ref().and_then(|one| one.name.as_deref());
    for machine in kept.history.machines()? {
        if Some(host(&machine)) != name {
            continue;
        }
        let entries = kept.history.entries(&machine)?;
        let before = entries.iter().rfind(|entry| entry.at <= old.row.started);
        let after = entries.iter().find(|entry| entry.at >= new.row.started);
        if let (Some(before), Some(after)) = (before, after) {
            let more = between(kept.history, &machine, (before, after), kept.pages)?;
            for change in more {
                let new = all.iter().all(|known| known.what != change.what);
                if new && change.kind == Kind::Fact {
                    all.push(change);
                }
            }
        }
    }
    Ok(all)
}
