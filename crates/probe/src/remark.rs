//! What is said about something found: a judgement with its source.

use serde::Serialize;

/// How much it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; nothing has to be done.
    Note,
    /// Standards say that it should go.
    Weak,
    /// Can be used against the service or its users today.
    Danger,
}

impl Severity {
    /// As people read it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Weak => "weak",
            Self::Danger => "danger",
        }
    }
}

/// A judgement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Remark {
    /// Its name, the same in every version of assay.
    pub id: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// What is there, and why it matters.
    pub says: String,
    /// The primary source.
    pub source: &'static str,
    /// What to do.
    pub remedy: &'static str,
}

impl Remark {
    /// A judgement.
    #[must_use]
    pub fn new(
        id: &'static str,
        severity: Severity,
        says: impl Into<String>,
        source: &'static str,
        remedy: &'static str,
    ) -> Self {
        Self {
            id,
            severity,
            says: says.into(),
            source,
            remedy,
        }
    }
}

/// The worst first; those of one severity in the order in which they were found.
pub(crate) fn ranked(mut remarks: Vec<Remark>) -> Vec<Remark> {
    remarks.sort_by_key(|remark| std::cmp::Reverse(remark.severity));
    remarks
}
