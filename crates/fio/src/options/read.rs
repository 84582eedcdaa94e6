//! Distinguishes job files from commands, and evaluates the options in a result.

use super::job_file::{Surroundings, job_file_in};
use super::{Commands, Invocation, JobOptions, OptionsError, command_line, read_commands};
use assay_model::sample::Worker;

/// Returns whether fio counted several I/Os in flight. With a synchronous engine, this is impossible.
#[must_use]
pub fn reached_depth(job: &Worker) -> bool {
    const ALONE: f64 = 50.0;
    let levels = &job.fio.iodepth_level;
    !levels.is_empty()
        && levels.values().sum::<f64>() > ALONE
        && levels.get("1").copied().unwrap_or(0.0) < ALONE
}

/// What a text contains.
#[derive(Clone, Debug, PartialEq)]
pub enum Text {
    /// A job file, as its jobs and the notes on unknown values.
    JobFile(Vec<JobOptions>, Vec<String>),
    /// Commands, for example of a script.
    Commands(Commands),
}

/// Parses a job file, or a text with fio commands such as a script. `file` is the name of the file for messages.
///
/// # Errors
/// As [`job_file`] and [`command_line`].
pub fn read_text(text: &str, file: &str) -> Result<Vec<Invocation>, OptionsError> {
    let place = |error: OptionsError| OptionsError {
        place: format!("{}: ", file.escape_debug()),
        ..error
    };
    match read_text_in(text, file, &mut Surroundings::default())? {
        Text::JobFile(jobs, mended) => Ok(vec![Invocation {
            jobs,
            mended,
            ..Invocation::default()
        }]),
        Text::Commands(_) => command_line(text).map_err(place),
    }
}

/// Like [`read_text`], but also reads included files and uses variables.
///
/// # Errors
/// As [`read_text`], or an included file cannot be read.
pub fn read_text_in(
    text: &str,
    file: &str,
    around: &mut Surroundings<'_>,
) -> Result<Text, OptionsError> {
    let place = |error: OptionsError| OptionsError {
        place: format!("{}: ", file.escape_debug()),
        ..error
    };
    let first = text
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty() && !line.starts_with(['#', ';']));
    // A prompt of root looks like a comment.
    let prompted = || {
        text.lines()
            .any(|line| line.trim_start().starts_with("# ") && line.contains("fio "))
    };
    match first {
        None if prompted() => {
            let known = &around.set;
            read_commands(text, known)
                .map(Text::Commands)
                .map_err(place)
        }
        None => Err(place(OptionsError::new(
            "it is empty: expected a job file of fio or a command line",
        ))),
        Some(line) if line.starts_with('{') => Err(place(OptionsError::new(
            "this looks like a result of fio: `assay report import` reads those",
        ))),
        Some(line) if is_section(line) => {
            let mut notes = Vec::new();
            let jobs = job_file_in(text, file, around, &mut notes)?;
            Ok(Text::JobFile(jobs, notes))
        }
        Some(_) => {
            let known = &around.set;
            read_commands(text, known)
                .map(Text::Commands)
                .map_err(place)
        }
    }
}

/// Returns whether a line starts a section of a job file. Tests and prompts of a shell look similar, but are not
/// sections.
fn is_section(line: &str) -> bool {
    line.starts_with('[')
        && !line.starts_with("[[ ")
        && !line.starts_with("[ ")
        && !line.contains("]#")
        && !line.contains("]$")
}
