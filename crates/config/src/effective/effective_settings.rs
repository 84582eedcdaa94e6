//! What is told of a configuration: settings, their scopes and places, and what cannot be told.

use super::files::FileFault;
use assay_model::{FactPlace, Span};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::PathBuf;

/// A program whose configuration is understood as a whole.
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
    /// All, each with the main file that Debian gives it; of the client that of root.
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

/// Where something stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingPlace {
    /// The file.
    pub path: PathBuf,
    /// Line, from 1.
    pub line: usize,
    /// The statement within that line.
    pub within: Span,
    /// Bytes in the file, from the key's first to the statement's last.
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

/// A scope of an [`Effective`]: an index into its scopes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScopeId(pub(crate) usize);

impl ScopeId {
    /// Outside of all blocks.
    pub const ROOT: Self = Self(0);
}

/// Where a setting holds: a block, or everything outside of blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// The block around it; none for the root.
    pub parent: Option<ScopeId>,
    /// Its head, unquoted: `["location", "/api"]`, `["Match", "User", "bob"]`,
    /// `["smtp", "inet"]`; nothing for the root.
    pub head: Vec<String>,
    /// Where it begins.
    pub place: SettingPlace,
}

/// One statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Where it holds.
    pub scope: ScopeId,
    /// The key as the program knows it: in lower case and without aliases in sshd, with dots in
    /// sysctl.
    pub key: String,
    /// The value in one line, as [`crate::get`] tells it; Dovecot's variables are put in where these
    /// files give them a value.
    pub value: Vec<u8>,
    /// Its words without quotes and backslashes, in the languages that have words (ssh, nginx);
    /// else the value alone.
    pub words: Vec<Vec<u8>>,
    /// Where it stands.
    pub place: SettingPlace,
}

impl Setting {
    /// The value as text; bytes that are not UTF-8 become U+FFFD.
    #[must_use]
    pub fn text(&self) -> String {
        crate::text::to_lossy_text(&self.value)
    }

    /// The first word as text, such as the `yes` of `UsePAM "yes"`.
    #[must_use]
    pub fn word(&self) -> Option<String> {
        self.words
            .first()
            .map(|word| crate::text::to_lossy_text(word))
    }
}

/// Something in the configuration that the program refuses, or that was not read here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {trouble}")]
pub struct ConfigProblem {
    /// Where it came up.
    pub place: SettingPlace,
    /// The scope it came up in.
    pub scope: ScopeId,
    /// What it is.
    #[source]
    pub trouble: Trouble,
    /// How many settings came before.
    pub(crate) before: usize,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// An included file or its directory cannot be read here.
    #[error("`{include}` cannot be read: {fault}")]
    Unread {
        /// The path or pattern.
        include: String,
        /// Why.
        #[source]
        fault: FileFault,
    },
    /// An include that the program wants has no file; the program refuses the configuration.
    #[error("the program refuses the configuration: nothing matches `{include}`")]
    NoMatch {
        /// The path or pattern.
        include: String,
    },
    /// Files include each other without end, or values that name others grow without end; the program
    /// refuses the configuration.
    #[error("the includes do not end, or they and the values are more than 16 MiB")]
    Endless,
    /// A file is not of its language; the program most likely refuses the configuration.
    #[error(transparent)]
    Syntax(crate::ConfError),
    /// A line that the program refuses, and the whole configuration with it; the line is no setting.
    #[error(
        "the program refuses the configuration: `{keyword}` is not allowed within a Match block"
    )]
    Refused {
        /// The keyword in lower case.
        keyword: String,
    },
    /// Something is not understood here.
    #[error("{0}")]
    Unknown(String),
}

impl Trouble {
    /// Whether it hides what other settings there may be.
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
    /// Whose it is.
    pub program: Program,
    pub(crate) scopes: Vec<Scope>,
    pub(crate) settings: Vec<Setting>,
    /// Numbers of the settings by key and scope, each list in their order.
    pub(crate) by_key: HashMap<String, BTreeMap<ScopeId, Vec<usize>>>,
    /// The first scope with this head in that one.
    pub(crate) inner: HashMap<(ScopeId, Vec<String>), ScopeId>,
    /// What could not be read or would be refused.
    pub problems: Vec<ConfigProblem>,
    /// The files that were read, in their order, as often as they were read.
    pub files: Vec<PathBuf>,
}
