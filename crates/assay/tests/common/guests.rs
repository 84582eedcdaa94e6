//! Guests for tests: the image, and checks that nothing is left.
//!
//! The image comes from the user's cache; `make test-guests` builds it. Without it the tests are skipped.

use super::{Home, entries};
use assay_lab::{Cache, Image, Zfs};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

/// One at a time, because an emulated guest uses all processors.
static ONE: Mutex<()> = Mutex::new(());

/// Returns the image, and the lock to boot from it.
pub fn image() -> Option<(Image, MutexGuard<'static, ()>)> {
    let one = ONE
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let found = Cache::of_user().unwrap().find();
    if found.is_none() {
        assay_testing::skipped("guest-image", "no guest image; `assay lab build` makes one");
    }
    Some((found?, one))
}

/// Returns the image for tests that take minutes: together a quarter of an hour, too long for every
/// change. `ASSAY_LAB_ALL=1` runs them.
pub fn image_for_long() -> Option<(Image, MutexGuard<'static, ()>)> {
    if std::env::var_os("ASSAY_LAB_ALL").is_none() {
        assay_testing::skipped("long", "it takes minutes; ASSAY_LAB_ALL=1 runs it");
        return None;
    }
    image()
}

/// Returns the image with this OpenZFS. `make test-guests` does not build the newer one.
pub fn image_for_long_with(zfs: Zfs) -> Option<(Image, MutexGuard<'static, ()>)> {
    let (stable, one) = image_for_long()?;
    if zfs == Zfs::Stable {
        return Some((stable, one));
    }
    let found = Cache::of_user().unwrap().with(zfs).find();
    if found.is_none() {
        let name = zfs.name();
        assay_testing::skipped(
            "newer-zfs",
            format_args!("no image with that OpenZFS; `assay lab build --zfs {name}` makes one"),
        );
    }
    Some((found?, one))
}

/// Returns the processes that work in a directory.
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
