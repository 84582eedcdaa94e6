//! Tests one file that is visible at two places. With any kind of mount, no content loses its last copy, no kept name
//! loses its file, and undo restores everything.
#![allow(clippy::disallowed_methods, missing_docs)]

mod common;

use assay_dups::act::execute::{ActOptions, execute};
use assay_dups::act::journal::Journal;
use assay_dups::act::plan::{ActPlan, PlanRules, plan};
use assay_dups::act::undo::{UndoOptions, undo_journal};
use assay_dups::act::{ActStep, Action, Subject};
use assay_dups::{ScanOptions, scan};
use assay_testing::{attack_factor, attacked, skipped};
use common::{free, noise, put};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A command that cleans up when the guard is dropped.
struct Guard(&'static str, PathBuf);

impl Drop for Guard {
    fn drop(&mut self) {
        let arguments: &[&str] = if self.0 == "losetup" { &["-d"] } else { &[] };
        run(self.0, arguments, &[&self.1]);
    }
}

fn run(program: &str, arguments: &[&str], paths: &[&Path]) -> bool {
    let done = Command::new(program).args(arguments).args(paths).output();
    done.is_ok_and(|done| done.status.success())
}

/// Two places at which the same files are visible.
struct View {
    a: PathBuf,
    b: PathBuf,
    /// Whether the two places contain different files, so that one copy may be removed.
    two_files: bool,
    /// Cleanups; the last one runs first.
    _guards: Vec<Guard>,
}

/// Creates contents with two real copies and a hard link each; one is compressible, one is large.
fn fill(base: &Path) {
    for (name, content) in [("p", noise(1, 5000)), ("r", noise(2, 200_000))] {
        put(base.join("x").join(name), &content);
        put(base.join("x").join(format!("{name} again")), &content);
        let link = base.join(format!("{name} linked"));
        std::fs::hard_link(base.join("x").join(name), link).unwrap();
    }
}

fn folders<const N: usize>(dir: &Path, names: [&str; N]) -> [PathBuf; N] {
    names.map(|name| {
        let path = dir.join(name);
        std::fs::create_dir_all(&path).unwrap();
        path
    })
}

fn overlay(dir: &Path, at: &Path, lower: &Path, upper: &str, more: &str) -> Option<Guard> {
    let [upper, work] = folders(dir, [upper, &format!("{upper}-work")]);
    let options = format!(
        "lowerdir={},upperdir={},workdir={}{more}",
        lower.display(),
        upper.display(),
        work.display()
    );
    let done = run(
        "mount",
        &["-t", "overlay", "-o", &options, "overlay"],
        &[at],
    );
    done.then(|| Guard("umount", at.to_owned()))
}

fn layer_below(dir: &Path) -> Option<View> {
    let [lower, merged] = folders(dir, ["lower", "merged"]);
    fill(&lower);
    let guard = overlay(dir, &merged, &lower, "upper", "")?;
    Some(View {
        a: lower,
        b: merged,
        two_files: false,
        _guards: vec![guard],
    })
}

fn layer_above(dir: &Path) -> Option<View> {
    let [lower, merged] = folders(dir, ["lower", "merged"]);
    let guard = overlay(dir, &merged, &lower, "upper", "")?;
    fill(&merged);
    Some(View {
        a: dir.join("upper"),
        b: merged,
        two_files: false,
        _guards: vec![guard],
    })
}

/// The merged files have their metadata in the upper layer and their data in the lower layer.
fn layer_below_metacopy(dir: &Path) -> Option<View> {
    let [lower, merged] = folders(dir, ["lower", "merged"]);
    fill(&lower);
    let guard = overlay(
        dir,
        &merged,
        &lower,
        "upper",
        ",metacopy=on,redirect_dir=on",
    )?;
    for name in ["x/p", "x/r"] {
        std::os::unix::fs::chown(merged.join(name), Some(1234), None).unwrap();
    }
    Some(View {
        a: lower,
        b: merged,
        two_files: false,
        _guards: vec![guard],
    })
}

/// The layers are on two file systems, so that inode numbers cannot be mapped.
fn layers_on_two_disks(dir: &Path) -> Option<View> {
    let [far, merged] = folders(dir, ["far", "merged"]);
    let disk = mount(&["-t", "tmpfs", "tmpfs"], &far)?;
    let [lower] = folders(&far, ["lower"]);
    fill(&lower);
    let guard = overlay(dir, &merged, &lower, "upper", ",xino=off")?;
    Some(View {
        a: lower,
        b: merged,
        two_files: false,
        _guards: vec![guard, disk],
    })
}

/// Two folders of one overlay, with their files still in the lower layer.
fn within_an_overlay(dir: &Path) -> Option<View> {
    let [lower, merged] = folders(dir, ["lower", "merged"]);
    fill(&lower.join("one"));
    fill(&lower.join("two"));
    let guard = overlay(dir, &merged, &lower, "upper", "")?;
    Some(View {
        a: merged.join("one"),
        b: merged.join("two"),
        two_files: true,
        _guards: vec![guard],
    })
}

fn two_over_one(dir: &Path) -> Option<View> {
    let [lower, a, b] = folders(dir, ["lower", "a", "b"]);
    fill(&lower);
    let one = overlay(dir, &a, &lower, "one", "")?;
    let two = overlay(dir, &b, &lower, "two", "")?;
    Some(View {
        a,
        b,
        two_files: false,
        _guards: vec![one, two],
    })
}

fn mount(arguments: &[&str], at: &Path) -> Option<Guard> {
    run("mount", arguments, &[at]).then(|| Guard("umount", at.to_owned()))
}

fn bind(dir: &Path) -> Option<View> {
    let [a, b] = folders(dir, ["a", "b"]);
    fill(&a);
    let guard = mount(&["--bind", a.to_str()?], &b)?;
    Some(View {
        a,
        b,
        two_files: false,
        _guards: vec![guard],
    })
}

/// Only a folder inside the two places is visible twice.
fn bind_within(dir: &Path) -> Option<View> {
    let [a, b] = folders(dir, ["a", "b/within"]);
    fill(&a);
    let guard = mount(&["--bind", a.join("x").to_str()?], &b)?;
    Some(View {
        a,
        b: dir.join("b"),
        two_files: false,
        _guards: vec![guard],
    })
}

fn image(dir: &Path, kind: &str) -> Option<PathBuf> {
    let image = dir.join("image");
    let file = std::fs::File::create(&image).unwrap();
    file.set_len(if kind == "xfs" { 320 } else { 128 } << 20)
        .unwrap();
    run(&format!("mkfs.{kind}"), &["-q"], &[&image]).then_some(image)
}

fn on_loop(image: &Path, at: &Path, options: &str) -> Option<[Guard; 2]> {
    let mut attach = Command::new("losetup");
    let told = attach.args(["-f", "--show"]).arg(image).output().ok()?;
    let told = String::from_utf8(told.stdout).ok()?;
    let device = PathBuf::from(told.trim());
    if !device.is_absolute() {
        return None;
    }
    let loop_guard = Guard("losetup", device.clone());
    let mounted = run("mount", &["-o", options], &[&device, at]);
    mounted.then(|| [Guard("umount", at.to_owned()), loop_guard])
}

fn image_twice(dir: &Path, kind: &str, second: &str) -> Option<View> {
    let [a, b] = folders(dir, ["a", "b"]);
    let image = image(dir, kind)?;
    let filling = on_loop(&image, &a, "rw")?;
    fill(&a.join("tree"));
    drop(filling);
    let first = on_loop(&image, &a, "rw")?;
    let again = on_loop(&image, &b, second)?;
    Some(View {
        a: a.join("tree"),
        b: b.join("tree"),
        two_files: false,
        _guards: again.into_iter().chain(first).collect(),
    })
}

fn ext4_twice(dir: &Path) -> Option<View> {
    image_twice(dir, "ext4", "ro,noload")
}

fn xfs_twice(dir: &Path) -> Option<View> {
    image_twice(dir, "xfs", "ro,norecovery,nouuid")
}

fn btrfs_twice(dir: &Path) -> Option<View> {
    // The kernel gives the second mount an identity of its own and remembers it for the loop device: a
    // later second mount through that device is refused until it forgets.
    run("btrfs", &["device", "scan", "--forget"], &[]);
    image_twice(dir, "btrfs", "ro")
}

fn snapshot(dir: &Path) -> Option<View> {
    let [at] = folders(dir, ["at"]);
    let guards = on_loop(&image(dir, "btrfs")?, &at, "rw")?;
    let (a, b) = (at.join("a"), at.join("b"));
    let done = run("btrfs", &["-q", "subvolume", "create"], &[&a]);
    fill(&a);
    let done = done && run("btrfs", &["-q", "subvolume", "snapshot"], &[&a, &b]);
    done.then_some(View {
        a,
        b,
        two_files: true,
        _guards: guards.into(),
    })
}

/// Two real disks with the same files.
fn two_disks(dir: &Path) -> Option<View> {
    let [a, b, c] = folders(dir, ["a", "b", "second"]);
    let first = on_loop(&image(dir, "ext4")?, &a, "rw")?;
    let second = on_loop(&image(&c, "ext4")?, &b, "rw")?;
    fill(&a.join("tree"));
    fill(&b.join("tree"));
    Some(View {
        a: a.join("tree"),
        b: b.join("tree"),
        two_files: true,
        _guards: second.into_iter().chain(first).collect(),
    })
}

fn fuse(dir: &Path, program: &str, arguments: &[&str]) -> Option<View> {
    let [a, b] = folders(dir, ["a", "b"]);
    fill(&a);
    let [upper, work] = folders(dir, ["upper", "work"]);
    let lower = format!(
        "lowerdir={},upperdir={},workdir={}",
        a.display(),
        upper.display(),
        work.display()
    );
    let done = match program {
        "fuse-overlayfs" => run(program, &["-o", &lower], &[&b]),
        "unionfs-fuse" => run("unionfs", &[&format!("{}=RW", a.display())], &[&b]),
        _ => run(program, arguments, &[&a, &b]),
    };
    done.then_some(View {
        a,
        b: b.clone(),
        two_files: false,
        _guards: vec![Guard("umount", b)],
    })
}

fn bindfs(dir: &Path) -> Option<View> {
    fuse(dir, "bindfs", &[])
}

fn mergerfs(dir: &Path) -> Option<View> {
    fuse(dir, "mergerfs", &[])
}

fn fuse_overlayfs(dir: &Path) -> Option<View> {
    fuse(dir, "fuse-overlayfs", &[])
}

fn unionfs(dir: &Path) -> Option<View> {
    fuse(dir, "unionfs-fuse", &[])
}

/// What is below a place: content, permissions and time by path.
type Seen = BTreeMap<PathBuf, (Vec<u8>, u32, i64)>;

fn seen(root: &Path) -> Seen {
    let mut found = Seen::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let meta = std::fs::symlink_metadata(&path).unwrap();
            if meta.is_dir() {
                folders.push(path);
            } else {
                let content = std::fs::read(&path).unwrap();
                let time = meta.mtime() * 1_000_000_000 + meta.mtime_nsec();
                found.insert(path, (content, meta.mode(), time));
            }
        }
    }
    found
}

fn contents(places: &[&Path]) -> BTreeSet<Vec<u8>> {
    let all = places.iter().flat_map(|place| seen(place).into_values());
    all.map(|one| one.0).collect()
}

fn subject(path: &Path) -> Subject {
    let meta = std::fs::symlink_metadata(path).unwrap();
    Subject {
        path: path.as_os_str().as_bytes().to_vec(),
        device: meta.dev(),
        ino: meta.ino(),
        size: meta.len(),
        mtime: meta.mtime() * 1_000_000_000 + meta.mtime_nsec(),
        ctime: meta.ctime() * 1_000_000_000 + meta.ctime_nsec(),
        mode: meta.mode() & 0o7777,
        uid: meta.uid(),
        gid: meta.gid(),
        root: Default::default(),
        mount: 0,
        links: 1,
    }
}

/// Acts on two views, first by the plan and then regardless of it, and undoes the action. Checks the result of
/// the plan in between.
fn act(view: &View, dir: &Path, action: &Action, keep: &Path, forced: bool) -> Result<u64, String> {
    let before = contents(&[&view.a, &view.b]);
    let as_it_was = (seen(&view.a), seen(&view.b));
    let mut options = ScanOptions::default();
    options.walk.other_filesystems = true;
    let roots = [view.a.clone(), view.b.clone()];
    let found = free(|control| scan(&roots, &options, None, control)).unwrap();
    let promised: u64 = found.groups.iter().map(|group| group.gain()).sum();
    let rules = PlanRules {
        keep_in: vec![keep.to_owned()],
        ..PlanRules::default()
    };
    let mut plan: ActPlan = plan(&found.files, &found.groups, action, &rules).unwrap();
    let gain = plan.gain();
    if *action == Action::Delete && gain > promised {
        return Err(format!("{gain} planned, {promised} promised"));
    }
    if forced {
        let other = if keep == view.a { &view.b } else { &view.a };
        plan.steps.clear();
        for path in seen(keep).into_keys() {
            let twin = other.join(path.strip_prefix(keep).unwrap());
            if twin.exists() {
                plan.steps.push(ActStep {
                    action: action.clone(),
                    keep: subject(&path),
                    remove: subject(&twin),
                    gain: 0,
                    origin: None,
                });
            }
        }
    }
    let mut journal = Journal::begin(&dir.join("index.db")).unwrap();
    let how = ActOptions {
        without_lease: true,
        ..ActOptions::default()
    };
    let outcome = free(|control| execute(&plan, &mut journal, &how, control)).unwrap();
    for step in &plan.steps {
        let kept = Path::new(std::ffi::OsStr::from_bytes(&step.keep.path));
        let content = as_it_was.0.get(kept).or(as_it_was.1.get(kept));
        if std::fs::read(kept).ok().as_ref() != content.map(|one| &one.0) {
            return Err(format!("{} lost its file: {outcome:?}", kept.display()));
        }
    }
    if contents(&[&view.a, &view.b]) != before {
        return Err(format!("a content lost its last copy: {outcome:?}"));
    }
    if !view.two_files && forced && outcome.done > 0 {
        return Err(format!("acted on one file as if it were two: {outcome:?}"));
    }
    let undone = undo_journal(journal.path(), &UndoOptions::default()).unwrap();
    if (seen(&view.a), seen(&view.b)) != as_it_was {
        return Err(format!("not all came back: {undone:?}"));
    }
    Ok(outcome.done)
}

type Stage = (&'static str, &'static str, fn(&Path) -> Option<View>);

const STAGES: [Stage; 17] = [
    ("overlay", "within an overlay", within_an_overlay),
    ("overlay", "the layer below", layer_below),
    ("overlay", "the layer above", layer_above),
    ("overlay", "metadata above", layer_below_metacopy),
    ("overlay", "two disks below", layers_on_two_disks),
    ("overlay", "two over one", two_over_one),
    ("mount", "bind", bind),
    ("mount", "bind within", bind_within),
    ("loop", "ext4 twice", ext4_twice),
    ("loop", "xfs twice", xfs_twice),
    ("loop", "btrfs twice", btrfs_twice),
    ("loop", "btrfs snapshot", snapshot),
    ("loop", "two disks", two_disks),
    ("bindfs", "bindfs", bindfs),
    ("mergerfs", "mergerfs", mergerfs),
    ("fuse-overlayfs", "fuse-overlayfs", fuse_overlayfs),
    ("unionfs-fuse", "unionfs", unionfs),
];

#[test]
fn attack_one_file_seen_twice() {
    let (mut tried, mut held) = (0, 0);
    for (part, name, stage) in STAGES {
        let mut done = 0;
        // In memory, because each step of each action waits for the disk.
        let memory = || tempfile::tempdir_in("/dev/shm").unwrap();
        let (trash, far) = (memory(), tempfile::tempdir().unwrap());
        let to = |dir: &tempfile::TempDir| Action::Move(dir.path().as_os_str().as_bytes().to_vec());
        let actions = [
            Action::Delete,
            Action::Hardlink,
            Action::Reflink,
            to(&trash),
            to(&far),
        ];
        for _ in 0..attack_factor() {
            let dir = memory();
            let Some(view) = stage(dir.path()) else {
                skipped(part, format!("{name} cannot be made here"));
                break;
            };
            for (number, action) in actions.iter().enumerate() {
                for forced in [false, true] {
                    for (which, keep) in [&view.a, &view.b].into_iter().enumerate() {
                        // The short form alternates the kept place.
                        if attack_factor() == 1 && (number + usize::from(forced) + which) % 2 == 1 {
                            continue;
                        }
                        tried += 1;
                        match act(&view, dir.path(), action, keep, forced) {
                            Ok(count) => {
                                held += 1;
                                done += u64::from(!forced) * count;
                            }
                            Err(why) => eprintln!("{name}, {action:?}, {forced}: {why}"),
                        }
                    }
                }
            }
            // The action changes real copies.
            assert!(done > 0 || !view.two_files, "{name}");
        }
        eprintln!("{name}: {done} steps done by plan");
    }
    attacked("one file seen twice", tried, held);
}

/// Files that are visible twice promise no space, and the plan counts them.
#[test]
fn what_is_seen_twice_promises_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let [lower, merged] = folders(dir.path(), ["lower", "merged"]);
    put(lower.join("one"), b"content");
    let Some(_guard) = overlay(dir.path(), &merged, &lower, "upper", "") else {
        return skipped("overlay", "none can be mounted here");
    };
    let mut options = ScanOptions::default();
    options.walk.other_filesystems = true;
    for roots in [vec![lower, merged.clone()], vec![dir.path().to_owned()]] {
        let found = free(|control| scan(&roots, &options, None, control)).unwrap();
        let gain: u64 = found.groups.iter().map(|group| group.gain()).sum();
        let doubtful: u64 = found.groups.iter().map(|group| group.doubtful).sum();
        let related = assay_dups::folders::compare_folders(&found.files);
        let gain_of_folders: u64 = related.same.iter().map(|one| one.redundant_bytes()).sum();
        assert_eq!(gain_of_folders, 0, "{roots:?}");
        assert!(
            related.same.iter().all(|one| one.doubtful == 2),
            "{roots:?}"
        );
        // If both places have one identity, they are names of one file.
        assert!(doubtful == 2 || found.groups.is_empty(), "{roots:?}");
        assert_eq!(gain, 0, "{roots:?}");
        let rules = PlanRules::default();
        let plan = plan(&found.files, &found.groups, &Action::Delete, &rules).unwrap();
        assert!(plan.steps.is_empty(), "{roots:?}");
    }
}
