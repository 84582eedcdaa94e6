//! What all verbs share on the command line: the store, colours, exit status.

use crate::verbs;
use assay_lab::LabError;
use clap::{Parser, ValueEnum};
use std::path::PathBuf;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  assay                      what assay sees here, and what to do next
  assay run quick .          what does this storage do, in about a minute?
  assay lint 'fio --name=t --rw=randread --iodepth=32 --bs=4k'
                             what would this command really measure?
  assay compare last~1 last  before and after
  assay report --html r.html the newest run as a page

Each command has examples of its own: assay run --help.
Exit status: 0 fine, 1 findings or a missed criterion, 2 error, 3 something needed could not be
read, 130 interrupted.";

/// Test server tuning advice on the server it is meant for.
#[derive(Parser)]
#[command(name = "assay", version, after_help = EXAMPLES,
    max_term_width = 100,
    arg_required_else_help = false
)]
pub struct Cli {
    /// What to do; without it, assay says what it sees and what to do next.
    #[command(subcommand)]
    pub verb: Option<verbs::Verb>,
    /// Options of every verb.
    #[command(flatten)]
    pub global: Global,
}

/// Options of every verb.
#[derive(clap::Args, Clone)]
pub struct Global {
    /// Database of runs [default: $XDG_DATA_HOME/assay/assay.db]
    #[arg(
        long,
        global = true,
        // After the verb's own options.
        display_order = 900,
        value_name = "FILE",
        env = "ASSAY_STORE",
        hide_env_values = true
    )]
    pub store: Option<PathBuf>,
    /// When to use colours: auto, always or never; NO_COLOR is respected
    #[arg(long, global = true, display_order = 901, value_enum, default_value_t = Color::Auto, value_name = "WHEN", hide_possible_values = true)]
    pub color: Color,
}

/// When to use colours.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// How assay ended, for scripts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// Done, nothing to complain about.
    Ok = 0,
    /// Done; there are findings, or a criterion was missed.
    Findings = 1,
    /// Wrong usage, or a tool failed.
    Error = 2,
    /// Something needed could not be read.
    Unreadable = 3,
    /// Interrupted by the user; what was done until then is kept.
    Interrupted = 130,
}

/// Marks an error as "could not read what was needed" (exit status 3).
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unreadable(pub String);

impl Status {
    /// Status for an error: 130 when the user interrupted work with a guest, 3 when [`Unreadable`] is
    /// among its causes, else 2.
    pub fn of(error: &anyhow::Error) -> Self {
        let interrupted = error
            .chain()
            .any(|cause| matches!(cause.downcast_ref(), Some(LabError::Interrupted)));
        let unreadable = error.chain().any(|cause| cause.is::<Unreadable>());
        match (interrupted, unreadable) {
            (true, _) => Self::Interrupted,
            (false, true) => Self::Unreadable,
            (false, false) => Self::Error,
        }
    }
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> Self {
        Self::from(status as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context as _;

    #[test]
    fn the_status_of_an_error_tells_scripts_what_it_was() {
        let of = |error: anyhow::Error| Status::of(&error);
        assert_eq!(of(LabError::Interrupted.into()), Status::Interrupted);
        let unreadable = Err::<(), _>(Unreadable("no /proc".to_owned())).context("disks");
        assert_eq!(of(unreadable.unwrap_err()), Status::Unreadable);
        assert_eq!(of(anyhow::anyhow!("interrupted")), Status::Error);
    }
}
