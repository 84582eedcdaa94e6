//! The effective configuration of a program: all its files, included ones in their places, every
//! value with its file, line and span, its scope, and which of several lines counts.
//!
//! No file is opened here: they come through [`Files`].
//!
//! # What each program does
//! | program | includes | which line counts | a scope looks |
//! |---|---|---|---|
//! | sshd | `Include`, glob(3), from /etc/ssh, 16 deep | the first; some keywords add up | in its Match blocks, then outside |
//! | ssh | `Include`, glob(3), from /etc/ssh or ~/.ssh, 16 deep | the first of all that apply | at all blocks in the order of the lines |
//! | nginx | `include`, glob(3), from the main file's directory | the only one, or all of a list | outwards, where directives are inherited |
//! | Dovecot 2.3 | `!include`, `!include_try`, glob(3) with braces, from the including file's directory | the last | in its filters (`protocol`, `local` …), then without them |
//! | Postfix | none; master.cf lies beside main.cf | the last | in the service's `-o`, then in main.cf |
//! | sysctl.d, systemd | directories of drop-ins | the last | in its section alone |
//!
//! Sources are named in the file of each program. What a program has by default is not told: a key
//! without a line has no setting.
//!
//! # What cannot be told
//! A file that cannot be read or parsed becomes a [`Problem`]; what stands in the others is told all
//! the same. [`Effective::certain`] says whether a value could be another one because of that.

mod builder;
mod dovecot;
mod dropin;
pub mod files;
mod glob;
mod lookup;
mod nginx;
mod postfix;
mod ssh;
pub mod ssh_match;
mod walk;

use assay_model::{Place as FactPlace, Span};
use builder::Builder;
use files::{Fault, Files};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::{Path, PathBuf};

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
}

impl Program {
    /// All, each with the main file that Debian gives it; of the client that of root.
    pub const USUAL: [(Self, &'static str); 8] = [
        (Self::Sshd, "/etc/ssh/sshd_config"),
        (Self::Ssh, "/root/.ssh/config"),
        (Self::Nginx, "/etc/nginx/nginx.conf"),
        (Self::Dovecot, "/etc/dovecot/dovecot.conf"),
        (Self::Postfix, "/etc/postfix/main.cf"),
        (Self::Sysctl, "/etc/sysctl.conf"),
        (Self::Systemd, "/etc/systemd/system.conf"),
        (Self::Nsswitch, "/etc/nsswitch.conf"),
    ];
}

/// Where something stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub path: PathBuf,
    /// Line, from 1.
    pub line: usize,
    /// The statement within that line.
    pub within: Span,
    /// Bytes in the file, from the key's first to the statement's last.
    pub span: Range<usize>,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.path.display(), self.line)
    }
}

impl From<&Place> for FactPlace {
    fn from(place: &Place) -> Self {
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
    pub place: Place,
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
    pub place: Place,
}

impl Setting {
    /// The value as text; bytes that are not UTF-8 become U+FFFD.
    #[must_use]
    pub fn text(&self) -> String {
        crate::text::lossy(&self.value)
    }

    /// The first word as text, such as the `yes` of `UsePAM "yes"`.
    #[must_use]
    pub fn word(&self) -> Option<String> {
        self.words.first().map(|word| crate::text::lossy(word))
    }
}

/// Something in the configuration that the program refuses, or that was not read here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {trouble}")]
pub struct Problem {
    /// Where it came up.
    pub place: Place,
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
        fault: Fault,
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
                fault: Fault::Absent,
                ..
            }
        );
        !absent && !matches!(self, Self::NoMatch { .. })
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
    pub problems: Vec<Problem>,
    /// The files that were read, in their order, as often as they were read.
    pub files: Vec<PathBuf>,
}

/// Reads a program's configuration from its main file.
///
/// # Errors
/// The main file is not there or cannot be read; whatever else fails is a [`Problem`].
pub fn effective(program: Program, main: &Path, files: &dyn Files) -> Result<Effective, Fault> {
    let mut builder = Builder::new(program, main, files);
    match program {
        Program::Sshd | Program::Ssh => walk::walk(&mut builder, &ssh::Ssh, main)?,
        Program::Nginx => walk::walk(&mut builder, &nginx::Nginx, main)?,
        Program::Dovecot => walk::walk(&mut builder, &dovecot::Dovecot, main)?,
        Program::Postfix => postfix::read(&mut builder, main)?,
        Program::Sysctl => dropin::sysctl(&mut builder, main)?,
        Program::Systemd => dropin::systemd(&mut builder, main)?,
        Program::Nsswitch => dropin::alone(&mut builder, main)?,
    }
    Ok(builder.done())
}

/// The files that one include line of a program means, in the order in which it reads them:
/// `including` is the file with the line, `main` the program's main file.
///
/// # Errors
/// A directory cannot be listed; the pattern is not understood.
pub fn included(
    program: Program,
    main: &Path,
    including: &Path,
    pattern: &str,
    files: &dyn Files,
) -> Result<Vec<PathBuf>, Fault> {
    match program {
        Program::Sshd | Program::Ssh => ssh::included(program, main, pattern, files),
        Program::Nginx => nginx::included(main, pattern, files),
        Program::Dovecot => dovecot::included(including, pattern, files),
        Program::Postfix | Program::Sysctl | Program::Systemd | Program::Nsswitch => Ok(Vec::new()),
    }
}
