//! Stage after a scan: acts on duplicates. [`plan`] makes a plan and changes nothing. [`execute`] executes the plan
//! and may refuse single steps. [`journal`] records each step, and [`undo`] reverts the steps.

mod attributes;
mod copy;
pub mod execute;
mod finish;
pub mod journal;
mod names;
mod obstacles;
mod origin;
mod places;
pub mod plan;
mod recover;
pub mod undo;

pub use origin::{KnownName, OriginalFile};

use crate::Identity;
use crate::roots::RootIdentity;
use rustix::fs::StatxFlags;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What is done with a redundant file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Replace the file by a hard link to the kept file.
    Hardlink,
    /// Keep the file, but share its blocks with the kept file.
    Reflink,
    /// Delete the file.
    Delete,
    /// Move the file below this folder, and keep its whole path there.
    Move(#[serde(with = "crate::name_json")] Vec<u8>),
}

impl Action {
    /// Returns the name of the action for messages.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Hardlink => "hardlink",
            Self::Reflink => "reflink",
            Self::Delete => "delete",
            Self::Move(_) => "move",
        }
    }
}

/// State of a file when the plan was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// Absolute path of the file.
    #[serde(with = "crate::name_json")]
    pub path: Vec<u8>,
    /// Number of the device that contains the file.
    pub device: u64,
    /// Inode number.
    pub ino: u64,
    /// Size in bytes.
    pub size: u64,
    /// Time of the last change of the content, nanoseconds since 1970.
    pub mtime: i64,
    /// Time of the last change of anything, nanoseconds since 1970.
    pub ctime: i64,
    /// Permissions: the low twelve bits of the mode.
    pub mode: u32,
    /// User id of the owner.
    pub uid: u32,
    /// Id of the file's group.
    pub gid: u32,
    /// The scanned root folder that contains the file.
    #[serde(default, with = "anchor")]
    pub root: Arc<RootIdentity>,
    /// Number of the mount through which the file was seen; 0 if the kernel does not report it.
    #[serde(skip)]
    pub mount: u64,
    /// Number of hard links; 0 if the number was not read.
    #[serde(skip)]
    pub links: u64,
}

impl Subject {
    pub(crate) fn identity(&self) -> Identity {
        Identity {
            ino: self.ino,
            size: self.size,
            mtime: self.mtime,
            ctime: self.ctime,
        }
    }

    /// Builds a subject from the statx result of a path below a root.
    pub(crate) fn from_stat(
        path: Vec<u8>,
        root: &Arc<RootIdentity>,
        stat: &rustix::fs::Statx,
    ) -> Self {
        let id = crate::sys::statx_identity(stat);
        let told = StatxFlags::from_bits_retain(stat.stx_mask);
        Self {
            path,
            device: crate::sys::statx_device(stat),
            ino: id.ino,
            size: id.size,
            mtime: id.mtime,
            ctime: id.ctime,
            mode: u32::from(stat.stx_mode) & 0o7777,
            uid: stat.stx_uid,
            gid: stat.stx_gid,
            root: root.clone(),
            mount: match told.contains(StatxFlags::MNT_ID) {
                true => stat.stx_mnt_id,
                false => 0,
            },
            links: stat.stx_nlink.into(),
        }
    }
}

/// One step of a plan: an action on one redundant name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActStep {
    /// What the step does with the redundant copy.
    pub action: Action,
    /// The copy that stays unchanged.
    pub keep: Subject,
    /// The copy that is removed or replaced.
    pub remove: Subject,
    /// Number of bytes that the step frees.
    pub gain: u64,
    /// The names of the removed file before the run. Only the first step of each file contains this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Box<OriginalFile>>,
}

/// A step that is not carried out, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// Path of the file that stays unchanged.
    #[serde(with = "crate::name_json")]
    pub path: Vec<u8>,
    /// Why the step is not carried out.
    pub why: String,
}

/// Serialises the root folder that several steps share. In JSON, each step contains its own copy.
mod anchor {
    use super::{Arc, RootIdentity};
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    pub(super) fn serialize<S: Serializer>(
        anchor: &Arc<RootIdentity>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        anchor.as_ref().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Arc<RootIdentity>, D::Error> {
        RootIdentity::deserialize(from).map(Arc::new)
    }
}
