//! Stores observations of `why`, `net` and other verbs, and lists them. If an observation cannot be stored, the verb
//! still succeeds, because it prints the result anyway.

use crate::context::{self, print};
use crate::global::Global;
use crate::shape::Shape;
use assay_model::SCHEMA_VERSION;
use assay_render::text::{escape_line, shorten_line};
use assay_render::units::format_timestamp;
use assay_store::{Observation, ObservationRow, Observer, Store};
use serde::Serialize;
use std::sync::mpsc;
use std::time::Duration;

/// Time limit for storing an observation. The store may be on a disk that does not respond, and the result is printed
/// without it.
const LONGEST: Duration = Duration::from_secs(5);
/// Maximum number of characters of a name in a list.
const MOST_OF_NAME: usize = 80;
/// Maximum number of characters of a result in a list.
const MOST_OF_SUMMARY: usize = 200;
/// Maximum number of observations in a list.
const MOST_LISTED: usize = 1000;

/// Document of stored observations, newest first.
#[derive(Serialize, schemars::JsonSchema)]
#[schemars(rename = "ObservationList")]
pub struct ObservationDocument {
    schema: u32,
    observations: Vec<ObservationRow>,
}

/// An observation to store, without its end time and its document.
pub struct ObservedThing {
    /// Verb that made the observation.
    pub by: Observer,
    /// Start time of the observation.
    pub started: jiff::Timestamp,
    /// Name of what was observed, such as a disk or a network.
    pub subject: String,
    /// The result in one line.
    pub summary: String,
    /// Whether the observation is about this machine. Records about other machines are stored without a machine id.
    pub is_here: bool,
}

/// Stores an observation. On failure, prints one line on standard error.
pub fn keep(thing: ObservedThing, document: &impl Serialize, global: &Global) {
    if let Err(error) = try_to_keep(thing, document, global) {
        context::tell(format_args!(
            "not stored: {}",
            escape_line(&format!("{error:#}"))
        ));
    }
}

fn try_to_keep(
    thing: ObservedThing,
    document: &impl Serialize,
    global: &Global,
) -> anyhow::Result<()> {
    let one = Observation {
        uid: context::random_uid()?,
        by: thing.by,
        started: thing.started,
        ended: context::now(),
        subject: thing.subject,
        summary: thing.summary,
        document: serde_json::to_value(document)?,
    };
    let path = context::store_path(global)?;
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let store = || {
            let machine = thing
                .is_here
                .then(|| assay_facts::machine(&assay_host::LiveHost));
            let mut store = Store::open(&path)?.on(machine.flatten());
            store.add_observation(&one).map(|_| ())
        };
        // Nobody listens after the time limit.
        let _ = sender.send(store());
    });
    match receiver.recv_timeout(LONGEST) {
        Ok(stored) => Ok(stored?),
        Err(_) => anyhow::bail!("the store did not answer within {} s", LONGEST.as_secs()),
    }
}

/// Prints the observations of one verb, newest first. If there are none, prints the line `empty`.
pub fn list(by: Observer, empty: &str, shape: &Shape, global: &Global) -> anyhow::Result<()> {
    let mut rows = match context::existing_store(global)? {
        Some(store) => store.observations(MOST_LISTED)?,
        None => Vec::new(),
    };
    rows.retain(|row| row.by == by);
    if shape.json {
        let document = serde_json::json!(ObservationDocument {
            schema: SCHEMA_VERSION,
            observations: rows,
        });
        return print(&format!("{document:#}\n"));
    }
    if rows.is_empty() {
        return print(empty);
    }
    let cells: Vec<Vec<String>> = rows.iter().map(describe_row).collect();
    let head = ["number", "begun", "machine", "subject", "result"];
    print(&assay_render::table::render_table(
        0, "rllll", &head, &cells,
    ))
}

fn describe_row(row: &ObservationRow) -> Vec<String> {
    let machine = row.machine.as_ref();
    vec![
        row.id.to_string(),
        format_timestamp(row.started),
        machine.map_or_else(String::new, |machine| {
            shorten_line(machine.shown(), MOST_OF_NAME)
        }),
        shorten_line(&row.subject, MOST_OF_NAME),
        shorten_line(&row.summary, MOST_OF_SUMMARY),
    ]
}
