//! Parses disk descriptions, such as `1G` or `1G,bus=nvme,cache=none,format=qcow2,cluster=128k`.

use crate::disk::{Bad, Disk, DiskFormat};
use crate::error::{Cause, LabError};
use assay_model::Bytes;
use std::path::PathBuf;

impl Disk {
    /// Parses a size, followed by settings that differ from a raw scratch disk on virtio-blk. Settings are separated by
    /// commas: `bus`, `cache`, `werror`, `aio`, `format` (raw, qcow2, luks), `cluster`, `preallocation`, `extended_l2`,
    /// `lazy_refcounts`, `iothread`, `discard`, `dir`, `device`, `name`, the limits `iops` (requests per second) and
    /// `bps` (bytes per second), `queues`, and `eio=OFFSET+LENGTH` for a range with I/O errors. Flags are on or off.
    ///
    /// # Errors
    /// Names the invalid part and the valid values.
    pub fn parse(text: &str, name: &str) -> Result<Self, LabError> {
        let wrong = |source: Cause| LabError::Disk {
            name: format!("{text:?}"),
            source,
        };
        let fail = |reason: String| wrong(reason.into());
        let size_of = |value: &str| value.parse::<Bytes>().map_err(|error| wrong(error.into()));
        let mut parts = text.split(',');
        let size = size_of(parts.next().unwrap_or_default())?;
        let mut disk = Self::scratch(name, size.0);
        let mut qcow2 = None;
        for part in parts {
            let (key, value) = part.split_once('=').unwrap_or((part, "on"));
            match key {
                "name" => value.clone_into(&mut disk.name),
                "bus" => disk.bus = value.parse().map_err(fail)?,
                "cache" => disk.cache = value.parse().map_err(fail)?,
                "werror" => disk.werror = Some(value.parse().map_err(fail)?),
                "aio" => disk.aio = value.parse().map_err(fail)?,
                "iothread" => disk.iothread = parse_flag(value).map_err(fail)?,
                "discard" => disk.discard = parse_flag(value).map_err(fail)?,
                "iops" | "bps" => {
                    let limit = size_of(value)?;
                    let throttle = disk.throttle.get_or_insert_default();
                    match key {
                        "iops" => throttle.iops = limit.0,
                        _ => throttle.bytes = limit.0,
                    }
                }
                "queues" => {
                    let queues = value.parse();
                    let no = |_| fail(format!("{value:?} is no number of queues"));
                    disk.queues = Some(queues.map_err(no)?);
                }
                "eio" => disk.bad = Some(parse_bad_blocks(value).map_err(fail)?),
                "device" => disk.device = Some(PathBuf::from(value)),
                "dir" => disk.dir = Some(PathBuf::from(value)),
                "format" => {
                    disk.format = match value {
                        "raw" => DiskFormat::Raw,
                        "qcow2" => DiskFormat::QCOW2,
                        "luks" => DiskFormat::Luks,
                        _ => {
                            let known = "there are raw, qcow2, luks";
                            return Err(fail(format!("no format {value:?}; {known}")));
                        }
                    }
                }
                "cluster" | "preallocation" | "extended_l2" | "lazy_refcounts" => {
                    qcow2 = Some(key);
                    let DiskFormat::Qcow2 {
                        cluster,
                        preallocated,
                        extended_l2,
                        lazy_refcounts,
                    } = &mut disk.format
                    else {
                        break;
                    };
                    match key {
                        "cluster" => {
                            *cluster = size_of(value)?.0;
                        }
                        "preallocation" => *preallocated = parse_flag(value).map_err(fail)?,
                        "extended_l2" => *extended_l2 = parse_flag(value).map_err(fail)?,
                        _ => *lazy_refcounts = parse_flag(value).map_err(fail)?,
                    }
                }
                _ => {
                    return Err(fail(format!(
                        "{key:?} is not known; there are name, bus, cache, werror, aio, iothread, discard, queues, \
                         dir, device, format, cluster, preallocation, extended_l2, lazy_refcounts, iops, bps, eio"
                    )));
                }
            }
        }
        match (qcow2, disk.format) {
            (Some(key), DiskFormat::Raw | DiskFormat::Luks) => {
                Err(fail(format!("{key} needs format=qcow2 before it")))
            }
            _ => disk.check().map(|()| disk),
        }
    }

    /// Describes the disk in the syntax of [`Disk::parse`].
    #[must_use]
    pub fn describe(&self) -> String {
        let mut words = vec![self.format.name().to_owned()];
        if let DiskFormat::Qcow2 {
            cluster,
            preallocated,
            extended_l2,
            lazy_refcounts,
        } = self.format
        {
            let usual = matches!(DiskFormat::QCOW2, DiskFormat::Qcow2 { cluster: usual, .. } if usual == cluster);
            if !usual {
                words.push(format!("cluster={}", Bytes(cluster).short()));
            }
            for (on, word) in [
                (preallocated, "preallocation"),
                (extended_l2, "extended_l2"),
                (lazy_refcounts, "lazy_refcounts"),
            ] {
                if on {
                    words.push(word.to_owned());
                }
            }
        }
        words.extend([self.bus.name(), self.cache.name(), self.aio.name()].map(str::to_owned));
        if let Some(werror) = self.werror {
            words.push(format!("werror={}", werror.name()));
        }
        if self.iothread {
            words.push("iothread".to_owned());
        }
        if let Some(queues) = self.queues {
            words.push(format!("queues={queues}"));
        }
        if let Some(bad) = self.bad {
            let (offset, length) = (Bytes(bad.offset).short(), Bytes(bad.length).short());
            words.push(format!("eio={offset}+{length}"));
        }
        for (limit, word) in self
            .throttle
            .map_or([(0, ""); 2], |at| [(at.iops, "iops"), (at.bytes, "bps")])
        {
            if limit > 0 {
                words.push(format!("{word}={limit}"));
            }
        }
        words.join(" ")
    }
}

fn parse_bad_blocks(value: &str) -> Result<Bad, String> {
    let parts = value.split_once('+');
    let (offset, length) =
        parts.ok_or_else(|| format!("eio={value}: give OFFSET+LENGTH, such as 16M+4k"))?;
    let size = |text: &str| {
        text.parse::<Bytes>()
            .map_err(|error| format!("eio: {error}"))
    };
    Ok(Bad {
        offset: size(offset)?.0,
        length: size(length)?.0,
    })
}

fn parse_flag(value: &str) -> Result<bool, String> {
    match value {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(format!("{value:?} is neither on nor off")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{Aio, Bus, CacheMode, Throttle, WriteError};

    #[test]
    fn a_size_alone_is_a_scratch_disk() {
        assert_eq!(
            Disk::parse("1G", "d1").unwrap(),
            Disk::scratch("d1", 1 << 30)
        );
    }

    #[test]
    fn every_choice_can_be_written() {
        let text = "64M,format=qcow2,cluster=128k,extended_l2,bus=virtio-scsi,cache=none,aio=native,iothread=on,discard=off,dir=/srv,name=x,iops=300,queues=4,eio=16M+4k,werror=stop";
        let disk = Disk::parse(text, "d1").unwrap();
        let expected = Disk {
            name: "x".to_owned(),
            size: 64 << 20,
            format: DiskFormat::Qcow2 {
                cluster: 128 << 10,
                preallocated: false,
                extended_l2: true,
                lazy_refcounts: false,
            },
            bus: Bus::VirtioScsi,
            cache: CacheMode::None,
            aio: Aio::Native,
            iothread: true,
            discard: false,
            dir: Some("/srv".into()),
            device: None,
            logged: false,
            throttle: Some(Throttle {
                iops: 300,
                bytes: 0,
            }),
            queues: Some(4),
            bad: Some(Bad {
                offset: 16 << 20,
                length: 4 << 10,
            }),
            werror: Some(WriteError::Stop),
            content: None,
        };
        assert_eq!(disk, expected);
        assert_eq!(
            disk.describe(),
            "qcow2 cluster=128k extended_l2 virtio-scsi none native werror=stop iothread queues=4 eio=16M+4k iops=300"
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, word) in [
            ("", "number of bytes"),
            ("1G,bus=floppy", "virtio-blk"),
            ("1G,cluster=64k", "format=qcow2"),
            ("1G,speed=11", "speed"),
            ("1G,iothread=maybe", "neither on nor off"),
            ("1G,aio=native", "directsync"),
            ("1G,werror=ignore", "enospc"),
            ("1G,bus=ide,queues=2", "cannot be chosen"),
            ("1G,queues=0", "1 to 256"),
            ("1G,queues=many", "number of queues"),
            ("1G,eio=5", "OFFSET+LENGTH"),
            ("1G,eio=1G+4k", "inside the disk"),
            ("1G,eio=100+512", "multiples of 512"),
            ("1G,eio=0+1M", "at most 256 KiB"),
            ("1G,eio=0+0", "multiples of 512"),
            ("1G,bus=nvme,werror=stop", "nvme"),
        ] {
            let error = Disk::parse(text, "d").unwrap_err().to_string();
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
