//! State of all machines at one time, from which the overview, the lists and the Prometheus metrics are made.

use crate::figure_series::{
    MOST_DIGESTS, PlanKey, Series, SeriesCache, SeriesState, group_by_plan,
};
use crate::fleet_run::{FleetRun, RunNames};
use crate::lock;
use crate::site::Site;
use crate::store_access::ContentMark;
use crate::stored_trial::TrialSummary;
use assay_judge::shift::FigureShift;
use assay_model::finding::Severity;
use assay_model::run::RunState;
use assay_model::trial::TrialState;
use assay_store::{About, Ask, Span, Store, StoreError};
use jiff::{SignedDuration, Timestamp};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Time for which a state is shown before the store is checked for changes.
const FRESH: Duration = Duration::from_secs(2);
/// Maximum time for which a state is shown, even if the store is unchanged. A finding that is new today does not stay
/// new.
const LONGEST_SHOWN: Duration = Duration::from_secs(600);
/// Time limit for reading runs that are not cached. Further runs are read for the next page.
const READING: Duration = Duration::from_millis(1_500);
/// Maximum number of runs that are not cached and that a page waits for. With more of them the page shows none, and the
/// runs are read in the background only.
const MOST_AWAITED: usize = 1_000;
/// Maximum age of a state that is shown while another thread reads a newer one.
const MOST_STALE: Duration = Duration::from_secs(10);
/// Pause between two readings in the background while this machine measures, so that the readings do not disturb the
/// measurement.
const MEASURING_PAUSE: Duration = Duration::from_secs(60);
/// Maximum number of findings that are read, for all machines together.
const MOST_FINDINGS: u32 = 100_000;
/// Age up to which a finding counts as new.
const NEW: SignedDuration = SignedDuration::from_hours(14 * 24);
/// Time for which the overview shows a shift.
const SHIFT_SHOWN: SignedDuration = SignedDuration::from_hours(30 * 24);

/// A finding that the last check of its machine still contains.
#[derive(Clone, Debug)]
pub(crate) struct StandingFinding {
    pub(crate) rule: String,
    /// Subject of the finding; empty for the machine as a whole.
    pub(crate) subject: String,
    pub(crate) severity: Severity,
    /// Time of the first check that contained the finding.
    pub(crate) since: Timestamp,
    /// Whether the finding appeared recently, that is whether an earlier check of the machine did not contain it and
    /// its age is at most [`NEW`].
    pub(crate) is_new: bool,
}

/// A machine, with its findings, runs and trials.
#[derive(Clone, Debug, Default)]
pub(crate) struct MachineState {
    pub(crate) name: String,
    /// Names under which the machine was checked. For example, `root@web1` and `web1` are the same machine.
    pub(crate) hosts: Vec<String>,
    /// Times of the first and the last check; `None` if the machine was not checked.
    pub(crate) looked: Option<[Timestamp; 2]>,
    /// Open findings, the most severe first.
    pub(crate) findings: Vec<StandingFinding>,
    /// Indices into [`FleetState::runs`], the newest run first.
    pub(crate) runs: Vec<usize>,
    /// Indices into [`FleetState::trials`], the newest trial first.
    pub(crate) trials: Vec<usize>,
}

impl MachineState {
    /// Returns the number of open findings with this severity.
    pub(crate) fn count(&self, severity: Severity) -> usize {
        let same = |finding: &&StandingFinding| finding.severity == severity;
        self.findings.iter().filter(same).count()
    }
}

/// A run that missed at least one criterion.
#[derive(Clone, Debug)]
pub(crate) struct MissedRun {
    /// Index of the run in [`FleetState::runs`].
    pub(crate) run: usize,
    pub(crate) criteria: Vec<String>,
}

/// A recent shift of a figure, for the overview.
#[derive(Clone, Debug)]
pub(crate) struct RecentShift {
    pub(crate) series: Series,
    pub(crate) shift: FigureShift,
}

/// State of all machines, runs and trials.
#[derive(Debug, Default)]
pub(crate) struct FleetState {
    /// Machines, sorted by name.
    pub(crate) machines: Vec<MachineState>,
    /// Runs, the newest first.
    pub(crate) runs: Vec<FleetRun>,
    /// Trials, the newest first.
    pub(crate) trials: Vec<Arc<TrialSummary>>,
    pub(crate) missed: Vec<MissedRun>,
    pub(crate) shifts: Vec<Arc<RecentShift>>,
    /// Whether some runs have not been read yet, so that shifts and missed criteria may be incomplete.
    pub(crate) is_partial: bool,
    /// Time of the newest check, or start of the newest run, whichever is later.
    pub(crate) newest: Option<Timestamp>,
}

impl FleetState {
    /// Returns whether a run or trial is running on this machine. A record that is older than a day does not count,
    /// because its process must have died.
    fn is_measuring(&self, here: Option<&str>) -> bool {
        const LONGEST: SignedDuration = SignedDuration::from_hours(24);
        let since = Timestamp::now() - LONGEST;
        let run = self.runs.iter().any(|run| {
            run.state == RunState::Running && run.started > since && run.machine_name() == here
        });
        let trial = self.trials.iter().any(|trial| {
            trial.state == TrialState::Running
                && trial.started > since
                && trial.machine.as_deref() == here
        });
        here.is_some() && (run || trial)
    }

    /// Returns a machine by its name.
    pub(crate) fn machine(&self, name: &str) -> Option<&MachineState> {
        self.machines.iter().find(|machine| machine.name == name)
    }
}

/// Returns a host without its user: `root@web1` becomes `web1`.
pub(crate) fn short_host(name: &str) -> &str {
    name.rsplit_once('@').map_or(name, |(_, host)| host)
}

/// The last state, with the time and the mark of the store from which it was read.
#[derive(Debug)]
struct LastState {
    state: Arc<FleetState>,
    /// Time at which the store was read.
    read: Instant,
    /// Time at which the mark of the store was last compared.
    compared: Instant,
    /// Mark of the store, taken before the store was read.
    mark: Option<ContentMark>,
}

/// Cache of the last state, and of values that are derived from single runs.
#[derive(Debug, Default)]
pub(crate) struct FleetStateCache {
    last: Mutex<Option<LastState>>,
    /// Locked by the thread that reads the store, because one reading at a time is enough.
    reading: Mutex<()>,
    pub(crate) series: SeriesCache,
    recent: Mutex<HashMap<PlanKey, PlanShifts>>,
}

/// Recent shifts of the figures of one plan on one machine.
#[derive(Debug)]
struct PlanShifts {
    /// Runs in which the shifts were found.
    runs: SeriesState,
    shifts: Vec<Arc<RecentShift>>,
}

impl RecentShift {
    /// Returns whether the shift was noticed recently.
    fn is_recent(&self, now: Timestamp) -> bool {
        let noticed = self.series.points.get(self.shift.noticed);
        noticed.is_some_and(|point| now.duration_since(point.at) < SHIFT_SHOWN)
    }
}

/// Returns the machine with this name. Adds the machine if it is missing.
fn enter_machine<'a>(
    machines: &'a mut BTreeMap<String, MachineState>,
    name: &str,
) -> &'a mut MachineState {
    let name = short_host(name).to_owned();
    let machine = machines.entry(name.clone()).or_default();
    machine.name = name;
    machine
}

/// Who waits for the state that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reader {
    /// A page, which shows what is known after a short time.
    Page,
    /// The thread that fills the cache in the background.
    Ahead,
}

impl Site {
    /// Returns the state of all machines. It is at most two seconds old, or ten while another thread reads a newer one.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) fn fleet_state(&self) -> Result<Arc<FleetState>, StoreError> {
        self.state_for(Reader::Page)
    }

    fn state_for(&self, reader: Reader) -> Result<Arc<FleetState>, StoreError> {
        if let Some(state) = self.known_state(FRESH) {
            return Ok(state);
        }
        let _reading = match self.fleet.reading.try_lock() {
            Ok(reading) => reading,
            Err(_) => {
                if let Some(state) = self.known_state(MOST_STALE) {
                    return Ok(state);
                }
                lock(&self.fleet.reading)
            }
        };
        // Another thread may have read it while this one waited.
        if let Some(state) = self.known_state(FRESH) {
            return Ok(state);
        }
        // An error shows when the store is read.
        let mark = self.store.mark().ok();
        if let Some(known) = &mut *lock(&self.fleet.last)
            && mark.is_some()
            && known.mark == mark
            && known.read.elapsed() < LONGEST_SHOWN
            && !known.state.is_partial
        {
            known.compared = Instant::now();
            return Ok(known.state.clone());
        }
        let state = self
            .store
            .read(|store| self.read_fleet_state(store, reader))?;
        let state = Arc::new(state.unwrap_or_default());
        let now = Instant::now();
        *lock(&self.fleet.last) = Some(LastState {
            state: state.clone(),
            read: now,
            compared: now,
            mark,
        });
        Ok(state)
    }

    /// Returns the last state if it was read or compared with the store at most `age` ago.
    fn known_state(&self, age: Duration) -> Option<Arc<FleetState>> {
        let last = lock(&self.fleet.last);
        let known = last
            .as_ref()
            .filter(|known| known.compared.elapsed() < age)?;
        Some(known.state.clone())
    }

    /// Reads in advance what pages need: the facts of this machine, unless it measures now, and runs until the digests
    /// of all are cached. Stops earlier if the cache has no room for all of them.
    pub(crate) fn read_ahead(&self) {
        // The first state is that of a page, so that the first page does not wait for many runs.
        let mut state = self.fleet_state();
        let here = self.options.machine.as_deref();
        if state.as_ref().is_ok_and(|state| !state.is_measuring(here)) {
            self.facts();
        }
        while let Ok(known) = state
            && known.is_partial
            && known.runs.len() <= MOST_DIGESTS
        {
            // The state is read again only when it is no longer fresh.
            let is_measuring = known.is_measuring(self.options.machine.as_deref());
            std::thread::sleep(if is_measuring { MEASURING_PAUSE } else { FRESH });
            state = self.state_for(Reader::Ahead);
        }
    }

    fn read_fleet_state(&self, store: &Store, reader: Reader) -> Result<FleetState, StoreError> {
        let now = Timestamp::now();
        let (mut runs, mut names) = (Vec::new(), RunNames::default());
        store.visit_runs(|head| runs.push(names.enter(head)))?;
        runs.shrink_to_fit();
        // Numbers follow the order of entry, which a merge of stores changes.
        runs.sort_by_key(|run| std::cmp::Reverse((run.started, run.id.0)));
        let plans = group_by_plan(runs.iter());
        let shown = plans.values().flatten();
        let unknown = shown.filter(|run| !self.fleet.series.is_known(run));
        let deadline = match reader {
            Reader::Page if unknown.count() > MOST_AWAITED => Instant::now(),
            Reader::Page | Reader::Ahead => Instant::now() + READING,
        };
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
            if let Some(name) = row.machine_name() {
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

    /// Judges the newest run of each plan on each machine, and adds the runs that missed criteria.
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
                    criteria: digest.missed.to_vec(),
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
        let mut last = lock(&self.fleet.recent);
        // Plans that are gone are not taken over.
        let mut known = HashMap::new();
        for (plan, runs) in group_by_plan(state.runs.iter()) {
            let now_known = (runs.len(), runs.last().map(|run| run.key));
            let entry = match last.remove(&plan) {
                Some(entry) if entry.runs == now_known => entry,
                _ => {
                    let series = &self.fleet.series;
                    let Some(series) = series.series_of_plan(store, &runs, Some(deadline))? else {
                        state.is_partial = true;
                        continue;
                    };
                    let shifts = series.into_iter().filter_map(|series| {
                        let shift = series.shifts.last().copied()?;
                        Some(RecentShift { series, shift })
                    });
                    PlanShifts {
                        runs: now_known,
                        shifts: shifts
                            .filter(|recent| recent.is_recent(now))
                            .map(Arc::new)
                            .collect(),
                    }
                }
            };
            let recent = entry.shifts.iter().filter(|recent| recent.is_recent(now));
            state.shifts.extend(recent.cloned());
            known.insert(plan, entry);
        }
        *last = known;
        Ok(())
    }
}

/// Converts a stored span to an open finding; `None` if the severity in it is unknown.
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
