//! Parses the figures of a study: what to measure, and how.

use super::serve::Requests;
use super::settings::{Base, Layers, parse_layers};
use crate::{StudyError, settings};
use assay_model::study::{Figure, Study};
use serde::Deserialize;

/// A figure of a study, in the form that the bench needs.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    /// Value that is measured.
    pub of: Of,
    /// fio options as in a job file; the bench adds the target.
    #[serde(default)]
    pub job: Option<toml::Table>,
    /// Requests that the nested guest sends. They replace an fio job.
    #[serde(default)]
    pub requests: Option<Requests>,
    /// Argument `property=value` of `zfs set`, for the value `accepted`.
    #[serde(default)]
    pub set: Option<String>,
    /// Argument of `cryptsetup benchmark --cipher`, for the value `cipher`.
    #[serde(default)]
    pub cipher: Option<String>,
}

/// Kind of value that a figure of the ZFS bench measures or counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Of {
    /// I/O operations per second.
    Iops,
    /// Bytes per second over the duration of the longest job.
    Rate,
    /// Mean queue depth when an I/O is submitted.
    Depth,
    /// Flushes of the layer below the file system, per write of the job.
    Flushes,
    /// Commits of the ZFS intent log, per write of the job.
    Commits,
    /// Flushes that the host receives for the disks, per write of the job.
    HostFlushes,
    /// Bytes that are written to the disks on the host, per byte that the job writes.
    DiskBytes,
    /// Bytes of space that ZFS charges per byte that was stored.
    Space,
    /// Whether ZFS accepts a property: 1 or 0.
    Accepted,
    /// Whether the guest was paused on a full pool: 1 or 0.
    Paused,
    /// Number of writes that failed in the guest on a full pool.
    Errors,
    /// Number of writes on a full pool that were reported as done and are missing.
    Lost,
    /// Number of writes on a full pool whose data exists.
    Kept,
    /// Encryption rate in bytes per second.
    Cipher,
    /// Whether the CPU has AES instructions: 1 or 0.
    Aes,
}

impl Of {
    pub fn full(self) -> bool {
        matches!(self, Self::Paused | Self::Errors | Self::Lost | Self::Kept)
    }
}

/// Parses a figure. Refuses settings that contradict each other.
pub(super) fn parse_requirements(one: &Figure) -> Result<Wanted, StudyError> {
    let found: Wanted = settings::of_figure(one)?;
    let refuse = |message: String| {
        Err(StudyError::Setting {
            of: format!("figure `{}`", one.name),
            message,
        })
    };
    let jobless = matches!(found.of, Of::Accepted | Of::Cipher | Of::Aes | Of::Space);
    let needs_job = !jobless && !found.of.full() && found.requests.is_none();
    if let Some(requests) = found.requests {
        let of = matches!(
            found.of,
            Of::Iops | Of::Commits | Of::HostFlushes | Of::DiskBytes
        );
        if !of || found.job.is_some() {
            return refuse(
                "`requests` are for iops, commits, host-flushes and disk-bytes, and need no `job`"
                    .to_owned(),
            );
        }
        if !requests.fits() {
            return refuse("requests: a block is 512 bytes or more, up to 63.5 KiB".to_owned());
        }
    }
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
    let fits = |(key, value): &(&String, &toml::Value)| {
        // Options that name a file, command or library are not permitted.
        let word = |text: &str| {
            text.chars()
                .all(|c| c.is_ascii_alphanumeric() || "_-.,%".contains(c))
        };
        OPTIONS.contains(&key.as_str()) && (value.is_integer() || value.as_str().is_some_and(word))
    };
    match found.job.iter().flatten().find(|option| !fits(option)) {
        Some((key, _)) => refuse(format!(
            "job: `{key}` is no option for a study to set, or its value neither a word nor a whole \
             number; there are {}",
            OPTIONS.join(", ")
        )),
        None => Ok(found),
    }
}

/// fio options that a study is allowed to set.
const OPTIONS: [&str; 21] = [
    "bs",
    "buffer_compress_chunk",
    "buffer_compress_percentage",
    "direct",
    "end_fsync",
    "fdatasync",
    "fsync",
    "group_reporting",
    "iodepth",
    "ioengine",
    "norandommap",
    "number_ios",
    "numjobs",
    "overwrite",
    "random_distribution",
    "refill_buffers",
    "rw",
    "rwmixread",
    "size",
    "sync",
    "thinktime",
];

/// Returns whether a figure can be measured on a configuration.
fn is_applicable(layers: &Layers, wanted: &Wanted) -> bool {
    let zfs = matches!(layers.on, Base::Zvol | Base::Dataset);
    match wanted.of {
        of if of.full() => layers.full.is_some(),
        Of::Cipher | Of::Aes => layers.on == Base::Cpu,
        _ if layers.full.is_some() || layers.on == Base::Cpu => false,
        _ if wanted.requests.is_some() => layers.guest.is_some(),
        _ if layers.guest.is_some() => false,
        Of::Accepted | Of::Commits | Of::Space => zfs,
        Of::Flushes => layers.image.is_some() || layers.on == Base::Disk,
        _ => true,
    }
}

/// Parses the whole study, so that mistakes are found before anything is created.
pub(super) fn check(study: &Study) -> Result<(), StudyError> {
    let tried = study
        .configurations
        .iter()
        .filter(|one| !one.published_only);
    for one in tried {
        let layers = parse_layers(one)?;
        for figure in study.measured() {
            if one.has(figure) && !is_applicable(&layers, &parse_requirements(figure)?) {
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
    use crate::benches::zfs::settings::Form;
    use crate::catalogue;

    /// Replaces `from` by `to` in the built-in study, and returns the bench's error for the result.
    fn said(from: &str, to: &str) -> String {
        let text = include_str!("../../../../../studies/zvol-vs-qcow2.toml");
        assert!(text.contains(from), "{from}");
        let study = catalogue::parse(&text.replacen(from, to, 1), "x.toml").unwrap();
        check(&study).unwrap_err().to_string()
    }

    #[test]
    fn the_studies_of_this_bench_can_be_carried_out() {
        for name in ["zfs-tuning", "zvol-vs-qcow2"] {
            let study = catalogue::builtin_study(name).unwrap();
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
