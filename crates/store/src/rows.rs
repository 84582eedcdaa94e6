//! Computes the SQL rows of a record ([`crate::tables`]) from its body and parts. The rows are written together with
//! the record, or when an older store is opened.

use crate::database::Kind;
use crate::{Store, StoreError, word};
use assay_judge::sample_figures;
use assay_judge::trial::{judge_slots, judge_trial};
use assay_model::criterion::{Direction, Metric, Quantity};
use assay_model::result::{Figures, JudgedSample};
use assay_model::sample::Outcome;
use assay_model::trial::{Slot, Trial, TrialId};
use assay_model::{Facts, Run, RunId, Sample, TargetInfo};
use std::collections::BTreeSet;

/// Version of the derived SQL rows. It is stored in the column `tabled` when the rows are written. Rows of an older
/// version are written again.
pub(crate) const TABLED: i64 = 1;
/// Value of the column `tabled` for a damaged record, which has no SQL rows.
pub(crate) const UNREADABLE: i64 = 0;

/// SQL rows of a record.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    pub(crate) tabled: i64,
    pub(crate) assay: Option<String>,
    pub(crate) kernel: Option<String>,
    pub(crate) origin: Option<String>,
    pub(crate) disks: Vec<DiskRow>,
    pub(crate) verdict: Option<VerdictRow>,
    pub(crate) parts: Vec<PartRow>,
}

/// Columns of a part for SQL queries, in addition to its body.
#[derive(Debug, Default)]
pub(crate) struct PartRow {
    /// Number of the slot of a run, or of the pair of a trial.
    pub(crate) at: i64,
    /// Side of the pair; empty for a sample of a run.
    pub(crate) side: String,
    pub(crate) slot: i64,
    pub(crate) round: i64,
    pub(crate) workload: String,
    pub(crate) target: String,
    pub(crate) started: String,
    pub(crate) wall_ns: i64,
    pub(crate) outcome: &'static str,
    /// Whether the part is valid; `None` until the record has ended.
    pub(crate) validity: Option<String>,
    /// Codes of the doubts (reasons to distrust a figure), separated by spaces.
    pub(crate) doubts: Option<String>,
    /// Id and value of each metric.
    pub(crate) figures: Vec<(i64, f64)>,
}

/// A disk below a target. A target without disks also has one row.
#[derive(Debug, Default)]
pub(crate) struct DiskRow {
    pub(crate) target: String,
    pub(crate) target_kind: String,
    pub(crate) fs_type: Option<String>,
    pub(crate) mount_point: Option<String>,
    pub(crate) mount_options: Option<String>,
    pub(crate) size_bytes: i64,
    pub(crate) disk: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) rotational: Option<bool>,
    pub(crate) scheduler: Option<String>,
}

/// Row of the verdict on a trial.
#[derive(Debug)]
pub(crate) struct VerdictRow {
    pub(crate) verdict: String,
    pub(crate) metric: String,
    pub(crate) margin: f64,
    pub(crate) same_sides: bool,
    pub(crate) pairs: i64,
    pub(crate) left_out: i64,
    pub(crate) ratio: Option<f64>,
    pub(crate) low: Option<f64>,
    pub(crate) high: Option<f64>,
    pub(crate) reason: String,
}

/// Returns all metrics. The position of a metric is its number in the table `metric`.
pub(crate) fn metrics() -> impl Iterator<Item = Metric> {
    let directions = [
        Direction::All,
        Direction::Read,
        Direction::Write,
        Direction::Flush,
    ];
    directions.into_iter().flat_map(|direction| {
        let metric = move |quantity| Metric {
            direction,
            quantity,
        };
        Quantity::ALL.into_iter().map(metric)
    })
}

fn numbered(figures: &Figures) -> Vec<(i64, f64)> {
    let numbers = (0..).zip(metrics());
    let figure = |(number, metric)| Some((number, *figures.get(&metric)?));
    let figures = numbers.filter_map(figure);
    // SQLite stores NaN as NULL.
    figures.filter(|(_, value)| value.is_finite()).collect()
}

impl PartRow {
    /// Computes the row of a sample.
    pub(crate) fn of_sample(sample: &Sample, judged: Option<&JudgedSample>) -> Self {
        let codes = |judged: &JudgedSample| {
            let codes: BTreeSet<&str> = judged.doubts.iter().map(|one| one.code.as_str()).collect();
            codes.into_iter().collect::<Vec<_>>().join(" ")
        };
        let figures = match judged {
            Some(judged) => numbered(&judged.figures),
            None => numbered(&sample_figures(sample)),
        };
        Self {
            at: sample.slot.into(),
            side: String::new(),
            slot: sample.slot.into(),
            round: sample.round.into(),
            workload: sample.workload.clone(),
            target: sample.target.clone(),
            started: sample.started.to_string(),
            wall_ns: i64::try_from(sample.wall.0).unwrap_or(i64::MAX),
            outcome: outcome(&sample.outcome),
            validity: judged.map(|judged| word(judged.validity)),
            doubts: judged.map(codes),
            figures,
        }
    }

    /// Computes the row of a slot.
    pub(crate) fn of_slot(slot: &Slot, judged: Option<&JudgedSample>) -> Self {
        Self {
            at: slot.pair.into(),
            side: word(slot.side),
            ..Self::of_sample(&slot.sample, judged)
        }
    }
}

fn outcome(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Completed => "completed",
        Outcome::Interrupted => "interrupted",
        Outcome::Failed { .. } => "failed",
        Outcome::TimedOut { .. } => "timed-out",
    }
}

fn disks<'a>(targets: impl IntoIterator<Item = &'a TargetInfo>, facts: &Facts) -> Vec<DiskRow> {
    let mut rows = Vec::new();
    for target in targets {
        let disks = target.disks.iter().map(Some);
        let none = target.disks.is_empty().then_some(None);
        for disk in disks.chain(none) {
            let key = |what: &str| disk.map(|disk| format!("disk.{disk}.{what}"));
            let text = |what: &str| Some(facts.str(&key(what)?)?.to_owned());
            rows.push(DiskRow {
                target: target.name.clone(),
                target_kind: word(target.kind),
                fs_type: target.fs_type.clone(),
                mount_point: target.mount_point.clone(),
                mount_options: target.mount_options.clone(),
                size_bytes: i64::try_from(target.size.0).unwrap_or(i64::MAX),
                disk: disk.cloned(),
                model: text("model"),
                rotational: key("rotational").and_then(|key| facts.get(&key)?.as_bool()),
                scheduler: text("scheduler"),
            });
        }
    }
    rows
}

/// Computes the rows of a run. If the samples are given, judges them.
pub(crate) fn of_run(run: &Run, samples: Option<&[Sample]>) -> Rows {
    let samples = samples.unwrap_or_default();
    let judged = assay_judge::judge_run(run, samples);
    let parts = samples.iter().zip(&judged.samples);
    let origin = serde_json::to_value(&run.origin).unwrap_or_default();
    let origin = match &origin {
        serde_json::Value::Object(map) => map.keys().next().cloned(),
        other => other.as_str().map(str::to_owned),
    };
    Rows {
        tabled: TABLED,
        assay: Some(run.assay_version.clone()),
        kernel: run.facts.str("kernel.release").map(str::to_owned),
        origin,
        disks: disks(&run.targets, &run.facts),
        verdict: None,
        parts: parts
            .map(|(sample, judged)| PartRow::of_sample(sample, Some(judged)))
            .collect(),
    }
}

/// Computes the rows of a trial. If the slots are given, judges the trial.
pub(crate) fn of_trial(trial: &Trial, slots: Option<&[Slot]>) -> Rows {
    let verdict = slots.map(|slots| {
        let (_, judgement) = judge_trial(trial, slots);
        let interval = judgement.interval.as_ref();
        VerdictRow {
            verdict: word(judgement.verdict),
            metric: trial.plan.metric.to_string(),
            margin: trial.plan.margin,
            same_sides: trial.plan.aa,
            pairs: judgement.pairs.into(),
            left_out: judgement.left_out.into(),
            ratio: judgement.ratio,
            low: interval.map(|one| one.low),
            high: interval.map(|one| one.high),
            reason: judgement.reason,
        }
    });
    let slots = slots.unwrap_or_default();
    let judged = judge_slots(trial, slots);
    let parts = slots.iter().zip(&judged);
    Rows {
        tabled: TABLED,
        assay: Some(trial.assay_version.clone()),
        kernel: trial.facts.str("kernel.release").map(str::to_owned),
        origin: None,
        disks: disks(&trial.target, &trial.facts),
        verdict,
        parts: parts
            .map(|(slot, judged)| PartRow::of_slot(slot, Some(judged)))
            .collect(),
    }
}

impl Store {
    /// Writes the rows of a run. Judges its samples if the run is `whole`, that is ended or imported.
    pub(crate) fn put_run_rows(
        &mut self,
        run: &Run,
        id: RunId,
        whole: bool,
    ) -> Result<(), StoreError> {
        let samples = whole.then(|| self.samples(id)).transpose();
        let rows = or_unreadable(samples.map(|samples| of_run(run, samples.as_deref())))?;
        self.sql.put_rows(Kind::Run, id.0, &rows)
    }

    /// Writes the rows of a trial. Judges the trial if it is `whole`, that is ended or imported.
    pub(crate) fn put_trial_rows(
        &mut self,
        trial: &Trial,
        id: TrialId,
        whole: bool,
    ) -> Result<(), StoreError> {
        let slots = whole.then(|| self.slots(id)).transpose();
        let rows = or_unreadable(slots.map(|slots| of_trial(trial, slots.as_deref())))?;
        self.sql.put_rows(Kind::Trial, id.0, &rows)
    }

    /// Writes the missing rows of all records, after an upgrade or a killed process. If two processes do this at the
    /// same time, they write the same rows. A damaged record gets no rows, and is reported when it is read.
    pub(crate) fn fill_rows(mut self) -> Result<Self, StoreError> {
        for id in self.sql.without_rows(Kind::Run)? {
            let filled = match self.run(RunId(id)) {
                Ok(run) => self.put_run_rows(&run, RunId(id), true),
                Err(error) => self.skip(Kind::Run, id, error),
            };
            removed_is_fine(filled)?;
        }
        for id in self.sql.without_rows(Kind::Trial)? {
            let filled = match self.trial(TrialId(id)) {
                Ok(trial) => self.put_trial_rows(&trial, TrialId(id), true),
                Err(error) => self.skip(Kind::Trial, id, error),
            };
            removed_is_fine(filled)?;
        }
        Ok(self)
    }

    fn skip(&mut self, kind: Kind, id: i64, error: StoreError) -> Result<(), StoreError> {
        let rows = or_unreadable(Err(error))?;
        self.sql.put_rows(kind, id, &rows)
    }
}

/// Converts the error of an unreadable record to empty rows, so that the rest of the store stays usable.
fn or_unreadable(rows: Result<Rows, StoreError>) -> Result<Rows, StoreError> {
    match rows {
        Err(StoreError::Row { .. }) => Ok(Rows {
            tabled: UNREADABLE,
            ..Rows::default()
        }),
        rows => rows,
    }
}

/// Treats the error that the record is missing as success, because another process may have removed the record.
fn removed_is_fine(filled: Result<(), StoreError>) -> Result<(), StoreError> {
    match filled {
        Err(StoreError::Missing { .. }) => Ok(()),
        filled => filled,
    }
}
