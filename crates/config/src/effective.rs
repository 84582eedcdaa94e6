//! The effective configuration of a program: reads the main file and all included files, each in its place.
//! Every value has its file, line, byte range and scope, and the rule that selects one of several lines.
//! This module opens no file itself: the caller provides the files through [`Files`].
//!
//! # Behaviour of each program
//! | program | includes | line that takes effect | where a scope looks up a key |
//! |---|---|---|---|
//! | sshd | `Include`, glob(3), from /etc/ssh, 16 deep | the first; some keywords add up | in its Match blocks, then outside |
//! | ssh | `Include`, glob(3), from /etc/ssh or ~/.ssh, 16 deep | the first of all that apply | in all blocks, in the order of the lines |
//! | nginx | `include`, glob(3), from the main file's directory | the only one, or all of a list | in the outer blocks too, if the directive is inherited |
//! | Dovecot 2.3 | `!include`, `!include_try`, glob(3) with braces, from the including file's directory | the last | in its filters (`protocol`, `local` …), then without them |
//! | Postfix | none; master.cf is in the same directory as main.cf | the last | in the service's `-o`, then in main.cf |
//! | Samba | `include`, one file, in its place | the last | in its share, then in `[global]` |
//! | sysctl.d, systemd | directories of drop-ins | the last | in its section only |
//!
//! The module of each program names its sources. Defaults of the programs are not included: a key without a
//! line has no setting.
//!
//! # Unreadable files
//! A file that cannot be read or parsed becomes a [`ConfigProblem`]; the settings of the other files are still
//! returned. [`Effective::certain`] reports whether such a file could change a value.

mod builder;
mod dovecot;
mod dropin;
mod effective_settings;
pub mod files;
mod glob;
mod lookup;
mod nginx;
mod postfix;
mod postfix_macros;
mod samba;
mod ssh;
pub mod ssh_match;
pub mod ssh_sample;
mod walk;

pub(crate) use dropin::sysctl_name;
pub use effective_settings::{
    ConfigProblem, Effective, Program, Scope, ScopeId, Setting, SettingPlace, Trouble,
};
pub use postfix_macros::{expand_macros, macro_names};
pub use ssh::{GLOBAL as SSHD_GLOBAL, first_counts};

use builder::Builder;
use files::{FileFault, Files};
use std::path::{Path, PathBuf};

/// Reads the configuration of a program from its main file.
///
/// # Errors
/// The main file does not exist or cannot be read. Every other failure becomes a [`ConfigProblem`].
pub fn read_effective(
    program: Program,
    main: &Path,
    files: &dyn Files,
) -> Result<Effective, FileFault> {
    let mut builder = Builder::new(program, main, files);
    match program {
        Program::Sshd | Program::Ssh => walk::walk(&mut builder, &ssh::Ssh, main)?,
        Program::Nginx => walk::walk(&mut builder, &nginx::Nginx, main)?,
        Program::Dovecot => walk::walk(&mut builder, &dovecot::Dovecot, main)?,
        Program::Postfix => postfix::read(&mut builder, main)?,
        Program::Sysctl => dropin::sysctl(&mut builder, main)?,
        Program::Systemd => dropin::systemd(&mut builder, main)?,
        Program::Nsswitch => dropin::alone(&mut builder, main)?,
        Program::Samba => samba::read(&mut builder, main)?,
    }
    Ok(builder.done())
}

/// Returns the files that the pattern of an include line matches, in the order in which the program reads them.
/// `including` is the file that contains the line; `main` is the program's main file.
///
/// # Errors
/// A directory cannot be listed; the pattern is not understood.
pub fn included_files(
    program: Program,
    main: &Path,
    including: &Path,
    pattern: &str,
    files: &dyn Files,
) -> Result<Vec<PathBuf>, FileFault> {
    match program {
        Program::Sshd | Program::Ssh => ssh::included_files(program, main, pattern, files),
        Program::Nginx => nginx::included_files(main, pattern, files),
        Program::Dovecot => dovecot::included_files(including, pattern, files),
        Program::Postfix | Program::Sysctl | Program::Systemd | Program::Nsswitch => Ok(Vec::new()),
        Program::Samba => Ok(vec![PathBuf::from(pattern)]),
    }
}
