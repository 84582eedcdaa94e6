//! Types of an effective configuration: settings, scopes, places and problems.

use super::files::FileFault;
use assay_model::{FactPlace, Span};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::PathBuf;

/// A program whose complete configuration can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Program {
    /// Server of OpenSSH. The main file is sshd_config.
    Sshd,
    /// Client of OpenSSH. The main file is ssh_config, or a file in a home directory.
    Ssh,
    /// nginx. The main file is nginx.conf.
    Nginx,
    /// Dovecot 2.3. The main file is dovecot.conf.
    Dovecot,
    /// Postfix. The main file is main.cf; master.cf is in the same directory.
    Postfix,
    /// `sysctl --system`. The main file is sysctl.conf; sysctl.d is in the same directory.
    Sysctl,
    /// A configuration file of systemd, such as system.conf, with its drop-ins. Unit files are not supported.
    Systemd,
    /// nsswitch.conf, which is a single file.
    Nsswitch,
    /// Server of Samba. The main file is smb.conf.
    Samba,
}

impl Program {
    /// All programs, each with the main file that Debian installs. For `ssh`, this is the system-wide file.
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

/// Position of a statement in the files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingPlace {
    /// Path of the file.
    pub path: PathBuf,
    /// Line number, counted from 1.
    pub line: usize,
    /// Range of the statement within its line.
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
    /// The scope outside of all blocks.
    pub const ROOT: Self = Self(0);
}

/// Part of a configuration in which a setting applies: a block, or everything outside of blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// The enclosing block; `None` for the root.
    pub parent: Option<ScopeId>,
    /// Words of the block's head without quotes, such as `["location", "/api"]`, `["Match", "User", "bob"]` or
    /// `["smtp", "inet"]`. Empty for the root.
    pub head: Vec<String>,
    /// Position at which the block begins.
    pub place: SettingPlace,
}

/// A statement of the configuration with its scope and position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Scope in which the setting applies.
    pub scope: ScopeId,
    /// Normalised key: in lower case and without aliases for sshd, with dots as separators for sysctl.
    pub key: String,
    /// The value on one line, as [`crate::get`] returns it. Variables of Dovecot are replaced if one of the files
    /// defines them.
    pub value: Vec<u8>,
    /// Words of the value without quotes and backslashes, for languages whose values consist of words (ssh, nginx). For
    /// other languages, the whole value is one word.
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

    /// Returns the first word as text, such as `yes` for `UsePAM "yes"`.
    #[must_use]
    pub fn word(&self) -> Option<String> {
        self.words
            .first()
            .map(|word| crate::text::to_lossy_text(word))
    }
}

/// A part of the configuration that the program rejects, or that could not be read here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {trouble}")]
pub struct ConfigProblem {
    /// Position of the statement that causes the problem.
    pub place: SettingPlace,
    /// Scope in which the problem is.
    pub scope: ScopeId,
    /// What the problem is.
    #[source]
    pub trouble: Trouble,
    /// Number of settings that were read before the problem.
    pub(crate) before: usize,
}

/// Kind of problem in a configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// An included file or its directory cannot be read here.
    #[error("`{include}` cannot be read: {fault}")]
    Unread {
        /// Path or pattern of the include.
        include: String,
        /// Reason why it cannot be read.
        #[source]
        fault: FileFault,
    },
    /// A required include matches no file. The program rejects the configuration.
    #[error("the program refuses the configuration: nothing matches `{include}`")]
    NoMatch {
        /// Path or pattern of the include.
        include: String,
    },
    /// Files include each other without end, or values that contain other values grow without end. The program rejects
    /// the configuration.
    #[error("the includes do not end, or they and the values are more than 16 MiB")]
    Endless,
    /// A file cannot be parsed. The program most likely rejects the configuration.
    #[error(transparent)]
    Syntax(crate::ConfError),
    /// The program rejects this line, and therefore the whole configuration. The line is not recorded as a setting.
    #[error(
        "the program refuses the configuration: `{keyword}` is not allowed within a Match block"
    )]
    Refused {
        /// Keyword of the line in lower case.
        keyword: String,
    },
    /// This crate does not understand the statement.
    #[error("{0}")]
    Unknown(String),
}

impl Trouble {
    /// Returns whether the problem may hide settings.
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

/// The effective configuration of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effective {
    /// Program that the configuration is for.
    pub program: Program,
    pub(crate) scopes: Vec<Scope>,
    pub(crate) settings: Vec<Setting>,
    /// Indices of the settings by key and scope. Each list is in reading order.
    pub(crate) by_key: HashMap<String, BTreeMap<ScopeId, Vec<usize>>>,
    /// For each parent scope and head, the first scope with this head in the parent.
    pub(crate) inner: HashMap<(ScopeId, Vec<String>), ScopeId>,
    /// Parts that could not be read, or that the program would reject.
    pub problems: Vec<ConfigProblem>,
    /// All files that were read, in reading order. A file that was read twice is listed twice.
    pub files: Vec<PathBuf>,
}
