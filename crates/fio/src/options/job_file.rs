//! Job files (ini).

use super::{JobOptions, OptionsError, Source, canonical};
use assay_model::secrets;

/// Files that include one another go no deeper than this.
const DEEPEST: usize = 8;
/// Lines that includes make at most: a file that includes another one twice doubles with each level.
const MOST_LINES: usize = 1 << 20;

/// For text that has no place among files.
pub(super) fn not_followed(_: &str) -> Result<String, String> {
    Err("`include` is not followed here: give the included file as well, or paste it in".to_owned())
}

/// The jobs of a job file; `file` is only named in errors.
///
/// # Errors
/// Names the line: an option outside a section, `include`, a value that fio would refuse; or the
/// file when it has no job.
pub fn job_file(text: &str, file: &str) -> Result<Vec<JobOptions>, OptionsError> {
    job_file_with(text, file, &mut not_followed)
}

/// Lines with their numbers in the file that was given, and includes put in their place.
fn lines(
    text: &str,
    at: &dyn Fn(usize, String) -> OptionsError,
    included: &mut dyn FnMut(&str) -> Result<String, String>,
    depth: usize,
    number: Option<usize>,
    out: &mut Vec<(usize, String)>,
) -> Result<(), OptionsError> {
    for (index, raw) in text.lines().enumerate() {
        let number = number.unwrap_or(index + 1);
        // fio cuts a line at either character, wherever it stands.
        let line = raw.split(['#', ';']).next().unwrap_or_default().trim();
        let Some(name) = line.strip_prefix("include ") else {
            out.push((number, line.to_owned()));
            continue;
        };
        if depth >= DEEPEST || out.len() >= MOST_LINES {
            return Err(at(
                number,
                "files include one another too deeply".to_owned(),
            ));
        }
        let name = name.trim();
        let inner = included(name)
            .map_err(|why| at(number, format!("include {}: {why}", name.escape_debug())))?;
        lines(&inner, at, included, depth + 1, Some(number), out)?;
    }
    Ok(())
}

/// The same; `included` gives the text of a file that `include` names.
///
/// # Errors
/// As [`job_file`], or what `included` says.
pub fn job_file_with(
    text: &str,
    file: &str,
    included: &mut dyn FnMut(&str) -> Result<String, String>,
) -> Result<Vec<JobOptions>, OptionsError> {
    let mut global = Lines::new();
    let mut jobs = Vec::new();
    let mut section: Option<Section> = None;
    let at = |line: usize, message: String| OptionsError {
        place: format!("{}:{line}: ", file.escape_debug()),
        message,
    };
    let mut all = Vec::new();
    lines(text, &at, included, 0, None, &mut all)?;
    for (number, line) in &all {
        let (number, line) = (*number, line.as_str());
        if line.is_empty() {
            continue;
        }
        if let Some(rest) = line.strip_prefix('[') {
            let Some(name) = rest.strip_suffix(']') else {
                return Err(at(number, "a section ends with `]`".to_owned()));
            };
            if let Some(done) = section.take() {
                done.finish(&mut global, &mut jobs, &at)?;
            }
            section = Some(Section {
                name: name.to_owned(),
                line: number,
                options: Vec::new(),
            });
            continue;
        }
        let Some(section) = section.as_mut() else {
            let shown: String = secrets::text(line).chars().take(40).collect();
            return Err(at(
                number,
                format!(
                    "`{}` stands before the first [section]; this is not a job file of fio",
                    shown.escape_debug()
                ),
            ));
        };
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        section
            .options
            .push((key.trim().to_owned(), value.trim().to_owned(), number));
    }
    if let Some(done) = section.take() {
        done.finish(&mut global, &mut jobs, &at)?;
    }
    if jobs.is_empty() {
        return Err(OptionsError {
            place: format!("{}: ", file.escape_debug()),
            message: "no job in it: expected a [section] other than [global]".to_owned(),
        });
    }
    Ok(jobs)
}

/// Options with the line each stands in.
type Lines = Vec<(String, String, usize)>;

struct Section {
    name: String,
    line: usize,
    options: Lines,
}

impl Section {
    /// Adds a job, or to the options of all later ones.
    fn finish(
        self,
        global: &mut Lines,
        jobs: &mut Vec<JobOptions>,
        at: &dyn Fn(usize, String) -> OptionsError,
    ) -> Result<(), OptionsError> {
        // fio compares six characters (`get_new_job`, init.c).
        if self.name.starts_with("global") {
            global.extend(self.options);
            return Ok(());
        }
        let all: Lines = global.iter().cloned().chain(self.options).collect();
        let given = all
            .iter()
            .map(|(key, value, _)| (key.clone(), value.clone()));
        let job = JobOptions::from_given(&self.name, given, Source::Complete).map_err(|error| {
            let refused = error.message.split('=').next().unwrap_or_default();
            let line = all
                .iter()
                .rfind(|(key, _, _)| canonical(key) == refused)
                .map_or(self.line, |(_, _, line)| *line);
            at(line, error.message)
        })?;
        jobs.push(job);
        Ok(())
    }
}
