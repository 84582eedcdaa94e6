//! Reports in which respects a fio command or job file would not measure what it seems to measure. The doubts are found
//! in `assay-judge`.

use assay_fio::options::JobOptions;
use assay_judge::doubts::other_tools::ExplainedCommand;
use assay_model::{Doubt, SCHEMA_VERSION};
use assay_render::text::format_paragraph;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

/// Doubts about the figures of a command or job file, before it runs.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Document")]
pub struct LintDocument<'a> {
    schema: u32,
    /// Whole devices that the command would overwrite.
    overwrites: Vec<String>,
    /// Commands of other tools in the same input.
    other_tools: Vec<OtherToolSeen<'a>>,
    /// Reasons why the figures may be misleading.
    doubts: Vec<JobDoubt<'a>>,
    /// Every job of fio, with the codes of the doubts about it.
    jobs: Vec<JobSeen<'a>>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Other")]
struct OtherToolSeen<'a> {
    name: &'a str,
    /// Sentence that describes what the command measures.
    measures: &'a str,
}

#[derive(Serialize, JsonSchema)]
struct JobSeen<'a> {
    name: &'a str,
    /// What the job really does, such as `random read, 4 KiB, queue depth 1, through the page cache, psync`.
    measures: String,
    /// Values of loop variables and branches of a script that were assumed, as `NAME=VALUE …`.
    #[serde(skip_serializing_if = "str::is_empty")]
    chosen: &'a str,
    /// Options whose values are unknown. Results that depend on them are not judged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unknown: Vec<&'a str>,
    /// Whether the job may have additional options that are unknown.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    open: bool,
    /// Codes of the doubts about this job.
    doubts: Vec<&'a str>,
}

/// A doubt with the job that it is about.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "DoubtOf")]
pub(crate) struct JobDoubt<'a> {
    #[serde(flatten)]
    pub(crate) doubt: &'a Doubt,
    /// Name of the job, or of the tool.
    pub(crate) job: &'a str,
}

/// Builds one JSON object. Its list `doubts` contains the doubts of all jobs.
#[must_use]
pub fn lint_to_json(
    judged: &[(JobOptions, Vec<Doubt>)],
    others: &[ExplainedCommand],
) -> serde_json::Value {
    let of_others = others.iter().flat_map(|other| {
        other.doubts.iter().map(|doubt| JobDoubt {
            doubt,
            job: other.name,
        })
    });
    let of_jobs = merge_equal_jobs(judged)
        .into_iter()
        .flat_map(|(job, doubts, _)| {
            let job = &job.name;
            doubts.iter().map(move |doubt| JobDoubt { doubt, job })
        });
    let measures = others.iter().map(|other| OtherToolSeen {
        name: other.name,
        measures: &other.measures,
    });
    let jobs = judged.iter().map(|(job, doubts)| JobSeen {
        name: &job.name,
        measures: job.describe(),
        chosen: &job.chosen,
        unknown: job.unknown.iter().map(String::as_str).collect(),
        open: job.open,
        doubts: doubts.iter().map(|doubt| doubt.code.as_str()).collect(),
    });
    json!(LintDocument {
        schema: SCHEMA_VERSION,
        overwrites: list_overwritten_devices(judged, others),
        other_tools: measures.collect(),
        doubts: of_jobs.chain(of_others).collect(),
        jobs: jobs.collect(),
    })
}

/// Lists the whole devices that the jobs would overwrite.
#[must_use]
pub fn list_overwritten_devices(
    judged: &[(JobOptions, Vec<Doubt>)],
    others: &[ExplainedCommand],
) -> Vec<String> {
    let mut devices: Vec<String> = judged
        .iter()
        .filter(|(job, _)| job.access.writes || job.access.trims)
        .flat_map(|(job, _)| job.given("filename").unwrap_or_default().split(':'))
        .filter(|name| name.starts_with("/dev/") && !name.starts_with("/dev/shm/"))
        .filter(|name| !matches!(*name, "/dev/null" | "/dev/zero" | "/dev/full"))
        .map(str::to_owned)
        .chain(others.iter().filter_map(|other| other.overwrites.clone()))
        .collect();
    devices.sort();
    devices.dedup();
    devices
}

/// Formats the doubts as text. Sentences are wrapped at `columns`.
#[must_use]
pub fn lint_to_text(
    judged: &[(JobOptions, Vec<Doubt>)],
    others: &[ExplainedCommand],
    columns: usize,
) -> String {
    let mut out = String::new();
    let devices = list_overwritten_devices(judged, others);
    if !devices.is_empty() {
        let devices: Vec<String> = devices
            .iter()
            .map(|device| device.escape_debug().to_string())
            .collect();
        out.push_str(&format_paragraph(
            &format!(
                "THIS OVERWRITES {}: what is on it is lost. Run it only where that is meant.",
                devices.join(", ")
            ),
            0,
            columns,
        ));
    }
    for other in others {
        out.push_str(&format_paragraph(
            &format!("{} measures {}.", other.name, other.measures),
            0,
            columns,
        ));
        for doubt in &other.doubts {
            out.push_str(&format_doubt(doubt, 2, columns));
        }
    }
    for (job, doubts, chosen) in merge_equal_jobs(judged) {
        if doubts.is_empty() {
            continue;
        }
        let when = match chosen.is_empty() {
            true => String::new(),
            false => format!(" ({})", shorten_list(&chosen)),
        };
        let name = job.name.escape_debug();
        let heading = match describe_alike(job, doubts, judged) {
            Some(measures) => format!("job {name}{when}: {}", measures.escape_debug()),
            None => format!("job {name}{when}"),
        };
        out.push_str(&format_paragraph(&heading, 0, columns));
        for doubt in doubts {
            out.push_str(&format_doubt(doubt, 0, columns));
        }
    }
    out
}

/// A job, its doubts, and the values of the script's variables with which these doubts occur.
type EqualJobs<'a> = (&'a JobOptions, &'a Vec<Doubt>, Vec<&'a str>);

/// Merges jobs that have the same name and the same doubts, as the loop of a script produces them.
fn merge_equal_jobs(judged: &[(JobOptions, Vec<Doubt>)]) -> Vec<EqualJobs<'_>> {
    let mut found: Vec<EqualJobs<'_>> = Vec::new();
    for (job, doubts) in judged {
        let chosen = Some(job.chosen.as_str()).filter(|text| !text.is_empty());
        let same = |one: &&mut EqualJobs<'_>| {
            chosen.is_some() && !one.2.is_empty() && one.0.name == job.name && one.1 == doubts
        };
        match found.iter_mut().find(same) {
            Some(known) => known.2.extend(chosen),
            None => found.push((job, doubts, chosen.into_iter().collect())),
        }
    }
    found
}

/// Returns the description of jobs that the loop of a script produced and that have the same doubts; `None` if their
/// descriptions differ.
fn describe_alike(
    job: &JobOptions,
    doubts: &[Doubt],
    judged: &[(JobOptions, Vec<Doubt>)],
) -> Option<String> {
    let measures = job.describe();
    let is_merged = |(other, found): &&(JobOptions, Vec<Doubt>)| {
        !job.chosen.is_empty() && other.name == job.name && found == doubts
    };
    let mut merged = judged.iter().filter(is_merged);
    merged
        .all(|(other, _)| other.describe() == measures)
        .then_some(measures)
}

/// Shortens a list to its first entries and the number of the remaining entries.
fn shorten_list(list: &[&str]) -> String {
    const MOST: usize = 4;
    match list.len() > MOST {
        true => format!(
            "{}, and {} more",
            list[..MOST].join(", "),
            list.len() - MOST
        ),
        false => list.join(", "),
    }
}

/// Formats a doubt on indented lines: code and severity, evidence, remedy.
#[must_use]
pub fn format_doubt(doubt: &Doubt, indent: usize, columns: usize) -> String {
    let severity = doubt.severity.name();
    let mut out = format_paragraph(&format!("{} ({severity})", doubt.code), indent, columns);
    out.push_str(&format_paragraph(&doubt.evidence, indent + 2, columns));
    out.push_str(&format_paragraph(
        &format!("-> {}", doubt.remedy),
        indent + 2,
        columns,
    ));
    out
}
