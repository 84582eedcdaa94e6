//! What changed on a machine between two times at which it was looked at.

use crate::finding::Severity;
use serde::Serialize;

/// What kind of change it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A finding that was not there.
    FindingCame,
    /// A finding that is not there any more.
    FindingGone,
    /// Something is as it was not before.
    Fact,
}

/// A change and its cause.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Change {
    /// What kind.
    pub kind: Kind,
    /// The key of the fact, or what names the finding.
    pub what: String,
    /// For findings: how bad it is, or was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
    /// For findings: what they say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// As it was; none when it was not there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// As it is; none when it is not there any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Why, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
}
