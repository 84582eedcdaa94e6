//! Whether writes that a file system acknowledged as durable survive a power cut.
//!
//! A twin of the file system, made and mounted with the same options, is put on a disk with a
//! volatile write cache ([`crate::side_by_side::volatile`]), with a loop device in between that passes flushes
//! on. Numbered blocks are appended to a file, each made durable by fsync, fdatasync or O_DSYNC.
//! Right after the last one the power is cut: what the disk had not been told to keep is gone. The
//! file system is mounted again, which repairs it, and the blocks are looked for.

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

/// xfs wants at least 300 MiB (mkfs.xfs(8)).
const SIZE: u64 = 320 << 20;
/// It stays sparse: its tables and journal, thrice.
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

/// Acknowledged blocks that are gone after the cut.
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
    // Not past the page cache: direct I/O of a loop device on QEMU's FUSE export garbles data (seen
    // with QEMU 7.2 and Linux 6.18), and a flush writes the page cache out first.
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
        // What cannot be mounted holds nothing.
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
    // The name has to be durable, too.
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
