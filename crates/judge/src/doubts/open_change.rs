//! Rule `open-change`: assay crashed earlier and left changed settings on the machine, so the sample does not measure
//! the machine as its owner configured it.

use crate::doubts::{DoubtEvidence, clean_text, suspect_doubt};
use assay_model::{Doubt, FactValue, OPEN_CHANGES};

/// Stable code of this doubt in results and in the book.
pub const CODE: &str = "open-change";

pub(super) fn check(evidence: &DoubtEvidence) -> Option<Doubt> {
    let fact = evidence.facts?.map.get(OPEN_CHANGES)?;
    let seen = match &fact.value {
        FactValue::Known(value) => {
            let changed = value.as_array()?.iter().filter_map(|one| one.as_str());
            let changed: Vec<String> = changed.map(clean_text).collect();
            format!(
                "an assay that was killed had left changed: {}",
                changed.join(", ")
            )
        }
        FactValue::Unknown(why) => format!(
            "whether an assay that was killed had left settings changed is unknown: {}",
            clean_text(why)
        ),
    };
    Some(suspect_doubt(
        CODE,
        seen,
        "Set the machine back with `assay trial --recover`, then measure again.",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_model::{FactKind, Facts};

    fn doubts(facts: &Facts) -> Option<Doubt> {
        check(&DoubtEvidence {
            facts: Some(facts),
            ..DoubtEvidence::default()
        })
    }

    #[test]
    fn samples_of_a_changed_machine_are_suspect() {
        let mut facts = Facts::default();
        assert_eq!(doubts(&facts), None);
        let (kind, source) = (FactKind::Runtime, "the journal of assay");
        let changed = vec!["sysctl net.core.somaxconn".to_owned()];
        facts.known(OPEN_CHANGES, changed, kind, source);
        let seen = doubts(&facts).unwrap();
        assert!(seen.evidence.contains("net.core.somaxconn"), "{seen:?}");
        facts.unknown(OPEN_CHANGES, "permission denied", kind, source);
        assert!(doubts(&facts).is_some());
    }
}
