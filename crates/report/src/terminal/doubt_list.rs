//! Lists each doubt once, with the workloads that have it. Doubts about a trial are in `trial::trial_tables`.

use super::{format_share, format_some_names, tint_validity, write_section_heading};
use assay_model::Doubt;
use assay_model::doubt::{Severity, Validity};
use assay_model::result::Judged;
use assay_render::Style;
use assay_render::text::escape_line;

/// A doubt with the results that have it.
pub(crate) struct CarriedDoubt<'a> {
    /// The doubt, with the evidence of the first sample that has it.
    pub(crate) doubt: &'a Doubt,
    /// `workload`, or `workload on target` if there are several targets.
    pub(crate) workloads: Vec<String>,
    /// Number of samples that have the doubt.
    pub(crate) samples: u32,
}

/// Collects the doubts by code. Void doubts come before suspect ones; within each, the most frequent comes first.
pub(crate) fn collect_doubts(judged: &Judged) -> Vec<CarriedDoubt<'_>> {
    let several = super::list_targets(judged).len() > 1;
    let mut found: Vec<CarriedDoubt> = Vec::new();
    for result in &judged.results {
        let name = match several {
            true => format!(
                "{} on {}",
                escape_line(&result.workload),
                escape_line(&result.target)
            ),
            false => escape_line(&result.workload),
        };
        for counted in &result.doubts {
            match found
                .iter_mut()
                .find(|known| known.doubt.code == counted.doubt.code)
            {
                Some(known) => {
                    known.workloads.push(name.clone());
                    known.samples += counted.samples;
                    if counted.doubt.severity > known.doubt.severity {
                        known.doubt = &counted.doubt;
                    }
                }
                None => found.push(CarriedDoubt {
                    doubt: &counted.doubt,
                    workloads: vec![name.clone()],
                    samples: counted.samples,
                }),
            }
        }
    }
    found.sort_by_key(|one| {
        (
            std::cmp::Reverse(one.doubt.severity),
            std::cmp::Reverse(one.samples),
        )
    });
    found
}

/// Renders the doubts about the figures with their remedies. Empty without doubts.
#[must_use]
pub fn render_doubts(judged: &Judged, style: Style) -> String {
    let found = collect_doubts(judged);
    let mut out = String::new();
    if found.is_empty() {
        return out;
    }
    write_section_heading("Doubts", &mut out, style);
    for one in found {
        let (validity, word) = match one.doubt.severity {
            Severity::Suspect => (Validity::Suspect, "suspect"),
            Severity::Void => (Validity::Void, "void"),
        };
        let title = tint_validity(
            style,
            validity,
            &format!("{} ({word})", escape_line(&one.doubt.code)),
        );
        let samples = assay_render::units::format_count(one.samples as usize, "sample");
        out.push_str(&format!("  {title}\n"));
        style.write_paragraph(&mut out, "    seen", 12, &escape_line(&one.doubt.evidence));
        style.write_paragraph(&mut out, "    instead", 12, &escape_line(&one.doubt.remedy));
        let affected = match judged.results.len() {
            1 => samples,
            all => format!(
                "{}, {samples}: {}",
                format_share(one.workloads.len(), all),
                format_some_names(&one.workloads, 4)
            ),
        };
        style.write_paragraph(&mut out, "    in", 12, &affected);
    }
    out
}
