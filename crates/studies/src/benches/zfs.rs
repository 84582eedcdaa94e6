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
mod pool;
mod program;
mod settings;
mod step;
mod wanted;

use self::build::{Builder, Built, LIMIT};
use self::settings::{Base, Layers};
use self::step::Step;
use crate::guest;
use crate::{Bench, Outline, Place, StudyError};
use assay_lab::Guest;
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
        wanted::check(study)?;
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
        let mut disks = pool::disks(&settings.pool);
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
        pool::make(&guest, &settings.pool)?;
        let machine = pool::machine(&guest, &settings)?;
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
            .map(|figure| Ok((*figure, wanted::wanted(figure)?)))
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

impl Up {
    /// Fills what is worked on, so that no read meets a hole and no write a new block.
    fn lay_out(&self, built: &Built, seed: u64) -> Result<(), StudyError> {
        let mut options = toml::Table::new();
        let block = self.form.size.0.min(1 << 20).to_string();
        for (key, value) in [("rw", "write"), ("bs", block.as_str())] {
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
