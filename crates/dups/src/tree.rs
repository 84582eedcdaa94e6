//! Builds a tree of folders that shows how many bytes redundant copies use in each folder.

use crate::group::{Groups, mark_doubtful};
use crate::table::{FileId, Files};
use std::collections::BTreeMap;

/// A folder of the tree.
#[derive(Debug, Default)]
pub struct Node {
    /// Bytes on disk of copies beyond the first of each group, in this folder and below.
    pub bytes: u64,
    /// Subfolders of this folder, by name.
    pub children: BTreeMap<Vec<u8>, Node>,
    /// Redundant copies in this folder, each with the number of its group.
    pub files: Vec<(FileId, u32)>,
}

/// Builds the tree. Each copy beyond the first in its group is counted in its folder, unless it may be the same file as
/// another copy.
pub fn build_tree(files: &Files, groups: &Groups) -> Node {
    let mut root = Node::default();
    for (number, group) in groups.iter().enumerate() {
        let in_doubt = mark_doubtful(files, group.files);
        // Doubtful files stay, so a copy remains.
        let staying = usize::from(group.doubtful == 0);
        for (at, id) in group.files.iter().enumerate().skip(staying) {
            if in_doubt.get(at).is_some_and(|one| *one) {
                continue;
            }
            let bytes = files.allocated(*id);
            let mut node = &mut root;
            node.bytes += bytes;
            for part in files
                .dir_path(files.file(*id).dir)
                .split(|byte| *byte == b'/')
                .filter(|part| !part.is_empty())
            {
                node = node.children.entry(part.to_vec()).or_default();
                node.bytes += bytes;
            }
            node.files.push((*id, number as u32));
        }
    }
    root
}

impl Node {
    /// Descends from the root as long as all redundant bytes are in one subfolder. Returns the path and the node at
    /// which the descent ends.
    pub fn top(&self) -> (Vec<u8>, &Self) {
        let (mut path, mut top) = (Vec::new(), self);
        while let (1, Some((name, only))) = (top.children.len(), top.children.iter().next()) {
            if only.bytes != top.bytes {
                break;
            }
            path.push(b'/');
            path.extend_from_slice(name);
            top = only;
        }
        (path, top)
    }

    /// Returns the subfolders, most bytes first.
    pub fn folders(&self) -> Vec<(&[u8], &Self)> {
        let mut found: Vec<(&[u8], &Self)> = self
            .children
            .iter()
            .map(|(name, node)| (&**name, node))
            .collect();
        found.sort_by(|a, b| b.1.bytes.cmp(&a.1.bytes).then_with(|| a.0.cmp(b.0)));
        found
    }
}
