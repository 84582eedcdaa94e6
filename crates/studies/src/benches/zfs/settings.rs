//! What a study of this bench says in its file.

use crate::{StudyError, settings};
use assay_lab::disk::{Aio, CacheMode};
use assay_model::study::{Configuration, Figure, Study};
use assay_model::{Bytes, Nanos};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::str::FromStr;

/// The machine in which everything happens, and how much of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Form {
    /// Memory of the guest.
    pub memory: Bytes,
    /// The pool in it.
    pub pool: Pool,
    /// Size of each zvol, image and virtual disk.
    pub disk: Bytes,
    /// Bytes that each job of fio works on, unless the job says.
    pub size: Bytes,
    /// How long each job of fio runs; to the end of its size when left out.
    #[serde(default)]
    pub time: Option<Nanos>,
    /// Space that is left in the pool when it is to run full.
    #[serde(default)]
    pub left: Option<Bytes>,
}

/// A pool of new virtual disks.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pool {
    /// `mirror`, `raidz1`, …; empty for a stripe.
    #[serde(default)]
    pub layout: String,
    /// How many disks.
    pub disks: u32,
    /// Size of each.
    pub size: Bytes,
    /// Size of a log device, if there is one.
    #[serde(default)]
    pub log: Option<Bytes>,
    /// Size of a cache device, if there is one.
    #[serde(default)]
    pub cache: Option<Bytes>,
    /// Sector size as a power of two.
    pub ashift: u32,
    /// Properties of its root dataset.
    #[serde(default)]
    pub properties: BTreeMap<String, String>,
}

/// What lies under the work: from the storage upwards.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Layers {
    /// What it stands on.
    pub on: Base,
    /// ZFS properties of the zvol or dataset.
    #[serde(default)]
    pub properties: BTreeMap<String, String>,
    /// Whether the zvol's size is set aside for it. As `zfs create -V` does, unlike `-s`.
    #[serde(default)]
    pub reserved: bool,
    /// Of a virtual disk on this host: bus, cache and the rest, as `assay lab --disk` takes them.
    #[serde(default)]
    pub device: String,
    /// Format of a virtual disk that QEMU serves from the zvol or from a file on the dataset.
    #[serde(default)]
    pub image: Option<Image>,
    /// Cluster size of qcow2.
    #[serde(default)]
    pub cluster: Option<Bytes>,
    /// QEMU's cache mode for the image.
    #[serde(default = "writeback", deserialize_with = "word")]
    pub cache: CacheMode,
    /// QEMU's way of doing input and output for the image.
    #[serde(default = "threads", deserialize_with = "word")]
    pub aio: Aio,
    /// LVM in between.
    #[serde(default)]
    pub lvm: bool,
    /// LUKS in between.
    #[serde(default)]
    pub luks: bool,
    /// A file system on top; without, the block device itself is worked on.
    #[serde(default)]
    pub fs: Option<Fs>,
    /// Whether it is made anew in every round.
    #[serde(default)]
    pub fresh: bool,
    /// What runs full under it.
    #[serde(default)]
    pub full: Option<Full>,
    /// QEMU's CPU model: the work is done in a guest that has no other purpose.
    #[serde(default)]
    pub cpu: Option<String>,
}

fn writeback() -> CacheMode {
    CacheMode::Writeback
}

fn threads() -> Aio {
    Aio::Threads
}

fn word<'de, D: Deserializer<'de>, T: FromStr<Err = String>>(from: D) -> Result<T, D::Error> {
    String::deserialize(from)?.parse().map_err(D::Error::custom)
}

/// The lowest layer that a configuration names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Base {
    /// A volume of the pool.
    Zvol,
    /// A file system of the pool.
    Dataset,
    /// A virtual disk on the host's own file system; no ZFS.
    Disk,
    /// No storage: a processor.
    Cpu,
}

/// Format of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Image {
    /// Byte by byte.
    Raw,
    /// QEMU's own.
    Qcow2,
}

impl Image {
    pub fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Qcow2 => "qcow2",
        }
    }
}

/// A file system of the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Fs {
    Ext2,
    Ext3,
    Ext4,
    Xfs,
}

impl Fs {
    pub fn name(self) -> &'static str {
        match self {
            Self::Ext2 => "ext2",
            Self::Ext3 => "ext3",
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
        }
    }
}

/// What runs full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Full {
    /// The pool: somebody else takes the space.
    Pool,
    /// The quota of the dataset above.
    Quota,
}

/// One figure.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    /// What of it.
    pub of: Of,
    /// Options of fio, as in a job file; the bench adds what it works on.
    #[serde(default)]
    pub job: Option<toml::Table>,
    /// For `accepted`: `property=value`, given to `zfs set`.
    #[serde(default)]
    pub set: Option<String>,
    /// For `cipher`: as `cryptsetup benchmark --cipher` takes it.
    #[serde(default)]
    pub cipher: Option<String>,
}

/// What is measured or counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Of {
    /// I/Os per second.
    Iops,
    /// Bytes per second over the longest job.
    Rate,
    /// I/Os in flight on average when one is submitted.
    Depth,
    /// Flushes that the layer under the file system was asked for, for each write.
    Flushes,
    /// Commits of ZFS's intent log for each write.
    Commits,
    /// Flushes that the host's side of the disks saw, for each write.
    HostFlushes,
    /// Bytes written to the host's side of the disks for each byte that was asked for.
    DiskBytes,
    /// Space taken for each byte that is stored.
    Space,
    /// Whether ZFS accepts a property: 1 or 0.
    Accepted,
    /// Full: whether the guest was paused, 1 or 0.
    Paused,
    /// Full: writes that failed as the guest sees it.
    Errors,
    /// Full: writes that the guest was told are done and that are not there.
    Lost,
    /// Full: writes that are there in the end.
    Kept,
    /// Encryption, bytes per second.
    Cipher,
}

impl Of {
    pub fn full(self) -> bool {
        matches!(self, Self::Paused | Self::Errors | Self::Lost | Self::Kept)
    }
}

/// Reads a configuration and refuses what does not fit together.
pub(super) fn layers(one: &Configuration) -> Result<Layers, StudyError> {
    let found: Layers = settings::of_configuration(one)?;
    let refuse = |message: &str| {
        Err(StudyError::Setting {
            of: format!("configuration `{}`", one.name),
            message: message.to_owned(),
        })
    };
    let zfs = matches!(found.on, Base::Zvol | Base::Dataset);
    if found.on == Base::Disk {
        disk(&found, "d", Bytes(512))?;
    }
    match &found {
        layers if layers.on != Base::Disk && !layers.device.is_empty() => {
            refuse("`device` is of a virtual disk: on = \"disk\"")
        }
        layers if !zfs && (layers.image.is_some() || !layers.properties.is_empty()) => {
            refuse("`image` and `properties` need ZFS: on = \"zvol\" or \"dataset\"")
        }
        layers if layers.cluster.is_some() && layers.image != Some(Image::Qcow2) => {
            refuse("`cluster` is of an image = \"qcow2\"")
        }
        layers if layers.on == Base::Dataset && layers.image.is_none() => {
            match layers.fs.is_some() || layers.lvm || layers.luks {
                true => refuse("a dataset carries LVM, LUKS and file systems only in an `image`"),
                false => Ok(found),
            }
        }
        layers if layers.full.is_some() && !(zfs && layers.image.is_some() && layers.fresh) => {
            refuse("what runs full is an `image` on ZFS that is `fresh`")
        }
        layers if layers.aio == Aio::Native && !layers.cache.direct() => {
            refuse("aio = \"native\" needs cache = \"none\" or \"directsync\"")
        }
        _ => Ok(found),
    }
}

/// The virtual disk that a configuration asks for.
pub(super) fn disk(
    layers: &Layers,
    name: &str,
    size: Bytes,
) -> Result<assay_lab::Disk, StudyError> {
    let mut text = format!("{}", size.0);
    if !layers.device.is_empty() {
        text.push(',');
        text.push_str(&layers.device);
    }
    Ok(assay_lab::Disk::parse(&text, name)?)
}

/// Reads a figure and refuses what does not fit together.
pub(super) fn wanted(one: &Figure) -> Result<Wanted, StudyError> {
    let found: Wanted = settings::of_figure(one)?;
    let refuse = |message: String| {
        Err(StudyError::Setting {
            of: format!("figure `{}`", one.name),
            message,
        })
    };
    let jobless = matches!(found.of, Of::Accepted | Of::Cipher | Of::Space);
    let needs_job = !jobless && !found.of.full();
    if needs_job != found.job.is_some() {
        return refuse(match needs_job {
            true => "it needs a `job` of fio".to_owned(),
            false => "it has nothing to do with a `job` of fio".to_owned(),
        });
    }
    if (found.of == Of::Accepted) != found.set.is_some() {
        return refuse("`set` belongs to of = \"accepted\"".to_owned());
    }
    if (found.of == Of::Cipher) != found.cipher.is_some() {
        return refuse("`cipher` belongs to of = \"cipher\"".to_owned());
    }
    match found.job.iter().flatten().find(|(key, value)| {
        let plain = key
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
        let ours = [
            "filename",
            "directory",
            "name",
            "exec_prerun",
            "exec_postrun",
        ];
        let fits = value
            .as_str()
            .is_none_or(|text| !text.contains(char::is_control))
            && (value.is_str() || value.is_integer());
        !plain || ours.contains(&key.as_str()) || !fits
    }) {
        Some((key, _)) => refuse(format!(
            "job: `{key}` is no option of fio for a study to set, or its value neither text nor a \
             whole number"
        )),
        None => Ok(found),
    }
}

/// Whether a figure can be had of a configuration at all.
fn applies(layers: &Layers, wanted: &Wanted) -> bool {
    let zfs = matches!(layers.on, Base::Zvol | Base::Dataset);
    match wanted.of {
        of if of.full() => layers.full.is_some(),
        Of::Cipher => layers.on == Base::Cpu,
        _ if layers.full.is_some() || layers.on == Base::Cpu => false,
        Of::Accepted | Of::Commits | Of::Space => zfs,
        Of::Flushes => layers.image.is_some() || layers.on == Base::Disk,
        _ => true,
    }
}

/// Reads the whole study, so that a mistake is found before anything is made.
pub(super) fn check(study: &Study) -> Result<(), StudyError> {
    let tried = study
        .configurations
        .iter()
        .filter(|one| !one.published_only);
    for one in tried {
        let layers = layers(one)?;
        for figure in study.measured() {
            let named = one.figures.as_ref();
            let asked = named.is_none_or(|names| names.contains(&figure.name));
            if asked && !applies(&layers, &wanted(figure)?) {
                return Err(StudyError::Setting {
                    of: format!("configuration `{}`", one.name),
                    message: format!(
                        "`{}` cannot be had of it; name the figures that can: figures = [\"…\"]",
                        figure.name
                    ),
                });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;

    /// What the bench says of the built-in study with one word replaced.
    fn said(from: &str, to: &str) -> String {
        let text = include_str!("../../../../../studies/zvol-vs-qcow2.toml");
        assert!(text.contains(from), "{from}");
        let study = catalogue::parse(&text.replacen(from, to, 1), "x.toml").unwrap();
        check(&study).unwrap_err().to_string()
    }

    #[test]
    fn the_studies_of_this_bench_can_be_carried_out() {
        for name in ["zfs-tuning", "zvol-vs-qcow2"] {
            let study = catalogue::builtin(name).unwrap();
            check(&study).unwrap();
            for form in [&study.forms.quick, &study.forms.full] {
                let form: Form = settings::of_form(form).unwrap();
                assert!(form.size < form.disk, "{name}");
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_with_its_name() {
        for (from, to, word) in [
            ("cluster = \"8k\"", "clusters = \"8k\"", "clusters"),
            (
                "image = \"qcow2\"\ncluster",
                "image = \"raw\"\ncluster",
                "qcow2",
            ),
            ("cache = \"none\"", "cache = \"fast\"", "directsync"),
            ("cache = \"none\"", "aio = \"native\"", "directsync"),
            (
                "on = \"zvol\"\n",
                "on = \"zvol\"\ndevice = \"bus=ide\"\n",
                "on = \"disk\"",
            ),
            ("on = \"zvol\"\n", "on = \"disk\"\n", "need ZFS"),
            ("image = \"raw\"\nfs", "fs", "sync-engine-flushes"),
            ("full = \"pool\"\nfresh = true", "full = \"pool\"", "fresh"),
            ("of = \"rate\"", "of = \"speed\"", "speed"),
            ("ioengine = \"sync\"", "filename = \"/dev/sda\"", "filename"),
            (
                "rw = \"randwrite\"",
                "rw = \"write\\nexec_prerun=x\"",
                "`rw`",
            ),
            ("of = \"paused\"", "of = \"accepted\"", "`set`"),
        ] {
            let said = said(from, to);
            assert!(said.contains(word), "{to}: {said}");
        }
    }
}
