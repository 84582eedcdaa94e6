//! Remarks, which are judgements of a probe's results, each with its primary source.

use serde::Serialize;

/// Severity of a remark, the least severe first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The result is worth knowing, but no action is necessary.
    Note,
    /// Standards recommend against this setting.
    Weak,
    /// Attackers can use the fault against the service or its users today.
    Danger,
}

impl Severity {
    /// Returns the name of the severity for output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Weak => "weak",
            Self::Danger => "danger",
        }
    }
}

/// A judgement of a probe's result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Remark {
    /// Identifier, which stays the same in every version of assay.
    pub id: &'static str,
    /// How urgent the fault is.
    pub severity: Severity,
    /// Description of the fault and why it matters.
    pub says: String,
    /// Primary source, such as an RFC.
    pub source: &'static str,
    /// How to fix the fault.
    pub remedy: &'static str,
}

impl Remark {
    /// Builds a remark from its fields.
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

/// Sorts remarks by severity, the most severe first. Remarks of the same severity keep their order.
pub(crate) fn ranked(mut remarks: Vec<Remark>) -> Vec<Remark> {
    remarks.sort_by_key(|remark| std::cmp::Reverse(remark.severity));
    remarks
}
