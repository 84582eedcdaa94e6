//! Tests whether writes that an image acknowledged as durable survive a power cut.
//!
//! A twin of the arm, served with the same arguments, is placed on a disk with a volatile write cache
//! ([`crate::side_by_side::volatile`]). The test writes numbered blocks through the twin's export, each with a request
//! for durability. After some of the acknowledgements the power is cut: the disk loses all data that was not flushed.
//! QEMU opens the remaining image, and the test looks for the acknowledged blocks. The test cannot show whether the
//! real disk below the arm keeps flushed data.

use super::{Tool, arguments, create, find_server, make_key, serve};
use crate::side_by_side::ArmError;
use crate::side_by_side::child::Running;
use crate::side_by_side::nbd::{Client, FLAG_FUA};
use crate::side_by_side::teardown::Things;
use crate::side_by_side::volatile::VolatileFile;
use arguments::{EXPORT, IMAGE, KEY, SOCKET};
use assay_loads::{Cancel, layout};
use assay_model::Bytes;
use assay_model::change::{ImageArm, ImageFormat};
use assay_model::trial::{DurabilityProof, Side};
use std::fs::{self, File};
use std::path::Path;

const SIZE: Bytes = Bytes(64 << 20);
/// Required free space for the image, for the present contents of the disk, and for the log of the disk.
const ROOM: Bytes = Bytes(256 << 20);
/// Free space on the twin's disk into which a qcow2 file can grow, because this disk has a fixed size.
const GROWTH: u64 = 128 << 20;
const BLOCK: usize = 4096;
const WRITES: u64 = 3 * CUT_EVERY;
/// Number of acknowledgements between two power cuts. The number is prime, so that cuts follow every kind of request.
const CUT_EVERY: u64 = 79;

/// How a write requests durability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// A flush after the write.
    Flush,
    /// A write with the flag FUA (force unit access).
    Fua,
    /// No request: the cache mode itself makes each write durable.
    Nothing,
}

/// Returns the requests after which a cache mode guarantees durability.
pub(crate) fn promised_guarantees(arm: &ImageArm) -> &'static [Asked] {
    match arm.cache.shows_write_cache() {
        true => &[Asked::Flush, Asked::Fua],
        false => &[Asked::Nothing, Asked::Flush, Asked::Fua],
    }
}

pub(crate) fn prove_durability(
    things: &mut Things<'_>,
    arm: &ImageArm,
    side: Side,
    asked: &[Asked],
    cancel: &Cancel,
) -> Result<DurabilityProof, ArmError> {
    let lost = things.aside("proof", ROOM, |things, dir| {
        let seed = things.seed();
        let twin = Twin {
            dir,
            arm,
            asked,
            seed,
            cancel,
        };
        twin.lose(things)
    })?;
    let kinds = match asked.contains(&Asked::Nothing) {
        true => "a flush, the flag FUA, or nothing, which this cache mode promises to suffice",
        false => "a flush or the flag FUA",
    };
    Ok(DurabilityProof {
        side,
        method: format!(
            "{WRITES} numbered blocks of 4 KiB were written over NBD to a twin of the image on a \
             disk with a volatile write cache, each with {kinds}; the power was cut right after \
             every {CUT_EVERY}th acknowledgement, and QEMU opened what was left"
        ),
        acknowledged: WRITES,
        lost,
    })
}

struct Twin<'a> {
    dir: &'a Path,
    arm: &'a ImageArm,
    asked: &'a [Asked],
    seed: u64,
    cancel: &'a Cancel,
}

impl Twin<'_> {
    /// Runs the test. Returns the number of acknowledged blocks that are missing after the worst power cut.
    fn lose(&self, things: &mut Things<'_>) -> Result<u64, ArmError> {
        let (program, tool) = find_server(things.host)?;
        let path = self.dir.join(IMAGE);
        if self.arm.luks {
            make_key(&self.dir.join(KEY))?;
        }
        create(things.host, self.dir, self.arm, SIZE, self.cancel)?;
        if self.arm.format == ImageFormat::Qcow2 {
            let grown = File::options().write(true).open(&path).and_then(|image| {
                let length = image.metadata()?.len() + GROWTH;
                image.set_len(length.next_multiple_of(1 << 20))
            });
            grown.map_err(ArmError::io(&path))?;
        }
        let image = VolatileFile::mount(things, self.dir, IMAGE, self.cancel)?;
        let args = match tool {
            Tool::Daemon => arguments::daemon_arguments(self.arm, &arguments::file_node(self.arm)),
            Tool::QemuNbd => arguments::qemu_nbd(self.arm),
        };
        let running = serve(things, self.dir, &program, &args, self.cancel)?;
        let moments = self.write(&image)?;
        // The server is killed, because a regular end would flush.
        drop(running);
        let mut image = image.unmount(things)?;

        let mut worst = 0;
        for (acknowledged, moment) in moments {
            image.cut(moment)?;
            worst = worst.max(self.missing(things, acknowledged)?);
        }
        Ok(worst)
    }

    /// Writes all blocks. For each power cut, returns its position in the disk's log and the number of blocks that were
    /// acknowledged before it.
    fn write(&self, image: &VolatileFile) -> Result<Vec<(u64, usize)>, ArmError> {
        let mut moments = Vec::new();
        let mut client = self.client()?;
        let mut data = layout::Data::new(self.seed);
        for index in 0..WRITES {
            if self.cancel.is_cancelled() {
                return Err(ArmError::Cancelled);
            }
            let offset = block_offset(index);
            let block = data.next(offset, BLOCK);
            let asked = self.asked[usize::try_from(index).unwrap_or(0) % self.asked.len()];
            let written = match asked {
                Asked::Fua => client.write(offset, block, FLAG_FUA),
                Asked::Nothing => client.write(offset, block, 0),
                Asked::Flush => client.write(offset, block, 0).and_then(|()| client.flush()),
            };
            written.map_err(ArmError::io(&self.dir.join(SOCKET)))?;
            if (index + 1) % CUT_EVERY == 0 {
                moments.push((index + 1, image.moment()));
            }
        }
        Ok(moments)
    }

    fn client(&self) -> Result<Client, ArmError> {
        let socket = self.dir.join(SOCKET);
        Client::connect(&socket, EXPORT).map_err(ArmError::io(&socket))
    }

    /// Returns how many of the first `acknowledged` blocks the image does not contain.
    fn missing(&self, things: &mut Things<'_>, acknowledged: u64) -> Result<u64, ArmError> {
        let _server = match self.look(things) {
            Ok(server) => server,
            // An image that cannot be opened has lost all blocks.
            Err(ArmError::Tool { .. }) => return Ok(acknowledged),
            Err(error) => return Err(error),
        };
        let mut client = self.client()?;
        let mut data = layout::Data::new(self.seed);
        let mut found = [0; BLOCK];
        let mut missing = 0;
        for index in 0..acknowledged {
            let offset = block_offset(index);
            let read = client.read(offset, &mut found);
            if read.is_err() || found != data.next(offset, BLOCK) {
                missing += 1;
            }
        }
        Ok(missing)
    }

    /// Opens the remaining image read-only, so that it stays unchanged for the next cut.
    fn look(&self, things: &mut Things<'_>) -> Result<Running, ArmError> {
        let _ = fs::remove_file(self.dir.join(SOCKET));
        let (program, tool) = find_server(things.host)?;
        let args = match tool {
            Tool::Daemon => arguments::daemon_read_only(self.arm),
            Tool::QemuNbd => arguments::qemu_nbd_read_only(self.arm),
        };
        serve(things, self.dir, &program, &args, self.cancel)
    }
}

/// Returns the offset of a block. The blocks are far apart. 24,571 is prime and therefore has no common divisor with
/// the number of blocks.
fn block_offset(index: u64) -> u64 {
    let blocks = SIZE.0 / BLOCK as u64;
    index * 24_571 % blocks * BLOCK as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The control: writes without a durability request are lost, so the test can fail.
    #[test]
    fn writes_that_nobody_flushed_are_lost() {
        let state = tempfile::tempdir().unwrap();
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let journal = crate::Journal::open(state.path()).unwrap();
        let session = journal.begin("a test", "here").unwrap();
        let place = crate::side_by_side::ArmSite {
            dir: dir.path().to_owned(),
            name: "now".to_owned(),
            size: SIZE,
        };
        let mut things = Things::new(&assay_host::LiveHost, &session, &place).unwrap();
        let cache = |cache| ImageArm {
            format: ImageFormat::Raw,
            options: [].into(),
            cache,
            aio: assay_model::change::Aio::Threads,
            luks: false,
            filled: false,
        };
        let mut lost = |mode| {
            let asked = [Asked::Nothing];
            let cancel = Cancel::default();
            let proof = prove_durability(&mut things, &cache(mode), Side::Now, &asked, &cancel);
            proof.unwrap().lost
        };
        use assay_model::change::CacheMode;
        assert_eq!(lost(CacheMode::Writeback), WRITES);
        assert_eq!(lost(CacheMode::Writethrough), 0);
    }

    #[test]
    fn every_block_has_its_own_place() {
        let mut seen: Vec<_> = (0..WRITES).map(block_offset).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len() as u64, WRITES);
        assert!(seen.iter().all(|offset| offset + 4096 <= SIZE.0));
    }
}
