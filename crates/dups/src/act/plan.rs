//! Which copy stays and what happens to the others, as data.

use super::{Action, KnownName, Origin, Refusal, Step, Subject};
use crate::ground::{Grounds, tangled};
use crate::group::{Group, Groups};
use crate::table::{FileId, Files};
use crate::{Error, sys};
use ignore::overrides::{Override, OverrideBuilder};
use rustix::fs::AtFlags;
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
    let grounds = Grounds::now();
    let how = How {
        files,
        action,
        rules,
        matching: &matching,
        grounds: grounds.as_ref(),
    };
    for group in groups.iter() {
        how.one_group(group, &mut plan);
    }
    Ok(plan)
}

/// A copy with all its names on this machine.
struct Copy {
    names: Vec<Subject>,
    share: Option<u64>,
    /// What it takes on disk.
    bytes: u64,
    /// Why it may be one file with another copy.
    doubt: Option<String>,
}

/// What holds for all groups.
struct How<'a> {
    files: &'a Files,
    action: &'a Action,
    rules: &'a Rules,
    matching: &'a Override,
    grounds: Result<&'a Grounds, &'a String>,
}

impl How<'_> {
    fn one_group(&self, group: Group<'_>, plan: &mut Plan) {
        let (files, rules) = (self.files, self.rules);
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
                    doubt: None,
                });
            }
        }
        // What is no file of its own gives nothing free, and goes when the other goes.
        self.doubt(&mut copies);
        let linking = matches!(self.action, Action::Hardlink | Action::Reflink);
        copies.sort_by_cached_key(|copy| {
            let names = copy.names.iter();
            let best = names.map(|name| rank(name, rules, self.matching)).min();
            // Links do not reach across file systems: each keeps a copy of its own.
            (linking.then_some(copy.names[0].device), best)
        });
        let by_device = |a: &Copy, b: &Copy| !linking || a.names[0].device == b.names[0].device;
        for alike in copies.chunk_by(by_device) {
            self.alike(alike, plan);
        }
    }

    /// The first copy stays.
    fn alike(&self, alike: &[Copy], plan: &mut Plan) {
        let [keep, rest @ ..] = alike else { return };
        let keeper = keep
            .names
            .iter()
            .min_by_key(|name| rank(name, self.rules, self.matching))
            .unwrap_or(&keep.names[0]);
        for copy in rest {
            let shared = copy.share.is_some() && copy.share == keep.share;
            if shared && *self.action == Action::Reflink {
                continue;
            }
            let mut chosen = self.choose_names(keeper, copy, plan);
            if *self.action == Action::Reflink {
                // All names have the same blocks.
                chosen.truncate(1);
            }
            let origin = describe_origin(copy, &chosen, shared);
            // A file goes with its last name; what is moved takes its bytes along with the first.
            let goes = matches!(self.action, Action::Move(_) | Action::Reflink)
                || !origin.has_other_names();
            let mut gain = if shared || !goes { 0 } else { copy.bytes };
            let undoable = *self.action != Action::Reflink;
            let mut origin = undoable.then(|| Box::new(origin));
            plan.steps.extend(chosen.into_iter().map(|name| Step {
                action: self.action.clone(),
                keep: keeper.clone(),
                remove: name.clone(),
                gain: std::mem::take(&mut gain),
                origin: origin.take(),
            }));
        }
    }

    /// Returns the names of a copy that may be acted on.
    fn choose_names<'c>(
        &self,
        keeper: &Subject,
        copy: &'c Copy,
        plan: &mut Plan,
    ) -> Vec<&'c Subject> {
        let mut chosen = Vec::new();
        for name in &copy.names {
            if !acted_on(&name.path, self.rules) {
                continue;
            }
            let why = copy.doubt.clone();
            match why.or_else(|| forbidden(self.action, keeper, name)) {
                Some(why) => plan.refused.push(Refusal {
                    path: name.path.clone(),
                    why,
                }),
                None => chosen.push(name),
            }
        }
        chosen
    }

    /// Notes which copies may be one file with another copy of the group.
    fn doubt(&self, copies: &mut [Copy]) {
        if copies.len() < 2 {
            return;
        }
        let grounds = match self.grounds {
            Ok(grounds) => grounds,
            Err(why) => {
                copies
                    .iter_mut()
                    .for_each(|one| one.doubt = Some(why.clone()));
                return;
            }
        };
        // Few mounts and many copies: each pair of mounts is judged once.
        let mut mounts: Vec<u64> = Vec::new();
        let mut owners = Vec::new();
        let mut numbers = Vec::new();
        for (at, copy) in copies.iter().enumerate() {
            for name in &copy.names {
                let known = mounts.iter().position(|one| *one == name.mount);
                owners.push(at);
                numbers.push(Some(known.unwrap_or_else(|| {
                    mounts.push(name.mount);
                    mounts.len() - 1
                })));
            }
        }
        let why = |a: usize, b: usize| {
            let (one, other) = (grounds.mount(mounts[a]), grounds.mount(mounts[b]));
            grounds.apart(one, other).err()
        };
        let table: Vec<Vec<Option<String>>> = (0..mounts.len())
            .map(|a| (0..mounts.len()).map(|b| why(a, b)).collect())
            .collect();
        let lost = tangled(&numbers, |a, b| table[a][b].is_some());
        let names = owners.into_iter().zip(numbers).zip(lost);
        for ((at, number), _) in names.filter(|one| one.1) {
            copies[at].doubt = number.and_then(|at| table[at].iter().flatten().next().cloned());
        }
    }
}

/// Describes a copy of which some names are acted on.
fn describe_origin(copy: &Copy, chosen: &[&Subject], shared: bool) -> Origin {
    let own = chosen.first().map(|name| name.root.clone());
    let is_chosen = |name: &&Subject| chosen.iter().any(|one| one.path == name.path);
    let others = copy.names.iter().filter(|name| !is_chosen(name));
    let counted = copy.names.iter().map(|name| name.links).max();
    Origin {
        // One name may be known by several paths.
        links: counted.filter(|links| *links > 0).unwrap_or(copy.names.len() as u64),
        acted: chosen.len() as u64,
        others: others
            .map(|name| {
                let own = own.as_ref().unwrap_or(&name.root);
                KnownName::new(&name.path, &name.root, own)
            })
            .collect(),
        shared,
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
    let found = files.roots.of(&path).and_then(|root| {
        let (parent, name) = root.parent(&path)?;
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let stat = rustix::fs::statx(&parent, name, flags, sys::WANTED)?;
        let mut subject = Subject::from_stat(path.clone(), &root.anchor, &stat);
        if subject.mount == 0 {
            // Kernels before 5.8 tell only of what is open.
            let fd = sys::open_file_at(&parent, name)?;
            subject.mount = sys::mount_id(fd).unwrap_or(0);
        }
        Ok(subject)
    });
    match found {
        Ok(subject) if subject.identity() == files.file(id).id => return Some(subject),
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
