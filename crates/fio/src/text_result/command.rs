//! Takes the options of a job from the fio command that stands before the result, as in a terminal or on a page.

use crate::options::command_line;
use assay_model::sample::Worker;

/// Longest command that is joined from lines that end with a backslash, in bytes.
const LONGEST: usize = 64 << 10;

/// The fio commands that the text contained so far.
#[derive(Default)]
pub(super) struct SeenCommand {
    /// Command of the current run.
    current: Option<String>,
    /// Command of the run that follows.
    next: Option<String>,
    /// Lines of an unfinished command.
    partial: Option<String>,
}

impl SeenCommand {
    /// Looks for a command in a line; `after_result` if the current run already has results.
    pub fn read_line(&mut self, line: &str, after_result: bool) {
        let whole = match self.partial.take() {
            Some(partial) => format!("{partial} {line}"),
            None if is_command(line) => line.to_owned(),
            None => return,
        };
        // Windows continues a line with `^` or a backtick.
        match whole.strip_suffix(['\\', '^', '`']) {
            Some(partial) if whole.len() < LONGEST => self.partial = Some(partial.to_owned()),
            _ if after_result => self.next = Some(whole),
            _ => self.current = Some(whole),
        }
    }

    /// Ends a run: the next command becomes the current one.
    pub fn end_run(&mut self) {
        self.current = self.next.take();
    }

    /// Adds the command's options to a job, whose options are then complete.
    pub fn complete_options(&self, job: &mut Worker) {
        let Some(calls) = self
            .current
            .as_deref()
            .and_then(|text| command_line(text).ok())
        else {
            return;
        };
        let [call] = calls.as_slice() else { return };
        let Some(options) = call.jobs.iter().find(|options| options.name == job.name) else {
            return;
        };
        if !call.job_files.is_empty() || options.open || !options.unknown.is_empty() {
            return;
        }
        for (key, value) in &options.given {
            let known = job.fio.options.entry(key.clone());
            known.or_insert_with(|| value.clone());
        }
        job.fio.open = false;
    }
}

/// Returns whether a line calls fio with options.
fn is_command(line: &str) -> bool {
    // A prompt of Windows stands before the program without a blank: `D:\>c:\fio\fio`.
    let program = |word: &str| {
        let name = word.rsplit(['/', '\\', '>']).next().unwrap_or(word);
        matches!(name, "fio" | "fio.exe")
    };
    let mut words = line.split_whitespace();
    let option = |word: &str| word.starts_with('-') && word.contains('=');
    words.any(program) && (line.contains("--") || words.any(option))
}
