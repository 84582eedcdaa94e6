//! Measures arrays of disks with unequal sizes: btrfs on loop devices of this machine, and ZFS in a guest.

mod array;

use super::zpool::{POOL, Pools};
use crate::{BenchContext, Outline, StudyBench, StudyError, settings, to_observation};
use array::Array;
use assay_host::Limits;
use assay_model::Bytes;
use assay_model::study::{Configuration, Figure, Form, NotTried, Observation, Study};
use assay_planner::btrfs::{Profile, simulate_filesystem};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::time::Duration;

/// Disks of an array, and how the array is built from them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Disks {
    /// Sizes of the disks in terabytes, as in the published article. The form sets how many bytes represent one
    /// terabyte.
    disks: Vec<f64>,
    /// Profile of the btrfs; `None` without a btrfs.
    btrfs: Option<Profile>,
    /// Arguments of `zpool create`; `None` without a pool. A number stands for a disk, counted from 0.
    zfs: Option<Vec<String>>,
    /// Index of the disk that fails and is replaced by a disk of the same size; `None` if no disk fails.
    dies: Option<usize>,
    /// Size of the disk that is added when the array is almost full; `None` if no disk is added.
    grows: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    of: Of,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Of {
    /// Usable space as a percentage of the size of all disks.
    Stored,
    /// Usable space as a percentage of the size of all disks, as `assay plan capacity` predicts it.
    Planned,
    /// Difference between the fill levels of the fullest and the emptiest disk of a half-full array, in percentage
    /// points.
    Unevenness,
    /// 1 if all data is readable without the failed disk.
    Intact,
    /// Bytes written to the remaining disks during the rebuild, as a percentage of the bytes written to the new disk.
    Disturbed,
    /// 1 if all data is readable after the repair.
    Mended,
    /// Usable space after a disk was added without a balance, as a percentage of the usable space of a new array with
    /// all disks.
    Added,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Scale {
    /// Number of bytes that represent one terabyte.
    tb: Bytes,
    /// Number of bytes that represent one terabyte in configurations that write data.
    tb_written: Bytes,
}

/// Bench that creates and measures arrays.
pub(super) struct Unequal<'a> {
    place: &'a BenchContext<'a>,
    scale: Scale,
    pools: Option<Pools>,
}

/// Fill level (fraction) at which a disk is added.
const NEARLY_FULL: f64 = 0.9;
/// Fraction of the capacity that is written before a disk fails.
const WRITTEN: f64 = 0.25;

fn to_bytes(tb: f64, unit: Bytes) -> u64 {
    ((tb * unit.0 as f64) as u64).next_multiple_of(1 << 20)
}

impl<'a> Unequal<'a> {
    pub fn new(place: &'a BenchContext<'a>) -> Self {
        Self {
            place,
            scale: Scale::default(),
            pools: None,
        }
    }

    fn array(&self, sizes: &[u64], data: Profile) -> Result<Array<'a>, StudyError> {
        Array::new(self.place, "disks", sizes, data, data.metadata(sizes.len()))
    }

    fn filled(&self, sizes: &[u64], data: Profile) -> Result<Values, StudyError> {
        let planned = planned_bytes(sizes, data)?;
        let raw: u64 = sizes.iter().sum();
        let array = self.array(sizes, data)?;
        array.reserve(planned / 2)?;
        let full = array.usage()?;
        let full = full
            .iter()
            .map(|one| 100.0 - one.unallocated as f64 * 100.0 / one.size.max(1) as f64);
        let (least, most) = full.fold((f64::MAX, f64::MIN), |(least, most), one| {
            (least.min(one), most.max(one))
        });
        let stored = array.reserve(u64::MAX)?;
        Ok(vec![
            (Of::Stored, stored as f64 * 100.0 / raw as f64),
            (Of::Planned, planned as f64 * 100.0 / raw as f64),
            (Of::Unevenness, most - least),
        ])
    }

    fn mended(&self, sizes: &[u64], data: Profile, dies: usize) -> Result<Values, StudyError> {
        let size = (planned_bytes(sizes, data)? as f64 * WRITTEN) as u64;
        let mut array = self.array(sizes, data)?;
        array.write(size / (1 << 20) * (1 << 20))?;
        let sum = array.sum()?;
        array.lose(dies)?;
        let same = |array: &Array<'_>| f64::from(array.sum().is_ok_and(|now| now == sum));
        let intact = same(&array);
        // mkfs numbers devices from 1.
        let (new, others) = array.replace(dies + 1, sizes[dies])?;
        array.again()?;
        Ok(vec![
            (Of::Intact, intact),
            (Of::Disturbed, others as f64 * 100.0 / new.max(1) as f64),
            (Of::Mended, same(&array)),
        ])
    }

    fn grown(&self, sizes: &[u64], data: Profile, more: u64) -> Result<Values, StudyError> {
        let mut array = self.array(sizes, data)?;
        array.reserve((planned_bytes(sizes, data)? as f64 * NEARLY_FULL) as u64)?;
        array.add(more)?;
        let stored = array.reserve(u64::MAX)? as f64;
        let whole = planned_bytes(&array.sizes(), data)? as f64;
        Ok(vec![(Of::Added, stored * 100.0 / whole)])
    }

    /// Returns USED and AVAIL of a new, empty pool, because filling a pool in a guest would take hours.
    fn pool(&self, disks: &[f64], words: &[String]) -> Result<Values, StudyError> {
        let none = || StudyError::measure("a pool", "there is no guest");
        let pools = self.pools.as_ref().ok_or_else(none)?;
        let names = disk_names(disks, self.scale.tb);
        let word = |word: &'_ String| match word.parse::<usize>() {
            Ok(at) => names
                .get(at)
                .map_or("", |(name, _)| pools.node(name))
                .to_owned(),
            Err(_) => word.clone(),
        };
        let words: Vec<String> = words.iter().map(word).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        pools.create(128 << 10, &words)?;
        let text = pools.run(&["zfs", "list", "-Hp", "-o", "used,available", POOL])?;
        pools.destroy()?;
        let sum: Option<u64> = text.split_whitespace().map(|n| n.parse::<u64>().ok()).sum();
        let sum = sum.ok_or_else(|| StudyError::measure("zfs list", "no numbers"))?;
        let raw: u64 = names.iter().map(|(_, size)| size).sum();
        Ok(vec![(Of::Stored, sum as f64 * 100.0 / raw as f64)])
    }
}

type Values = Vec<(Of, f64)>;

fn planned_bytes(sizes: &[u64], data: Profile) -> Result<u64, StudyError> {
    let planned = simulate_filesystem(sizes, data, data.metadata(sizes.len()));
    let planned = planned.map_err(|error| StudyError::measure("the prediction", error))?;
    Ok(planned.stored)
}

/// Returns names and sizes of a guest's disks. Disks of equal size are numbered.
fn disk_names(disks: &[f64], unit: Bytes) -> Vec<(String, u64)> {
    let mut seen: BTreeMap<u64, usize> = BTreeMap::new();
    let name = |tb: &f64| {
        let size = to_bytes(*tb, unit);
        let number = seen.entry(size).or_default();
        *number += 1;
        (format!("d{}-{number}", Bytes(size).short()), size)
    };
    disks.iter().map(name).collect()
}

impl StudyBench for Unequal<'_> {
    fn outline(&self, study: &Study, form: &Form) -> Result<Outline, StudyError> {
        let scale: Scale = settings::of_form(form)?;
        if scale.tb_written.0 < 128 << 20 || scale.tb < scale.tb_written {
            return Err(StudyError::Setting {
                of: "the form".to_owned(),
                message: "tb_written is 128M or more, and tb not less than that".to_owned(),
            });
        }
        for figure in study.measured() {
            settings::of_figure::<Wanted>(figure)?;
        }
        let (mut btrfs, mut zfs) = (0.0f64, 0);
        for one in study.tried(form) {
            let disks: Disks = settings::of_configuration(one)?;
            let wrong = |message: &str| StudyError::Setting {
                of: format!("configuration `{}`", one.name),
                message: message.to_owned(),
            };
            if disks.btrfs.is_some() == disks.zfs.is_some() {
                return Err(wrong(
                    "give either btrfs = \"PROFILE\" or zfs = [\"mirror\", \"0\", …]",
                ));
            }
            if !disks.disks.iter().all(|tb| (0.5..=100.0).contains(tb)) {
                return Err(wrong("disks are from 0.5 to 100 TB"));
            }
            if disks.dies.is_some_and(|at| at >= disks.disks.len()) {
                return Err(wrong("dies is the number of a disk, counted from 0"));
            }
            match disks.btrfs {
                Some(_) => btrfs = btrfs.max(disks.disks.iter().sum()),
                None => zfs += 1,
            }
        }
        let size = |unit: Bytes| Bytes(to_bytes(btrfs, unit));
        let mut makes = Vec::new();
        if btrfs > 0.0 {
            makes.push(format!(
                "btrfs on loop devices of up to {} together in sparse files; where a disk dies, {} \
                 together, and a quarter of what fits is written",
                size(scale.tb),
                size(scale.tb_written)
            ));
        }
        if zfs > 0 {
            let guest = "one guest with sparse disks of the same sizes for ZFS";
            makes.push(guest.to_owned());
        }
        Ok(Outline {
            makes,
            leaves_out: Vec::new(),
            guest: zfs > 0,
            setup: Duration::from_secs(if zfs > 0 { 90 } else { 0 }),
            step: Duration::from_secs(6),
        })
    }

    fn begin(&mut self, study: &Study, form: &Form) -> Result<Vec<NotTried>, StudyError> {
        self.scale = settings::of_form(form)?;
        let mut not_tried = Vec::new();
        let mut all: BTreeMap<String, u64> = BTreeMap::new();
        let root = rustix::process::geteuid().is_root();
        for one in study.tried(form) {
            let disks: Disks = settings::of_configuration(one)?;
            if disks.zfs.is_some() {
                all.extend(disk_names(&disks.disks, self.scale.tb));
            } else if !root {
                not_tried.push(NotTried {
                    configuration: one.name.clone(),
                    figure: None,
                    why: "only root may make loop devices and mount".to_owned(),
                });
            }
        }
        if !all.is_empty() {
            let all: Vec<(String, u64)> = all.into_iter().collect();
            self.pools = Some(Pools::boot(self.place, "disks", &all)?);
        }
        Ok(not_tried)
    }

    fn measure(
        &mut self,
        configuration: &Configuration,
        figures: &[&Figure],
        round: u32,
    ) -> Result<Vec<Observation>, StudyError> {
        self.place.go_on()?;
        let disks: Disks = settings::of_configuration(configuration)?;
        let sizes =
            |unit| -> Vec<u64> { disks.disks.iter().map(|tb| to_bytes(*tb, unit)).collect() };
        let values = match (&disks.zfs, disks.btrfs) {
            (Some(words), _) => self.pool(&disks.disks, words)?,
            (None, Some(data)) => match (disks.dies, disks.grows) {
                (Some(dies), _) => self.mended(&sizes(self.scale.tb_written), data, dies)?,
                (_, Some(more)) => {
                    let unit = self.scale.tb;
                    self.grown(&sizes(unit), data, to_bytes(more, unit))?
                }
                (None, None) => self.filled(&sizes(self.scale.tb), data)?,
            },
            (None, None) => Vec::new(),
        };
        let mut all = Vec::new();
        for figure in figures {
            let of = settings::of_figure::<Wanted>(figure)?.of;
            let value = values.iter().find(|(known, _)| *known == of);
            all.extend(
                value.map(|(_, value)| to_observation(configuration, figure, round, *value)),
            );
        }
        Ok(all)
    }

    fn machine(&self) -> Vec<(String, String)> {
        let mut all = Vec::new();
        for (name, argv) in [
            ("kernel of btrfs", ["uname", "-sr"]),
            ("btrfs-progs", ["btrfs", "version"]),
        ] {
            let said = self
                .place
                .env
                .host
                .run(&argv.map(OsStr::new), Limits::default());
            all.extend(said.map(|output| (name.to_owned(), output.text().trim().to_owned())));
        }
        all.push(("a TB is".to_owned(), self.scale.tb.to_string()));
        all.push((
            "where a disk dies".to_owned(),
            self.scale.tb_written.to_string(),
        ));
        all.extend(self.pools.iter().flat_map(Pools::machine));
        all
    }

    fn emulated(&self) -> bool {
        self.pools.as_ref().is_some_and(Pools::emulated)
    }
}
