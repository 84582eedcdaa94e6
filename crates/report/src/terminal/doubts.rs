//! Doubts, each once, with the workloads that carry it.

use super::{section, share, some_names, tinted};
use assay_model::Doubt;
use assay_model::doubt::{Severity, Validity};
use assay_model::result::Judged;
use assay_render::Style;
use assay_render::text::clean;

/// A doubt and the results that carry it.
pub(crate) struct Carried<'a> {
    /// With the evidence of the first sample that carries it.
    pub(crate) doubt: &'a Doubt,
    /// `workload`, or `workload on target` where there are several targets.
    pub(crate) workloads: Vec<String>,
    /// Samples that carry it.
    pub(crate) samples: u32,
}

/// Doubts by code, void before suspect, then by how many samples carry them.
pub(crate) fn carried(judged: &Judged) -> Vec<Carried<'_>> {
    let several = super::targets(judged).len() > 1;
    let mut found: Vec<Carried> = Vec::new();
    for result in &judged.results {
        let name = match several {
            true => format!("{} on {}", clean(&result.workload), clean(&result.target)),
            false => clean(&result.workload),
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
                None => found.push(Carried {
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

/// What speaks against the figures, and what to do about it. Empty when nothing does.
#[must_use]
pub fn doubts(judged: &Judged, style: Style) -> String {
    let found = carried(judged);
    let mut out = String::new();
    if found.is_empty() {
        return out;
    }
    section("Doubts", &mut out, style);
    for one in found {
        let (validity, word) = match one.doubt.severity {
            Severity::Suspect => (Validity::Suspect, "suspect"),
            Severity::Void => (Validity::Void, "void"),
        };
        let title = tinted(
            style,
            validity,
            &format!("{} ({word})", clean(&one.doubt.code)),
        );
        let samples = assay_render::units::count(one.samples as usize, "sample");
        out.push_str(&format!("  {title}\n"));
        style.paragraph(&mut out, "    seen", 12, &clean(&one.doubt.evidence));
        style.paragraph(&mut out, "    instead", 12, &clean(&one.doubt.remedy));
        let affected = match judged.results.len() {
            1 => samples,
            all => format!(
                "{}, {samples}: {}",
                share(one.workloads.len(), all),
                some_names(&one.workloads, 4)
            ),
        };
        style.paragraph(&mut out, "    in", 12, &affected);
    }
    out
}
