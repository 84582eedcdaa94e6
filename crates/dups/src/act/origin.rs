//! Records the names of a file that a plan changes, so that an undo can restore the hard links between these names.

use crate::roots::RootIdentity;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The names of a file before a plan changes some of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OriginalFile {
    /// Number of hard links of the file, including links outside of the scan.
    pub links: u64,
    /// Number of names that the plan changes.
    pub acted: u64,
    /// Known names that the plan does not change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<KnownName>,
    /// Whether the file shares its blocks with the copy that stays.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
}

impl OriginalFile {
    /// Returns whether the file has names that the plan does not change.
    #[must_use]
    pub fn has_other_names(&self) -> bool {
        self.links > self.acted
    }
}

/// A name, with the root folder that contains it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownName {
    /// Absolute path of the name.
    #[serde(with = "crate::name_json")]
    pub path: Vec<u8>,
    /// The root folder; `None` if it is the root of the step's own name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<Box<RootIdentity>>,
}

impl KnownName {
    /// Creates a name below `root`; `own` is the root of the step's own name.
    pub(crate) fn new(path: &[u8], root: &Arc<RootIdentity>, own: &Arc<RootIdentity>) -> Self {
        Self {
            path: path.to_vec(),
            root: (root != own).then(|| Box::new(root.as_ref().clone())),
        }
    }
}
