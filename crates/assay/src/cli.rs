//! The command line as a whole.

use crate::global::Global;
use crate::verbs;
use clap::Parser;

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
