//! Which copy stays and what happens to the others, as data.

use super::{Action, Refusal, Step, Subject};
use crate::group::{Group, Groups};
use crate::table::{FileId, Files};
use crate::{Error, sys};
use ignore::overrides::{Override, OverrideBuilder};
use rustix::fs::{AtFlags, CWD};
use std::cmp::Reverse;
use std::path::{Path, PathBuf};

/// Which of several copies is kept when nothing stronger decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Prefer {
    /// The one with the shortest path, then the first by name.
    #[default]
    Shortest,
    /// The one changed last.
    Newest,
    /// The one changed first.
    Oldest,
    /// The first path by name.
    First,
}

/// The rules of a plan.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Only files at or below these are acted on; all when empty.
    pub scope: Vec<PathBuf>,
    /// Copies at or below the first of these are kept before those below the second, and so on.
    pub keep_in: Vec<PathBuf>,
    /// Copies whose path matches are kept before others.
    pub keep_matching: Vec<String>,
    /// Never act on files at or below these.
    pub protect: Vec<PathBuf>,
    /// Decides among what is left.
    pub prefer: Prefer,
}

/// What would be done.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Plan {
    /// In this order.
    pub steps: Vec<Step>,
    /// What was left out of the plan, and why.
    pub refused: Vec<Refusal>,
}

impl Plan {
    /// Bytes to gain.
    pub fn gain(&self) -> u64 {
        self.steps.iter().map(|step| step.gain).sum()
    }
}

/// Makes a plan for all groups. Every file is looked at again (not opened): what is no longer in
/// the state that was scanned is left out and named.
///
/// # Errors
/// When a pattern is malformed.
pub fn plan(files: &Files, groups: &Groups, action: &Action, rules: &Rules) -> Result<Plan, Error> {
    let mut builder = OverrideBuilder::new("/");
    for glob in &rules.keep_matching {
        builder
            .add(glob)
            .map_err(|error| Error::Filter(format!("pattern `{glob}`: {error}")))?;
    }
    let matching = builder
        .build()
        .map_err(|error| Error::Filter(format!("patterns: {error}")))?;
    let mut plan = Plan {
        steps: Vec::new(),
        refused: Vec::new(),
    };
    for group in groups.iter() {
        one_group(files, group, action, rules, &matching, &mut plan);
    }
    Ok(plan)
}

/// A copy with all its names on this machine.
struct Copy {
    names: Vec<Subject>,
    share: Option<u64>,
    /// What it takes on disk.
    bytes: u64,
}

fn one_group(
    files: &Files,
    group: Group<'_>,
    action: &Action,
    rules: &Rules,
    matching: &Override,
    plan: &mut Plan,
) {
    let mut copies: Vec<Copy> = Vec::new();
    for first in group.files {
        let links = group.links.iter().filter(|(_, of)| of == first);
        let names: Vec<FileId> = std::iter::once(*first)
            .chain(links.map(|one| one.0))
            .collect();
        let names: Vec<Subject> = names
            .into_iter()
            .filter(|id| files.machine(*id).is_empty())
            .filter_map(|id| look(files, id, &mut plan.refused))
            .collect();
        if !names.is_empty() {
            copies.push(Copy {
                names,
                share: files.share(*first),
                bytes: files.allocated(*first),
            });
        }
    }
    let linking = matches!(action, Action::Hardlink | Action::Reflink);
    copies.sort_by_cached_key(|copy| {
        let best = copy
            .names
            .iter()
            .map(|name| rank(name, rules, matching))
            .min();
        // Links do not reach across file systems: each keeps a copy of its own.
        (linking.then_some(copy.names[0].device), best)
    });
    let by_device = |a: &Copy, b: &Copy| !linking || a.names[0].device == b.names[0].device;
    for alike in copies.chunk_by(by_device) {
        let [keep, rest @ ..] = alike else { continue };
        let keeper = keep
            .names
            .iter()
            .min_by_key(|name| rank(name, rules, matching))
            .unwrap_or(&keep.names[0]);
        for copy in rest {
            let shared = copy.share.is_some() && copy.share == keep.share;
            if shared && *action == Action::Reflink {
                continue;
            }
            let mut gain = if shared { 0 } else { copy.bytes };
            for name in &copy.names {
                if !acted_on(&name.path, rules) {
                    gain = 0;
                    continue;
                }
                match forbidden(action, keeper, name) {
                    Some(why) => plan.refused.push(Refusal {
                        path: name.path.clone(),
                        why,
                    }),
                    None => plan.steps.push(Step {
                        action: action.clone(),
                        keep: keeper.clone(),
                        remove: name.clone(),
                        gain: std::mem::take(&mut gain),
                    }),
                }
                if *action == Action::Reflink {
                    // All names have the same blocks.
                    break;
                }
            }
        }
    }
}

/// Looks at a file again; `None` when it is not what was scanned.
fn look(files: &Files, id: FileId, refused: &mut Vec<Refusal>) -> Option<Subject> {
    let path = files.path(id);
    let mut refuse = |why: String| {
        refused.push(Refusal {
            path: files.path(id),
            why,
        });
    };
    match rustix::fs::statx(
        CWD,
        sys::path(&path),
        AtFlags::SYMLINK_NOFOLLOW,
        sys::WANTED,
    ) {
        Ok(stat) if sys::identity(&stat) == files.file(id).id => {
            return Some(Subject::from_stat(path, &stat));
        }
        Ok(_) => refuse("changed since it was scanned; `assay dups refresh` looks again".into()),
        Err(errno) => refuse(sys::words(errno)),
    }
    None
}

fn below(path: &[u8], folders: &[PathBuf]) -> Option<usize> {
    let path = sys::path(path);
    folders.iter().position(|folder| path.starts_with(folder))
}

fn acted_on(path: &[u8], rules: &Rules) -> bool {
    below(path, &rules.protect).is_none()
        && (rules.scope.is_empty() || below(path, &rules.scope).is_some())
}

/// Smaller ranks are kept.
type Rank = (bool, usize, bool, Reverse<i64>, i64, usize, Vec<u8>);

fn rank(name: &Subject, rules: &Rules, matching: &Override) -> Rank {
    let path: &Path = sys::path(&name.path);
    let newest = rules.prefer == Prefer::Newest;
    let oldest = rules.prefer == Prefer::Oldest;
    let shortest = rules.prefer == Prefer::Shortest;
    (
        acted_on(&name.path, rules),
        below(&name.path, &rules.keep_in).unwrap_or(usize::MAX),
        !matching.matched(path, false).is_whitelist(),
        Reverse(if newest { name.mtime } else { 0 }),
        if oldest { name.mtime } else { 0 },
        if shortest { name.path.len() } else { 0 },
        name.path.clone(),
    )
}

/// Why a step would change more than where bytes are kept.
fn forbidden(action: &Action, keep: &Subject, remove: &Subject) -> Option<String> {
    let in_snapshot = [&keep.path, &remove.path].into_iter().any(|path| {
        path.split(|byte| *byte == b'/')
            .any(|part| crate::walk::SNAPSHOT_FOLDERS.contains(&part))
    });
    if in_snapshot {
        return Some("one of the two is in a snapshot".into());
    }
    if *action == Action::Hardlink {
        if (keep.uid, keep.gid) != (remove.uid, remove.gid) {
            return Some("the copy that stays has another owner or group".into());
        }
        if keep.mode != remove.mode {
            return Some("the copy that stays has other permissions".into());
        }
    }
    None
}
