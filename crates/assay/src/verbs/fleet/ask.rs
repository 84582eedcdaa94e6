//! Collects bundles from machines over ssh with progress, evaluates the rules on them, and stores them.

use super::Which;
use super::follow::{Followed, SurveyMethod, follow};
use crate::context;
use crate::global::Global;
use crate::machine_source::How;
use crate::progress::Meter;
use assay_advice::{Catalogue, findings};
use assay_facts::CollectOptions;
use assay_fleet::session::{SessionError, SessionFault};
use assay_fleet::{History, Inventory, Machine, Outcome, Round, SshSession};
use assay_host::Bundle;
use assay_model::finding::Checked;
use assay_model::{Facts, Nanos};
use assay_render::text::escape_line;
use jiff::Timestamp;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// What assay derived from the bundle of one machine.
pub struct Judged {
    /// Facts of the machine.
    pub facts: Facts,
    /// Result of evaluating the rules on the machine.
    pub checked: Checked,
    /// Time when the bundle arrived, by the local clock.
    pub at: Timestamp,
}

/// Machines that were read, and the result of each.
pub struct AskedMachines {
    /// Machines that were read, from the inventory.
    pub machines: Vec<Machine>,
    /// Result of each machine: its facts and findings, or the error.
    pub outcomes: Vec<Outcome<Judged>>,
    /// Whether the user interrupted the collection.
    pub interrupted: bool,
}

/// Returns the store of bundles.
pub fn history() -> anyhow::Result<History> {
    Ok(History::at(context::state_dir()?.join("fleet")))
}

/// Returns an ssh session for each machine. Options of the command line override those of the inventory.
pub fn sessions(machines: &[Machine], how: &How, inventory: &Inventory) -> Vec<SshSession> {
    let session = |machine: &Machine| {
        let mut session = how.session(&machine.address);
        session.sudo |= machine.sudo.unwrap_or(false);
        if let (None, Some(seconds)) = (how.deadline, machine.deadline) {
            session.deadline = Duration::from_secs(seconds.clamp(1, 3600));
        }
        session.config = session.config.or_else(|| inventory.ssh_config.clone());
        session
    };
    machines.iter().map(session).collect()
}

/// Result of a machine: its facts and findings, or the error.
pub type MachineResult<'a> = Result<&'a Judged, &'a SessionError>;

/// Collects bundles of the machines, evaluates all rules of the catalogue on them, and stores the bundles.
pub fn ask(which: &Which, catalogue: &Catalogue, global: &Global) -> anyhow::Result<AskedMachines> {
    ask_telling(which, catalogue, global, &|_, _| Ok(String::new()))
}

/// Like [`ask`]. If there are several machines, also prints the line that `line` returns for each machine as soon as it
/// is finished.
pub fn ask_telling(
    which: &Which,
    catalogue: &Catalogue,
    global: &Global,
    line: &(dyn Fn(&Machine, MachineResult<'_>) -> anyhow::Result<String> + Sync),
) -> anyhow::Result<AskedMachines> {
    let (inventory, others) = which.known.open(which.how.ssh_config().as_deref())?;
    let machines = inventory.choose(&which.names, others)?;
    let history = history()?;
    let sessions = sessions(&machines, &which.how, &inventory);
    let cancel = context::on_signals()?;
    let longest = sessions.iter().map(|session| session.deadline).max();
    let meter = Mutex::new(Meter::new(
        which.quiet,
        Nanos::from(longest.unwrap_or_default()),
    ));
    let count = machines.len();
    let tell = |done: usize, asked: &[usize]| {
        if asked.is_empty() {
            return;
        }
        let names: Vec<String> = asked
            .iter()
            .take(3)
            .map(|at| escape_line(&machines[*at].name))
            .collect();
        let more = asked.len().saturating_sub(names.len());
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        let mut meter = meter.lock().unwrap_or_else(PoisonError::into_inner);
        meter.say(format!(
            "{done} of {count} done, waiting for {}{more}",
            names.join(", ")
        ));
    };
    let unprinted = Mutex::new(None);
    let came = |at: usize, outcome: &Outcome<Judged>| {
        let outcome = match outcome {
            Outcome::Done(judged) => Ok(judged),
            Outcome::Failed(error) => Err(error),
            Outcome::Same(_) => return,
        };
        let meter = meter.lock().unwrap_or_else(PoisonError::into_inner);
        let printed = line(&machines[at], outcome).and_then(|line| match count > 1 {
            true => meter.print(&line),
            false => Ok(()),
        });
        if let Err(error) = printed {
            let mut unprinted = unprinted.lock().unwrap_or_else(PoisonError::into_inner);
            unprinted.get_or_insert(error);
        }
    };
    let script = assay_facts::script(env!("CARGO_PKG_VERSION"));
    let stop = || cancel.is_cancelled();
    let round = Round {
        sessions: &sessions,
        script: &script,
        stop: &stop,
        tell: &tell,
        seed: context::random_seed()?,
    };
    let pages = catalogue.all();
    let outcomes = round.ask(
        &|at, sent| {
            let session = &sessions[at];
            let bundle = Bundle::read(&sent.bytes[..], "what it sent")
                .map_err(|error| session.no_bundle(&error.to_string(), &sent))?;
            let judged = judge(&bundle, &pages);
            history
                .keep(
                    &machines[at].name,
                    &sent.bytes,
                    judged.at,
                    env!("CARGO_PKG_VERSION"),
                    &judged.checked,
                )
                .map_err(|error| {
                    session.failed(
                        SessionFault::Other,
                        &format!("its bundle cannot be kept: {error}"),
                    )
                })?;
            Ok(judged)
        },
        &came,
    );
    meter.lock().unwrap_or_else(PoisonError::into_inner).end();
    if let Some(error) = unprinted
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner)
    {
        return Err(error);
    }
    let followed = machines
        .iter()
        .zip(&outcomes)
        .filter_map(|(machine, outcome)| {
            let Outcome::Done(judged) = outcome else {
                return None;
            };
            Some(Followed {
                host: &machine.name,
                at: judged.at,
                way: SurveyMethod::Collector,
                facts: &judged.facts,
                checked: &judged.checked,
            })
        });
    follow(global, followed);
    Ok(AskedMachines {
        machines,
        outcomes,
        interrupted: cancel.is_cancelled(),
    })
}

/// Returns the facts of a bundle, and the findings of the rules in `pages`.
pub fn judge(bundle: &Bundle, pages: &[&assay_model::advice::Advice]) -> Judged {
    let facts = assay_facts::collect(
        bundle,
        &CollectOptions {
            services: true,
            ..CollectOptions::default()
        },
    );
    let checked = findings(pages.iter().copied(), &facts);
    Judged {
        facts,
        checked,
        at: context::now(),
    }
}

/// Returns the serialised kind of a machine's error; empty if there was no error.
pub fn kind(outcome: &Outcome<Judged>) -> String {
    failed(outcome).map(kind_of).unwrap_or_default()
}

/// Returns the serialised kind of a session error.
pub fn kind_of(error: &SessionError) -> String {
    let kind = serde_json::to_value(error.kind).unwrap_or_default();
    kind.as_str().unwrap_or_default().to_owned()
}

/// Returns the error message of a machine; empty if there was no error.
pub fn reason(outcome: &Outcome<Judged>) -> String {
    failed(outcome).map_or_else(String::new, ToString::to_string)
}

/// Returns whether at least one machine could not be read.
pub fn any_failed(all: &[Outcome<Judged>]) -> bool {
    all.iter().any(|outcome| failed(outcome).is_some())
}

fn failed(outcome: &Outcome<Judged>) -> Option<&SessionError> {
    match outcome {
        Outcome::Failed(error) => Some(error),
        Outcome::Done(_) | Outcome::Same(_) => None,
    }
}
