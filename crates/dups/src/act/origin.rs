//! What a plan knows of a file beside the name that it acts on: its other names, so that undo can
//! make them names of one file again.

use crate::roots::Anchor;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What is known of a file before any of its names is acted on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OriginalFile {
    /// Number of its names, known or not.
    pub links: u64,
    /// Number of names that the plan acts on.
    pub acted: u64,
    /// Its names that the plan leaves as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<KnownName>,
    /// Whether it shares its blocks with the copy that stays.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
}

impl OriginalFile {
    /// Returns whether the file has names that the plan leaves as they are, known or not.
    #[must_use]
    pub fn has_other_names(&self) -> bool {
        self.links > self.acted
    }
}

/// A name, and the folder that the user named and below which it lies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownName {
    /// Absolute path.
    #[serde(with = "crate::name_json")]
    pub path: Vec<u8>,
    /// The folder; the one of the step's own name when it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<Box<Anchor>>,
}

impl KnownName {
    /// Returns a name below `root`, beside a step whose name lies below `own`.
    pub(crate) fn new(path: &[u8], root: &Arc<Anchor>, own: &Arc<Anchor>) -> Self {
        Self {
            path: path.to_vec(),
            root: (root != own).then(|| Box::new(root.as_ref().clone())),
        }
    }
}
