//! The subject of a watch: the machine, a process, a control group, a path, or a name.

use crate::machine_snapshot::EntityKind;
use crate::window::WatchedEntity;
use serde::{Deserialize, Serialize};

/// What the user asks about (the watched subject). Names are not escaped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WatchSubject {
    /// The whole machine.
    #[default]
    Machine,
    /// The process with this id, and its descendants.
    Process(u32),
    /// A control group and its subgroups: the path below the root, `/system.slice/ssh.service`.
    Group(String),
    /// Processes or QEMU guests with this name.
    Named(String),
    /// Processes that use the file system or the disks of a path.
    Path {
        /// The path.
        path: String,
        /// Kernel names of the disks below the path.
        disks: Vec<String>,
        /// Layers of the path from the file system down to the disks, as text; not escaped.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        layers: Vec<String>,
        /// Whether the file system of the path did not answer.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        hangs: bool,
    },
}

impl WatchSubject {
    /// Returns whether the subject names a process by its id or name.
    #[must_use]
    pub fn is_process(&self, pid: u32, name: &str) -> bool {
        match self {
            Self::Process(asked) => *asked == pid,
            Self::Named(asked) => asked == name,
            _ => false,
        }
    }

    /// Returns whether an entity may be a suspect for this subject. Processes outside of the subject may, because they
    /// use resources for which the subject waits. A group that does not contain the subject may not.
    #[must_use]
    pub fn concerns(&self, entity: &WatchedEntity, groups: &[String]) -> bool {
        match (self, entity.kind) {
            (Self::Machine, _) => true,
            (_, EntityKind::Group) => groups.iter().any(|group| is_below(group, &entity.id)),
            (Self::Path { disks, .. }, EntityKind::Disk) => disks.contains(&entity.name),
            _ => true,
        }
    }
}

/// Returns whether a group is a subgroup of another one, or the same.
#[must_use]
pub fn is_below(group: &str, above: &str) -> bool {
    let above = above.trim_end_matches('/');
    group
        .strip_prefix(above)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_holds_those_below_it_and_no_namesake() {
        assert!(is_below("/a/b/c", "/a/b") && is_below("/a/b", "/a/b/") && is_below("/x", "/"));
        assert!(!is_below("/a/bc", "/a/b"));
    }
}
