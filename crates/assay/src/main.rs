//! assay tests server tuning advice on the server it is meant for.
//!
//! Arguments in, calls, output out. Each verb is a module of the same name in `verbs/`; what it
//! does lives in the library crates.

mod cli;
mod context;
mod pages;
mod verbs;

use clap::Parser as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    match verbs::dispatch(cli) {
        Ok(status) => status.into(),
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("assay: {error:#}");
            cli::Status::of(&error).into()
        }
    }
}

/// `assay … | head` is no error.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .any(|io| io.kind() == std::io::ErrorKind::BrokenPipe)
}
