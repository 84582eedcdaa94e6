//! What will be done, before anything is made.

use super::words;
use assay_model::Nanos;
use assay_model::study::{Form, Study};
use assay_render::Style;
use assay_render::text::clean;
use assay_render::units::count;

/// What is known before a study begins.
pub struct Before<'a> {
    /// `quick` or `full`.
    pub name: &'a str,
    /// The form.
    pub form: &'a Form,
    /// Where it works.
    pub place: &'a str,
    /// What is made, a line each.
    pub makes: &'a [String],
    /// Names of configurations that cannot be tried.
    pub leaves_out: &'a [String],
    /// Steps.
    pub steps: usize,
    /// Roughly how long it takes.
    pub time: Nanos,
    /// Seed.
    pub seed: u64,
}

/// The plan for a terminal.
#[must_use]
pub fn plan(study: &Study, before: &Before<'_>, style: Style) -> String {
    let mut out = format!("{}\n", style.bold(&clean(&study.title)));
    style.paragraph(&mut out, "", 2, &clean(&study.question));
    out.push('\n');
    let mut line = |label: &str, text: String| style.paragraph(&mut out, label, 10, &text);
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
            count(before.form.rounds as usize, "round"),
            count(before.steps, "measurement"),
        ),
    );
    line("Where", clean(before.place));
    for (index, one) in before.makes.iter().enumerate() {
        line(if index == 0 { "Makes" } else { "" }, clean(one));
    }
    if !before.leaves_out.is_empty() {
        line("Not tried", clean(&before.leaves_out.join(", ")));
    }
    line("Time", format!("about {}", words::about(before.time)));
    line("Seed", before.seed.to_string());
    out
}
