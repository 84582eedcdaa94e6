//! Shell completion for the names of plans, advice, studies and stored results. `assay dev completions` writes the
//! shell script, which runs assay to get the candidates.

use crate::cli;
use crate::context;
use crate::global::{Color, Global};
use crate::help_layout::Layout;
use assay_store::Store;
use clap::{Arg, Command};
use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter,
};
use clap_complete::env::CompleteEnv;
use std::ffi::OsStr;

/// Environment variable that the shell sets when it requests completion candidates.
pub const ASKED_BY: &str = "COMPLETE";

/// If a shell requests completion candidates, prints them and exits. Otherwise does nothing.
pub fn at_start() {
    CompleteEnv::with_factory(completed_command)
        .var(ASKED_BY)
        .complete();
}

/// Returns the command with completers for arguments that are names of plans, advice, studies or stored results.
fn completed_command() -> Command {
    let run = |arg: Arg| arg.add(names(runs));
    let verbs = cli::verbs()
        .mut_subcommand("run", |verb| {
            verb.mut_arg("words", |arg| arg.add(names_or_paths(plans)))
                .mut_arg("resume", run)
        })
        .mut_subcommand("trial", |verb| {
            verb.mut_arg("words", |arg| arg.add(names_or_paths(advice)))
                .mut_arg("resume", |arg| arg.add(names(trials)))
                .mut_arg("show", |arg| arg.add(names(trials)))
        })
        .mut_subcommand("advice", |verb| {
            verb.mut_arg("id", |arg| arg.add(names_or_paths(advice)))
        })
        .mut_subcommand("study", |verb| {
            // The last change of an argument wins: the directory must follow the name.
            verb.mut_arg("study", |arg| arg.add(names_or_paths(studies)))
                .mut_arg("dir", |arg| arg)
        })
        .mut_subcommand("show", |verb| verb.mut_arg("run", run))
        .mut_subcommand("report", |verb| {
            verb.mut_arg("run", run).mut_arg("against", run)
        })
        .mut_subcommand("compare", |verb| verb.mut_arg("a", run).mut_arg("b", run));
    cli::arrange(verbs, Layout::Full, None)
}

/// A name with its description.
type Named = (String, String);

struct Names {
    list: fn() -> Vec<Named>,
    paths: bool,
}

fn names(list: fn() -> Vec<Named>) -> ArgValueCompleter {
    ArgValueCompleter::new(Names { list, paths: false })
}

fn names_or_paths(list: fn() -> Vec<Named>) -> ArgValueCompleter {
    ArgValueCompleter::new(Names { list, paths: true })
}

impl ValueCompleter for Names {
    fn complete(&self, current: &OsStr) -> Vec<CompletionCandidate> {
        let begun = current.to_string_lossy();
        let mut found: Vec<_> = (self.list)()
            .into_iter()
            .filter(|(name, _)| name.starts_with(&*begun))
            .map(|(name, about)| CompletionCandidate::new(name).help(Some(about.into())))
            .collect();
        if self.paths {
            found.extend(PathCompleter::any().complete(current));
        }
        found
    }
}

fn plans() -> Vec<Named> {
    let all = assay_model::plan::BUILTIN.iter();
    all.filter_map(|(name, _)| {
        let plan = assay_model::plan::builtin_plan(name)?;
        Some(((*name).to_owned(), plan.title))
    })
    .collect()
}

fn advice() -> Vec<Named> {
    let Ok(catalogue) = assay_advice::Catalogue::builtin() else {
        return Vec::new();
    };
    let all = catalogue.all().into_iter();
    all.map(|one| (one.id.to_string(), one.title.clone()))
        .collect()
}

fn studies() -> Vec<Named> {
    let all = assay_studies::catalogue::builtin_studies().unwrap_or_default();
    all.into_iter()
        .map(|study| (study.name, study.title))
        .collect()
}

/// Returns the store of the environment variable, or the default store. A `--store` on the command line is unknown
/// here, because the shell does not pass it.
fn store() -> Option<Store> {
    let store: Option<std::path::PathBuf> = std::env::var_os("ASSAY_STORE").map(Into::into);
    // Completion must not wait for a server.
    if store.as_deref().is_some_and(assay_store::is_url) {
        return None;
    }
    let color = Color::Never;
    context::existing_store(&Global { store, color }).ok()?
}

fn runs() -> Vec<Named> {
    let rows = store().and_then(|store| store.runs().ok());
    let rows = rows.unwrap_or_default().into_iter();
    rows.map(|row| {
        let about = format!("{} of {}", row.plan, row.targets.join(", "));
        (row.id.0.to_string(), about)
    })
    .collect()
}

fn trials() -> Vec<Named> {
    let trials = store().and_then(|store| store.trials().ok());
    let trials = trials.unwrap_or_default().into_iter();
    trials
        .map(|trial| (trial.id.0.to_string(), trial.plan.title))
        .collect()
}
