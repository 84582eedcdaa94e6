//! ZFS, and what can stand on it or beside it.
//!
//! A guest has a pool of new virtual disks, zvols and datasets on it, virtual disks of every kind on
//! the host's own file system, and on each of them what a configuration names: an image that QEMU
//! serves over NBD, a guest of its own, LVM, LUKS, a file system. fio works on the top; what is
//! counted below it is counted in ZFS, in the block layer, and by QEMU on the host.
//!
//! Below a dataset that the user named the same is made on this machine, as far as nothing else is
//! touched by it: zvols, datasets, file systems, guests on zvols.

mod build;
mod counters;
mod cpu;
mod full;
mod ground;
mod guests;
mod load;
mod pool;
mod program;
mod serve;
mod settings;
mod step;
mod wanted;

use self::build::{Builder, Built, LIMIT};
use self::ground::{Ground, Here};
use self::guests::Guests;
use self::settings::{Base, Layers};
use self::step::Step;
use self::wanted::Of;
use crate::guest;
use crate::{Bench, Outline, Place, StudyError};
use assay_lab::Accel;
use assay_model::study::{Configuration, Figure, Form, NotTried, Observation, Study};
use std::collections::BTreeMap;
use std::time::Duration;

/// The bench.
pub(super) struct Zfs<'a> {
    place: &'a Place<'a>,
    up: Option<Up<'a>>,
}

/// What is there once it has begun.
struct Up<'a> {
    ground: Ground<'a>,
    form: settings::Form,
    /// Number and layers of each configuration.
    layers: BTreeMap<String, (usize, Layers)>,
    /// Those that stay from round to round.
    built: BTreeMap<String, Built>,
    /// The guest of those that are disks of one.
    guests: Option<Guests>,
    /// What the processors of the others did.
    processors: BTreeMap<String, cpu::Found>,
    machine: Vec<(String, String)>,
}

impl<'a> Zfs<'a> {
    pub fn new(place: &'a Place<'a>) -> Self {
        Self { place, up: None }
    }

    fn up(&self) -> Result<&Up<'a>, StudyError> {
        let none = || StudyError::measure("the guest", "it was not booted");
        self.up.as_ref().ok_or_else(none)
    }

    /// A guest with a pool and what the configurations want of disks.
    fn guest(
        &self,
        study: &Study,
        form: &Form,
        settings: &settings::Form,
        layers: &BTreeMap<String, (usize, Layers)>,
    ) -> Result<Ground<'a>, StudyError> {
        let mut disks = pool::disks(&settings.pool);
        for one in study.tried(form) {
            let Some((number, found)) = layers.get(&one.name) else {
                continue;
            };
            if found.on == Base::Disk {
                let mut disk = settings::disk(found, &format!("c{number}"), settings.disk)?;
                disk.dir = Some(self.place.host.realpath(&self.place.dir)?);
                disks.push(disk);
            }
        }
        let memory = u32::try_from(settings.memory.0 >> 20).unwrap_or(u32::MAX);
        let guest = self.place.boot("zfs", memory, 2, disks)?;
        (self.place.say)("making the pool");
        pool::make(&guest, &settings.pool)?;
        Ok(Ground::Guest(guest))
    }
}

impl Bench for Zfs<'_> {
    fn outline(&self, study: &Study, form: &Form) -> Result<Outline, StudyError> {
        wanted::check(study)?;
        let settings: settings::Form = crate::settings::of_form(form)?;
        let tried = study.tried(form);
        let pool = &settings.pool;
        let mut leaves_out = Vec::new();
        let (mut stay, mut guests, mut processors) = (0u32, 0u32, 0u32);
        for one in &tried {
            let layers = settings::layers(one)?;
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
            layers.insert(one.name.clone(), (number, settings::layers(one)?));
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
            Some(guest) => pool::machine(guest, &settings)?,
            None => pool::machine_here(&ground),
        };
        for one in study.tried(form) {
            let of = layers.get(&one.name).map(|(_, layers)| layers);
            let plain = of.is_some_and(|of| of.on == Base::Cpu && of.cpu.is_none());
            if let (true, Some(guest)) = (plain, ground.guest()) {
                processors.insert(one.name.clone(), cpu::rounds(guest, study, form, one)?);
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
        self.up.as_ref().is_some_and(|up| match up.ground.guest() {
            Some(guest) => guest::emulated(guest),
            None => up
                .guests
                .as_ref()
                .is_some_and(|guests| guests.accel == Accel::Tcg),
        })
    }
}

impl Up<'_> {
    fn builder(&self) -> Builder<'_> {
        Builder {
            ground: &self.ground,
            size: self.form.disk,
        }
    }

    /// Boots the guest of the configurations that are disks of one.
    fn boot(
        &mut self,
        place: &Place<'_>,
        study: &Study,
        form: &Form,
    ) -> Result<Vec<NotTried>, StudyError> {
        let mut disks = Vec::new();
        for one in study.tried(form) {
            let layers = self.layers.get(&one.name).map(|(_, layers)| layers);
            if let (Some(layers), Some(built)) = (layers, self.built.get(&one.name))
                && layers.guest.is_some()
            {
                disks.push(guests::Wanted {
                    name: &one.name,
                    layers,
                    built,
                });
            }
        }
        if disks.is_empty() {
            return Ok(Vec::new());
        }
        (place.say)("booting a guest on them");
        match Guests::boot(
            &self.ground,
            &disks,
            place.accel.filter(|_| place.on.is_some()),
        ) {
            Ok(guests) => {
                self.guests = Some(guests);
                Ok(Vec::new())
            }
            Err(error @ (StudyError::Measure { .. } | StudyError::Host(_))) => {
                let names = disks.iter().map(|disk| disk.name.to_owned());
                Ok(names.map(|name| not_tried(name, None, &error)).collect())
            }
            Err(error) => Err(error),
        }
    }

    /// Figures that only the host of a guest can count.
    fn uncounted(&self, study: &Study, form: &Form) -> Result<Vec<NotTried>, StudyError> {
        let mut all = Vec::new();
        if self.ground.guest().is_some() {
            return Ok(all);
        }
        for figure in study.measured() {
            if !matches!(wanted::wanted(figure)?.of, Of::DiskBytes | Of::HostFlushes) {
                continue;
            }
            let tried = study.tried(form).into_iter();
            let asked = tried
                .filter(|one| self.built.contains_key(&one.name) && study.asks(form, one, figure));
            let why = "counted at the virtual disks of a guest's pool, and there is no guest";
            all.extend(asked.map(|one| not_tried(one.name.clone(), Some(figure), &why)));
        }
        Ok(all)
    }

    /// Makes a configuration that stays, and fills what is read.
    fn prepare(&mut self, one: &Configuration, seed: u64) -> Result<Option<NotTried>, StudyError> {
        let Some((number, layers)) = self.layers.get(&one.name) else {
            return Ok(None);
        };
        let cpu = self.processors.contains_key(&one.name);
        if cpu || layers.fresh && self.ground.guest().is_some() {
            return Ok(None);
        }
        if layers.fresh {
            // Made when its turn comes, or not at all.
            let why = layers.not_here();
            return Ok(why.map(|why| not_tried(one.name.clone(), None, &why)));
        }
        match self.builder().build(*number, layers) {
            Ok(built) => {
                self.lay_out(&built, seed)?;
                self.built.insert(one.name.clone(), built);
                Ok(None)
            }
            // One that cannot be made is no reason not to try the others.
            Err(error @ (StudyError::Measure { .. } | StudyError::Setting { .. })) => {
                Ok(Some(not_tried(one.name.clone(), None, &error)))
            }
            Err(error) => Err(error),
        }
    }

    /// Fills what is worked on, so that no read meets a hole and no write a new block.
    fn lay_out(&self, built: &Built, seed: u64) -> Result<(), StudyError> {
        let mut options = toml::Table::new();
        let block = self.form.size.0.min(1 << 20).to_string();
        for (key, value) in [("rw", "write"), ("bs", block.as_str())] {
            options.insert(key.to_owned(), value.into());
        }
        options.insert("end_fsync".to_owned(), 1.into());
        let job = load::Job {
            options: &options,
            size: self.form.size,
            time: None,
            seed,
        };
        match built.image.is_some() && built.bottom.is_none() {
            true => built.fill_image(&self.ground, self.form.size),
            false => built.fio(&self.ground, &job, LIMIT).map(drop),
        }
    }
}

fn not_tried(
    configuration: String,
    figure: Option<&Figure>,
    why: &dyn std::fmt::Display,
) -> NotTried {
    NotTried {
        configuration,
        figure: figure.map(|figure| figure.name.clone()),
        why: why.to_string(),
    }
}
