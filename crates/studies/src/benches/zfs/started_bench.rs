//! State of the ZFS bench after its start.

use super::build::{Builder, LIMIT};
use super::built::Built;
use super::guest_or_dataset::Ground;
use super::guests::{self, Guests};
use super::requirements::{self, Of};
use super::settings::{self, Layers};
use super::{cpu, load};
use crate::{BenchContext, StudyError};
use assay_model::study::{Configuration, Figure, Form, NotTried, Study};
use std::collections::BTreeMap;

/// State of the ZFS bench after its start.
pub(super) struct Up<'a> {
    pub ground: Ground<'a>,
    pub form: settings::Form,
    /// Number and layers of each configuration, by name.
    pub layers: BTreeMap<String, (usize, Layers)>,
    /// Layers that are created once and used in every round.
    pub built: BTreeMap<String, Built>,
    /// Nested guest that has the disks of the configurations; `None` if no configuration needs the nested guest.
    pub guests: Option<Guests>,
    /// Results of the CPU models, by configuration.
    pub processors: BTreeMap<String, cpu::Found>,
    pub machine: Vec<(String, String)>,
}

impl Up<'_> {
    pub fn builder(&self) -> Builder<'_> {
        Builder {
            ground: &self.ground,
            size: self.form.disk,
        }
    }

    /// Boots the nested guest with the disks of all configurations that need the nested guest.
    pub fn boot(
        &mut self,
        place: &BenchContext<'_>,
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

    /// Returns the figures that cannot be measured, because only the host of a guest can count the required values.
    pub fn uncounted(&self, study: &Study, form: &Form) -> Result<Vec<NotTried>, StudyError> {
        let mut all = Vec::new();
        if self.ground.guest().is_some() {
            return Ok(all);
        }
        for figure in study.measured() {
            if !matches!(
                requirements::parse_requirements(figure)?.of,
                Of::DiskBytes | Of::HostFlushes
            ) {
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

    /// Creates the layers of a configuration that are used in all rounds, and fills them so that reads find data.
    pub fn prepare(
        &mut self,
        one: &Configuration,
        seed: u64,
    ) -> Result<Option<NotTried>, StudyError> {
        let Some((number, layers)) = self.layers.get(&one.name) else {
            return Ok(None);
        };
        let cpu = self.processors.contains_key(&one.name);
        if cpu || layers.fresh && self.ground.guest().is_some() {
            return Ok(None);
        }
        if layers.fresh {
            // Created when its turn comes, or not at all.
            let why = layers.not_here();
            return Ok(why.map(|why| not_tried(one.name.clone(), None, &why)));
        }
        match self.builder().build(*number, layers) {
            Ok(built) => {
                self.lay_out(&built, seed)?;
                self.built.insert(one.name.clone(), built);
                Ok(None)
            }
            // A failed configuration must not prevent the others.
            Err(error @ (StudyError::Measure { .. } | StudyError::Setting { .. })) => {
                Ok(Some(not_tried(one.name.clone(), None, &error)))
            }
            Err(error) => Err(error),
        }
    }

    /// Fills the storage, so that reads do not hit holes and writes need not allocate blocks.
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
