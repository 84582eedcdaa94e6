//! Finds the guest image in the cache, or builds it if it is missing.

mod packed_file;

pub use packed_file::pack_image;

use crate::builder::{self, Builder};
use crate::cachedir;
use crate::emulator;
use crate::error::LabError;
use crate::recipe::{self, Zfs};
use crate::steps::{BuildProgress, Steps};
use assay_host::lockfile;
use assay_host::process::{Dies, Running};
use assay_host::{Host, Limits, LiveHost};
use assay_loads::Cancel;
use rustix::fs::{FlockOperation, flock};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Free space in bytes that a build needs for the directory tree, its packages and the image.
const BUILD_SPACE: u64 = 5 << 30;
const BUILDING: &str = "building-";
const LOG: &str = "build.log";
const LOCK: &str = "lock";

/// A guest image. Its files never change after the build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    dir: PathBuf,
}

impl Image {
    /// Returns the directory of the image.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the path of the root file system (raw ext4).
    #[must_use]
    pub fn root(&self) -> PathBuf {
        self.dir.join("root.img")
    }

    /// Returns the path of the kernel.
    #[must_use]
    pub fn kernel(&self) -> PathBuf {
        self.dir.join("vmlinux")
    }

    /// Returns the path of the initial RAM file system.
    #[must_use]
    pub fn initrd(&self) -> PathBuf {
        self.dir.join("initrd.img")
    }

    /// Returns the path of the list of the guest's packages and versions, one per line.
    #[must_use]
    pub fn packages(&self) -> PathBuf {
        self.dir.join("packages")
    }

    /// Returns the hash of the image's recipe.
    #[must_use]
    pub fn hash(&self) -> String {
        let name = self.dir.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// Returns which OpenZFS the image contains; `None` if the image comes from another recipe.
    #[must_use]
    pub fn zfs(&self) -> Option<Zfs> {
        Zfs::of(&self.hash())
    }

    /// Returns the first file of the image that is missing or empty.
    fn missing(&self) -> Option<PathBuf> {
        let files = [self.root(), self.kernel(), self.initrd(), self.packages()];
        let whole =
            |path: &PathBuf| fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() > 0);
        files.into_iter().find(|path| !whole(path))
    }

    /// Returns the size of the image on disk in bytes.
    #[must_use]
    pub fn disk_bytes(&self) -> u64 {
        let entries = fs::read_dir(&self.dir).into_iter().flatten().flatten();
        entries
            .filter_map(|entry| Some(entry.metadata().ok()?.blocks() * 512))
            .sum()
    }
}

/// Directory that contains all guest images.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
    zfs: Zfs,
}

impl Cache {
    /// Returns the user's cache: `$ASSAY_LAB_CACHE`, else `$XDG_CACHE_HOME/assay/lab`, else `~/.cache/assay/lab`.
    ///
    /// # Errors
    /// None of the variables is set, or another user may write to the directory.
    pub fn of_user() -> Result<Self, LabError> {
        let cache = Self::new(&cachedir::cache_directory(|name| std::env::var_os(name))?);
        cachedir::ours(&cache.root)?;
        for image in cache.all() {
            cachedir::ours(&image.dir)?;
        }
        Ok(cache)
    }

    /// Creates a cache below `root` for images with the OpenZFS of the Debian release.
    #[must_use]
    pub fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            zfs: Zfs::Stable,
        }
    }

    /// Returns the same cache for images with another OpenZFS.
    #[must_use]
    pub fn with(&self, zfs: Zfs) -> Self {
        Self {
            root: self.root.clone(),
            zfs,
        }
    }

    /// Returns the image of the current recipe, if it exists.
    #[must_use]
    pub fn find(&self) -> Option<Image> {
        let image = self.place();
        // A build appears under this name completely; a copy from elsewhere may be incomplete.
        image.missing().is_none().then_some(image)
    }

    /// Returns the expected duration of a build: the duration of the last build on this machine, otherwise the typical
    /// duration on two idle cores.
    #[must_use]
    pub fn usual_build_time(&self) -> Duration {
        Steps::new(&self.root).usual_time()
    }

    /// Returns the image of the current recipe, whether it exists or not.
    fn place(&self) -> Image {
        Image {
            dir: self.root.join(recipe::hash(self.zfs)),
        }
    }

    /// Returns all images, including images of other recipes.
    #[must_use]
    pub fn all(&self) -> Vec<Image> {
        let entries = fs::read_dir(&self.root).into_iter().flatten().flatten();
        let mut found: Vec<_> = entries
            .map(|entry| Image { dir: entry.path() })
            .filter(|image| {
                let hash = image.hash();
                hash.len() == 16
                    && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
                    && image.root().is_file()
            })
            .collect();
        found.sort_by(|one, other| one.dir.cmp(&other.dir));
        found
    }

    /// Returns the image; builds it if it is missing. Of two simultaneous builds, the second waits and uses the result
    /// of the first.
    ///
    /// # Errors
    /// Root privileges, space or a tool is missing, the build failed, or the user interrupted. Only the log of a failed
    /// build remains.
    pub fn build(
        &self,
        progress: &mut dyn FnMut(BuildProgress<'_>),
        cancel: &Cancel,
    ) -> Result<Image, LabError> {
        if let Some(image) = self.find() {
            return Ok(image);
        }
        check_architecture(std::env::consts::ARCH)?;
        check_writable(&self.root)?;
        self.check_place()?;
        let _lock = self.lock(progress, cancel)?;
        if let Some(image) = self.find() {
            return Ok(image);
        }
        self.sweep();
        check_tools()?;
        Builder::of_us().check()?;
        let free = rustix::fs::statvfs(&self.root)
            .map_err(|error| LabError::io(&self.root)(error.into()))?;
        let free = free.f_bavail.saturating_mul(free.f_frsize);
        if free < BUILD_SPACE {
            return Err(LabError::Space {
                path: self.root.clone(),
                free,
                need: BUILD_SPACE,
                variable: cachedir::VARIABLE,
            });
        }
        let work = self.root.join(format!("{BUILDING}{}", std::process::id()));
        let built = self.build_in(&work, progress, cancel);
        Builder::of_us().remove(&work);
        built
    }

    /// Fails early if a damaged image occupies the directory of the new image. Otherwise the build would fail at its
    /// end.
    fn check_place(&self) -> Result<(), LabError> {
        let image = self.place();
        match (image.dir.symlink_metadata(), image.missing()) {
            (Ok(_), Some(missing)) => Err(LabError::Damaged {
                path: image.dir,
                missing,
            }),
            _ => Ok(()),
        }
    }

    /// Takes the lock that permits one build per cache at a time.
    fn lock(
        &self,
        progress: &mut dyn FnMut(BuildProgress<'_>),
        cancel: &Cancel,
    ) -> Result<File, LabError> {
        let path = self.root.join(LOCK);
        loop {
            if let Some(lock) = lockfile::attempt(&path).map_err(LabError::io(&path))? {
                return Ok(lock);
            }
            if cancel.is_cancelled() {
                return Err(LabError::Interrupted);
            }
            progress(BuildProgress {
                step: "another assay is building the guest image: waiting for it",
                left: None,
                done: 0.0,
            });
            std::thread::sleep(Duration::from_millis(300));
        }
    }

    /// Removes the files of killed builds, unless a build is running. Returns whether files were removed.
    #[must_use]
    pub fn tidy(&self) -> bool {
        let Ok(lock) = File::options().append(true).open(self.root.join(LOCK)) else {
            return false;
        };
        flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() && self.sweep()
    }

    /// Removes the files of killed builds. The builds ran in their own mount namespaces, so nothing is mounted in their
    /// directories. Returns whether files were removed.
    fn sweep(&self) -> bool {
        let mut found = false;
        for entry in fs::read_dir(&self.root).into_iter().flatten().flatten() {
            if is_build(&entry) {
                Builder::of_us().remove(&entry.path());
                found = true;
            }
        }
        found
    }

    fn build_in(
        &self,
        work: &Path,
        progress: &mut dyn FnMut(BuildProgress<'_>),
        cancel: &Cancel,
    ) -> Result<Image, LabError> {
        fs::create_dir(work).map_err(LabError::io(work))?;
        for (name, content, executable) in recipe::build_files(self.zfs) {
            let path = work.join(name);
            let mode = if executable { 0o755 } else { 0o644 };
            File::options()
                .create_new(true)
                .write(true)
                .mode(mode)
                .open(&path)
                .and_then(|mut file| std::io::Write::write_all(&mut file, content.as_bytes()))
                .map_err(LabError::io(&path))?;
        }
        let mirror = find_mirror();
        let ended = run(&self.root, work, (self.zfs, &mirror), progress, cancel)?;
        if let Some(reason) = ended {
            let log = work.join(LOG);
            let text = fs::read(&log).map_err(LabError::io(&log))?;
            if let Some(refused) = builder::find_refusal(&String::from_utf8_lossy(&text), &mirror) {
                return Err(refused);
            }
            let kept = self.root.join("build-failed.log");
            let _ = fs::rename(&log, &kept);
            return Err(LabError::Build {
                reason,
                log: crate::console::read_tail(&kept, 15),
                path: kept,
            });
        }
        let out = work.join("out");
        sync(&out).map_err(LabError::io(&out))?;
        let dir = self.root.join(recipe::hash(self.zfs));
        fs::rename(&out, &dir).map_err(LabError::io(&dir))?;
        Ok(Image { dir })
    }
}

/// Returns whether assay created this directory for a build. The check is needed because `ASSAY_LAB_CACHE` may contain
/// other files.
fn is_build(entry: &fs::DirEntry) -> bool {
    let name = entry.file_name();
    let number = name.to_str().and_then(|name| name.strip_prefix(BUILDING));
    let ours = number.is_some_and(|number| number.parse::<u32>().is_ok());
    ours && entry.file_type().is_ok_and(|kind| kind.is_dir())
}

/// Syncs a directory. Without the sync, a power cut after the rename could leave an image of zeros.
fn sync(dir: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(dir)? {
        File::open(entry?.path())?.sync_all()?;
    }
    File::open(dir)?.sync_all()
}

fn check_architecture(name: &'static str) -> Result<(), LabError> {
    match name {
        "x86_64" => Ok(()),
        other => Err(LabError::Architecture(other)),
    }
}

fn check_writable(cache: &Path) -> Result<(), LabError> {
    let refuse = |source| LabError::Cache {
        path: cache.to_owned(),
        source,
    };
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(cache)
        .map_err(refuse)?;
    rustix::fs::access(cache, rustix::fs::Access::WRITE_OK).map_err(|error| refuse(error.into()))
}

/// Checks that the tools for building and booting exist. QEMU is included, because an image is useless without QEMU.
fn check_tools() -> Result<(), LabError> {
    for (tool, package) in [
        (emulator::QEMU, emulator::PACKAGE),
        ("mmdebstrap", "mmdebstrap"),
        ("mke2fs", "e2fsprogs"),
        ("unshare", "util-linux"),
        ("xz", "xz-utils"),
    ] {
        if LiveHost.which(OsStr::new(tool)).is_none() {
            return Err(LabError::Missing { tool, package });
        }
    }
    Ok(())
}

/// Returns the Debian mirror that this machine's apt uses, else the default mirror.
fn find_mirror() -> String {
    let argv = [
        "apt-get",
        "indextargets",
        "--format",
        "$(REPO_URI) $(RELEASE)",
    ];
    let argv = argv.map(OsStr::new);
    let targets = LiveHost.run(&argv, Limits::default());
    let text = targets.map(|output| output.text()).unwrap_or_default();
    recipe::parse_mirror(&text)
        .unwrap_or(recipe::DEFAULT_MIRROR)
        .to_owned()
}

/// Returns the arguments of mmdebstrap.
fn mmdebstrap_arguments(work: &Path, zfs: Zfs, mirror: &str) -> Vec<OsString> {
    let hook = |when: &str, name: &str| {
        let mut hook = OsString::from(format!("--{when}-hook="));
        hook.push(work.join(name));
        hook
    };
    let mut all: Vec<OsString> = recipe::mmdebstrap_arguments()
        .into_iter()
        .map(Into::into)
        .collect();
    // The last hook creates the image and empties the tree's /tmp, which contains mmdebstrap's apt
    // configuration. Without that configuration, mmdebstrap's cleanup (run_cleanup, mmdebstrap 1.3.5) would
    // work on this machine's package lists: it would delete root's, and fail for other users.
    all.push("--skip=cleanup".into());
    all.push(hook("customize", "customize"));
    all.extend((zfs == Zfs::Backports).then(|| hook("setup", recipe::PREFER.0)));
    all.extend([recipe::RELEASE, "-", mirror].map(Into::into));
    all.extend(recipe::more_sources(zfs, mirror).map(Into::into));
    all
}

/// Runs mmdebstrap and explains a failure.
///
/// mmdebstrap mounts /proc, /sys and device nodes into the tree. It runs in its own namespaces, so killing it also ends
/// its processes and mounts. After that, the tree can be removed safely.
fn run(
    cache: &Path,
    work: &Path,
    (zfs, find_mirror): (Zfs, &str),
    progress: &mut dyn FnMut(BuildProgress<'_>),
    cancel: &Cancel,
) -> Result<Option<String>, LabError> {
    let log = work.join(LOG);
    let output = File::create(&log).map_err(LabError::io(&log))?;
    let errors = output.try_clone().map_err(LabError::io(&log))?;
    let mut command = Command::new("unshare");
    command
        .args(Builder::of_us().namespaces())
        .arg("mmdebstrap")
        .args(mmdebstrap_arguments(work, zfs, find_mirror))
        .env("TMPDIR", work)
        .env("LC_ALL", "C")
        .env(recipe::MODULE_FLAGS.0, recipe::MODULE_FLAGS.1)
        .current_dir(work)
        .stdout(output)
        .stderr(errors);
    let running = Running::start(command, Dies::WithThread);
    let mut running = running.map_err(LabError::io(Path::new("unshare")))?;
    let begun = Instant::now();
    let mut steps = Steps::new(cache);
    let mut reader = File::open(&log).map_err(LabError::io(&log))?;
    loop {
        if let Some(ended) = running.ended().map_err(LabError::io(&log))? {
            if !ended.success() {
                return Ok(Some(format!("mmdebstrap ended with {ended}")));
            }
            steps.ended(begun.elapsed());
            return Ok(None);
        }
        if cancel.is_cancelled() {
            return Err(LabError::Interrupted);
        }
        let mut text = String::new();
        let at = reader.stream_position().unwrap_or(0);
        if reader.read_to_string(&mut text).is_err() {
            // The text ends within a character; read it again next time.
            let _ = reader.seek(SeekFrom::Start(at));
        }
        steps.read(&text, begun.elapsed());
        progress(steps.progress(begun.elapsed()));
        let waited = running.wait(Duration::from_millis(300));
        waited.map_err(LabError::io(&log))?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_that_is_not_whole_is_none_and_files_of_others_stay() {
        let home = tempfile::tempdir().unwrap();
        let cache = Cache::new(home.path());
        let image = cache.place();
        fs::create_dir(&image.dir).unwrap();
        for path in [image.root(), image.kernel(), image.initrd()] {
            fs::write(path, "x").unwrap();
        }
        assert_eq!(cache.find(), None);
        let error = cache
            .build(&mut |_| {}, &Cancel::default())
            .unwrap_err()
            .to_string();
        let words = ["packages is missing", "remove that directory"];
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
        fs::write(image.packages(), "x").unwrap();
        assert_eq!(cache.find(), Some(image));

        let theirs = ["building-notes", "building-"].map(|name| home.path().join(name));
        for dir in &theirs {
            fs::create_dir(dir).unwrap();
        }
        fs::write(home.path().join("building-7"), "x").unwrap();
        let ours = home.path().join("building-8");
        fs::create_dir(&ours).unwrap();
        assert!(cache.sweep() && !ours.exists());
        assert!(theirs.iter().all(|dir| dir.is_dir()) && !cache.sweep());
    }

    /// mmdebstrap's own cleanup must be skipped, because it would work on the package lists of this machine.
    #[test]
    fn nothing_is_cleaned_after_the_last_hook() {
        for zfs in Zfs::ALL {
            let all = mmdebstrap_arguments(Path::new("/w"), zfs, "http://mirror.example/debian");
            let at = |word: &str| all.iter().position(|argument| argument == word);
            assert!(at("--skip=cleanup") < at("-"), "{all:?}");
            assert!(at("--skip=cleanup").is_some());
            assert!(at("--customize-hook=/w/customize").is_some());
        }
    }

    #[test]
    fn another_architecture_is_named() {
        assert!(check_architecture("x86_64").is_ok());
        insta::assert_snapshot!(check_architecture("aarch64").unwrap_err(), @"guests are x86-64 and need an x86-64 machine; this one is aarch64");
    }
}
