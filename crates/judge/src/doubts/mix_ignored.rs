//! `rwmixread` and `rwmixwrite` only count for `rw=rw` and `rw=randrw`.

use crate::doubts::{Evidence, clean, suspect};
use assay_model::Doubt;

/// Name of the rule.
pub const CODE: &str = "mix-ignored";

pub(super) fn check(evidence: &Evidence) -> Option<Doubt> {
    let options = evidence.options?;
    let key = ["rwmixread", "rwmixwrite"]
        .into_iter()
        .find(|key| options.given(key).is_some())?;
    (!options.access.mixed()).then(|| {
        suspect(
            CODE,
            format!(
                "{key}={} has no effect on rw={}: there is no mix",
                clean(options.given(key).unwrap_or_default()),
                clean(options.given("rw").unwrap_or("read"))
            ),
            "Use rw=randrw (or rw=rw) for a mix, or leave the option out.",
        )
    })
}
