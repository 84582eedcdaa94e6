//! Plans which copy of each group stays, and what happens to the other copies.

use super::obstacles::{Obstacle, SwapFiles, find_obstacle, most_links};
use super::{ActStep, Action, KnownName, OriginalFile, Refusal, Subject};
use crate::group::{DuplicateGroup, Groups};
use crate::mount_identity::{CurrentMounts, find_possible_aliases};
use crate::table::{FileId, Files};
use crate::{Error, sys};
use ignore::overrides::{Override, OverrideBuilder};
use rustix::fs::AtFlags;
use std::cmp::Reverse;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Rule that selects the copy that stays, if no stronger rule decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Prefer {
    /// The shortest path; then the first name.
    #[default]
    Shortest,
    /// The most recently changed copy.
    Newest,
    /// The least recently changed copy.
    Oldest,
    /// The first path in alphabetical order.
    First,
}

/// Rules that determine which copy stays and which files are changed.
#[derive(Clone, Debug, Default)]
pub struct PlanRules {
    /// Only files at or below these paths are changed; all files if empty.
    pub scope: Vec<PathBuf>,
    /// Copies at or below the first of these paths are kept in preference to copies below the second path, and so on.
    pub keep_in: Vec<PathBuf>,
    /// Copies whose path matches one of these globs are kept in preference to other copies.
    pub keep_matching: Vec<String>,
    /// Files at or below these paths are never changed.
    pub protect: Vec<PathBuf>,
    /// Rule that decides between copies that are equal by the other rules.
    pub prefer: Prefer,
}

/// Steps that remove or replace duplicates, and the reasons for omitted steps.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ActPlan {
    /// Steps in order of execution.
    pub steps: Vec<ActStep>,
    /// Steps that the plan omits, with reasons.
    pub refused: Vec<Refusal>,
}

impl ActPlan {
    /// Returns the bytes that the plan frees.
    pub fn gain(&self) -> u64 {
        self.steps.iter().map(|step| step.gain).sum()
    }
}

/// Plans all groups. Checks the state of every file without opening it. A file that has changed since the scan
/// is omitted and reported.
///
/// # Errors
/// A pattern is invalid.
pub fn plan(
    files: &Files,
    groups: &Groups,
    action: &Action,
    rules: &PlanRules,
) -> Result<ActPlan, Error> {
    let mut builder = OverrideBuilder::new("/");
    for glob in &rules.keep_matching {
        builder
            .add(glob)
            .map_err(|error| Error::Filter(format!("pattern `{glob}`: {error}")))?;
    }
    let matching = builder
        .build()
        .map_err(|error| Error::Filter(format!("patterns: {error}")))?;
    let mut plan = ActPlan {
        steps: Vec::new(),
        refused: Vec::new(),
    };
    let grounds = CurrentMounts::now();
    let how = How {
        files,
        action,
        rules,
        matching: &matching,
        grounds: grounds.as_ref(),
        swaps: SwapFiles::now(),
    };
    for group in groups.iter() {
        how.one_group(group, &mut plan);
    }
    Ok(plan)
}

/// A name of a copy, with the obstacles to a step for this name.
struct Name {
    subject: Subject,
    obstacle: Obstacle,
}

/// A copy with all its names on this machine.
struct Copy {
    names: Vec<Name>,
    share: Option<u64>,
    /// Number of bytes that the copy uses on disk.
    bytes: u64,
    /// Why the copy may be the same file as another copy; `None` if this is ruled out.
    doubt: Option<String>,
}

/// The user's settings, which apply to all groups.
struct How<'a> {
    files: &'a Files,
    action: &'a Action,
    rules: &'a PlanRules,
    matching: &'a Override,
    grounds: Result<&'a CurrentMounts, &'a String>,
    swaps: SwapFiles,
}

impl How<'_> {
    fn one_group(&self, group: DuplicateGroup<'_>, plan: &mut ActPlan) {
        let files = self.files;
        let mut copies: Vec<Copy> = Vec::new();
        for first in group.files {
            let links = group.links.iter().filter(|(_, of)| of == first);
            let names: Vec<FileId> = std::iter::once(*first)
                .chain(links.map(|one| one.0))
                .collect();
            let names: Vec<Name> = names
                .into_iter()
                .filter(|id| files.machine(*id).is_empty())
                .filter_map(|id| self.look(id, &mut plan.refused))
                .collect();
            if !names.is_empty() {
                let share = match self.action {
                    // Sharing blocks changes no time of a file, so the index does not notice it.
                    Action::Reflink => crate::sharing::read_share(files, *first),
                    _ => files.share(*first),
                };
                copies.push(Copy {
                    names,
                    share,
                    bytes: files.allocated(*first),
                    doubt: None,
                });
            }
        }
        // A copy that may be the same file frees nothing and could disappear with the other.
        self.doubt(&mut copies);
        copies.sort_by_cached_key(|copy| (self.reach(copy), self.best(copy)));
        // The best copy of the group stays. In every other place that links cannot reach, the best copy stays,
        // too.
        let best = copies.iter().map(|copy| self.best(copy)).min();
        for alike in copies.chunk_by(|a, b| self.reach(a) == self.reach(b)) {
            let [keep, ..] = alike else { continue };
            if Some(self.best(keep)) != best {
                self.refuse_alone(keep, plan);
            }
            self.alike(alike, plan);
        }
    }

    /// Returns an id of the area within which hard links or shared blocks work. Each area keeps its own copy. For hard
    /// links the area is a device and mount, for shared blocks a whole file system with its subvolumes. All other
    /// actions have only one area.
    fn reach(&self, copy: &Copy) -> (u64, u64) {
        let Some(first) = copy.names.first() else {
            return (0, 0);
        };
        let (device, mount) = (first.subject.device, first.subject.mount);
        match self.action {
            Action::Hardlink => (device, mount),
            Action::Reflink => {
                let found = self.grounds.ok().and_then(|grounds| grounds.mount(mount));
                let whole =
                    found.map(|found| rustix::fs::makedev(found.dev.major, found.dev.minor));
                (whole.unwrap_or(device), 0)
            }
            Action::Delete | Action::Move(_) => (0, 0),
        }
    }

    /// Returns the rank of the name by which the copy would be kept.
    fn best(&self, copy: &Copy) -> Option<Rank> {
        let names = copy.names.iter();
        names
            .map(|name| rank(&name.subject, self.rules, self.matching))
            .min()
    }

    /// Reports a copy that stays because it cannot be linked to the copy that the plan keeps.
    fn refuse_alone(&self, copy: &Copy, plan: &mut ActPlan) {
        let why = match self.action {
            Action::Hardlink => {
                "hard links do not cross file systems, subvolumes or mounts, and the copy that stays is on \
                 another one; --delete or --move frees it (--reflink too, between subvolumes of one btrfs)"
            }
            _ => {
                "blocks cannot be shared between file systems, and the copy that stays is on another one; \
                 --delete or --move frees it"
            }
        };
        let names = copy.names.iter().map(|name| &name.subject);
        for name in names.filter(|name| acted_on(&name.path, self.rules)) {
            plan.refused.push(Refusal {
                path: name.path.clone(),
                why: why.into(),
            });
        }
    }

    /// Plans the copies of one area. Keeps the first copy. When this copy has reached the maximum number of hard links,
    /// keeps the next copy, too.
    fn alike(&self, alike: &[Copy], plan: &mut ActPlan) {
        let [keep, rest @ ..] = alike else { return };
        let mut keep = keep;
        let mut keeper = self.keeper(keep);
        let mut links = keeper.subject.links;
        // Blocks that several copies share are freed once, and never if the kept copy uses them.
        let mut counted: HashSet<u64> = keep.share.into_iter().collect();
        let most = match self.action {
            Action::Hardlink => most_links(self.grounds.ok(), keeper.subject.mount),
            _ => u64::MAX,
        };
        for copy in rest {
            if links.saturating_add(copy.names.len() as u64) > most {
                keep = copy;
                keeper = self.keeper(copy);
                links = keeper.subject.links;
                counted.extend(keep.share);
                continue;
            }
            let shared = copy.share.is_some() && copy.share == keep.share;
            if shared && *self.action == Action::Reflink {
                continue;
            }
            let mut chosen = self.choose_names(keeper, copy, plan);
            if *self.action == Action::Reflink {
                // All names refer to the same blocks.
                chosen.truncate(1);
            }
            links += chosen.len() as u64;
            let origin = describe_origin(copy, &chosen, shared);
            // A file is freed with its last name. A moved file takes its bytes along with the first name.
            let goes = matches!(self.action, Action::Move(_) | Action::Reflink)
                || !origin.has_other_names();
            let alone = copy.share.is_none_or(|share| counted.insert(share));
            let mut gain = if alone && goes { copy.bytes } else { 0 };
            let undoable = *self.action != Action::Reflink;
            let mut origin = undoable.then(|| Box::new(origin));
            plan.steps.extend(chosen.into_iter().map(|name| ActStep {
                action: self.action.clone(),
                keep: keeper.subject.clone(),
                remove: name.clone(),
                gain: std::mem::take(&mut gain),
                origin: origin.take(),
            }));
        }
    }

    /// Returns the name by which the copy would be kept.
    fn keeper<'c>(&self, copy: &'c Copy) -> &'c Name {
        let names = copy.names.iter();
        names
            .min_by_key(|name| rank(&name.subject, self.rules, self.matching))
            .unwrap_or(&copy.names[0])
    }

    /// Returns the names of a copy that may be changed.
    fn choose_names<'c>(
        &self,
        keeper: &Name,
        copy: &'c Copy,
        plan: &mut ActPlan,
    ) -> Vec<&'c Subject> {
        let mut chosen = Vec::new();
        for name in &copy.names {
            if !acted_on(&name.subject.path, self.rules) {
                continue;
            }
            let why = copy.doubt.clone();
            match why.or_else(|| find_forbidden_step(self.action, keeper, name)) {
                Some(why) => plan.refused.push(Refusal {
                    path: name.subject.path.clone(),
                    why,
                }),
                None => chosen.push(&name.subject),
            }
        }
        chosen
    }

    /// Checks a file again; returns `None` if it has changed since the scan.
    fn look(&self, id: FileId, refused: &mut Vec<Refusal>) -> Option<Name> {
        let files = self.files;
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
                // Kernels before 5.8 report the mount only for open files.
                let fd = sys::open_file_at(&parent, name)?;
                subject.mount = sys::mount_id(fd).unwrap_or(0);
            }
            let mount = self
                .grounds
                .ok()
                .and_then(|grounds| grounds.mount(subject.mount));
            let place = (&parent, name);
            let obstacle = find_obstacle(self.action, place, &stat, mount, &self.swaps);
            Ok(Name { subject, obstacle })
        });
        match found {
            Ok(name) if name.subject.identity() == files.file(id).id => return Some(name),
            Ok(_) => {
                refuse("changed since it was scanned; `assay dups refresh` looks again".into());
            }
            Err(errno) => refuse(sys::describe_errno(errno)),
        }
        None
    }

    /// Marks each copy that may be the same file as another copy of the group.
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
        // There are few mounts and many copies, so each pair of mounts is judged once.
        let mut mounts: Vec<u64> = Vec::new();
        let mut owners = Vec::new();
        let mut numbers = Vec::new();
        for (at, copy) in copies.iter().enumerate() {
            for name in &copy.names {
                let mount = name.subject.mount;
                let known = mounts.iter().position(|one| *one == mount);
                owners.push(at);
                numbers.push(Some(known.unwrap_or_else(|| {
                    mounts.push(mount);
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
        let lost = find_possible_aliases(&numbers, |a, b| table[a][b].is_some());
        let names = owners.into_iter().zip(numbers).zip(lost);
        for ((at, number), _) in names.filter(|one| one.1) {
            copies[at].doubt = number.and_then(|at| table[at].iter().flatten().next().cloned());
        }
    }
}

/// Returns what an undo must know about a copy if only some of its names are changed.
fn describe_origin(copy: &Copy, chosen: &[&Subject], shared: bool) -> OriginalFile {
    let own = chosen.first().map(|name| name.root.clone());
    let paths: HashSet<&[u8]> = chosen.iter().map(|name| &*name.path).collect();
    let names = || copy.names.iter().map(|name| &name.subject);
    let others = names().filter(|name| !paths.contains(&*name.path));
    let counted = names().map(|name| name.links).max();
    OriginalFile {
        // A name may be reached by several paths.
        links: counted
            .filter(|links| *links > 0)
            .unwrap_or(copy.names.len() as u64),
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

fn root_index(path: &[u8], folders: &[PathBuf]) -> Option<usize> {
    let path = sys::path_from_bytes(path);
    folders.iter().position(|folder| path.starts_with(folder))
}

fn acted_on(path: &[u8], rules: &PlanRules) -> bool {
    root_index(path, &rules.protect).is_none()
        && (rules.scope.is_empty() || root_index(path, &rules.scope).is_some())
}

/// Rank of a name in the choice of the copy that stays. The name with the smallest rank is kept.
type Rank = (bool, usize, bool, Reverse<i64>, i64, usize, Vec<u8>);

fn rank(name: &Subject, rules: &PlanRules, matching: &Override) -> Rank {
    let path: &Path = sys::path_from_bytes(&name.path);
    let newest = rules.prefer == Prefer::Newest;
    let oldest = rules.prefer == Prefer::Oldest;
    let shortest = rules.prefer == Prefer::Shortest;
    (
        acted_on(&name.path, rules),
        root_index(&name.path, &rules.keep_in).unwrap_or(usize::MAX),
        !matching.matched(path, false).is_whitelist(),
        Reverse(if newest { name.mtime } else { 0 }),
        if oldest { name.mtime } else { 0 },
        if shortest { name.path.len() } else { 0 },
        name.path.clone(),
    )
}

/// Returns why a step is not permitted: it is impossible, or it would change more than the location of the bytes.
fn find_forbidden_step(action: &Action, keep: &Name, remove: &Name) -> Option<String> {
    if let Some(why) = &remove.obstacle.acted {
        return Some(why.clone());
    }
    if let Some(why) = &keep.obstacle.kept {
        return Some(format!("the copy that stays: {why}"));
    }
    if keep.obstacle.in_place != remove.obstacle.in_place {
        return Some(
            "only one of the two is written in place (chattr +C), so they cannot share blocks"
                .into(),
        );
    }
    let (keep, remove) = (&keep.subject, &remove.subject);
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
