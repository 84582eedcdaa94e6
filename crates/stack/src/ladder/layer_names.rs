//! Names of the layers that a user can select on the command line.

use std::fmt;
use std::str::FromStr;

/// A layer that a user can select on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LadderPart {
    /// The scratch file, with the existing layers below it. This layer is always measured; `--layers file` adds no
    /// further layer.
    File,
    /// A disk image that is read and written through QEMU's block layer, without a guest.
    Image,
    /// The disk image, attached to a guest as a disk.
    Guest,
    /// LUKS encryption in the guest.
    Luks,
    /// A logical volume of LVM in the guest.
    Lvm,
    /// A file system in the guest.
    FileSystem(FileSystem),
}

/// A file system that assay creates as the topmost layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileSystem {
    /// The file system ext4.
    Ext4,
    /// The file system XFS.
    Xfs,
    /// The file system btrfs.
    Btrfs,
}

impl FileSystem {
    /// All supported file systems.
    pub const ALL: [Self; 3] = [Self::Ext4, Self::Xfs, Self::Btrfs];

    /// Returns options of mkfs that avoid deferred work during the measurement. Otherwise inode tables would be written
    /// in the background, and discarded blocks would be allocated at their first write.
    pub(super) fn eager_options(self) -> Vec<String> {
        let options: &[&str] = match self {
            Self::Ext4 => &["-Elazy_itable_init=0,lazy_journal_init=0,nodiscard"],
            Self::Xfs | Self::Btrfs => &["-K"],
        };
        options.iter().map(|&word| word.to_owned()).collect()
    }

    /// Returns the name of the file system type for mount(8).
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
        }
    }
}

impl LadderPart {
    /// All layers from the bottom upwards.
    pub const ALL: [Self; 8] = [
        Self::File,
        Self::Image,
        Self::Guest,
        Self::Luks,
        Self::Lvm,
        Self::FileSystem(FileSystem::Ext4),
        Self::FileSystem(FileSystem::Xfs),
        Self::FileSystem(FileSystem::Btrfs),
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Image => "image",
            Self::Guest => "guest",
            Self::Luks => "luks",
            Self::Lvm => "lvm",
            Self::FileSystem(system) => system.name(),
        }
    }
}

impl fmt::Display for LadderPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for LadderPart {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = || Self::ALL.map(Self::name).join(", ");
        Self::ALL
            .into_iter()
            .find(|part| part.name() == text)
            .ok_or_else(|| format!("no layer {text:?}; there are {}", names()))
    }
}
