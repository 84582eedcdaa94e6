//! Changes: what a piece of advice would alter, as data. `assay-changes` carries them out.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One thing on a machine that can be read, set and set back. Its value is text as the machine
/// prints it, or nothing: inherited, or no line in the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Setting {
    /// A property of a ZFS dataset (zfsprops(7)); nothing is "inherited".
    ZfsProperty {
        /// `pool/dataset`.
        dataset: String,
        /// `compression`, `recordsize`, ….
        property: String,
    },
    /// A parameter of a loaded kernel module, `/sys/module/MODULE/parameters/NAME` (zfs(4)).
    ModuleParameter {
        /// `zfs`.
        module: String,
        /// `zfs_arc_max`.
        name: String,
    },
    /// A kernel parameter below /proc/sys (sysctl(8)).
    Sysctl {
        /// `vm.dirty_ratio`.
        key: String,
    },
    /// A setting of a block device's queue, `/sys/block/DEVICE/queue/ATTRIBUTE`.
    Queue {
        /// Kernel name, `sda`, or a path that leads to it.
        device: String,
        /// `scheduler`, `read_ahead_kb`, ….
        attribute: String,
    },
    /// Another attribute of the kernel, below /sys; where it shows all choices, the value is the one in
    /// brackets.
    Sysfs {
        /// `kernel/mm/transparent_hugepage/enabled`.
        attribute: String,
    },
    /// Which of several mount options is in effect, changed by a remount.
    MountOption {
        /// Where it is mounted.
        mountpoint: String,
        /// The options that exclude each other, as /proc/self/mounts prints them:
        /// `["relatime", "noatime"]`. What is not printed is the kernel's default: `""`.
        choices: Vec<String>,
    },
    /// A setting in a configuration file; nothing is "no line for it".
    Config {
        /// The file.
        file: String,
        /// In which language it is written.
        language: ConfigLanguage,
        /// Blocks around it, outermost first: `["http"]`, `["passdb"]`.
        #[serde(default)]
        section: Vec<String>,
        /// The directive or key.
        key: String,
        /// Says whether the file is acceptable, before anything is reloaded; `{file}` is the file
        /// to look at.
        #[serde(default)]
        validate: Vec<String>,
        /// Makes the service read it; `{file}` is the file itself.
        #[serde(default)]
        reload: Vec<String>,
    },
    /// Several settings of one configuration file, changed in one step. Its value is a JSON array with the
    /// value of each in the order of `keys`; `null` is "no line for it".
    ConfigKeys {
        /// The file.
        file: String,
        /// In which language it is written.
        language: ConfigLanguage,
        /// The settings.
        keys: Vec<ConfigKey>,
        /// As for one setting.
        #[serde(default)]
        validate: Vec<String>,
        /// As for one setting.
        #[serde(default)]
        reload: Vec<String>,
    },
    /// The user's own commands.
    Command {
        /// Prints the value.
        read: Vec<String>,
        /// Sets it; `{value}` is the value.
        apply: Vec<String>,
        /// Sets it back; `{value}` is the value that was there.
        undo: Vec<String>,
    },
}

/// A setting among others of one file.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(deny_unknown_fields)]
pub struct ConfigKey {
    /// Blocks around it, outermost first.
    #[serde(default)]
    pub section: Vec<String>,
    /// The directive or key.
    pub key: String,
}

/// Languages of configuration files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ConfigLanguage {
    /// sshd_config(5), ssh_config(5): `Keyword value`, Match and Host blocks; the first one wins.
    Ssh,
    /// nginx: `directive value;` and blocks in braces.
    Nginx,
    /// Apache's httpd: `Directive value` and sections `<Name …>`; a key that is there twice is refused.
    Apache,
    /// Postfix main.cf(5): `key = value`, continuation lines; the last one wins.
    Postfix,
    /// Dovecot 2.3: `key = value` and blocks in braces.
    Dovecot,
    /// nsswitch.conf(5): `database: source source`.
    Nsswitch,
    /// `key = value` or `key=value`, `#` comments; the last one wins (sysctl.d, modprobe options
    /// are not it).
    KeyValue,
    /// INI: `[section]` and `key = value`.
    Ini,
}

/// What a piece of advice would change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Change {
    /// A setting of the machine, set and set back before every slot.
    Set {
        /// What is set.
        setting: Setting,
        /// To what; nothing takes the setting away.
        value: Option<String>,
    },
    /// Two things made by assay that differ in the change alone, kept alive side by side.
    SideBySide {
        /// As it is now.
        now: Arm,
        /// As the advice wants it.
        changed: Arm,
    },
}

/// Something assay makes to measure on, and removes again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Arm {
    /// A disk image, served over NBD by QEMU's own block layer; no guest and no root needed.
    Image(ImageArm),
    /// A file system on a loop device; needs root.
    FileSystem {
        /// `ext4`, `xfs`, `btrfs`, ….
        fstype: String,
        /// More arguments for mkfs.
        #[serde(default)]
        mkfs: Vec<String>,
        /// Mount options.
        #[serde(default)]
        mount: Vec<String>,
    },
    /// A ZFS file system, a child of a data set of the user's; needs root.
    Dataset {
        /// `tank/data`, under which it is made. What `properties` does not name is inherited from it.
        parent: String,
        /// Properties it is created with (zfsprops(7)): `recordsize`, `compression`, ….
        #[serde(default)]
        properties: BTreeMap<String, String>,
    },
    /// A ZFS volume, a child of a data set of the user's; needs root.
    Zvol {
        /// As for a data set.
        parent: String,
        /// As for a data set: `volblocksize`, ….
        #[serde(default)]
        properties: BTreeMap<String, String>,
    },
    /// A second sshd with a copy of the configuration, on a loopback port of its own.
    Sshd {
        /// The configuration it copies.
        config: String,
        /// Keywords set in the copy.
        #[serde(default)]
        set: BTreeMap<String, String>,
    },
}

/// A disk image and how it is opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImageArm {
    /// Format.
    pub format: ImageFormat,
    /// Options of `qemu-img create -o`: `cluster_size`, `extended_l2`, `preallocation`, ….
    #[serde(default)]
    pub options: BTreeMap<String, String>,
    /// QEMU's cache mode.
    #[serde(default)]
    pub cache: CacheMode,
    /// How QEMU submits I/O to the host.
    #[serde(default)]
    pub aio: Aio,
    /// Encrypted with LUKS (a throwaway key).
    #[serde(default)]
    pub luks: bool,
    /// Written once from end to end before measuring; otherwise every first write allocates.
    #[serde(default)]
    pub filled: bool,
}

/// Image formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ImageFormat {
    /// Bytes as they are.
    Raw,
    /// QEMU copy on write, version 3.
    Qcow2,
}

/// QEMU's cache modes (qemu(1), `-drive cache=`).
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum CacheMode {
    /// O_DIRECT on the host; the guest's flushes are passed on.
    #[default]
    None,
    /// Through the host's page cache; the guest's flushes are passed on.
    Writeback,
    /// Through the host's page cache, flushed after every write.
    Writethrough,
    /// O_DIRECT, flushed after every write.
    Directsync,
    /// Through the host's page cache; flushes are ignored. Loses data.
    Unsafe,
}

impl CacheMode {
    /// `cache.direct`: O_DIRECT on the host.
    #[must_use]
    pub fn direct(self) -> bool {
        matches!(self, Self::None | Self::Directsync)
    }

    /// Whether the guest sees a cache that it has to flush.
    #[must_use]
    pub fn shows_write_cache(self) -> bool {
        !matches!(self, Self::Writethrough | Self::Directsync)
    }

    /// `cache.no-flush`: flushes are ignored.
    #[must_use]
    pub fn ignores_flushes(self) -> bool {
        self == Self::Unsafe
    }
}

crate::named!(CacheMode, "cache mode": Writeback = "writeback", None = "none",
    Writethrough = "writethrough", Directsync = "directsync", Unsafe = "unsafe");
crate::named!(Aio, "aio": Threads = "threads", Native = "native", IoUring = "io_uring");

/// How QEMU submits I/O.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Aio {
    /// A pool of threads.
    #[default]
    Threads,
    /// Linux native asynchronous I/O; needs a cache mode that bypasses the page cache.
    Native,
    /// io_uring.
    #[serde(rename = "io_uring")]
    IoUring,
}
