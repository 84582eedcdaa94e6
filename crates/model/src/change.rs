//! Defines, as data, the changes that a piece of advice proposes. `assay-changes` applies them.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A setting of a machine that assay can read, change and restore. The value is the text that the machine prints;
/// `None` if the setting is inherited or has no line in its file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Setting {
    /// A property of a ZFS dataset (zfsprops(7)); `None` means inherited.
    ZfsProperty {
        /// `pool/dataset`.
        dataset: String,
        /// `compression`, `recordsize`, ….
        property: String,
    },
    /// A parameter of a loaded kernel module, `/sys/module/MODULE/parameters/NAME` (zfs(4)).
    ModuleParameter {
        /// Name of the module: `zfs`.
        module: String,
        /// Name of the parameter: `zfs_arc_max`.
        name: String,
    },
    /// A kernel parameter below /proc/sys (sysctl(8)).
    Sysctl {
        /// `vm.dirty_ratio`.
        key: String,
    },
    /// A setting of a block device's queue, `/sys/block/DEVICE/queue/ATTRIBUTE`.
    Queue {
        /// Kernel name such as `sda`, or a path of the device.
        device: String,
        /// `scheduler`, `read_ahead_kb`, ….
        attribute: String,
    },
    /// Another kernel attribute below /sys. If the file lists all choices, the value is the choice in brackets.
    Sysfs {
        /// `kernel/mm/transparent_hugepage/enabled`.
        attribute: String,
    },
    /// A group of mutually exclusive mount options. A change remounts the file system.
    MountOption {
        /// Mount point.
        mountpoint: String,
        /// The exclusive options as in /proc/self/mounts: `["relatime", "noatime"]`. If /proc/self/mounts does not
        /// print the kernel's default, the default is `""`.
        choices: Vec<String>,
    },
    /// A setting in a configuration file; `None` means that the setting has no line.
    Config {
        /// The file.
        file: String,
        /// Syntax of the file.
        language: ConfigLanguage,
        /// Enclosing blocks, outermost first: `["http"]`, `["passdb"]`.
        #[serde(default)]
        section: Vec<String>,
        /// The directive or key.
        key: String,
        /// Command that validates the file before the service reloads; `{file}` is replaced by the path of the file.
        #[serde(default)]
        validate: Vec<String>,
        /// Command that makes the service reload; `{file}` is replaced by the path of the file.
        #[serde(default)]
        reload: Vec<String>,
    },
    /// Several settings of one configuration file that are changed in one step. The value is a JSON
    /// array with the values in the order of `keys`; `null` means that a setting has no line.
    ConfigKeys {
        /// The file.
        file: String,
        /// Syntax of the file.
        language: ConfigLanguage,
        /// The settings.
        keys: Vec<ConfigKey>,
        /// Command that validates the file, see `Config`.
        #[serde(default)]
        validate: Vec<String>,
        /// Command that makes the service reload, see `Config`.
        #[serde(default)]
        reload: Vec<String>,
    },
    /// Permission bits of a file or directory. The value is `0640`. A symbolic link is refused.
    FileMode {
        /// Path without symbolic links.
        file: String,
    },
    /// A setting that commands of the user read and change.
    Command {
        /// Command that prints the current value.
        read: Vec<String>,
        /// Command that sets the value; `{value}` is replaced by it.
        apply: Vec<String>,
        /// Command that restores the previous value; `{value}` is replaced by it.
        undo: Vec<String>,
    },
}

/// One of several settings of a file.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(deny_unknown_fields)]
pub struct ConfigKey {
    /// Enclosing blocks, outermost first.
    #[serde(default)]
    pub section: Vec<String>,
    /// The directive or key.
    pub key: String,
}

/// Syntax of a configuration file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ConfigLanguage {
    /// sshd_config(5), ssh_config(5): `Keyword value`, Match and Host blocks; the first line wins.
    Ssh,
    /// nginx: `directive value;` and blocks in braces.
    Nginx,
    /// Apache httpd: `Directive value` and sections `<Name …>`; a duplicate key is an error.
    Apache,
    /// Postfix main.cf(5): `key = value`, continuation lines; the last line wins.
    Postfix,
    /// Dovecot 2.3: `key = value` and blocks in braces.
    Dovecot,
    /// nsswitch.conf(5): `database: source source`.
    Nsswitch,
    /// `key = value` or `key=value`, `#` comments; the last line wins. Not for sysctl.d and
    /// modprobe options.
    KeyValue,
    /// INI: `[section]` and `key = value`.
    Ini,
    /// Statements of words, one per line: HAProxy, Redis, sudoers(5), exports(5), `pg_hba.conf`.
    Words,
    /// Assignments of the shell: /etc/default/*, /etc/environment.
    Shell,
    /// postgresql.conf: `name = value`, values in single quotes.
    Postgresql,
    /// Option files of `MariaDB` and `MySQL`: groups, `name` or `name = value`.
    Mysql,
    /// sysctl.d(5): names with dots or slashes. A hyphen before a name makes the kernel parameter optional: failures
    /// are ignored.
    Sysctl,
    /// fstab(5): the key is a mount point, the value its options.
    Fstab,
    /// modprobe.d(5): the key is a module and a parameter.
    Modprobe,
    /// Postfix master.cf(5): a block per service with its options `-o name=value`.
    PostfixServices,
    /// Any text in which whole lines are replaced. The key is the new form of a line; the section contains the present
    /// form, and the number of the line among all lines with one of the two forms. The value is `on` for the new form,
    /// else `off`.
    Lines,
}

/// The change of a trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Change {
    /// A setting of the machine that is set before every slot and reverted afterwards.
    Set {
        /// The setting.
        setting: Setting,
        /// New value; `None` removes the setting.
        value: Option<String>,
    },
    /// Two temporary objects that differ only in the change; both exist during the whole trial.
    SideBySide {
        /// Side A: the baseline.
        now: Arm,
        /// Side B: with the change.
        changed: Arm,
    },
}

/// A temporary object for measuring.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Arm {
    /// A disk image, served over NBD by QEMU's block layer; needs no guest and no root.
    Image(ImageArm),
    /// A file system on a loop device; needs root.
    FileSystem {
        /// `ext4`, `xfs`, `btrfs`, ….
        fstype: String,
        /// Additional arguments of mkfs.
        #[serde(default)]
        mkfs: Vec<String>,
        /// Mount options.
        #[serde(default)]
        mount: Vec<String>,
    },
    /// A ZFS file system below a dataset of the user; needs root.
    Dataset {
        /// Parent dataset, such as `tank/data`. Properties that `properties` does not set are
        /// inherited from it.
        parent: String,
        /// Properties at creation (zfsprops(7)): `recordsize`, `compression`, ….
        #[serde(default)]
        properties: BTreeMap<String, String>,
    },
    /// A ZFS volume below a dataset of the user; needs root.
    Zvol {
        /// Parent dataset.
        parent: String,
        /// Properties at creation: `volblocksize`, ….
        #[serde(default)]
        properties: BTreeMap<String, String>,
    },
    /// A second sshd with a copy of the configuration, on a separate loopback port.
    Sshd {
        /// The configuration to copy.
        config: String,
        /// Keywords set in the copy.
        #[serde(default)]
        set: BTreeMap<String, String>,
    },
}

/// A disk image, and how it is opened.
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
    /// I/O backend of QEMU.
    #[serde(default)]
    pub aio: Aio,
    /// Whether it is encrypted with LUKS (with a temporary key).
    #[serde(default)]
    pub luks: bool,
    /// Whether it is written completely before measuring; otherwise every first write allocates.
    #[serde(default)]
    pub filled: bool,
}

/// Image formats.
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
    /// Returns `cache.direct`: O_DIRECT on the host.
    #[must_use]
    pub fn direct(self) -> bool {
        matches!(self, Self::None | Self::Directsync)
    }

    /// Returns whether the guest sees a write cache that it must flush.
    #[must_use]
    pub fn shows_write_cache(self) -> bool {
        !matches!(self, Self::Writethrough | Self::Directsync)
    }

    /// Returns `cache.no-flush`: flushes are ignored.
    #[must_use]
    pub fn ignores_flushes(self) -> bool {
        self == Self::Unsafe
    }
}

crate::named!(CacheMode, "cache mode": Writeback = "writeback", None = "none",
    Writethrough = "writethrough", Directsync = "directsync", Unsafe = "unsafe");
crate::named!(Aio, "aio": Threads = "threads", Native = "native", IoUring = "io_uring");

/// I/O backend of QEMU.
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
