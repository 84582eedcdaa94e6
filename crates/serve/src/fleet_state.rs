//! State of all machines at one time, for the overview, the lists and Prometheus.

use crate::figure_series::{MOST_DIGESTS, Series, SeriesCache};
use crate::site::Site;
use crate::stored_trial::TrialSummary;
use assay_judge::shift::FigureShift;
use assay_model::finding::Severity;
use assay_model::run::RunState;
use assay_store::{About, Ask, RunRow, Span, Store, StoreError};
use jiff::{SignedDuration, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a state is shown before the store is read again.
const FRESH: Duration = Duration::from_secs(2);
/// Time for reading runs that are not known yet; the rest is read for the next page.
const READING: Duration = Duration::from_millis(1_500);
/// Findings that are read of all machines.
const MOST_FINDINGS: u32 = 100_000;
/// A finding is new for this long.
const NEW: SignedDuration = SignedDuration::from_hours(14 * 24);
/// A shift is shown on the overview for this long.
const SHIFT_SHOWN: SignedDuration = SignedDuration::from_hours(30 * 24);

/// A finding that stands.
#[derive(Clone, Debug)]
pub(crate) struct StandingFinding {
    pub(crate) rule: String,
    /// What it is about; empty for the machine as a whole.
    pub(crate) subject: String,
    pub(crate) severity: Severity,
    /// When it was first seen.
    pub(crate) since: Timestamp,
    /// The machine was seen without it before, and it is not old.
    pub(crate) is_new: bool,
}

/// A machine with everything known about it.
#[derive(Clone, Debug, Default)]
pub(crate) struct MachineState {
    pub(crate) name: String,
    /// Names under which it was checked: `root@web1` and `web1` are one machine.
    pub(crate) hosts: Vec<String>,
    /// First and last check.
    pub(crate) looked: Option<[Timestamp; 2]>,
    /// The most severe first.
    pub(crate) findings: Vec<StandingFinding>,
    /// Numbers into [`FleetState::runs`], the newest first.
    pub(crate) runs: Vec<usize>,
    /// Numbers into [`FleetState::trials`], the newest first.
    pub(crate) trials: Vec<usize>,
}

impl MachineState {
    /// Returns the number of findings of a severity.
    pub(crate) fn count(&self, severity: Severity) -> usize {
        let same = |finding: &&StandingFinding| finding.severity == severity;
        self.findings.iter().filter(same).count()
    }
}

/// A run whose criteria were missed.
#[derive(Clone, Debug)]
pub(crate) struct MissedRun {
    /// Number into [`FleetState::runs`].
    pub(crate) run: usize,
    pub(crate) criteria: Vec<String>,
}

/// A shift that happened not long ago.
#[derive(Clone, Debug)]
pub(crate) struct RecentShift {
    pub(crate) series: Series,
    pub(crate) shift: FigureShift,
}

/// All machines, runs and trials.
#[derive(Debug, Default)]
pub(crate) struct FleetState {
    /// By name.
    pub(crate) machines: Vec<MachineState>,
    /// The newest first.
    pub(crate) runs: Vec<RunRow>,
    /// The newest first.
    pub(crate) trials: Vec<Arc<TrialSummary>>,
    pub(crate) missed: Vec<MissedRun>,
    pub(crate) shifts: Vec<RecentShift>,
    /// Some runs were not read yet: shifts and missed criteria may be incomplete.
    pub(crate) is_partial: bool,
    /// When the newest machine was checked, or the newest run began.
    pub(crate) newest: Option<Timestamp>,
}

impl FleetState {
    /// Returns a machine by its name.
    pub(crate) fn machine(&self, name: &str) -> Option<&MachineState> {
        self.machines.iter().find(|machine| machine.name == name)
    }
}

/// `root@web1` is web1.
pub(crate) fn short_host(name: &str) -> &str {
    name.rsplit_once('@').map_or(name, |(_, host)| host)
}

/// Returns the name of the machine of a run, as lists show it.
pub(crate) fn machine_name(row: &RunRow) -> Option<&str> {
    row.machine.as_ref().map(assay_model::Machine::shown)
}

/// The last state, and what is known of single runs.
#[derive(Debug, Default)]
pub(crate) struct FleetStateCache {
    last: Mutex<Option<(Instant, Arc<FleetState>)>>,
    pub(crate) series: SeriesCache,
}

/// Returns the machine of this name, entering it first if it is new.
fn enter_machine<'a>(
    machines: &'a mut BTreeMap<String, MachineState>,
    name: &str,
) -> &'a mut MachineState {
    let name = short_host(name).to_owned();
    let machine = machines.entry(name.clone()).or_default();
    machine.name = name;
    machine
}

impl Site {
    /// Returns the state of all machines, at most two seconds old.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) fn fleet_state(&self) -> Result<Arc<FleetState>, StoreError> {
        // Requests that arrive during this time wait for this one.
        let mut last = self
            .fleet
            .last
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some((read, state)) = &*last
            && read.elapsed() < FRESH
        {
            return Ok(state.clone());
        }
        let state = self.store.read(|store| self.read_fleet_state(store))?;
        let state = Arc::new(state.unwrap_or_default());
        *last = Some((Instant::now(), state.clone()));
        Ok(state)
    }

    /// Reads the runs that are not known yet, as far as the cache holds them.
    pub(crate) fn read_ahead(&self) {
        while let Ok(state) = self.fleet_state()
            && state.is_partial
            && state.runs.len() <= MOST_DIGESTS
        {
            // The state is read again only when it is no longer fresh.
            std::thread::sleep(FRESH);
        }
    }

    fn read_fleet_state(&self, store: &Store) -> Result<FleetState, StoreError> {
        let now = Timestamp::now();
        let deadline = Instant::now() + READING;
        let mut runs = store.runs()?;
        // Numbers follow the order of entry, which a merge of stores changes.
        runs.sort_by_key(|row| std::cmp::Reverse((row.started, row.id.0)));
        let trials = self.trials.read_all(store)?;
        let mut machines: BTreeMap<String, MachineState> = BTreeMap::new();
        for (host, first, last) in store.hosts()? {
            let machine = enter_machine(&mut machines, &host);
            let known = machine.looked.unwrap_or([first, last]);
            machine.looked = Some([known[0].min(first), known[1].max(last)]);
            machine.hosts.push(host);
        }
        let ask = Ask {
            about: Some(About::Finding),
            most: MOST_FINDINGS,
            ..Ask::default()
        };
        for span in store.spans(&ask)? {
            if let Some(finding) = standing_finding(&span, now) {
                enter_machine(&mut machines, &span.machine)
                    .findings
                    .push(finding);
            }
        }
        for (at, row) in runs.iter().enumerate() {
            if let Some(name) = machine_name(row) {
                enter_machine(&mut machines, name).runs.push(at);
            }
        }
        for (at, trial) in trials.iter().enumerate() {
            if let Some(name) = &trial.machine {
                enter_machine(&mut machines, name).trials.push(at);
            }
        }
        for machine in machines.values_mut() {
            machine.findings.sort_by(|a, b| {
                let order = |one: &StandingFinding| (std::cmp::Reverse(one.severity), !one.is_new);
                order(a).cmp(&order(b)).then_with(|| a.rule.cmp(&b.rule))
            });
        }
        let looked = machines
            .values()
            .filter_map(|machine| machine.looked.map(|[_, last]| last));
        let mut state = FleetState {
            newest: looked.chain(runs.first().map(|row| row.started)).max(),
            machines: machines.into_values().collect(),
            runs,
            trials,
            ..FleetState::default()
        };
        self.add_missed_criteria(store, &mut state, deadline)?;
        self.add_shifts(store, &mut state, now, deadline)?;
        Ok(state)
    }

    /// Judges the newest run of each plan on each machine.
    fn add_missed_criteria(
        &self,
        store: &Store,
        state: &mut FleetState,
        deadline: Instant,
    ) -> Result<(), StoreError> {
        let mut judged = BTreeSet::new();
        for (at, row) in state.runs.iter().enumerate() {
            if row.state != RunState::Complete
                || !judged.insert((&row.machine, &row.plan, &row.targets))
            {
                continue;
            }
            if Instant::now() >= deadline && !self.fleet.series.is_known(row) {
                state.is_partial = true;
                continue;
            }
            let digest = self.fleet.series.digest(store, row)?;
            if !digest.missed.is_empty() {
                state.missed.push(MissedRun {
                    run: at,
                    criteria: digest.missed.clone(),
                });
            }
        }
        Ok(())
    }

    fn add_shifts(
        &self,
        store: &Store,
        state: &mut FleetState,
        now: Timestamp,
        deadline: Instant,
    ) -> Result<(), StoreError> {
        let rows: Vec<&RunRow> = state.runs.iter().collect();
        let found = self
            .fleet
            .series
            .find_series(store, &rows, Some(deadline))?;
        state.is_partial |= found.is_partial;
        for series in found.all {
            let Some(shift) = series.shifts.last().copied() else {
                continue;
            };
            let noticed = series.points.get(shift.noticed).map(|point| point.at);
            if noticed.is_some_and(|at| now.duration_since(at) < SHIFT_SHOWN) {
                state.shifts.push(RecentShift { series, shift });
            }
        }
        Ok(())
    }
}

/// Returns the finding of a span; `None` if its severity is unknown.
fn standing_finding(span: &Span, now: Timestamp) -> Option<StandingFinding> {
    let severity = serde_json::from_value(span.value.clone()?).ok()?;
    let (rule, subject) = span.key.split_once('@').unwrap_or((&span.key, ""));
    Some(StandingFinding {
        rule: rule.to_owned(),
        subject: subject.to_owned(),
        severity,
        since: span.since,
        is_new: span.changed && now.duration_since(span.since) < NEW,
    })
}
