//! Stage 6: acting on duplicates. [`plan`] decides and touches nothing; [`execute`] does what the
//! plan says and decides nothing but to refuse; [`journal`] remembers, [`undo`] takes back.

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
use crate::roots::Anchor;
use rustix::fs::StatxFlags;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What becomes of a redundant file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Its name becomes one more name of the kept file.
    Hardlink,
    /// It stays a file of its own but shares its blocks with the kept one.
    Reflink,
    /// It is deleted.
    Delete,
    /// It is moved below a folder, where it keeps its whole path.
    Move(#[serde(with = "crate::name_json")] Vec<u8>),
}

impl Action {
    /// The word for it in messages.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Hardlink => "hardlink",
            Self::Reflink => "reflink",
            Self::Delete => "delete",
            Self::Move(_) => "move",
        }
    }
}

/// A file as it was when the plan was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// Absolute path.
    #[serde(with = "crate::name_json")]
    pub path: Vec<u8>,
    /// Device number.
    pub device: u64,
    /// Inode number.
    pub ino: u64,
    /// Length, bytes.
    pub size: u64,
    /// Time of the last change of the content, nanoseconds since 1970.
    pub mtime: i64,
    /// Time of the last change of anything, nanoseconds since 1970.
    pub ctime: i64,
    /// Permissions (the low twelve bits of the mode).
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// The folder that the user named and below which it lies.
    #[serde(default, with = "anchor")]
    pub root: Arc<Anchor>,
    /// Number of the mount it was seen on; 0 where the kernel does not say.
    #[serde(skip)]
    pub mount: u64,
    /// Number of names that it had; 0 where nobody looked.
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

    /// Of what was found under a path below a root.
    pub(crate) fn from_stat(path: Vec<u8>, root: &Arc<Anchor>, stat: &rustix::fs::Statx) -> Self {
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

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActStep {
    /// What.
    pub action: Action,
    /// The copy that stays.
    pub keep: Subject,
    /// The copy that is acted on.
    pub remove: Subject,
    /// Bytes that this frees.
    pub gain: u64,
    /// What else is known of the file that is acted on; stands on the first step of each file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Box<OriginalFile>>,
}

/// Something that will not or did not happen, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// The file that stays as it is.
    #[serde(with = "crate::name_json")]
    pub path: Vec<u8>,
    /// Why.
    pub why: String,
}

/// An anchor that many share, each with its own copy in JSON.
mod anchor {
    use super::{Anchor, Arc};
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    pub(super) fn serialize<S: Serializer>(anchor: &Arc<Anchor>, to: S) -> Result<S::Ok, S::Error> {
        anchor.as_ref().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<Anchor>, D::Error> {
        Anchor::deserialize(from).map(Arc::new)
    }
}
