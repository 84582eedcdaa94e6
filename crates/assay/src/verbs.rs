//! The verbs: one module each. A verb parses its arguments, calls the libraries and prints.

pub mod facts;
pub mod import;
pub mod lint;
pub mod plan;
pub mod run;

use crate::cli::{Cli, Status};

/// What to do.
#[derive(clap::Subcommand)]
pub enum Verb {
    Run(run::Args),
    Facts(facts::Args),
    Lint(lint::Args),
    Import(import::Args),
    Plan(plan::Args),
}

/// Runs the verb.
pub fn dispatch(cli: Cli) -> anyhow::Result<Status> {
    let global = &cli.global;
    match cli.verb {
        Some(Verb::Run(args)) => run::run(&args, global),
        Some(Verb::Facts(args)) => facts::run(&args, global),
        Some(Verb::Lint(args)) => lint::run(&args),
        Some(Verb::Import(args)) => import::run(&args, global),
        Some(Verb::Plan(args)) => plan::run(&args),
        None => Ok(Status::Ok),
    }
}
