//! assay tests server tuning advice on the server that is to be tuned.
//!
//! This crate parses arguments, calls the libraries and prints results. Each verb is a module of the same name in
//! `verbs/`; the library crates contain the functions.

/// Like the standard macro, but does not panic if standard error is closed, because a closed pipe must not end a
/// running trial.
macro_rules! eprintln {
    ($($words:tt)*) => {
        $crate::context::tell(format_args!("{}\n", format_args!($($words)*)))
    };
}

/// Like the standard macro; see [`eprintln!`].
macro_rules! eprint {
    ($($words:tt)*) => { $crate::context::tell(format_args!($($words)*)) };
}

mod cli;
mod command_tree;
mod complete;
mod context;
mod features;
mod global;
mod help_layout;
mod help_notes;
mod input;
mod machine_source;
mod observation_log;
mod open_changes;
mod pages;
mod postgresql_cluster;
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
            // The message may quote a file or a tool, and users paste errors into reports.
            let text = assay_model::secrets::withhold_in_text(&describe(&error));
            // A newline in a name must not look like a new message.
            eprintln!("assay: {}", text.replace('\n', "\n  "));
            status::Status::of(&error).into()
        }
    }
}

/// Runs the verb, and publishes the file of `--output` if the verb succeeded.
fn run(mut cli: cli::Cli) -> anyhow::Result<status::Status> {
    context::send_output_to(std::mem::take(&mut cli.destination));
    let status = verbs::dispatch(cli).inspect_err(|_| context::discard_output())?;
    context::publish_output()?;
    Ok(status)
}

/// Exits like clap, but escapes the arguments in the message.
fn exit_with(error: &clap::Error) -> ! {
    let text = error.render().to_string();
    let shown = context::shown(&text);
    if !error.use_stderr() || shown == text {
        error.exit();
    }
    eprint!("{shown}");
    std::process::exit(error.exit_code())
}

/// If the error is an argument that is not UTF-8, returns this argument escaped, because clap's message does not
/// contain it.
fn not_text(error: &clap::Error) -> Option<String> {
    let words = (error.kind() == clap::error::ErrorKind::InvalidUtf8).then(std::env::args_os)?;
    let word = words.skip(1).find(|word| word.to_str().is_none())?;
    let shown = word.as_encoded_bytes().escape_ascii().to_string();
    Some(shown)
}

/// Formats an error and its causes on one line. A cause that the message already contains is not
/// repeated.
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

/// Returns whether the pipe of the output was closed, as in `assay … | head`. Only this error is a bare I/O error; a
/// broken pipe to a server or guest is wrapped in another error.
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
