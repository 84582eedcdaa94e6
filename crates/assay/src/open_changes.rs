//! Lists open changes: settings that a killed assay process left changed. Every verb lists them at its start. While
//! there are open changes, assay does not measure unless the user permits it.

use crate::cli::Cli;
use crate::context;
use crate::verbs::Verb;
use assay_changes::Journal;

/// Option to measure although a change is open.
#[derive(clap::Args, Clone, Copy)]
pub struct Despite {
    /// Measure although a killed assay left settings changed
    #[arg(long)]
    pub despite_open_change: bool,
}

impl Despite {
    /// Refuses to measure while there are open changes. If the user permits measuring anyway, returns the changed
    /// settings.
    pub fn check(self, journal: &Journal) -> anyhow::Result<Vec<String>> {
        let changed = journal.left_changed()?;
        anyhow::ensure!(
            self.despite_open_change || changed.is_empty(),
            "nothing was measured: a killed assay left these settings changed: {}. Revert them with `assay trial \
             --recover`, or measure anyway with --despite-open-change",
            changed.join(", ")
        );
        Ok(changed)
    }

    /// Like [`Despite::check`], for a verb that changes nothing and does not open the journal itself.
    pub fn check_here(self) -> anyhow::Result<Vec<String>> {
        self.check(&Journal::look_at(&context::journal_dir()?)?)
    }
}

/// Lists open changes on standard error before a verb starts. Reverts nothing, and skips journal entries that this user
/// may not read.
pub fn tell_at_start(cli: &Cli) {
    let deals_with_them = match &cli.verb {
        Some(Verb::Trial(args)) => args.recovers(),
        // The server of a session, which runs a verb later.
        Some(Verb::Dev(_)) => true,
        _ => false,
    };
    if deals_with_them {
        return;
    }
    // A verb that needs the directory reports its error.
    let Ok(dir) = context::journal_dir() else {
        return;
    };
    if let Ok(journal) = Journal::look_at(&dir) {
        tell(&journal);
    }
}

fn tell(journal: &Journal) {
    match journal.pending() {
        Ok(pending) => {
            for left in pending {
                eprintln!(
                    "note: {} on {} was cut off, or could not revert, and left {}; `assay trial --recover` tries it",
                    left.label,
                    left.target.escape_debug(),
                    left.left.join(", ")
                );
            }
        }
        Err(error) => eprintln!(
            "note: whether an assay that was killed has left something changed is unknown: {error}"
        ),
    }
}
