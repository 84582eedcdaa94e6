//! `assay web`: measures the capacity of web servers, then the latency at fractions of the capacity. The measurement is
//! stored as a run.

mod arguments;
mod from_machines;
mod progress;
mod watched;

pub use arguments::{Args, header, speed};

use crate::context::{self, print, write_file};
use crate::global::Global;
use crate::status::{Status, Unreadable};
use anyhow::{Context as _, ensure};
use assay_host::LiveHost;
use assay_judge::web::judge;
use assay_model::load::Http;
use assay_model::run::{RunId, RunState};
use assay_model::web::{Pace, Step};
use assay_model::{Facts, Nanos, Run};
use assay_render::text::escape_line;
use assay_report::web::{Web, about, json, page, terminal};
use assay_store::{Store, StoreError};
use assay_web::{CarryError, Settings, Target, WebEvent, carry_out, estimate, find, record};
use jiff::Timestamp;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Runs `assay web`, and returns the exit status.
pub fn run(args: &Args, global: &Global) -> anyhow::Result<Status> {
    if args.generate {
        return from_machines::generate(args);
    }
    if !args.from.is_empty() {
        return from_machines::run(args, global);
    }
    ensure!(
        !args.known.is_said(),
        "--inventory, --ansible and --proxmox are about other machines: say which with --from"
    );
    if args.server_hosts.is_empty() && args.remote.is_meant()? {
        let asked = args.there()?;
        let done = args
            .remote
            .go(args.quiet, |way| way.carry(&asked, global))?;
        done.pass_on(args.json)?;
        return Ok(done.status());
    }
    let changed = args.despite.check_here()?;
    let mut settings = args.settings(context::random_seed()?)?;
    let cancel = context::on_signals()?;
    let stop = || cancel.is_cancelled();
    let load = args.load()?;
    let targets = targets(args, &load, settings.seed, &stop)?;
    let watch = watched::Watch::open(args, &stop)?;
    let ports: Vec<u16> = targets.iter().map(|one| one.addresses[0].port()).collect();
    let servers = watch.servers(args, &ports, |at| watched::here(args, &targets[at]))?;
    if let Some(span) = targets.iter().filter_map(span_of_log).reduce(f64::max) {
        settings.seconds.1 = args.seconds_of_log(span);
    }
    let remarks: Vec<Vec<String>> = targets
        .iter()
        .map(|target| {
            let mut remarks = remarks(target, settings.seconds.1);
            if !changed.is_empty() {
                let changed = changed.join(", ");
                remarks.push(format!(
                    "an assay that was killed had left changed on this machine: {changed}"
                ));
            }
            remarks
        })
        .collect();
    let mut facts = assay_facts::survey(&LiveHost, &[]).about(&[]);
    assay_measure::engine::enter_open_changes(Ok(changed), &mut facts);
    let what = What {
        urls: targets.iter().map(record::name).collect(),
        remarks,
        load,
        settings,
        facts,
        watch,
    };
    measure(args, global, what, &stop, |settings, steps, stop, tell| {
        carry_out(&targets, &servers, settings, steps, stop, tell)
    })
}

/// Resolves the URLs of the servers to addresses.
fn targets(
    args: &Args,
    load: &Http,
    seed: u64,
    stop: &dyn Fn() -> bool,
) -> anyhow::Result<Vec<Target>> {
    let asked = args.asked(load, seed)?;
    let today = context::now().to_zoned(jiff::tz::TimeZone::UTC).date();
    let mut targets: Vec<Target> = Vec::new();
    for url in &args.urls {
        let target = find(url, &asked, today, stop)?;
        ensure!(
            targets
                .iter()
                .all(|other| record::name(other) != record::name(&target)),
            "{url} is named twice"
        );
        targets.push(target);
    }
    Ok(targets)
}

/// Everything that the measurement needs as input.
struct What {
    urls: Vec<String>,
    remarks: Vec<Vec<String>>,
    load: Http,
    settings: Settings,
    /// Facts of the machine that generates load.
    facts: Facts,
    /// Ssh sessions with the machines of the servers.
    watch: watched::Watch,
}

/// Function that returns true when the measurement should stop.
type Stop<'a> = &'a (dyn Fn() -> bool + Sync);
/// Function that receives the events of the measurement.
type Tell<'a, 'b> = &'a mut (dyn FnMut(WebEvent<'_>) + Send + 'b);

/// Measures by calling `carry`, stores every step, and prints the results.
fn measure(
    args: &Args,
    global: &Global,
    what: What,
    stop: Stop<'_>,
    carry: impl FnOnce(&Settings, &mut Vec<Step>, Stop<'_>, Tell<'_, '_>) -> Result<(), CarryError>,
) -> anyhow::Result<Status> {
    let What {
        urls,
        mut remarks,
        load,
        settings,
        facts,
        watch,
    } = what;
    let mut store = context::open_store(global)?;
    let mut run = record::open(record::Opening {
        uid: context::random_uid()?,
        version: env!("CARGO_PKG_VERSION"),
        started: context::now(),
        facts,
        seed: settings.seed,
        rounds: settings.rounds,
        targets: &urls,
        remarks: &remarks,
    });
    store.create_run(&mut run)?;
    let mut keeper = Keeper {
        progress: progress::Progress::new(args.quiet, &urls, estimate(urls.len(), &settings)),
        store,
        run,
        load,
        settings: settings.clone(),
        began: context::now(),
        failed: None,
        broken: Arc::new(AtomicBool::new(false)),
    };
    let broken = Arc::clone(&keeper.broken);
    let stop_all = || stop() || broken.load(Ordering::Relaxed);
    let mut steps: Vec<Step> = Vec::new();
    let carried = carry(&settings, &mut steps, &stop_all, &mut |event| {
        keeper.tell(&event);
    });
    keeper.progress.end();
    let state = match (&carried, stop()) {
        (Err(_), _) => RunState::Failed,
        (_, true) => RunState::Interrupted,
        _ => RunState::Complete,
    };
    for (target, lost) in watch.lost() {
        keeper.run.remarks.push(format!("{}: {lost}", urls[target]));
        remarks[target].push(lost);
    }
    let about = about(&keeper.run);
    let number = keeper.end(state)?;
    if let Err(CarryError::Load(_)) = &carried {
        carried.context("the load could not be carried out")?;
        return Ok(Status::Error);
    }
    let judged = judge(&steps, urls.len());
    let web = Web {
        urls: &urls,
        remarks: &remarks,
        settings: serde_json::to_value(&settings)?,
        steps: &steps,
        judged: &judged,
        about,
        interrupted: stop(),
    };
    if let Some(path) = &args.html {
        write_file(path, &page(&web))?;
    }
    match args.json {
        true => print(&json(&web))?,
        false => print(&terminal(&web, context::style(global)))?,
    }
    if let Err(error) = carried {
        let kept = format!("{error}; the measurement ended, and what was measured is run {number}");
        return Err(Unreadable(escape_line(&kept)).into());
    }
    Ok(match () {
        () if stop() => Status::Interrupted,
        // A server without any successful response was not measured.
        () if judged.steps.iter().all(|step| step.rate.is_none()) => Status::Findings,
        () => Status::Ok,
    })
}

/// Passes events to the display. Stores every step before the next step begins.
struct Keeper<'a> {
    progress: progress::Progress<'a>,
    store: Store,
    run: Run,
    load: Http,
    settings: Settings,
    began: Timestamp,
    /// Error of the store, which ends the measurement.
    failed: Option<StoreError>,
    broken: Arc<AtomicBool>,
}

impl Keeper<'_> {
    fn tell(&mut self, event: &WebEvent<'_>) {
        self.progress.tell(event);
        match event {
            WebEvent::Begins { .. } => self.began = context::now(),
            WebEvent::Ended(step) if self.failed.is_none() => {
                if let Err(error) = self.keep(step) {
                    self.failed = Some(error);
                    self.broken.store(true, Ordering::Relaxed);
                }
            }
            _ => {}
        }
    }

    fn keep(&mut self, step: &Step) -> Result<(), StoreError> {
        // A step that was interrupted before any count has no result.
        if step.measured.interrupted && step.measured.answers == 0 {
            return Ok(());
        }
        let (closed, open) = self.settings.seconds;
        let runtime = match step.pace {
            Pace::Closed => closed,
            _ => open,
        };
        let times = [runtime, self.settings.washout].map(Nanos::from_secs_f64);
        let known = self.run.plan.workloads.len();
        let sample = record::enter(&mut self.run, &self.load, times, step, self.began);
        if self.run.plan.workloads.len() > known {
            self.store.update_run(&self.run)?;
        }
        self.store.add_sample(self.run.id, &sample)
    }

    /// Ends the run and returns its number in the store.
    fn end(mut self, state: RunState) -> anyhow::Result<RunId> {
        if let Some(error) = self.failed {
            return Err(error)
                .context("what was measured cannot be kept, so the measurement ended");
        }
        self.run.state = state;
        self.run.ended = Some(context::now());
        self.store.update_run(&self.run)?;
        if state == RunState::Interrupted {
            eprintln!("interrupted; what was measured is run {}", self.run.id);
        }
        Ok(self.run.id)
    }
}

/// Returns the number of seconds between the first and the last request of the log; `None` without a log.
fn span_of_log(target: &Target) -> Option<f64> {
    Some(target.listed.last()?.due as f64 / 1e9)
}

fn remarks(target: &Target, seconds: f64) -> Vec<String> {
    let mut remarks = target.remarks.clone();
    if span_of_log(target).is_some_and(|span| span > seconds) {
        remarks.push(format!(
            "of the log the first {} are replayed; --seconds and --speed say otherwise",
            Nanos::from_secs_f64(seconds)
        ));
    }
    if let Some(consent) = &target.consent {
        remarks.push(format!(
            "the server agrees to a load until {}",
            consent.until
        ));
    }
    remarks
}
