//! Measures ZFS and the layers above or beside it.
//!
//! A guest has a pool of new virtual disks. On the pool are zvols and datasets; other virtual disks are on the host's
//! file system. A configuration names what is created on them: an image that QEMU serves over NBD, a nested guest, LVM,
//! LUKS, a file system. fio runs on the topmost layer. The operations of the lower layers are counted in ZFS, in the
//! block layer, and by QEMU on the host.
//!
//! If the user names a dataset, the layers are created below this dataset on this machine. Only layers that affect
//! nothing else are possible there: zvols, datasets, file systems, guests on zvols.

mod build;
mod built;
mod counters;
mod cpu;
mod freeze;
mod full;
mod guest_or_dataset;
mod guests;
mod load;
mod pool;
mod program;
mod requirements;
mod serve;
mod settings;
mod started_bench;
mod step;

use self::guest_or_dataset::{Ground, Here};
use self::settings::{Base, Layers};
use self::started_bench::Up;
use self::step::Step;
use crate::guest;
use crate::{BenchContext, Outline, StudyBench, StudyError};
use assay_lab::Accel;
use assay_model::study::{Configuration, Figure, Form, NotTried, Observation, Study};
use std::collections::BTreeMap;
use std::time::Duration;

/// Bench that measures ZFS and the layers above it.
pub(super) struct Zfs<'a> {
    place: &'a BenchContext<'a>,
    up: Option<Up<'a>>,
}

impl<'a> Zfs<'a> {
    pub fn new(place: &'a BenchContext<'a>) -> Self {
        Self { place, up: None }
    }

    fn up(&self) -> Result<&Up<'a>, StudyError> {
        let none = || StudyError::measure("the guest", "it was not booted");
        self.up.as_ref().ok_or_else(none)
    }

    /// Boots a guest with a pool and the disks of the configurations.
    fn guest(
        &self,
        study: &Study,
        form: &Form,
        settings: &settings::Form,
        layers: &BTreeMap<String, (usize, Layers)>,
    ) -> Result<Ground<'a>, StudyError> {
        let mut disks = pool::pool_disks(&settings.pool);
        for one in study.tried(form) {
            let Some((number, found)) = layers.get(&one.name) else {
                continue;
            };
            if found.on == Base::Disk {
                let mut disk = settings::to_lab_disk(found, &format!("c{number}"), settings.disk)?;
                disk.dir = Some(self.place.dir.clone());
                disks.push(disk);
            }
        }
        let memory = u32::try_from(settings.memory.0 >> 20).unwrap_or(u32::MAX);
        let guest = self.place.boot("zfs", memory, 2, disks)?;
        (self.place.say)("making the pool");
        pool::make(&guest, &settings.pool)?;
        Ok(Ground::Guest(Box::new(guest)))
    }
}

impl StudyBench for Zfs<'_> {
    fn outline(&self, study: &Study, form: &Form) -> Result<Outline, StudyError> {
        requirements::check(study)?;
        let settings: settings::Form = crate::settings::of_form(form)?;
        let tried = study.tried(form);
        let pool = &settings.pool;
        let mut leaves_out = Vec::new();
        let (mut stay, mut guests, mut processors) = (0u32, 0u32, 0u32);
        for one in &tried {
            let layers = settings::parse_layers(one)?;
            let here = self.place.on.is_some();
            match here && layers.not_here().is_some() {
                true => {
                    leaves_out.push(one.name.clone());
                    continue;
                }
                false if layers.on == Base::Cpu => processors += 1,
                false => stay += u32::from(!layers.fresh),
            }
            guests += u32::from(layers.guest.is_some());
        }
        let mut makes = match &self.place.on {
            None => vec![format!(
                "a guest with {} of memory and a pool of {} new disks of {}",
                settings.memory, pool.disks, pool.size
            )],
            Some(parent) => vec![format!(
                "{stay} zvols and file systems below {parent}, {} each, and nothing else on its pool; \
                 they are destroyed at the end",
                settings.disk
            )],
        };
        if self.place.on.is_none() {
            makes.push(format!(
                "on them {} configurations with disks of {}, and virtual disks on this file system \
                 where a configuration names them",
                tried.len(),
                settings.disk
            ));
        }
        if guests > 0 {
            makes.push(format!(
                "a QEMU with a guest of its own and {guests} disks, each a zvol or file of these"
            ));
        }
        let work = settings.time.map_or(Duration::from_secs(4), Duration::from);
        let here = self.place.on.is_some();
        let boots = if here {
            0
        } else {
            50 + 30 * u64::from(processors / 2)
        };
        let each = if here { 1 } else { 3 };
        Ok(Outline {
            makes,
            leaves_out,
            guest: !here,
            setup: Duration::from_secs(
                boots + each * u64::from(stay) + 10 * u64::from(guests.min(1)),
            ),
            step: work + Duration::from_secs(if here { 1 } else { 2 }),
        })
    }

    fn begin(&mut self, study: &Study, form: &Form) -> Result<Vec<NotTried>, StudyError> {
        let settings: settings::Form = crate::settings::of_form(form)?;
        let mut layers = BTreeMap::new();
        for (number, one) in study.tried(form).into_iter().enumerate() {
            layers.insert(one.name.clone(), (number, settings::parse_layers(one)?));
        }
        let (ground, mut processors) = match &self.place.on {
            Some(parent) => (
                Ground::Here(Here::new(self.place, parent)?),
                BTreeMap::new(),
            ),
            None => {
                let processors = cpu::measure(self.place, study, form, &layers)?;
                (self.guest(study, form, &settings, &layers)?, processors)
            }
        };
        let machine = match ground.guest() {
            Some(guest) => pool::describe_machine(guest, &settings)?,
            None => pool::machine_here(&ground),
        };
        for one in study.tried(form) {
            let of = layers.get(&one.name).map(|(_, layers)| layers);
            let plain = of.is_some_and(|of| of.on == Base::Cpu && of.cpu.is_none());
            if let (true, Some(guest)) = (plain, ground.guest()) {
                processors.insert(one.name.clone(), cpu::run_rounds(guest, study, form, one)?);
            }
        }
        let mut up = Up {
            ground,
            form: settings,
            layers,
            built: BTreeMap::new(),
            guests: None,
            processors,
            machine,
        };
        let mut not_tried = Vec::new();
        for one in study.tried(form) {
            self.place.go_on()?;
            (self.place.say)(&format!("making {}", one.title()));
            not_tried.extend(up.prepare(one, self.place.seed)?);
        }
        not_tried.extend(up.boot(self.place, study, form)?);
        not_tried.extend(up.uncounted(study, form)?);
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
            .map(|figure| Ok((*figure, requirements::parse_requirements(figure)?)))
            .collect::<Result<Vec<_>, StudyError>>()?;
        if let Some(all) = up.processors.get(&configuration.name) {
            return Ok(cpu::round_figures(configuration, &asked, round, all));
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
        self.up.as_ref().is_some_and(|up| match up.ground.guest() {
            Some(guest) => guest::is_emulated(guest),
            None => up
                .guests
                .as_ref()
                .is_some_and(|guests| guests.accel == Accel::Tcg),
        })
    }
}
