//! What a fio command or job file would not measure.

use assay_fio::options::JobOptions;
use assay_judge::doubts::other_tools::OtherTool;
use assay_model::{Doubt, SCHEMA_VERSION};
use assay_render::text::paragraph;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

/// What a command or job file would not measure.
#[derive(Serialize, JsonSchema)]
pub struct Document<'a> {
    schema: u32,
    /// Whole devices that would be written over.
    overwrites: Vec<String>,
    /// What was recognised beside fio.
    other_tools: Vec<Other<'a>>,
    /// Why its figures may not mean what they seem to.
    doubts: Vec<DoubtOf<'a>>,
    /// Every job of fio, with the codes of its doubts.
    jobs: Vec<JobSeen<'a>>,
}

#[derive(Serialize, JsonSchema)]
struct Other<'a> {
    name: &'a str,
    /// What it measures, in a sentence.
    measures: &'a str,
}

#[derive(Serialize, JsonSchema)]
struct JobSeen<'a> {
    name: &'a str,
    /// What was chosen of loops and branches of a script: `NAME=VALUE …`.
    #[serde(skip_serializing_if = "str::is_empty")]
    chosen: &'a str,
    /// Options whose values are not known; what depends on them is not judged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unknown: Vec<&'a str>,
    /// Whether further options may be given that are not known.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    open: bool,
    /// Codes.
    doubts: Vec<&'a str>,
}

/// A doubt and whose it is.
#[derive(Serialize, JsonSchema)]
pub(crate) struct DoubtOf<'a> {
    #[serde(flatten)]
    pub(crate) doubt: &'a Doubt,
    /// The job, or the tool.
    pub(crate) job: &'a str,
}

/// One JSON object with the list `doubts`.
#[must_use]
pub fn to_json(judged: &[(JobOptions, Vec<Doubt>)], others: &[OtherTool]) -> serde_json::Value {
    let of_others = others.iter().flat_map(|other| {
        other.doubts.iter().map(|doubt| DoubtOf {
            doubt,
            job: other.name,
        })
    });
    let of_jobs = alike(judged).into_iter().flat_map(|(job, doubts, _)| {
        let job = &job.name;
        doubts.iter().map(move |doubt| DoubtOf { doubt, job })
    });
    let measures = others.iter().map(|other| Other {
        name: other.name,
        measures: &other.measures,
    });
    let jobs = judged.iter().map(|(job, doubts)| JobSeen {
        name: &job.name,
        chosen: &job.chosen,
        unknown: job.unknown.iter().map(String::as_str).collect(),
        open: job.open,
        doubts: doubts.iter().map(|doubt| doubt.code.as_str()).collect(),
    });
    json!(Document {
        schema: SCHEMA_VERSION,
        overwrites: overwritten(judged, others),
        other_tools: measures.collect(),
        doubts: of_jobs.chain(of_others).collect(),
        jobs: jobs.collect(),
    })
}

/// Whole devices that the jobs would write over.
#[must_use]
pub fn overwritten(judged: &[(JobOptions, Vec<Doubt>)], others: &[OtherTool]) -> Vec<String> {
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

/// The doubts for people, sentences in at most `columns`.
#[must_use]
pub fn to_text(
    judged: &[(JobOptions, Vec<Doubt>)],
    others: &[OtherTool],
    columns: usize,
) -> String {
    let mut out = String::new();
    let devices = overwritten(judged, others);
    if !devices.is_empty() {
        let devices: Vec<String> = devices
            .iter()
            .map(|device| device.escape_debug().to_string())
            .collect();
        out.push_str(&paragraph(
            &format!(
                "THIS OVERWRITES {}: what is on it is lost. Run it only where that is meant.",
                devices.join(", ")
            ),
            0,
            columns,
        ));
    }
    for other in others {
        out.push_str(&paragraph(
            &format!("{} measures {}.", other.name, other.measures),
            0,
            columns,
        ));
        for doubt in &other.doubts {
            out.push_str(&doubt_text(doubt, 2, columns));
        }
    }
    for (job, doubts, chosen) in alike(judged) {
        if doubts.is_empty() {
            continue;
        }
        if judged.len() > 1 {
            let when = match chosen.is_empty() {
                true => String::new(),
                false => format!(" ({})", shorten(&chosen)),
            };
            let name = format!("job {}{when}", job.name.escape_debug());
            out.push_str(&paragraph(&name, 0, columns));
        }
        for doubt in doubts {
            out.push_str(&doubt_text(doubt, 0, columns));
        }
    }
    out
}

/// A job, its doubts, and what was chosen where it is so.
type Alike<'a> = (&'a JobOptions, &'a Vec<Doubt>, Vec<&'a str>);

/// Jobs of one name with the same doubts, which a loop of a script has, once.
fn alike(judged: &[(JobOptions, Vec<Doubt>)]) -> Vec<Alike<'_>> {
    let mut found: Vec<Alike<'_>> = Vec::new();
    for (job, doubts) in judged {
        let chosen = Some(job.chosen.as_str()).filter(|text| !text.is_empty());
        let same = |one: &&mut Alike<'_>| {
            chosen.is_some() && !one.2.is_empty() && one.0.name == job.name && one.1 == doubts
        };
        match found.iter_mut().find(same) {
            Some(known) => known.2.extend(chosen),
            None => found.push((job, doubts, chosen.into_iter().collect())),
        }
    }
    found
}

/// The first of a long list, and how many more there are.
fn shorten(list: &[&str]) -> String {
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

/// A doubt for people: code and severity, evidence, remedy, indented.
#[must_use]
pub fn doubt_text(doubt: &Doubt, indent: usize, columns: usize) -> String {
    let severity = doubt.severity.name();
    let mut out = paragraph(&format!("{} ({severity})", doubt.code), indent, columns);
    out.push_str(&paragraph(&doubt.evidence, indent + 2, columns));
    out.push_str(&paragraph(
        &format!("-> {}", doubt.remedy),
        indent + 2,
        columns,
    ));
    out
}
