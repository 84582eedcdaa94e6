//! Rule `mix-ignored`: `rwmixread` and `rwmixwrite` only have an effect with `rw=rw` and
//! `rw=randrw`.

use crate::doubts::{DoubtEvidence, clean_text, suspect_doubt};
use assay_model::Doubt;

/// Stable code of this doubt in results and in the book.
pub const CODE: &str = "mix-ignored";

pub(super) fn check(evidence: &DoubtEvidence) -> Option<Doubt> {
    let options = evidence.options?;
    let key = ["rwmixread", "rwmixwrite"]
        .into_iter()
        .find(|key| options.given(key).is_some())?;
    (!options.access.mixed()).then(|| {
        suspect_doubt(
            CODE,
            format!(
                "{key}={} has no effect on rw={}: there is no mix",
                clean_text(options.given(key).unwrap_or_default()),
                clean_text(options.given("rw").unwrap_or("read"))
            ),
            "Use rw=randrw (or rw=rw) for a mix, or leave the option out.",
        )
    })
}
