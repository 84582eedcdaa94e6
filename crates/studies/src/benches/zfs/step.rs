//! One step of a study: figures of one configuration in one round.

use super::build::{Built, LIMIT};
use super::counters::Counters;
use super::settings::{Base, Layers};
use super::wanted::{Of, Wanted};
use super::{Up, full, load, pool};
use crate::guest::{self, command};
use crate::{StudyError, observed};
use assay_fio::json::Document;
use assay_host::Limits;
use assay_lab::Guest;
use assay_model::Bytes;
use assay_model::study::{Configuration, Figure, Observation};
use std::ffi::OsStr;
use std::time::Duration;

/// One call of `measure`.
pub(super) struct Step<'a> {
    pub up: &'a Up,
    pub number: usize,
    pub layers: &'a Layers,
    pub configuration: &'a Configuration,
    pub round: u32,
    pub seed: u64,
}

impl Step<'_> {
    fn observed(&self, figure: &Figure, value: f64) -> Observation {
        observed(self.configuration, figure, self.round, value)
    }

    /// Takes every figure; those of the same job from one run of it.
    pub fn take(
        &self,
        built: &Built,
        asked: &[(&Figure, Wanted)],
    ) -> Result<Vec<Observation>, StudyError> {
        let mut taken = Vec::new();
        let mut jobs: Vec<(&toml::Table, Vec<(&Figure, Of)>)> = Vec::new();
        for (figure, wanted) in asked {
            if let Some(job) = &wanted.job {
                match jobs.iter_mut().find(|(known, _)| *known == job) {
                    Some((_, figures)) => figures.push((figure, wanted.of)),
                    None => jobs.push((job, vec![(figure, wanted.of)])),
                }
            } else if let (Some(set), Some(dataset)) = (&wanted.set, &built.dataset) {
                let words = ["zfs", "set", set, dataset].map(OsStr::new);
                let limits = Limits { timeout: LIMIT };
                let accepted = self.up.guest.run(&words, limits)?.success();
                taken.push(self.observed(figure, f64::from(u8::from(accepted))));
            } else if wanted.of == Of::Space
                && let Some(value) = space(&self.up.guest, built)?
            {
                taken.push(self.observed(figure, value));
            }
        }
        for (job, figures) in jobs {
            taken.extend(self.job(built, job, &figures)?);
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
        let outcome = full::fill(&self.up.guest, built, self.layers, left)?;
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

    /// Runs a job and takes its figures.
    fn job(
        &self,
        built: &Built,
        options: &toml::Table,
        figures: &[(&Figure, Of)],
    ) -> Result<Vec<Observation>, StudyError> {
        let (guest, form) = (&self.up.guest, &self.up.form);
        let counted = |of: &Of| {
            matches!(
                of,
                Of::Flushes | Of::Commits | Of::HostFlushes | Of::DiskBytes
            )
        };
        let counts = figures.iter().any(|(_, of)| counted(of));
        let disks = self.disks();
        let read = || Counters::read(guest, built.bottom.as_deref(), &disks);
        let before = if counts { Some(read()?) } else { None };
        let place = load::Place {
            directory: built.directory.as_deref(),
            device: built.device.as_deref(),
            size: form.size,
            time: form.time,
            seed: self.seed,
        };
        let limit = form.time.map_or(Duration::ZERO, Duration::from) + LIMIT;
        let document = guest::fio(guest, &load::render(options, place), limit)?;
        let since = match before {
            Some(before) => Some(read()?.since(before)),
            None => None,
        };
        let doubts = doubts(&document);
        let mut taken = Vec::new();
        for (figure, of) in figures {
            let value = match (since, of) {
                (Some(since), of) if counted(of) => ratio(*of, since, &document),
                _ => load::figure(*of, &document),
            };
            let Some(value) = value else { continue };
            let mut one = self.observed(figure, value);
            // Doubts are about speed: a count is what it is.
            if !counted(of) && *of != Of::Depth {
                // What the author's command measured is the question, whatever it was; only what
                // went wrong is no answer.
                one.void = doubts
                    .iter()
                    .any(|doubt| WRONG.contains(&doubt.code.as_str()));
                one.doubts = doubts.iter().map(|doubt| doubt.code.clone()).collect();
            }
            taken.push(one);
        }
        Ok(taken)
    }

    /// The virtual disks that carry the configuration.
    fn disks(&self) -> Vec<String> {
        match self.layers.on {
            Base::Disk => vec![format!("c{}", self.number)],
            _ => pool::disks(&self.up.form.pool)
                .into_iter()
                .map(|disk| disk.name)
                .collect(),
        }
    }
}

/// Doubts with which a job has not even done what its author did.
const WRONG: [&str; 3] = ["no-io", "io-error", "short-io"];
/// Space that is left when a study does not say.
const LEFT: Bytes = Bytes(6 << 20);

/// A count for each write; of bytes, for each byte written.
fn ratio(of: Of, since: Counters, document: &Document) -> Option<f64> {
    let (count, by) = match of {
        Of::Flushes => (since.flushes, load::writes(document)),
        Of::Commits => (since.commits, load::writes(document)),
        Of::HostFlushes => (since.host_flushes, load::writes(document)),
        Of::DiskBytes => (since.host_bytes, load::written(document)),
        _ => return None,
    };
    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
    (by > 0).then(|| count as f64 / by as f64)
}

/// Space that ZFS charges for each byte that is stored.
fn space(guest: &Guest, built: &Built) -> Result<Option<f64>, StudyError> {
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
    let text = command(guest, &argv, LIMIT)?;
    let mut values = text.lines().map(|line| line.trim().parse::<f64>().ok());
    let (used, logical) = (values.next().flatten(), values.next().flatten());
    Ok(used.zip(logical).map(|(used, logical)| used / logical))
}

fn doubts(document: &Document) -> Vec<assay_model::Doubt> {
    let judged = assay_judge::doubts::judge_result(document);
    judged.into_iter().flat_map(|jobs| jobs.doubts).collect()
}
