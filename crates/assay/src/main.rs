//! assay tests server tuning advice on the server it is meant for.
//!
//! Arguments in, calls, output out. Each verb is a module of the same name in `verbs/`; what it
//! does lives in the library crates.

mod cli;
mod context;
mod pages;
mod progress;
mod verbs;

use clap::Parser as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    match verbs::dispatch(cli) {
        Ok(status) => status.into(),
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("assay: {}", describe(&error));
            cli::Status::of(&error).into()
        }
    }
}

/// An error and its causes on one line. Many of our errors name their cause in their own words:
/// then it is not said again.
fn describe(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// `assay … | head` is no error.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .any(|io| io.kind() == std::io::ErrorKind::BrokenPipe)
}
