//! Finds the fio command before a result, as in a copied terminal session or on a web page, and adds its options to the
//! jobs.

use crate::options::command_line;
use assay_model::sample::Worker;

/// Maximum length in bytes of a command that is joined from continued lines.
const LONGEST: usize = 64 << 10;

/// fio commands that were found in the text before the current line.
#[derive(Default)]
pub(super) struct SeenCommand {
    /// Command of the run whose result is currently parsed.
    current: Option<String>,
    /// Command of the next run. It was found after the result of the current run.
    next: Option<String>,
    /// Text of a command that continues on the next line.
    partial: Option<String>,
}

impl SeenCommand {
    /// Searches a line for a fio command. `after_result` is true if results of the current run were already parsed, so
    /// that a command belongs to the next run.
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

    /// Ends a run. The command of the next run becomes the current command.
    pub fn end_run(&mut self) {
        self.current = self.next.take();
    }

    /// Adds the options of the current command to a job. All options of the job are then known.
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
