//! Builds the two objects ("arms") that a trial compares at the same time: disk images served over NBD, file systems on
//! loop devices, ZFS datasets and volumes, logical volumes, or a second sshd. Each arm has its own directory. The arm
//! is recorded in the journal before it is created, and is removed when dropped.
#![allow(
    clippy::disallowed_methods,
    reason = "this crate makes files and starts servers, and removes them again"
)]

mod child;
mod durable;
mod endpoint;
mod error;
mod filesystem;
mod image;
mod loop_volume;
mod lvm;
mod nbd;
mod sshd;
mod teardown;
mod tool;
mod volatile;
mod zfs;

pub use endpoint::{ArmSite, Endpoint};
pub use error::ArmError;
pub use loop_volume::{LoopLayer, LoopVolume, loop_volume};
pub use lvm::{LogicalVolume, logical_volume};

use crate::ChangeSession;
use assay_host::HostMut;
use assay_loads::Cancel;
use assay_model::Bytes;
use assay_model::change::Arm;
use assay_model::trial::{DurabilityProof, Side};
use std::path::PathBuf;
use teardown::Things;

/// A complete arm. Dropping it removes everything that was created for it.
pub struct Built<'a> {
    kind: Kind<'a>,
    // Dropped last, because it removes objects that the arm uses.
    things: Things<'a>,
}

enum Kind<'a> {
    Image(image::Image),
    FileSystem(filesystem::FileSystem),
    Zfs(zfs::Dataset),
    Sshd(sshd::Sshd<'a>),
}

/// Builds an arm and starts its server.
/// The kernel kills the child processes when assay ends, also after a kill; files, loop devices and mounts are
/// recorded in the journal.
///
/// # Errors
/// A tool is missing or fails, the disk is full, root is required, or the user interrupted. Everything created
/// before is removed.
pub fn build<'a>(
    host: &'a dyn HostMut,
    session: &'a ChangeSession,
    arm: &Arm,
    place: &ArmSite,
    cancel: &Cancel,
) -> Result<Built<'a>, ArmError> {
    let mut things = Things::new(host, session, place)?;
    match build_kind(&mut things, arm, place.size, cancel) {
        Ok(kind) => Ok(Built { kind, things }),
        Err(error) => Err(things.named(error)),
    }
}

fn build_kind<'a>(
    things: &mut Things<'a>,
    arm: &Arm,
    size: Bytes,
    cancel: &Cancel,
) -> Result<Kind<'a>, ArmError> {
    Ok(match arm {
        Arm::Image(arm) => Kind::Image(image::build(things, arm, size, cancel)?),
        Arm::FileSystem {
            fstype,
            mkfs,
            mount,
        } => {
            let wanted = filesystem::Wanted {
                fstype,
                mkfs,
                mount,
            };
            Kind::FileSystem(filesystem::build(things, wanted, size, cancel)?)
        }
        Arm::Dataset { parent, properties } | Arm::Zvol { parent, properties } => {
            let wanted = zfs::Wanted {
                parent,
                properties,
                volume: matches!(arm, Arm::Zvol { .. }),
            };
            Kind::Zfs(zfs::build(things, wanted, size, cancel)?)
        }
        Arm::Sshd { config, set } => {
            let config = std::path::Path::new(config);
            Kind::Sshd(sshd::build(things, config, set, cancel)?)
        }
    })
}

/// An empty mounted file system. Dropping it removes it.
pub struct Mounted<'a> {
    things: Things<'a>,
}

/// Creates a file system on a loop device and mounts it, with space for [`ArmSite::size`] bytes.
///
/// # Errors
/// As [`build`].
pub fn mount<'a>(
    host: &'a dyn HostMut,
    session: &'a ChangeSession,
    fstype: &str,
    place: &ArmSite,
    cancel: &Cancel,
) -> Result<Mounted<'a>, ArmError> {
    let mut things = Things::new(host, session, place)?;
    let wanted = filesystem::Wanted {
        fstype,
        mkfs: &[],
        mount: &[],
    };
    match filesystem::make_empty_filesystem(&mut things, wanted, place.size, cancel) {
        Ok(_) => Ok(Mounted { things }),
        Err(error) => Err(things.named(error)),
    }
}

impl Mounted<'_> {
    /// Returns the mount point.
    #[must_use]
    pub fn dir(&self) -> PathBuf {
        self.things.kept(filesystem::MOUNT)
    }
}

impl Built<'_> {
    /// Returns the address or path at which the load is directed.
    #[must_use]
    pub fn endpoint(&self) -> Endpoint {
        match &self.kind {
            Kind::Image(_) => Endpoint::Nbd {
                socket: self.things.path(image::arguments::SOCKET),
                export: image::arguments::EXPORT.to_owned(),
            },
            Kind::FileSystem(_) => {
                let mount = self.things.kept(filesystem::MOUNT);
                Endpoint::Path(mount.join(filesystem::FILE))
            }
            Kind::Zfs(dataset) => Endpoint::Path(dataset.path().to_owned()),
            Kind::Sshd(sshd) => Endpoint::Address {
                host: sshd.address().ip().to_string(),
                port: sshd.address().port(),
            },
        }
    }

    /// Reads the present configuration of the running arm. Returns it in one line.
    ///
    /// # Errors
    /// The arm no longer answers.
    pub fn read_back(&self) -> Result<String, ArmError> {
        match &self.kind {
            Kind::Image(image) => image.read_back(&self.things),
            Kind::FileSystem(system) => system.read_back(&self.things),
            Kind::Zfs(dataset) => dataset.read_back(&self.things),
            Kind::Sshd(sshd) => sshd.read_back(&self.things),
        }
        .map_err(|error| self.things.named(error))
    }

    /// Tests whether writes that were acknowledged as durable survive a power cut. The test uses a twin of this arm,
    /// which temporarily needs some 200 MiB, QEMU's storage daemon and FUSE. For ZFS, the test counts the commits of
    /// the intent log instead.
    ///
    /// # Errors
    /// The twin cannot be created, or the user interrupted.
    pub fn prove_durability(
        &mut self,
        side: Side,
        cancel: &Cancel,
    ) -> Result<DurabilityProof, ArmError> {
        match &self.kind {
            Kind::Image(image) => image.prove_durability(&mut self.things, side, cancel),
            Kind::FileSystem(system) => system.prove_durability(&mut self.things, side, cancel),
            Kind::Zfs(dataset) => dataset.prove_durability(&self.things, side, cancel),
            Kind::Sshd(_) => Err(ArmError::Refused {
                what: "durability of an sshd".to_owned(),
                source: "it is proved for disk images, file systems and volumes".into(),
            }),
        }
        .map_err(|error| self.things.named(error))
    }

    /// Returns a remark without which a reader would misinterpret the arm's figures; `None` if no remark is needed.
    #[must_use]
    pub fn remark(&self) -> Option<&'static str> {
        let root = rustix::process::geteuid().is_root();
        match &self.kind {
            Kind::Sshd(_) if !root => Some(
                "this sshd runs without root: only the user who started it can log in, by key; \
                 passwords and PAM do not work",
            ),
            _ => None,
        }
    }

    /// Returns the server process, whose CPU time counts as part of the load; `None` if the kernel is the server.
    #[must_use]
    pub fn server_pid(&self) -> Option<u32> {
        match &self.kind {
            Kind::Image(image) => Some(image.pid()),
            Kind::Sshd(sshd) => Some(sshd.pid()),
            Kind::FileSystem(_) | Kind::Zfs(_) => None,
        }
    }
}
