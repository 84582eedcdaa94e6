//! Exports the whole store as Parquet, partitioned by advice: measurements, and results of trials.

use super::csv::{outcome, validity};
use crate::context::unwritten;
use anyhow::Context as _;
use assay_columns::{CellValue, Column, ColumnKind, TableWriter};
use assay_host::OutputFolder;
use assay_judge::trial::{judge_slots, judge_trial};
use assay_model::result::JudgedSample;
use assay_model::trial::{Slot, Trial};
use assay_model::{Machine, Sample};
use assay_store::Store;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

/// Partition of runs, which belong to no advice: the null value of Hive.
const NONE: &str = "__HIVE_DEFAULT_PARTITION__";

/// Columns of the samples: one row for each figure of each sample. A sample without figures has one row.
const SAMPLES: [Column; 15] = [
    Column::new("record", ColumnKind::Text),
    Column::new("kind", ColumnKind::Text),
    Column::optional("machine", ColumnKind::Text),
    Column::optional("pair", ColumnKind::Count),
    Column::optional("side", ColumnKind::Text),
    Column::new("round", ColumnKind::Count),
    Column::new("slot", ColumnKind::Count),
    Column::new("workload", ColumnKind::Text),
    Column::new("target", ColumnKind::Text),
    Column::new("started", ColumnKind::Time),
    Column::new("wall_ns", ColumnKind::Int),
    Column::new("outcome", ColumnKind::Text),
    Column::new("validity", ColumnKind::Text),
    Column::optional("metric", ColumnKind::Text),
    Column::optional("value", ColumnKind::Float),
];

/// Columns of the verdicts: one row for each started trial.
const VERDICTS: [Column; 16] = [
    Column::new("record", ColumnKind::Text),
    Column::optional("machine", ColumnKind::Text),
    Column::new("assay_version", ColumnKind::Text),
    Column::new("started", ColumnKind::Time),
    Column::optional("ended", ColumnKind::Time),
    Column::new("state", ColumnKind::Text),
    Column::new("verdict", ColumnKind::Text),
    Column::new("metric", ColumnKind::Text),
    Column::new("margin", ColumnKind::Float),
    Column::new("same_sides", ColumnKind::Count),
    Column::new("pairs", ColumnKind::Count),
    Column::new("left_out", ColumnKind::Count),
    Column::optional("ratio", ColumnKind::Float),
    Column::optional("low", ColumnKind::Float),
    Column::optional("high", ColumnKind::Float),
    Column::new("reason", ColumnKind::Text),
];

/// Number of written rows and files.
pub struct Written {
    pub runs: usize,
    pub trials: usize,
}

/// Writes the store to a new folder, completely or not at all.
pub fn write(store: &Store, dir: &Path) -> anyhow::Result<Written> {
    let folder = OutputFolder::create(dir).map_err(unwritten)?;
    let mut out = Out {
        dir: &folder.path(),
        open: None,
    };
    let mut trials = store.trials()?;
    trials.sort_by(|a, b| (&a.plan.advice, a.started).cmp(&(&b.plan.advice, b.started)));
    for trial in &trials {
        let slots = store.slots(trial.id)?;
        let machine = store.machine_of_trial(trial.id)?;
        out.verdict(trial, &slots, machine.as_ref())?;
    }
    for trial in &trials {
        let slots = store.slots(trial.id)?;
        let machine = store.machine_of_trial(trial.id)?;
        let judged = judge_slots(trial, &slots);
        for (slot, judged) in slots.iter().zip(&judged) {
            let side = word(slot.side);
            let about = About {
                advice: &trial.plan.advice,
                record: &trial.uid,
                kind: "trial",
                machine: machine.as_ref(),
                pair: Some((slot.pair, &side)),
            };
            out.sample(&about, &slot.sample, judged)?;
        }
    }
    let runs = store.runs()?;
    for row in &runs {
        let (run, samples) = (store.run(row.id)?, store.samples(row.id)?);
        let judged = assay_judge::judge_run(&run, &samples);
        let about = About {
            advice: NONE,
            record: &run.uid,
            kind: "run",
            machine: row.machine.as_ref(),
            pair: None,
        };
        for (sample, judged) in samples.iter().zip(&judged.samples) {
            out.sample(&about, sample, judged)?;
        }
    }
    out.close()?;
    super::views::write(store, &folder.path())?;
    folder.publish().map_err(unwritten)?;
    Ok(Written {
        runs: runs.len(),
        trials: trials.len(),
    })
}

/// The run or trial to which a sample belongs.
struct About<'a> {
    advice: &'a str,
    record: &'a str,
    kind: &'a str,
    machine: Option<&'a Machine>,
    pair: Option<(u32, &'a str)>,
}

/// Writes the tables one after the other. Contains the table that is currently open.
struct Out<'a> {
    dir: &'a Path,
    open: Option<(String, TableWriter<BufWriter<File>>)>,
}

impl Out<'_> {
    fn row(
        &mut self,
        table: &str,
        advice: &str,
        columns: &[Column],
        row: &[CellValue<'_>],
    ) -> anyhow::Result<()> {
        let folder = format!("{table}/advice={}", part(advice));
        if self.open.as_ref().is_none_or(|open| open.0 != folder) {
            self.close()?;
            let dir = self.dir.join(&folder);
            std::fs::create_dir_all(&dir).context("cannot make a folder of the export")?;
            let file = File::create_new(dir.join(format!("{table}.parquet")));
            let file = BufWriter::new(file.context("cannot make a file of the export")?);
            let notes = [("assay", table.to_owned()), ("version", "1".to_owned())];
            self.open = Some((folder, TableWriter::new(file, columns, &notes)?));
        }
        if let Some((_, writer)) = &mut self.open {
            writer.row(row).context("cannot write the export")?;
        }
        Ok(())
    }

    fn close(&mut self) -> anyhow::Result<()> {
        if let Some((_, writer)) = self.open.take() {
            let file = writer.finish()?.into_inner();
            let file = file.map_err(std::io::IntoInnerError::into_error);
            let synced = file.and_then(|file| file.sync_all());
            synced.context("cannot write the export")?;
        }
        Ok(())
    }

    fn verdict(
        &mut self,
        trial: &Trial,
        slots: &[Slot],
        machine: Option<&Machine>,
    ) -> anyhow::Result<()> {
        let (_, judgement) = judge_trial(trial, slots);
        let interval = judgement.interval.as_ref();
        let (metric, state) = (trial.plan.metric.to_string(), word(trial.state));
        let verdict = word(judgement.verdict);
        let row = [
            CellValue::Text(&trial.uid),
            text(machine.map(|one| one.id.as_str())),
            CellValue::Text(&trial.assay_version),
            CellValue::Int(trial.started.as_microsecond()),
            trial.ended.map_or(CellValue::None, |ended| {
                CellValue::Int(ended.as_microsecond())
            }),
            CellValue::Text(&state),
            CellValue::Text(&verdict),
            CellValue::Text(&metric),
            CellValue::Float(trial.plan.margin),
            CellValue::Int(trial.plan.aa.into()),
            CellValue::Int(judgement.pairs.into()),
            CellValue::Int(judgement.left_out.into()),
            judgement.ratio.map_or(CellValue::None, CellValue::Float),
            interval.map_or(CellValue::None, |one| CellValue::Float(one.low)),
            interval.map_or(CellValue::None, |one| CellValue::Float(one.high)),
            CellValue::Text(&judgement.reason),
        ];
        self.row("verdicts", &trial.plan.advice, &VERDICTS, &row)
    }

    fn sample(
        &mut self,
        about: &About<'_>,
        sample: &Sample,
        judged: &JudgedSample,
    ) -> anyhow::Result<()> {
        let figures: BTreeMap<String, f64> = judged
            .figures
            .iter()
            .map(|(metric, value)| (metric.to_string(), *value))
            .collect();
        let figures = figures.iter().map(|(metric, value)| Some((metric, *value)));
        let mut figures = figures.peekable();
        let none = figures.peek().is_none().then_some(None);
        for figure in figures.chain(none) {
            let row = [
                CellValue::Text(about.record),
                CellValue::Text(about.kind),
                text(about.machine.map(|one| one.id.as_str())),
                about
                    .pair
                    .map_or(CellValue::None, |one| CellValue::Int(one.0.into())),
                text(about.pair.map(|one| one.1)),
                CellValue::Int(sample.round.into()),
                CellValue::Int(sample.slot.into()),
                CellValue::Text(&sample.workload),
                CellValue::Text(&sample.target),
                CellValue::Int(sample.started.as_microsecond()),
                CellValue::Int(i64::try_from(sample.wall.0).unwrap_or(i64::MAX)),
                CellValue::Text(outcome(&sample.outcome)),
                CellValue::Text(validity(judged.validity)),
                figure.map_or(CellValue::None, |one| CellValue::Text(one.0)),
                figure.map_or(CellValue::None, |one| CellValue::Float(one.1)),
            ];
            self.row("samples", about.advice, &SAMPLES, &row)?;
        }
        Ok(())
    }
}

fn text(value: Option<&str>) -> CellValue<'_> {
    value.map_or(CellValue::None, CellValue::Text)
}

/// Returns the serialised name of a state or a side.
fn word(value: impl Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

/// Escapes an advice id as the value of a Hive partition.
fn part(advice: &str) -> String {
    let mut out = String::with_capacity(advice.len());
    for byte in advice.bytes().take(200) {
        match byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') {
            true => out.push(char::from(byte)),
            false => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}
