//! The plan of a study, shown before anything is created. The results are reported in the sibling
//! modules.

use super::study_text;
use assay_model::Nanos;
use assay_model::study::{Form, Study};
use assay_render::Style;
use assay_render::text::escape_line;
use assay_render::units::format_count;

/// What is known about a study before it begins.
pub struct StudyPreview<'a> {
    /// Size of the study: `quick` or `full`.
    pub name: &'a str,
    /// Extent of this size, such as the number of rounds.
    pub form: &'a Form,
    /// Working directory or pool of the study.
    pub place: &'a str,
    /// What will be created, one line for each object.
    pub makes: &'a [String],
    /// Names of configurations that cannot be tried.
    pub leaves_out: &'a [String],
    /// Number of measuring steps of the study.
    pub steps: usize,
    /// Rough duration of the study.
    pub time: Nanos,
    /// Seed of the randomised order.
    pub seed: u64,
}

/// Renders the plan of a study for a terminal.
#[must_use]
pub fn render_study_plan(study: &Study, before: &StudyPreview<'_>, style: Style) -> String {
    let mut out = format!("{}\n", style.bold(&escape_line(&study.title)));
    style.write_paragraph(&mut out, "", 2, &escape_line(&study.question));
    out.push('\n');
    let mut line = |label: &str, text: String| style.write_paragraph(&mut out, label, 10, &text);
    line(
        "Form",
        format!(
            "{}: {} of {} configurations, {}, {} in random order within each round",
            before.name,
            study.tried(before.form).len(),
            study
                .configurations
                .iter()
                .filter(|one| !one.published_only)
                .count(),
            format_count(before.form.rounds as usize, "round"),
            format_count(before.steps, "measurement"),
        ),
    );
    line("Where", escape_line(before.place));
    for (index, one) in before.makes.iter().enumerate() {
        line(if index == 0 { "Makes" } else { "" }, escape_line(one));
    }
    if !before.leaves_out.is_empty() {
        line("Not tried", escape_line(&before.leaves_out.join(", ")));
    }
    line(
        "Time",
        format!("about {}", study_text::format_rough_time(before.time)),
    );
    line("Seed", before.seed.to_string());
    out
}
