//! The verbs: one module each. A verb parses its arguments, calls the libraries and prints.

use crate::cli::{Cli, Status};

/// What to do.
#[derive(clap::Subcommand)]
pub enum Verb {}

/// Runs the verb.
pub fn dispatch(cli: Cli) -> anyhow::Result<Status> {
    match cli.verb {
        Some(verb) => match verb {},
        None => Ok(Status::Ok),
    }
}
