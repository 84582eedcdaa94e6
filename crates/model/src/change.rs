//! Defines the changes that advice proposes as data. `assay-changes` applies them.

mod arm_difference;

pub use arm_difference::ArmDifference;

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A setting of a machine that assay can read, change and restore. The value of a setting is the text that the machine
/// prints. It is `None` if the setting is inherited or has no line in its file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Setting {
    /// A property of a ZFS dataset (zfsprops(7)); `None` means inherited.
    ZfsProperty {
        /// Dataset in the form `pool/dataset`.
        dataset: String,
        /// Name of the property, such as `compression` or `recordsize`.
        property: String,
    },
    /// A parameter of a loaded kernel module, `/sys/module/MODULE/parameters/NAME` (zfs(4)).
    ModuleParameter {
        /// Name of the module, such as `zfs`.
        module: String,
        /// Name of the parameter, such as `zfs_arc_max`.
        name: String,
    },
    /// A kernel parameter below /proc/sys (sysctl(8)).
    Sysctl {
        /// Name of the parameter, such as `vm.dirty_ratio`.
        key: String,
    },
    /// A setting of a block device's queue, `/sys/block/DEVICE/queue/ATTRIBUTE`.
    Queue {
        /// Kernel name such as `sda`, or a path of the device.
        device: String,
        /// Name of the attribute, such as `scheduler` or `read_ahead_kb`.
        attribute: String,
    },
    /// Another kernel attribute below /sys. If its file lists all choices, the value is the choice in brackets.
    Sysfs {
        /// Path below /sys, such as `kernel/mm/transparent_hugepage/enabled`.
        attribute: String,
    },
    /// A group of mutually exclusive mount options. A change remounts the file system.
    MountOption {
        /// Mount point whose options are changed.
        mountpoint: String,
        /// The mutually exclusive options as in /proc/self/mounts, such as `["relatime", "noatime"]`. The option `""`
        /// stands for a kernel default that /proc/self/mounts does not print.
        choices: Vec<String>,
    },
    /// A setting in a configuration file. The value `None` means that no line sets it.
    Config {
        /// Path of the file.
        file: String,
        /// Syntax of the file.
        language: ConfigLanguage,
        /// Enclosing blocks, outermost first, such as `["http"]` or `["passdb"]`.
        #[serde(default)]
        section: Vec<String>,
        /// Name of the directive or key.
        key: String,
        /// Command that validates the file before the service reloads; `{file}` is replaced by the path of the file.
        #[serde(default)]
        validate: Vec<String>,
        /// Command that makes the service reload; `{file}` is replaced by the path of the file.
        #[serde(default)]
        reload: Vec<String>,
    },
    /// Several settings of one configuration file that are changed in one step. The value is a JSON array with the
    /// values in the order of `keys`. `null` in this array means that no line sets the key.
    ConfigKeys {
        /// Path of the file.
        file: String,
        /// Syntax of the file.
        language: ConfigLanguage,
        /// The settings that are changed together.
        keys: Vec<ConfigKey>,
        /// Command that validates the file, as in `Config`.
        #[serde(default)]
        validate: Vec<String>,
        /// Command that makes the service reload, as in `Config`.
        #[serde(default)]
        reload: Vec<String>,
    },
    /// Permission bits of a file or directory. The value has the form `0640`. Symbolic links are rejected.
    FileMode {
        /// Path of the file or directory, without symbolic links.
        file: String,
    },
    /// A file that does not exist yet, such as a drop-in of a service. The value is its text; `None` means that the
    /// file does not exist. An existing file is rejected.
    NewFile {
        /// Path of the file. Its directory need not exist.
        file: String,
        /// Command that validates the file, as in `Config`.
        #[serde(default)]
        validate: Vec<String>,
        /// Command that makes the service reload, as in `Config`.
        #[serde(default)]
        reload: Vec<String>,
    },
    /// A setting that the user's commands read and change.
    Command {
        /// Command that prints the current value.
        read: Vec<String>,
        /// Command that sets the value; `{value}` is replaced by the new value.
        apply: Vec<String>,
        /// Command that restores the previous value; `{value}` is replaced by the previous value.
        undo: Vec<String>,
    },
}

/// One of several settings of a configuration file.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(deny_unknown_fields)]
pub struct ConfigKey {
    /// Enclosing blocks, outermost first.
    #[serde(default)]
    pub section: Vec<String>,
    /// Name of the directive or key.
    pub key: String,
}

/// Syntax of a configuration file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ConfigLanguage {
    /// sshd_config(5) and ssh_config(5): `Keyword value`, Match and Host blocks. The first line of a keyword applies.
    Ssh,
    /// nginx: `directive value;`, and blocks in braces.
    Nginx,
    /// Apache httpd: `Directive value` and sections `<Name …>`. A duplicate key is an error.
    Apache,
    /// Postfix main.cf(5): `key = value` with continuation lines. The last line of a key applies.
    Postfix,
    /// Dovecot 2.3: `key = value`, and blocks in braces.
    Dovecot,
    /// nsswitch.conf(5): `database: source source`.
    Nsswitch,
    /// `key = value` or `key=value` with `#` comments. The last line of a key applies. Not for sysctl.d and modprobe
    /// options.
    KeyValue,
    /// INI: `[section]` and `key = value`.
    Ini,
    /// One statement per line, which consists of words: HAProxy, Redis, sudoers(5), exports(5), `pg_hba.conf`.
    Words,
    /// Shell assignments: /etc/default/*, /etc/environment.
    Shell,
    /// postgresql.conf: `name = value`, values in single quotes.
    Postgresql,
    /// Option files of `MariaDB` and `MySQL`: groups with lines `name` or `name = value`.
    Mysql,
    /// sysctl.d(5): names with dots or slashes. A hyphen before a name means that failure to set it is ignored.
    Sysctl,
    /// fstab(5): the key is a mount point, the value is its options.
    Fstab,
    /// modprobe.d(5): the key is a module and a parameter.
    Modprobe,
    /// Postfix master.cf(5): one block per service, with its options `-o name=value`.
    PostfixServices,
    /// Any text of which whole lines are replaced. The key is the new form of a line. The section contains the present
    /// form, and the number of the line among all lines that have one of the two forms. The value is `on` if the line
    /// has the new form, else `off`.
    Lines,
}

/// A change that a trial tests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Change {
    /// A setting of the machine that is set before every slot and reverted afterwards.
    Set {
        /// The setting that is changed.
        setting: Setting,
        /// New value; `None` removes the setting.
        value: Option<String>,
    },
    /// Two temporary objects that differ only in the change. Both exist during the whole trial.
    SideBySide {
        /// Side A of the trial: the object without the change.
        now: Arm,
        /// Side B: with the change.
        changed: Arm,
    },
}

/// A temporary object on which one side of a trial is measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Arm {
    /// A disk image that QEMU's block layer exports over NBD. Needs neither a guest nor root.
    Image(ImageArm),
    /// A file system on a loop device. Needs root.
    FileSystem {
        /// Type of the file system, such as `ext4`, `xfs` or `btrfs`.
        fstype: String,
        /// Additional arguments of mkfs.
        #[serde(default)]
        mkfs: Vec<String>,
        /// Options for mounting the file system.
        #[serde(default)]
        mount: Vec<String>,
    },
    /// A ZFS file system below a dataset of the user. Needs root.
    Dataset {
        /// Parent dataset, such as `tank/data`. Properties that are missing in `properties` are inherited from this
        /// dataset.
        parent: String,
        /// Properties at creation (zfsprops(7)), such as `recordsize` and `compression`.
        #[serde(default)]
        properties: BTreeMap<String, String>,
    },
    /// A ZFS volume below a dataset of the user. Needs root.
    Zvol {
        /// Dataset below which the volume is created.
        parent: String,
        /// Properties at creation, such as `volblocksize`.
        #[serde(default)]
        properties: BTreeMap<String, String>,
    },
    /// A second sshd on a separate loopback port, with a copy of the configuration.
    Sshd {
        /// Path of the configuration to copy.
        config: String,
        /// Keywords that are set in the copy.
        #[serde(default)]
        set: BTreeMap<String, String>,
    },
}

/// A disk image with the options for opening it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImageArm {
    /// Format in which the image is created.
    pub format: ImageFormat,
    /// Options of `qemu-img create -o`, such as `cluster_size`, `extended_l2` and `preallocation`.
    #[serde(default)]
    pub options: BTreeMap<String, String>,
    /// Cache mode with which QEMU opens the image.
    #[serde(default)]
    pub cache: CacheMode,
    /// Backend with which QEMU submits I/O to the image.
    #[serde(default)]
    pub aio: Aio,
    /// Whether the image is encrypted with LUKS, with a temporary key.
    #[serde(default)]
    pub luks: bool,
    /// Whether the whole image is written before measuring. Otherwise every first write of a block allocates space.
    #[serde(default)]
    pub filled: bool,
}

/// Formats of disk images.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ImageFormat {
    /// Raw image.
    Raw,
    /// qcow2, version 3.
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
    /// O_DIRECT on the host. Flushes of the guest are passed to the storage.
    #[default]
    None,
    /// Through the host's page cache. Flushes of the guest are passed to the storage.
    Writeback,
    /// Through the host's page cache, with a flush after every write.
    Writethrough,
    /// O_DIRECT, flushed after every write.
    Directsync,
    /// Through the host's page cache; flushes are ignored, so a crash of the host loses data.
    Unsafe,
}

impl CacheMode {
    /// Returns whether the image is opened with O_DIRECT on the host (`cache.direct` of QEMU).
    #[must_use]
    pub fn direct(self) -> bool {
        matches!(self, Self::None | Self::Directsync)
    }

    /// Returns whether the guest sees a write cache that it must flush.
    #[must_use]
    pub fn shows_write_cache(self) -> bool {
        !matches!(self, Self::Writethrough | Self::Directsync)
    }

    /// Returns whether flushes are ignored (`cache.no-flush` of QEMU).
    #[must_use]
    pub fn ignores_flushes(self) -> bool {
        self == Self::Unsafe
    }
}

crate::named!(CacheMode, "cache mode": Writeback = "writeback", None = "none",
    Writethrough = "writethrough", Directsync = "directsync", Unsafe = "unsafe");
crate::named!(Aio, "aio": Threads = "threads", Native = "native", IoUring = "io_uring");

/// Backend with which QEMU submits I/O.
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
    /// `threads`: blocking calls in a pool of threads.
    #[default]
    Threads,
    /// Linux native asynchronous I/O; needs a cache mode that bypasses the page cache.
    Native,
    /// `io_uring`: the io_uring interface of Linux.
    #[serde(rename = "io_uring")]
    IoUring,
}
