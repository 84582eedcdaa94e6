//! ZFS in a guest, and what can stand on it or beside it.
//!
//! One guest has a pool of new virtual disks, zvols and datasets on it, virtual disks of every kind
//! on the host's own file system, and on each of them what a configuration names: an image that
//! QEMU serves over NBD, LVM, LUKS, a file system. fio works on the top; what is counted below it is
//! counted in ZFS, in the block layer, and by QEMU on the host.

mod build;
mod counters;
mod cpu;
mod full;
mod load;
mod program;
mod settings;

use super::zfs::build::{Builder, Built, FENCE, FILLER, LIMIT, POOL};
use super::zfs::counters::Counters;
use super::zfs::settings::{Base, Layers, Of, Wanted};
use crate::guest::{self, command};
use crate::{Bench, Outline, Place, StudyError, observed};
use assay_fio::json::Document;
use assay_lab::{Disk, Guest};
use assay_model::study::{Configuration, Figure, Form, NotTried, Observation, Study};
use std::collections::BTreeMap;
use std::time::Duration;

/// The bench.
pub(super) struct Zfs<'a> {
    place: &'a Place<'a>,
    up: Option<Up>,
}

/// What is there once it has begun.
struct Up {
    guest: Guest,
    form: settings::Form,
    /// Number and layers of each configuration.
    layers: BTreeMap<String, (usize, Layers)>,
    /// Those that stay from round to round.
    built: BTreeMap<String, Built>,
    /// What the processors of the others did: cipher and bytes per second, for each round.
    processors: BTreeMap<String, Vec<BTreeMap<String, f64>>>,
    machine: Vec<(String, String)>,
}

impl<'a> Zfs<'a> {
    pub fn new(place: &'a Place<'a>) -> Self {
        Self { place, up: None }
    }

    fn up(&self) -> Result<&Up, StudyError> {
        let none = || StudyError::measure("the guest", "it was not booted");
        self.up.as_ref().ok_or_else(none)
    }
}

impl Bench for Zfs<'_> {
    fn outline(&self, study: &Study, form: &Form) -> Result<Outline, StudyError> {
        settings::check(study)?;
        let settings: settings::Form = crate::settings::of_form(form)?;
        let tried = study.tried(form);
        let pool = &settings.pool;
        let mut makes = vec![format!(
            "a guest with {} of memory and a pool of {} new disks of {}",
            settings.memory, pool.disks, pool.size
        )];
        makes.push(format!(
            "on them {} configurations with disks of {}, and virtual disks on this file system \
             where a configuration names them",
            tried.len(),
            settings.disk
        ));
        let work = settings.time.map_or(Duration::from_secs(5), Duration::from);
        Ok(Outline {
            makes,
            setup: Duration::from_secs(60 + 4 * tried.len() as u64),
            step: work + Duration::from_secs(4),
        })
    }

    fn begin(&mut self, study: &Study, form: &Form) -> Result<Vec<NotTried>, StudyError> {
        let settings: settings::Form = crate::settings::of_form(form)?;
        let mut layers = BTreeMap::new();
        let mut disks = pool_disks(&settings.pool);
        for (number, one) in study.tried(form).into_iter().enumerate() {
            let found = settings::layers(one)?;
            if found.on == Base::Disk {
                let mut disk = settings::disk(&found, &format!("c{number}"), settings.disk)?;
                disk.dir = Some(self.place.host.realpath(&self.place.dir)?);
                disks.push(disk);
            }
            layers.insert(one.name.clone(), (number, found));
        }
        let processors = cpu::measure(self.place, study, form, &layers)?;
        let memory = u32::try_from(settings.memory.0 >> 20).unwrap_or(u32::MAX);
        let guest = self.place.boot("zfs", memory, 2, disks)?;
        (self.place.say)("making the pool");
        make_pool(&guest, &settings.pool)?;
        let machine = machine(&guest, &settings)?;
        let mut up = Up {
            guest,
            form: settings,
            layers,
            built: BTreeMap::new(),
            processors,
            machine,
        };
        let mut not_tried = Vec::new();
        for one in study.tried(form) {
            self.place.go_on()?;
            (self.place.say)(&format!("making {}", one.title()));
            not_tried.extend(up.prepare(one, self.place.seed)?);
        }
        self.up = Some(up);
        Ok(not_tried)
    }

    fn measure(
        &mut self,
        configuration: &Configuration,
        figures: &[&Figure],
        round: u32,
    ) -> Result<Vec<Observation>, StudyError> {
        let seed = self.place.seed;
        let up = self.up()?;
        let Some((number, layers)) = up.layers.get(&configuration.name) else {
            return Ok(Vec::new());
        };
        let asked = figures
            .iter()
            .map(|figure| Ok((*figure, settings::wanted(figure)?)))
            .collect::<Result<Vec<_>, StudyError>>()?;
        if let Some(all) = up.processors.get(&configuration.name) {
            return Ok(cpu::observed(configuration, &asked, round, all));
        }
        let step = Step {
            up,
            number: *number,
            layers,
            configuration,
            round,
            seed: seed ^ (u64::from(round) << 32),
        };
        match up.built.get(&configuration.name) {
            Some(built) => step.take(built, &asked),
            None => {
                let builder = up.builder();
                let built = builder.build(*number, layers)?;
                let taken = step.take(&built, &asked);
                builder.take_away(built);
                taken
            }
        }
    }

    fn machine(&self) -> Vec<(String, String)> {
        self.up
            .as_ref()
            .map_or_else(Vec::new, |up| up.machine.clone())
    }

    fn emulated(&self) -> bool {
        self.up
            .as_ref()
            .is_some_and(|up| guest::emulated(&up.guest))
    }
}

impl Up {
    fn builder(&self) -> Builder<'_> {
        Builder {
            guest: &self.guest,
            size: self.form.disk,
            limit: LIMIT,
        }
    }

    /// Makes a configuration that stays, and fills what is read.
    fn prepare(&mut self, one: &Configuration, seed: u64) -> Result<Option<NotTried>, StudyError> {
        let Some((number, layers)) = self.layers.get(&one.name) else {
            return Ok(None);
        };
        if layers.fresh || layers.on == Base::Cpu {
            return Ok(None);
        }
        match self.builder().build(*number, layers) {
            Ok(built) => {
                self.lay_out(&built, seed)?;
                self.built.insert(one.name.clone(), built);
                Ok(None)
            }
            // One that cannot be made is no reason not to try the others.
            Err(error @ (StudyError::Measure { .. } | StudyError::Setting { .. })) => {
                Ok(Some(NotTried {
                    configuration: one.name.clone(),
                    figure: None,
                    why: error.to_string(),
                }))
            }
            Err(error) => Err(error),
        }
    }
}

/// One call of `measure`.
struct Step<'a> {
    up: &'a Up,
    number: usize,
    layers: &'a Layers,
    configuration: &'a Configuration,
    round: u32,
    seed: u64,
}

impl Step<'_> {
    fn observed(&self, figure: &Figure, value: f64) -> Observation {
        observed(self.configuration, figure, self.round, value)
    }

    /// Takes every figure; those of the same job from one run of it.
    fn take(
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
                let words = ["zfs", "set", set, dataset].map(std::ffi::OsStr::new);
                let limits = assay_host::Limits { timeout: LIMIT };
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
            _ => pool_disks(&self.up.form.pool)
                .into_iter()
                .map(|disk| disk.name)
                .collect(),
        }
    }
}

/// Doubts with which a job has not even done what its author did.
const WRONG: [&str; 3] = ["no-io", "io-error", "short-io"];
/// Space that is left when a study does not say.
const LEFT: assay_model::Bytes = assay_model::Bytes(6 << 20);

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

/// The pool's disks. They lie in the guest's own directory on the host.
fn pool_disks(pool: &settings::Pool) -> Vec<Disk> {
    let data = (1..=pool.disks).map(|number| Disk::scratch(&format!("pool{number}"), pool.size.0));
    let log = pool.log.map(|size| Disk::scratch("log", size.0));
    let cache = pool.cache.map(|size| Disk::scratch("cache", size.0));
    data.chain(log).chain(cache).collect()
}

fn make_pool(guest: &Guest, pool: &settings::Pool) -> Result<(), StudyError> {
    let names: Vec<String> = pool_disks(pool).into_iter().map(|disk| disk.name).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let devices = guest.devices(&names)?;
    let mut argv = vec!["zpool".to_owned(), "create".to_owned(), "-f".to_owned()];
    argv.extend(["-o".to_owned(), format!("ashift={}", pool.ashift)]);
    for (key, value) in &pool.properties {
        argv.extend(["-O".to_owned(), format!("{key}={value}")]);
    }
    argv.push(POOL.to_owned());
    if !pool.layout.is_empty() {
        argv.push(pool.layout.clone());
    }
    for (name, device) in names.iter().zip(&devices) {
        if matches!(*name, "log" | "cache") {
            argv.push((*name).to_owned());
        }
        argv.push(device.display().to_string());
    }
    let words: Vec<&str> = argv.iter().map(String::as_str).collect();
    command(guest, &words, LIMIT)?;
    command(
        guest,
        &["zfs", "create", "-o", "mountpoint=none", FILLER],
        LIMIT,
    )?;
    command(guest, &["zfs", "create", FENCE], LIMIT)?;
    command(guest, &["modprobe", "nbd"], LIMIT)?;
    Ok(())
}

fn machine(guest: &Guest, form: &settings::Form) -> Result<Vec<(String, String)>, StudyError> {
    let mut lines = guest::machine(guest);
    let zfs = command(guest, &["cat", "/sys/module/zfs/version"], LIMIT)?;
    lines.push(("OpenZFS".to_owned(), zfs.trim().to_owned()));
    let qemu = command(guest, &["qemu-nbd", "--version"], LIMIT)?;
    let version = qemu.lines().next().unwrap_or_default();
    lines.push(("QEMU in the guest".to_owned(), version.trim().to_owned()));
    let pool = &form.pool;
    let device = |name: &str, size: Option<assay_model::Bytes>| {
        size.map_or_else(String::new, |size| format!(", {name} {size}"))
    };
    lines.push((
        "pool".to_owned(),
        format!(
            "{} of {} virtual disks of {}{}{}, ashift {}",
            if pool.layout.is_empty() {
                "stripe"
            } else {
                &pool.layout
            },
            pool.disks,
            pool.size,
            device("log", pool.log),
            device("cache", pool.cache),
            pool.ashift
        ),
    ));
    Ok(lines)
}

impl Up {
    /// Fills what is worked on, so that no read meets a hole and no write a new block.
    fn lay_out(&self, built: &Built, seed: u64) -> Result<(), StudyError> {
        let mut options = toml::Table::new();
        for (key, value) in [("rw", "write"), ("bs", "1m")] {
            options.insert(key.to_owned(), value.into());
        }
        options.insert("end_fsync".to_owned(), 1.into());
        let place = load::Place {
            directory: built.directory.as_deref(),
            device: built.device.as_deref(),
            size: self.form.size,
            time: None,
            seed,
        };
        guest::fio(&self.guest, &load::render(&options, place), LIMIT)?;
        Ok(())
    }
}
