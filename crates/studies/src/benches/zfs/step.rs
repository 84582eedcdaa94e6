//! One step of a study: measures the figures of one configuration in one round.

use super::build::LIMIT;
use super::built::Built;
use super::counters::Counters;
use super::freeze::while_frozen;
use super::guest_or_dataset::Ground;
use super::requirements::{Of, Wanted};
use super::serve::Requests;
use super::settings::{Base, Layers};
use super::{Up, full, load, pool};
use crate::{StudyError, to_observation};
use assay_model::Bytes;
use assay_model::study::{Configuration, Figure, Observation};
use std::time::Duration;

/// Parameters of one call of `measure`.
pub(super) struct Step<'a> {
    pub up: &'a Up<'a>,
    pub number: usize,
    pub layers: &'a Layers,
    pub configuration: &'a Configuration,
    pub round: u32,
    pub seed: u64,
}

impl Step<'_> {
    fn observed(&self, figure: &Figure, value: f64) -> Observation {
        to_observation(self.configuration, figure, self.round, value)
    }

    /// Measures all requested figures. Figures that need the same job share one run of that job.
    pub fn take(
        &self,
        built: &Built,
        asked: &[(&Figure, Wanted)],
    ) -> Result<Vec<Observation>, StudyError> {
        let mut taken = Vec::new();
        let mut loads: Vec<(Load<'_>, Vec<(&Figure, Of)>)> = Vec::new();
        for (figure, wanted) in asked {
            let job = wanted.job.as_ref().map(Load::Job);
            if let Some(load) = job.or(wanted.requests.map(Load::Requests)) {
                match loads.iter_mut().find(|(known, _)| *known == load) {
                    Some((_, figures)) => figures.push((figure, wanted.of)),
                    None => loads.push((load, vec![(figure, wanted.of)])),
                }
            } else if let (Some(set), Some(dataset)) = (&wanted.set, &built.dataset) {
                let set = self.up.ground.run(&["zfs", "set", set, dataset], LIMIT)?;
                taken.push(self.observed(figure, f64::from(u8::from(set.success()))));
            } else if wanted.of == Of::Space
                && let Some(value) = charged_space(&self.up.ground, built)?
            {
                taken.push(self.observed(figure, value));
            }
        }
        for (load, figures) in loads {
            taken.extend(self.load(built, load, &figures)?);
        }
        if asked.iter().any(|(_, wanted)| wanted.of.full()) {
            taken.extend(self.full(built, asked)?);
        }
        Ok(taken)
    }

    fn full(
        &self,
        built: &Built,
        asked: &[(&Figure, Wanted)],
    ) -> Result<Vec<Observation>, StudyError> {
        let left = self.up.form.left.unwrap_or(LEFT);
        let Some(guest) = self.up.ground.guest() else {
            return Ok(Vec::new());
        };
        let outcome = while_frozen(guest, || full::fill(guest, built, self.layers, left))?;
        let figures = asked.iter().filter_map(|(figure, wanted)| {
            #[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
            let value = match wanted.of {
                Of::Paused => f64::from(u8::from(outcome.paused)),
                Of::Errors => outcome.errors as f64,
                Of::Lost => outcome.lost as f64,
                Of::Kept => outcome.kept as f64,
                _ => return None,
            };
            Some(self.observed(figure, value))
        });
        Ok(figures.collect())
    }

    /// Runs a load and returns its figures.
    fn load(
        &self,
        built: &Built,
        load: Load<'_>,
        figures: &[(&Figure, Of)],
    ) -> Result<Vec<Observation>, StudyError> {
        let counted = |of: &Of| {
            matches!(
                of,
                Of::Flushes | Of::Commits | Of::HostFlushes | Of::DiskBytes
            )
        };
        let counts = figures.iter().any(|(_, of)| counted(of));
        let disks = self.disks();
        let read = || Counters::read(&self.up.ground, built.bottom.as_deref(), &disks);
        let before = if counts { Some(read()?) } else { None };
        let went = self.run(built, load)?;
        let since = match before {
            Some(before) => Some(read()?.since(before)),
            None => None,
        };
        let mut taken = Vec::new();
        for (figure, of) in figures {
            let value = match since {
                Some(since) if counted(of) => counter_ratio(*of, since, &went),
                _ => went.figure(*of),
            };
            let Some(value) = value else { continue };
            let mut one = self.observed(figure, value);
            // Doubts concern speed and do not apply to counts.
            if !counted(of) && *of != Of::Depth {
                // The study uses the author's command, whatever it measures. So only failures invalidate the
                // result.
                let wrong = |doubt: &String| WRONG.contains(&doubt.as_str());
                one.void = went.doubts.iter().any(wrong);
                one.doubts.clone_from(&went.doubts);
            }
            taken.push(one);
        }
        Ok(taken)
    }

    fn run(&self, built: &Built, load: Load<'_>) -> Result<LoadResult, StudyError> {
        let form = &self.up.form;
        let time = form.time.map_or(Duration::ZERO, Duration::from);
        match load {
            Load::Job(options) => {
                let job = load::Job {
                    options,
                    size: form.size,
                    time: form.time,
                    seed: self.seed,
                };
                let document = built.fio(&self.up.ground, &job, time + LIMIT)?;
                let judged = assay_judge::doubts::judge_result(&document);
                let doubts = judged.into_iter().flat_map(|jobs| jobs.doubts);
                Ok(LoadResult {
                    writes: load::count_writes(&document),
                    written: load::count_written_bytes(&document),
                    doubts: doubts.map(|doubt| doubt.code).collect(),
                    figures: [Of::Iops, Of::Rate, Of::Depth]
                        .map(|of| (of, load::fio_figure(of, &document)))
                        .to_vec(),
                })
            }
            Load::Requests(requests) => {
                let none = || StudyError::measure("the guest", "it was not booted");
                let guests = self.up.guests.as_ref().ok_or_else(none)?;
                let what = (form.size, time.max(SHORTEST), self.seed);
                let name = &self.configuration.name;
                let served = guests.serve(&self.up.ground, name, requests, what)?;
                let done = f64::from(served.done);
                let iops = (served.seconds > 0.0).then(|| done / served.seconds);
                let writes = if requests.write {
                    u64::from(served.done)
                } else {
                    0
                };
                Ok(LoadResult {
                    writes,
                    written: writes * requests.block.0,
                    doubts: Vec::new(),
                    figures: vec![(Of::Iops, iops)],
                })
            }
        }
    }

    /// Returns the names of the virtual disks below the configuration.
    fn disks(&self) -> Vec<String> {
        match self.layers.on {
            Base::Disk => vec![format!("c{}", self.number)],
            _ => pool::pool_disks(&self.up.form.pool)
                .into_iter()
                .map(|disk| disk.name)
                .collect(),
        }
    }
}

/// Codes of doubts (reasons to distrust a figure) which mean that a job did not do what its author intended.
const WRONG: [&str; 3] = ["no-io", "io-error", "short-io"];
/// Default number of bytes that remain free in a filled pool.
const LEFT: Bytes = Bytes(6 << 20);

/// Duration of the nested guest's requests if the form does not set `time`.
const SHORTEST: Duration = Duration::from_secs(1);

/// Load of a step: an fio job or requests of the nested guest.
#[derive(Clone, Copy, PartialEq)]
enum Load<'a> {
    /// A job for fio, as a table of its options.
    Job(&'a toml::Table),
    /// Requests of the nested guest.
    Requests(Requests),
}

/// Measured result of a load, from which figures are computed.
struct LoadResult {
    /// Number of writes, and number of bytes written.
    writes: u64,
    written: u64,
    doubts: Vec<String>,
    figures: Vec<(Of, Option<f64>)>,
}

impl LoadResult {
    fn figure(&self, of: Of) -> Option<f64> {
        let mut figures = self.figures.iter();
        figures.find(|(known, _)| *known == of)?.1
    }
}

/// Returns a counter divided by the number of writes or written bytes, depending on the figure.
fn counter_ratio(of: Of, since: Counters, went: &LoadResult) -> Option<f64> {
    let (count, by) = match of {
        Of::Flushes => (since.flushes, went.writes),
        Of::Commits => (since.commits, went.writes),
        Of::HostFlushes => (since.host_flushes?, went.writes),
        Of::DiskBytes => (since.host_bytes?, went.written),
        _ => return None,
    };
    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
    (by > 0).then(|| count as f64 / by as f64)
}

/// Returns the number of bytes of space that ZFS charges per stored byte.
fn charged_space(ground: &Ground<'_>, built: &Built) -> Result<Option<f64>, StudyError> {
    let Some(dataset) = &built.dataset else {
        return Ok(None);
    };
    let argv = [
        "zfs",
        "get",
        "-Hp",
        "-o",
        "value",
        "used,logicalused",
        dataset,
    ];
    let text = ground.command(&argv)?;
    let mut values = text.lines().map(|line| line.trim().parse::<f64>().ok());
    let (used, logical) = (values.next().flatten(), values.next().flatten());
    Ok(used.zip(logical).map(|(used, logical)| used / logical))
}
