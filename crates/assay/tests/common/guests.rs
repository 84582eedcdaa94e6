//! Guests for tests: the image, and that nothing is left of them.
//!
//! The image comes from the user's cache. Building one takes ten minutes of processor time, so that
//! is done only when ASSAY_LAB_BUILD is set; without an image the tests are skipped.

use super::{Home, entries};
use assay_lab::Zfs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

/// An emulated guest takes all processors: one at a time.
static ONE: Mutex<()> = Mutex::new(());

/// The image, or why there is none.
pub fn image() -> Option<(assay_lab::Image, MutexGuard<'static, ()>)> {
    let one = ONE
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let asked = std::env::var_os("ASSAY_LAB_BUILD").is_some();
    let cached = |dir: PathBuf| assay_lab::Cache::new(&dir).find();
    if !asked && cache_dir().and_then(cached).is_none() {
        eprintln!("skipped: no guest image; `assay lab build` makes one");
        return None;
    }
    let built = Home::new().assay(&["lab", "build", "--json"]);
    if built.code == Some(0) {
        let found: serde_json::Value = serde_json::from_str(&built.stdout).unwrap();
        let cache =
            assay_lab::Cache::new(Path::new(found["dir"].as_str().unwrap()).parent().unwrap());
        return Some((cache.find().unwrap(), one));
    }
    let excused = ["not installed", "needs root", "MiB free"];
    let said = &built.stderr;
    assert!(excused.iter().any(|why| said.contains(why)), "{said}");
    eprintln!("skipped: {said}");
    None
}

/// The same for tests that take minutes: all of them together are a quarter of an hour, which is too
/// much for every change. `ASSAY_LAB_ALL=1` runs them.
pub fn image_for_long() -> Option<(assay_lab::Image, MutexGuard<'static, ()>)> {
    if std::env::var_os("ASSAY_LAB_ALL").is_none() {
        eprintln!("skipped: it takes minutes; ASSAY_LAB_ALL=1 runs it");
        return None;
    }
    image()
}

/// The same with that OpenZFS. Tests never build the newer one.
pub fn image_for_long_with(zfs: Zfs) -> Option<(assay_lab::Image, MutexGuard<'static, ()>)> {
    let (_, one) = match zfs {
        Zfs::Stable => return image_for_long(),
        Zfs::Backports => image_for_long()?,
    };
    let found = cache_dir().and_then(|dir| assay_lab::Cache::new(&dir).with(zfs).find());
    if found.is_none() {
        let name = zfs.name();
        eprintln!("skipped: no image with that OpenZFS; `assay lab build --zfs {name}` makes one");
    }
    Some((found?, one))
}

/// Where the verb keeps its images.
fn cache_dir() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let lab = set("ASSAY_LAB_CACHE");
    let cache = || set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")));
    lab.or_else(|| Some(cache()?.join("assay/lab")))
}

/// Processes that work in a directory.
pub fn working_in(dir: &Path) -> Vec<PathBuf> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .map(|entry| entry.path())
        .filter(|path| std::fs::read_link(path.join("cwd")).is_ok_and(|cwd| cwd.starts_with(dir)))
        .collect()
}

pub fn nothing_left(home: &Home) {
    let lab = home.state().join("lab");
    let left: Vec<_> = entries(&lab)
        .into_iter()
        .filter(|name| lab.join(name).is_dir())
        .collect();
    assert_eq!(left, Vec::<String>::new());
    assert_eq!(working_in(&lab), Vec::<PathBuf>::new());
}
