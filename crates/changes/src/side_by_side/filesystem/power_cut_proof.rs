//! Tests whether writes that a file system acknowledged as durable survive a power cut.
//!
//! A twin of the file system, created and mounted with the same options, is placed on a disk with a volatile write
//! cache ([`crate::side_by_side::volatile`]). A loop device between them passes flushes on. The test appends numbered
//! blocks to a file, each made durable with fsync, fdatasync or O_DSYNC. Directly after the last block the power is
//! cut: the disk loses all data that was not flushed. The file system is then mounted again, which repairs it, and the
//! test looks for the blocks.

use super::{BACKING, FileSystem, Wanted};
use crate::side_by_side::ArmError;
use crate::side_by_side::durable::{self, BLOCK, WRITES};
use crate::side_by_side::teardown::Things;
use crate::side_by_side::volatile::VolatileFile;
use assay_loads::{Cancel, layout};
use assay_model::Bytes;
use assay_model::trial::{DurabilityProof, Side};
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// Size of the twin in bytes; xfs requires at least 300 MiB (mkfs.xfs(8)).
const SIZE: u64 = 320 << 20;
/// Required free space: three times the metadata tables and the journal. The rest of the file stays sparse.
const ROOM: Bytes = Bytes(256 << 20);
const MOUNT: &str = "proof-mnt";
const FILE: &str = "numbered";

impl FileSystem {
    pub fn prove_durability(
        &self,
        things: &mut Things<'_>,
        side: Side,
        cancel: &Cancel,
    ) -> Result<DurabilityProof, ArmError> {
        let lost = things.aside("proof", ROOM, |things, dir| {
            count_lost_blocks(&self.wanted(), things, dir, cancel)
        })?;
        Ok(DurabilityProof {
            side,
            method: format!(
                "{WRITES} numbered blocks of 4 KiB were appended to a file of a twin of the file \
                 system on a disk with a volatile write cache, each with fsync, fdatasync or \
                 O_DSYNC; the power was cut right after the last acknowledgement, and the file \
                 system was mounted again"
            ),
            acknowledged: WRITES,
            lost,
        })
    }
}

/// Counts the acknowledged blocks that are missing after the power cut.
fn count_lost_blocks(
    wanted: &Wanted<'_>,
    things: &mut Things<'_>,
    dir: &Path,
    cancel: &Cancel,
) -> Result<u64, ArmError> {
    let seed = things.seed();
    let backing = dir.join(BACKING);
    let made = File::create_new(&backing).and_then(|file| file.set_len(SIZE));
    made.map_err(ArmError::io(&backing))?;
    let volatile = VolatileFile::mount(things, dir, BACKING, cancel)?;
    // Without direct I/O: direct I/O of a loop device on QEMU's FUSE export corrupts data (observed with QEMU
    // 7.2 and Linux 6.18). A flush writes the page cache first.
    let shown = volatile.mountpoint().to_owned();
    let (attached, device) = things.attach(&open(&shown)?, shown, false, false)?;
    wanted.make(things, dir, &device, cancel)?;
    let mounted = wanted.mount(things, dir, MOUNT, &device, cancel)?;
    let mount = things.kept(MOUNT);
    write(&mount, seed, cancel)?;
    let moment = volatile.moment();
    things.remove(mounted)?;
    things.remove(attached)?;
    volatile.unmount(things)?.cut(moment)?;

    let shown = things.shown().join("proof").join(BACKING);
    let (attached, device) = things.attach(&open(&backing)?, shown, true, true)?;
    let missing = match wanted.mount(things, dir, MOUNT, &device, cancel) {
        Ok(mounted) => {
            let missing = count_missing_blocks(&mount.join(FILE), seed);
            things.remove(mounted)?;
            missing
        }
        // A file system that cannot be mounted has lost all blocks.
        Err(ArmError::Tool { .. }) => WRITES,
        Err(error) => return Err(error),
    };
    things.remove(attached)?;
    Ok(missing)
}

fn open(path: &Path) -> Result<File, ArmError> {
    let opened = File::options().read(true).write(true).open(path);
    opened.map_err(ArmError::io(path))
}

fn write(mount: &Path, seed: u64, cancel: &Cancel) -> Result<(), ArmError> {
    let path = mount.join(FILE);
    // The file's name must be durable too.
    File::create_new(&path)
        .and_then(|_| File::open(mount)?.sync_all())
        .map_err(ArmError::io(&path))?;
    durable::write(&path, WRITES, seed, cancel)
}

fn count_missing_blocks(path: &Path, seed: u64) -> u64 {
    let Ok(file) = File::open(path) else {
        return WRITES;
    };
    let mut data = layout::Data::new(seed);
    let mut found = [0; BLOCK];
    let lost = (0..WRITES).filter(|index| {
        let offset = index * BLOCK as u64;
        let read = file.read_exact_at(&mut found, offset);
        read.is_err() || found != data.next(offset, BLOCK)
    });
    lost.count() as u64
}
