//! Removes passwords from commands and URLs before they are stored, shown or written to the notebook. To resume a
//! session with passwords, the user must give them again.

use super::{Args, goal};
use anyhow::{Context as _, bail, ensure};
use assay_measure::tuning::TuneCommands;
use assay_model::Load;
use assay_model::secrets::{WITHHELD, withhold_in_text, withhold_in_words};
use assay_model::target::is_url;
use assay_tune::TuneRecord;

/// Returns the load without secrets.
pub(super) fn withhold_in_load(load: &Load) -> Load {
    match load {
        Load::Command { argv, prints } => Load::Command {
            argv: withhold_in_words(argv),
            prints: prints.clone(),
        },
        load => load.clone().kept(),
    }
}

/// Returns the target without secrets. A path stays unchanged.
pub(super) fn withhold_in_target(target: &str) -> String {
    match is_url(target) {
        true => withhold_in_text(target),
        false => target.to_owned(),
    }
}

/// Returns the command of `--while-ok` as words; `None` without the option.
pub(super) fn read_guard_command(args: &Args) -> anyhow::Result<Option<Vec<String>>> {
    let words = args.while_ok.as_deref().map(shell_words::split).transpose();
    let words = words.context("cannot read the command of --while-ok")?;
    if let Some(words) = &words {
        ensure!(!words.is_empty(), "the command of --while-ok is empty");
    }
    Ok(words)
}

/// Returns the commands of a stored session: from its record, or from this command line if the record lacks their
/// secrets.
pub(super) fn find_commands(args: &Args, record: &TuneRecord) -> anyhow::Result<TuneCommands> {
    let is_whole = |words: &[String]| !words.iter().any(|word| word.contains(WITHHELD));
    let load = match &record.load {
        Load::Command { argv, prints } if !is_whole(argv) => {
            let Some(load) = &args.load else {
                bail!(
                    "the session was stored without the secrets of its load: repeat --load as it was: {}",
                    argv.join(" ")
                );
            };
            goal::read_command_load(load, prints.clone())?
        }
        Load::Http(http) if http.missing().is_some() => {
            let Some(target) = args.target.as_ref() else {
                bail!(
                    "the session was stored without the secrets of its URL: repeat the URL as it was: {}",
                    http.url
                );
            };
            let mut http = http.clone();
            http.url.clone_from(target);
            Load::Http(http)
        }
        load => load.clone(),
    };
    ensure!(
        withhold_in_load(&load) == record.load,
        "this is not the load of the session: {}",
        record.load.describe()
    );
    let guard = match &record.guard_command {
        Some(words) if !is_whole(words) => {
            let guard = read_guard_command(args)?.with_context(|| {
                format!(
                    "the session was stored without the secrets of its guard command: repeat --while-ok as it was: {}",
                    words.join(" ")
                )
            })?;
            ensure!(
                withhold_in_words(&guard) == *words,
                "this is not the guard command of the session: {}",
                words.join(" ")
            );
            Some(guard)
        }
        words => words.clone(),
    };
    Ok(TuneCommands { load, guard })
}
