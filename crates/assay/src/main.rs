//! assay tests server tuning advice on the server it is meant for.
//!
//! Arguments in, calls, output out. Each verb is a module of the same name in `verbs/`; what it
//! does lives in the library crates.

/// As the standard one, which panics when standard error cannot be written: that nobody listens any
/// more must not end a trial in the middle.
macro_rules! eprintln {
    ($($words:tt)*) => {
        $crate::context::tell(format_args!("{}\n", format_args!($($words)*)))
    };
}

/// As the standard one; see [`eprintln!`].
macro_rules! eprint {
    ($($words:tt)*) => { $crate::context::tell(format_args!($($words)*)) };
}

mod cli;
mod command_tree;
mod complete;
mod context;
mod elsewhere;
mod global;
mod help_layout;
mod help_notes;
mod input;
mod open_changes;
mod pages;
mod progress;
mod remote;
mod shape;
mod shared_options;
mod status;
mod sweep;
mod verbs;

use std::process::ExitCode;

fn main() -> ExitCode {
    complete::at_start();
    let cli = cli::Cli::parse(std::env::args_os()).unwrap_or_else(|error| match not_text(&error) {
        Some(word) => {
            eprintln!(
                "assay: cannot use the argument `{word}`: it is not valid UTF-8. Use a symbolic link with a UTF-8 name."
            );
            std::process::exit(2)
        }
        None => exit_with(&error),
    });
    match run(cli) {
        Ok(status) => status.into(),
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // What a file or a tool said may be in it, and errors are pasted into reports.
            let text = assay_model::secrets::withhold_in_text(&describe(&error));
            // A newline in a name must not look like a line of our own.
            eprintln!("assay: {}", text.replace('\n', "\n  "));
            status::Status::of(&error).into()
        }
    }
}

/// Runs the verb, and publishes the file of `--output` when the verb did not fail.
fn run(mut cli: cli::Cli) -> anyhow::Result<status::Status> {
    context::send_output_to(std::mem::take(&mut cli.destination));
    let status = verbs::dispatch(cli).inspect_err(|_| context::discard_output())?;
    context::publish_output()?;
    Ok(status)
}

/// Ends as clap does; an argument that it repeats shows what it holds.
fn exit_with(error: &clap::Error) -> ! {
    let text = error.render().to_string();
    let shown = context::shown(&text);
    if !error.use_stderr() || shown == text {
        error.exit();
    }
    eprint!("{shown}");
    std::process::exit(error.exit_code())
}

/// The word that is not UTF-8, where that is the error: clap does not say which one it is.
fn not_text(error: &clap::Error) -> Option<String> {
    let words = (error.kind() == clap::error::ErrorKind::InvalidUtf8).then(std::env::args_os)?;
    let word = words.skip(1).find(|word| word.to_str().is_none())?;
    let shown = word.as_encoded_bytes().escape_ascii().to_string();
    Some(shown)
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

/// `assay … | head` is no error. Only our own output comes as a bare error of I/O: a pipe to a server
/// or a guest that broke is the cause of an error of its own.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let bare = error.downcast_ref::<std::io::Error>();
    let json = error.downcast_ref::<serde_json::Error>();
    let kind = bare.map(std::io::Error::kind);
    kind.or(json.and_then(serde_json::Error::io_error_kind)) == Some(std::io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Error, ErrorKind};

    #[derive(Debug, thiserror::Error)]
    #[error("the server went away")]
    struct Server {
        source: Error,
    }

    #[test]
    fn only_a_reader_of_our_output_may_go_away() {
        let broken = || Error::from(ErrorKind::BrokenPipe);
        assert!(is_broken_pipe(&broken().into()));
        assert!(!is_broken_pipe(&Server { source: broken() }.into()));
        assert!(!is_broken_pipe(&Error::from(ErrorKind::StorageFull).into()));
    }
}
