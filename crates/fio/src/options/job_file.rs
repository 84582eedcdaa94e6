//! Parses fio's job files, which are in ini format.

use super::command_line::with_unknown;
use super::shell::UNKNOWN;
use super::{JobOptions, OptionsError, canonical_name};
use assay_model::secrets;
use std::collections::BTreeMap;

/// Maximum nesting of included files.
const DEEPEST: usize = 8;
/// Maximum number of lines, including those of included files. It limits files that include another file twice, which
/// doubles the lines at each level.
const MOST_LINES: usize = 1 << 20;

/// Function that returns the text of an included file, or the reason why it is unavailable.
pub type Include<'a> = dyn FnMut(&str) -> Result<String, String> + 'a;

/// Files and variables that a job file may use.
#[derive(Default)]
pub struct Surroundings<'a> {
    /// Returns the text of a file in an `include`. If it is missing, includes are not read.
    pub included: Option<&'a mut Include<'a>>,
    /// Variables by name, without `$`. They are those of the environment, and fio's own `ncpus`, `mb_memory` and
    /// `pagesize`.
    pub set: BTreeMap<String, String>,
}

/// Parses the jobs of a job file. `file` is the name of the file for messages.
///
/// # Errors
/// An option outside of a section, an `include`, or a value that fio would reject; the message contains the line. A
/// file without a job.
pub fn job_file(text: &str, file: &str) -> Result<Vec<JobOptions>, OptionsError> {
    job_file_in(text, file, &mut Surroundings::default(), &mut Vec::new())
}

/// Keywords that fio replaces by values (`fio_keywords`, options.c). `$jobname` is not replaced here.
const KEYWORDS: [&str; 3] = ["pagesize", "mb_memory", "ncpus"];

/// Replaces variables in a value as fio does: `${NAME}` by an environment variable, keywords by their values, and an
/// expression with a keyword by its result (`fio_keyword_replace`, options.c).
fn fill(value: &str, set: &BTreeMap<String, String>, missing: &mut Vec<String>) -> String {
    let mut out = String::new();
    let mut rest = value;
    let mut look_up = |name: &str, out: &mut String| match set.get(name) {
        Some(value) => out.push_str(value),
        None => {
            missing.push(name.to_owned());
            out.push(UNKNOWN);
        }
    };
    while let Some(at) = rest.find("${") {
        let Some(end) = rest[at..].find('}') else {
            break;
        };
        out.push_str(&rest[..at]);
        look_up(&rest[at + 2..at + end], &mut out);
        rest = &rest[at + end + 1..];
    }
    out.push_str(rest);
    let keyword = KEYWORDS
        .iter()
        .find(|name| out.contains(&format!("${name}")));
    if let Some(keyword) = keyword {
        let mut filled = String::new();
        look_up(keyword, &mut filled);
        out = out.replace(&format!("${keyword}"), &filled);
        match out.contains(UNKNOWN) {
            true => out = UNKNOWN.to_string(),
            false => {
                if let Some(sum) = super::quantity::sum(&out) {
                    out = sum.to_string();
                }
            }
        }
    }
    out
}

/// Numbers the lines of the job file, and replaces includes by the lines of the included files.
fn number_lines(
    text: &str,
    at: &dyn Fn(usize, String) -> OptionsError,
    around: &mut Surroundings<'_>,
    depth: usize,
    number: Option<usize>,
    out: &mut Vec<(usize, String)>,
) -> Result<(), OptionsError> {
    for (index, raw) in text.lines().enumerate() {
        let number = number.unwrap_or(index + 1);
        // fio cuts a line at either character, wherever it occurs.
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
        let inner = match around.included.as_mut() {
            Some(included) => included(name),
            None => Err(NOT_FOLLOWED.to_owned()),
        };
        let inner =
            inner.map_err(|why| at(number, format!("include {}: {why}", name.escape_debug())))?;
        number_lines(&inner, at, around, depth + 1, Some(number), out)?;
    }
    Ok(())
}

/// Reason for an include that is not read, because the text of the job file was given without its path.
const NOT_FOLLOWED: &str =
    "`include` is not followed here: give the included file as well, or paste it in";

/// Like [`job_file`], but also reads included files and uses variables. If a variable is unknown, its option is
/// unknown, and `notes` contains the variable.
///
/// # Errors
/// As [`job_file`], or an included file cannot be read.
pub fn job_file_in(
    text: &str,
    file: &str,
    around: &mut Surroundings<'_>,
    notes: &mut Vec<String>,
) -> Result<Vec<JobOptions>, OptionsError> {
    let mut global = Lines::new();
    let mut jobs = Vec::new();
    let mut section: Option<Section> = None;
    let at = |line: usize, message: String| OptionsError {
        place: format!("{}:{line}: ", file.escape_debug()),
        message,
    };
    let mut all = Vec::new();
    number_lines(text, &at, around, 0, None, &mut all)?;
    let mut missing = Vec::new();
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
                name: name.replace(UNKNOWN, "$…"),
                line: number,
                options: Vec::new(),
            });
            continue;
        }
        let Some(section) = section.as_mut() else {
            let shown: String = secrets::withhold_in_text(line).chars().take(40).collect();
            return Err(at(
                number,
                format!(
                    "`{}` stands before the first [section]; this is not a job file of fio",
                    shown.escape_debug()
                ),
            ));
        };
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        let (key, before) = (key.trim(), missing.len());
        let value = fill(value.trim(), &around.set, &mut missing);
        for name in &missing[before..] {
            let note = format!(
                "{} is not known: `{}` is not set (give it with --set {}=VALUE{})",
                key.escape_debug(),
                name.escape_debug(),
                name.escape_debug(),
                if KEYWORDS.contains(&name.as_str()) {
                    ""
                } else {
                    ", or in the environment"
                }
            );
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        section.options.push((key.to_owned(), value, number));
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

/// Options as (name, value, line number).
type Lines = Vec<(String, String, usize)>;

struct Section {
    name: String,
    line: usize,
    options: Lines,
}

impl Section {
    /// Adds a job. For a global section, adds its options to the global options of all later jobs.
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
        let job = with_unknown(&self.name, given).map_err(|error| {
            let refused = error.message.split('=').next().unwrap_or_default();
            let line = all
                .iter()
                .rfind(|(key, _, _)| canonical_name(key) == refused)
                .map_or(self.line, |(_, _, line)| *line);
            at(line, error.message)
        })?;
        jobs.push(job);
        Ok(())
    }
}
