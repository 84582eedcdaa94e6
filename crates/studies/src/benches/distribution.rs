//! Measures how ZFS distributes writes over vdevs that differ in size, fill level or speed. The pool consists of single
//! disks in a guest. For a slow vdev, QEMU limits the rate of one disk.

use super::zpool::{POOL, Pools, rounded_bytes};
use crate::{BenchContext, Outline, StudyBench, StudyError, settings, to_observation};
use assay_model::Bytes;
use assay_model::study::{Configuration, Figure, Form, NotTried, Observation, Study};
use assay_planner::distribute::{AllocationRules, Vdev, WriterModel, distribute_writes};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// Configuration of a pool of single disks. The figures describe its last vdev.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pool {
    /// Size of each disk.
    vdevs: Vec<Bytes>,
    /// Whether the first disk is slow.
    #[serde(default)]
    slow: bool,
    /// Whether the last disk is added after the other disks were filled.
    #[serde(default)]
    added: bool,
    /// Value of the module parameter `zio_dva_throttle_enabled`.
    #[serde(default = "default_true")]
    throttle: bool,
}

fn default_true() -> bool {
    true
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    of: Of,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Of {
    /// Percentage of the bytes that ZFS wrote to the last vdev.
    Share,
    /// Percentage of the bytes for the last vdev, as `assay plan distribute` predicts it.
    Planned,
    /// Bytes per second, measured until all data is on the disks.
    Rate,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Size {
    /// Number of bytes to write.
    write: Bytes,
    /// Number of bytes that are written before a disk is added.
    fill: Bytes,
    /// Record size of the pool in bytes.
    record: Bytes,
    /// Rate of a slow disk, in bytes per second.
    slow: Bytes,
}

/// Bench that measures the distribution of writes.
pub(super) struct Distribution<'a> {
    place: &'a BenchContext<'a>,
    size: Size,
    pools: Option<Pools>,
    /// Rate of one fast disk alone, in bytes per second.
    speed: f64,
    /// Bytes per transaction group.
    txg: u64,
}

/// Returns names and sizes of a pool's disks. Disks of equal size are numbered.
fn disk_names(pool: &Pool) -> Vec<(String, u64)> {
    let mut seen: BTreeMap<u64, usize> = BTreeMap::new();
    let name = |size: &Bytes| {
        let number = seen.entry(size.0).or_default();
        *number += 1;
        (format!("d{}-{number}", size.short()), size.0)
    };
    pool.vdevs.iter().map(name).collect()
}

impl<'a> Distribution<'a> {
    pub fn new(place: &'a BenchContext<'a>) -> Self {
        Self {
            place,
            size: Size::default(),
            pools: None,
            speed: 0.0,
            txg: 0,
        }
    }

    fn pools(&self) -> Result<&Pools, StudyError> {
        let none = || StudyError::measure("a pool", "there is no guest");
        self.pools.as_ref().ok_or_else(none)
    }

    /// Returns the planner's prediction for a write to these vdevs.
    fn planned(&self, pool: &Pool, vdevs: &[Vdev]) -> Result<Option<f64>, StudyError> {
        let Some(version) = self.pools()?.version()?.1 else {
            return Ok(None);
        };
        let mut vdevs = vdevs.to_vec();
        if let (true, Some(first)) = (pool.slow, vdevs.first_mut()) {
            first.speed = first.speed.min(self.size.slow.0 as f64);
        }
        let writer = WriterModel {
            bytes: rounded_bytes(self.size.write.0),
            block: self.size.record.0,
            txg: self.txg,
            // The writer's rate is what one disk alone achieved.
            rate: Some(self.speed),
        };
        let planned =
            distribute_writes(&vdevs, AllocationRules::of(version, pool.throttle), writer)
                .map_err(|error| StudyError::measure("the prediction", error))?;
        Ok(planned.vdevs.last().map(|last| last.share * 100.0))
    }

    fn write(&self, pool: &Pool) -> Result<[Option<f64>; 3], StudyError> {
        let pools = self.pools()?;
        let disks = disk_names(pool);
        let nodes: Vec<&str> = disks.iter().map(|(name, _)| pools.node(name)).collect();
        let first = nodes.len() - usize::from(pool.added);
        pools.set("zio_dva_throttle_enabled", pool.throttle.into())?;
        pools.create(self.size.record.0, &nodes[..first])?;
        if pool.added {
            pools.write(&format!("/{POOL}/before"), self.size.fill.0)?;
            pools.run(&["zpool", "add", "-f", POOL, nodes[first]])?;
        }
        let before = pools.vdevs(self.speed)?;
        let planned = self.planned(pool, &before)?;
        if pool.slow {
            pools.slow(&disks[0].0, self.size.slow.0)?;
        }
        let seconds = pools.write(&format!("/{POOL}/file"), self.size.write.0);
        pools.slow(&disks[0].0, 0)?;
        let seconds = seconds?;
        let after = pools.vdevs(self.speed)?;
        pools.destroy()?;
        let got: Vec<f64> = after
            .iter()
            .zip(&before)
            .map(|(after, before)| after.used.saturating_sub(before.used) as f64)
            .collect();
        let all: f64 = got.iter().sum();
        let last = got.last().copied().filter(|_| all > 0.0);
        let rate = rounded_bytes(self.size.write.0) as f64 / seconds;
        Ok([last.map(|last| last / all * 100.0), planned, Some(rate)])
    }
}

impl StudyBench for Distribution<'_> {
    fn outline(&self, study: &Study, form: &Form) -> Result<Outline, StudyError> {
        let size: Size = settings::of_form(form)?;
        let setting = |message: &str| StudyError::Setting {
            of: "the form".to_owned(),
            message: message.to_owned(),
        };
        if size.slow.0 == 0 || size.write.0 == 0 {
            return Err(setting("write and slow are more than 0"));
        }
        if !size.record.0.is_power_of_two() || !(4 << 10..=1 << 20).contains(&size.record.0) {
            return Err(setting("record is a power of two from 4k to 1M"));
        }
        for figure in study.measured() {
            settings::of_figure::<Wanted>(figure)?;
        }
        let mut most = 0;
        for one in study.tried(form) {
            let pool: Pool = settings::of_configuration(one)?;
            if pool.vdevs.len() < 2 || pool.vdevs.iter().any(|size| size.0 < 256 << 20) {
                return Err(StudyError::Setting {
                    of: format!("configuration `{}`", one.name),
                    message: "vdevs are two sizes or more of at least 256M each".to_owned(),
                });
            }
            most = most.max(pool.vdevs.iter().map(|size| size.0).sum());
        }
        Ok(Outline {
            makes: vec![format!(
                "one guest with sparse disks for pools of up to {}; {} are written into each pool",
                Bytes(most),
                Bytes(rounded_bytes(size.write.0))
            )],
            leaves_out: Vec::new(),
            guest: true,
            setup: Duration::from_secs(90),
            step: Duration::from_secs(12 + size.write.0 / (8 << 20)),
        })
    }

    fn begin(&mut self, study: &Study, form: &Form) -> Result<Vec<NotTried>, StudyError> {
        self.size = settings::of_form(form)?;
        let mut all: BTreeMap<String, u64> = BTreeMap::new();
        for one in study.tried(form) {
            all.extend(disk_names(&settings::of_configuration(one)?));
        }
        let all: Vec<(String, u64)> = all.into_iter().collect();
        let pools = Pools::boot(self.place, "writes", &all)?;
        let parameter = |name: &str| pools.number(&format!("/sys/module/zfs/parameters/{name}"));
        // A transaction group closes when this fraction of the permitted dirty data is waiting
        // (`dsl_pool_need_dirty_sync`, dsl_pool.c).
        self.txg = (parameter("zfs_dirty_data_max")? / 100
            * parameter("zfs_dirty_data_sync_percent")?)
        .max(self.size.record.0);
        (self.place.say)("measuring one disk alone");
        let largest = all.iter().max_by_key(|(_, size)| *size);
        let largest = largest.map_or("", |(name, _)| name.as_str());
        pools.create(self.size.record.0, &[pools.node(largest)])?;
        let seconds = pools.write(&format!("/{POOL}/file"), self.size.write.0)?;
        self.speed = rounded_bytes(self.size.write.0) as f64 / seconds;
        pools.destroy()?;
        self.pools = Some(pools);
        Ok(Vec::new())
    }

    fn measure(
        &mut self,
        configuration: &Configuration,
        figures: &[&Figure],
        round: u32,
    ) -> Result<Vec<Observation>, StudyError> {
        self.place.go_on()?;
        let pool: Pool = settings::of_configuration(configuration)?;
        let [share, planned, rate] = self.write(&pool)?;
        let mut all = Vec::new();
        for figure in figures {
            let value = match settings::of_figure::<Wanted>(figure)?.of {
                Of::Share => share,
                Of::Planned => planned,
                Of::Rate => rate,
            };
            all.extend(value.map(|value| to_observation(configuration, figure, round, value)));
        }
        Ok(all)
    }

    fn machine(&self) -> Vec<(String, String)> {
        let mut all = self.pools.as_ref().map_or_else(Vec::new, Pools::machine);
        all.push((
            "one disk alone".to_owned(),
            format!("{} MB/s", assay_model::units::mb_per_s(self.speed)),
        ));
        all.push(("transaction group".to_owned(), Bytes(self.txg).to_string()));
        all
    }

    fn emulated(&self) -> bool {
        self.pools.as_ref().is_some_and(Pools::emulated)
    }
}
