//! Defines remarks: a judgement of a result, with its primary source.

use serde::Serialize;

/// Severity of a remark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; no action is necessary.
    Note,
    /// Standards recommend against this setting.
    Weak,
    /// Attackers can use the fault against the service or its users today.
    Danger,
}

impl Severity {
    /// Returns the name for output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Weak => "weak",
            Self::Danger => "danger",
        }
    }
}

/// A judgement of a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Remark {
    /// Identifier, the same in every version of assay.
    pub id: &'static str,
    /// Severity.
    pub severity: Severity,
    /// The fault and why it matters.
    pub says: String,
    /// Primary source, such as an RFC.
    pub source: &'static str,
    /// How to fix the fault.
    pub remedy: &'static str,
}

impl Remark {
    /// Builds a remark.
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

/// Sorts remarks by severity, the worst first. Remarks of the same severity keep their order.
pub(crate) fn ranked(mut remarks: Vec<Remark>) -> Vec<Remark> {
    remarks.sort_by_key(|remark| std::cmp::Reverse(remark.severity));
    remarks
}
