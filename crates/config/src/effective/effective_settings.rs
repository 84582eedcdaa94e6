//! Types of an effective configuration: settings, scopes, places and problems.

use super::files::FileFault;
use assay_model::{FactPlace, Span};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::PathBuf;

/// A program whose complete configuration can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Program {
    /// OpenSSH's server; its main file is sshd_config.
    Sshd,
    /// OpenSSH's client; its main file is ssh_config, or one in a home directory.
    Ssh,
    /// nginx; its main file is nginx.conf.
    Nginx,
    /// Dovecot 2.3; its main file is dovecot.conf.
    Dovecot,
    /// Postfix; its main file is main.cf, with master.cf beside it.
    Postfix,
    /// `sysctl --system`; its main file is sysctl.conf, whose directory has sysctl.d beside it.
    Sysctl,
    /// A configuration file of systemd such as system.conf, not a unit, with its drop-ins.
    Systemd,
    /// nsswitch.conf: one file.
    Nsswitch,
    /// Samba's server; its main file is smb.conf.
    Samba,
}

impl Program {
    /// All programs, each with the main file that Debian installs; for `ssh` the system-wide file.
    pub const USUAL: [(Self, &'static str); 9] = [
        (Self::Sshd, "/etc/ssh/sshd_config"),
        (Self::Ssh, "/root/.ssh/config"),
        (Self::Nginx, "/etc/nginx/nginx.conf"),
        (Self::Dovecot, "/etc/dovecot/dovecot.conf"),
        (Self::Postfix, "/etc/postfix/main.cf"),
        (Self::Sysctl, "/etc/sysctl.conf"),
        (Self::Systemd, "/etc/systemd/system.conf"),
        (Self::Nsswitch, "/etc/nsswitch.conf"),
        (Self::Samba, "/etc/samba/smb.conf"),
    ];
}

/// Position of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingPlace {
    /// The file.
    pub path: PathBuf,
    /// Line number, from 1.
    pub line: usize,
    /// Range of the statement within that line.
    pub within: Span,
    /// Byte range in the file, from the first byte of the key to the last byte of the statement.
    pub span: Range<usize>,
}

impl std::fmt::Display for SettingPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.path.display(), self.line)
    }
}

impl From<&SettingPlace> for FactPlace {
    fn from(place: &SettingPlace) -> Self {
        Self::File {
            path: place.path.to_string_lossy().into_owned(),
            line: Some(place.line),
            span: (place.within.length > 0).then_some(place.within),
        }
    }
}

/// Identifies a scope of an [`Effective`]: an index into its scopes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScopeId(pub(crate) usize);

impl ScopeId {
    /// The scope outside all blocks.
    pub const ROOT: Self = Self(0);
}

/// Part of a configuration in which a setting applies: a block, or everything outside of blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// The enclosing block; `None` for the root.
    pub parent: Option<ScopeId>,
    /// Words of the block's head, unquoted: `["location", "/api"]`, `["Match", "User", "bob"]`, `["smtp",
    /// "inet"]`; empty for the root.
    pub head: Vec<String>,
    /// Position at which the block begins.
    pub place: SettingPlace,
}

/// One statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Scope in which the setting applies.
    pub scope: ScopeId,
    /// Normalised key: in lower case and without aliases for sshd, with dots for sysctl.
    pub key: String,
    /// The value in one line, as [`crate::get`] returns it. Dovecot variables are replaced if the configuration files
    /// that were read define them.
    pub value: Vec<u8>,
    /// Words of the value without quotes and backslashes in languages that have words (ssh, nginx); otherwise
    /// the whole value as one word.
    pub words: Vec<Vec<u8>>,
    /// Position of the statement.
    pub place: SettingPlace,
}

impl Setting {
    /// Returns the value as text; bytes that are not UTF-8 become U+FFFD.
    #[must_use]
    pub fn text(&self) -> String {
        crate::text::to_lossy_text(&self.value)
    }

    /// Returns the first word as text, for example `yes` of `UsePAM "yes"`.
    #[must_use]
    pub fn word(&self) -> Option<String> {
        self.words
            .first()
            .map(|word| crate::text::to_lossy_text(word))
    }
}

/// A part of the configuration that the program refuses, or that could not be read here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {trouble}")]
pub struct ConfigProblem {
    /// Position of the problem.
    pub place: SettingPlace,
    /// Scope of the problem.
    pub scope: ScopeId,
    /// Kind of problem.
    #[source]
    pub trouble: Trouble,
    /// Number of settings read before the problem.
    pub(crate) before: usize,
}

/// Kind of problem in a configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// An included file or its directory cannot be read here.
    #[error("`{include}` cannot be read: {fault}")]
    Unread {
        /// The path or pattern.
        include: String,
        /// Reason.
        #[source]
        fault: FileFault,
    },
    /// A required include matches no file; the program refuses the configuration.
    #[error("the program refuses the configuration: nothing matches `{include}`")]
    NoMatch {
        /// The path or pattern.
        include: String,
    },
    /// Files include each other without end, or values that contain other values grow without end; the program refuses
    /// the configuration.
    #[error("the includes do not end, or they and the values are more than 16 MiB")]
    Endless,
    /// A file cannot be parsed; the program most likely refuses the configuration.
    #[error(transparent)]
    Syntax(crate::ConfError),
    /// The program refuses this line and with it the whole configuration; the line is not recorded as a
    /// setting.
    #[error(
        "the program refuses the configuration: `{keyword}` is not allowed within a Match block"
    )]
    Refused {
        /// The keyword in lower case.
        keyword: String,
    },
    /// This crate does not understand a statement.
    #[error("{0}")]
    Unknown(String),
}

impl Trouble {
    /// Whether the problem may hide settings.
    #[must_use]
    pub fn hides(&self) -> bool {
        let absent = matches!(
            self,
            Self::Unread {
                fault: FileFault::Absent,
                ..
            }
        );
        !absent && !matches!(self, Self::NoMatch { .. } | Self::Refused { .. })
    }
}

/// The effective configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effective {
    /// The program.
    pub program: Program,
    pub(crate) scopes: Vec<Scope>,
    pub(crate) settings: Vec<Setting>,
    /// Indices of the settings by key and scope, each list in reading order.
    pub(crate) by_key: HashMap<String, BTreeMap<ScopeId, Vec<usize>>>,
    /// The first scope with this head inside the given parent scope.
    pub(crate) inner: HashMap<(ScopeId, Vec<String>), ScopeId>,
    /// Parts that could not be read or that the program would refuse.
    pub problems: Vec<ConfigProblem>,
    /// All files that were read, in reading order; a file that was read twice appears twice.
    pub files: Vec<PathBuf>,
}
