//! Job files (ini).

use super::{JobOptions, OptionsError, Source, canonical};
use assay_model::secrets;

/// The jobs of a job file; `file` is only named in errors.
///
/// # Errors
/// Names the line: an option outside a section, `include`, a value that fio would refuse; or the
/// file when it has no job.
pub fn job_file(text: &str, file: &str) -> Result<Vec<JobOptions>, OptionsError> {
    let mut global = Lines::new();
    let mut jobs = Vec::new();
    let mut section: Option<Section> = None;
    let at = |line: usize, message: String| OptionsError {
        place: format!("{}:{line}: ", file.escape_debug()),
        message,
    };
    for (index, raw) in text.lines().enumerate() {
        let number = index + 1;
        // fio cuts a line at either character, wherever it stands.
        let line = raw.split(['#', ';']).next().unwrap_or_default().trim();
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
        if line.starts_with("include ") {
            return Err(at(
                number,
                "`include` is not followed: give the included file as well, or paste it in here"
                    .to_owned(),
            ));
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
