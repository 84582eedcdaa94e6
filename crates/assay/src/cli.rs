//! Parses the command line as a whole.

use crate::global::Global;
use crate::help_layout::{self, Layout};
use crate::shared_options::{self, Destination};
use crate::{command_tree, help_notes, verbs};
use clap::{Args as _, Command, FromArgMatches as _, Subcommand as _};
use std::ffi::OsString;

const EXAMPLES: &str = "\
Examples:
  assay                             what assay sees here, and the next commands
  assay run quick .                 what does this storage do, in about a minute?
  assay lint 'fio --name=t --rw=randread --iodepth=32 --bs=4k'
                                    what would this command really measure?
  assay report compare last~1 last  before and after
  assay report --html r.html        the newest run as a page

Each command has examples of its own: assay run --help.
Exit status: 0 fine, 1 findings or a missed criterion, 2 error, 3 something could not be read,
130 interrupted. A tour of three minutes: assay lab demo.";

const ABOUT: &str = "Test server tuning advice on the server it is meant for";

/// A parsed command line.
pub struct Cli {
    /// The verb of the command line. Without a verb, assay prints an overview of this machine.
    pub verb: Option<verbs::Verb>,
    /// Options that every verb accepts.
    pub global: Global,
    /// Where the report is written.
    pub destination: Destination,
}

/// Returns the complete command of clap: all verbs at their places, with the shared options.
pub fn command() -> Command {
    arrange(verbs(), Layout::Full, None)
}

/// Returns a command with all verbs at the top level, each with its own options.
pub fn verbs() -> Command {
    let command = Global::augment_args(Command::new("assay").max_term_width(100));
    verbs::Verb::augment_subcommands(command)
        .version(env!("CARGO_PKG_VERSION"))
        .about(ABOUT)
        .after_help(EXAMPLES)
}

/// Moves verbs to their place and adds the shared options. `form` is the report format that the command line requests.
pub fn arrange(verbs: Command, layout: Layout, form: Option<&str>) -> Command {
    let command = shared_options::add(command_tree::arrange(verbs), form);
    help_layout::arrange(command, layout)
}

impl Cli {
    /// Parses a command line.
    ///
    /// # Errors
    /// An error of clap. The text of `--help` or `--version` is also returned as an error.
    pub fn parse(words: impl Iterator<Item = OsString>) -> Result<Self, clap::Error> {
        let words: Vec<OsString> = words.collect();
        let layout = Layout::asked_for(&words);
        let mut command = help_notes::fit_to_terminal(arrange(verbs(), layout, None));
        let mut matches = command.try_get_matches_from_mut(&words)?;
        if let Some(form) = shared_options::form(&matches) {
            command = arrange(verbs(), layout, Some(form));
            matches = command.try_get_matches_from_mut(&words)?;
        }
        let below = command_tree::verb_matches(&matches);
        let verb = match below.subcommand_name() {
            Some(_) => Some(verbs::Verb::from_arg_matches(below)?),
            None => None,
        };
        Ok(Self {
            verb,
            global: Global::from_arg_matches(&matches)?,
            destination: shared_options::destination(&command, &matches),
        })
    }
}
