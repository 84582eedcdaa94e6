//! The guest image: found in the cache, or built there once.

use crate::child::die_with_us;
use crate::error::LabError;
use crate::recipe::{self, Zfs};
use assay_host::{Host, Limits, Live};
use assay_instruments::Cancel;
use rustix::fs::{FlockOperation, flock};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Room that a build needs for a while: the tree, its packages and the image.
const BUILD_SPACE: u64 = 5 << 30;
const BUILDING: &str = "building-";
const LOG: &str = "build.log";

/// What the user may want to see of a build.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// What is being done.
    pub step: &'a str,
    /// Time that is left, as such builds went before; none while another assay builds.
    pub left: Option<Duration>,
    /// Share that is done, 0 to 1.
    pub done: f64,
}

/// An image that guests boot from; it never changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    dir: PathBuf,
}

impl Image {
    /// Its directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The root file system: ext4, raw.
    #[must_use]
    pub fn root(&self) -> PathBuf {
        self.dir.join("root.img")
    }

    /// The kernel.
    #[must_use]
    pub fn kernel(&self) -> PathBuf {
        self.dir.join("vmlinuz")
    }

    /// The initial RAM file system.
    #[must_use]
    pub fn initrd(&self) -> PathBuf {
        self.dir.join("initrd.img")
    }

    /// Every package of the guest and its version, a line each.
    #[must_use]
    pub fn packages(&self) -> PathBuf {
        self.dir.join("packages")
    }

    /// The hash of its recipe.
    #[must_use]
    pub fn hash(&self) -> String {
        let name = self.dir.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// Which OpenZFS it has; none when it is of another recipe than this assay's.
    #[must_use]
    pub fn zfs(&self) -> Option<Zfs> {
        Zfs::of(&self.hash())
    }

    /// Bytes it takes on disk.
    #[must_use]
    pub fn disk_bytes(&self) -> u64 {
        let entries = fs::read_dir(&self.dir).into_iter().flatten().flatten();
        entries
            .filter_map(|entry| Some(entry.metadata().ok()?.blocks() * 512))
            .sum()
    }
}

/// Where images are kept.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
    zfs: Zfs,
}

impl Cache {
    /// Keeps images below `root`. Those that it finds and builds have the release's own OpenZFS.
    #[must_use]
    pub fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            zfs: Zfs::Stable,
        }
    }

    /// The same place, for images with another OpenZFS.
    #[must_use]
    pub fn with(&self, zfs: Zfs) -> Self {
        Self {
            root: self.root.clone(),
            zfs,
        }
    }

    /// The image of this assay's recipe, when it was built.
    #[must_use]
    pub fn find(&self) -> Option<Image> {
        let dir = self.root.join(recipe::hash(self.zfs));
        // Complete: a build appears under this name all at once.
        dir.is_dir().then_some(Image { dir })
    }

    /// All images, those of other recipes too.
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

    /// The image, built when it is missing. Two that build at once: the second waits and takes
    /// what the first made.
    ///
    /// # Errors
    /// No root, no room, a missing tool, a failed build, or interrupted; nothing is left then but
    /// the log of a failed build.
    pub fn build(
        &self,
        progress: &mut dyn FnMut(Progress<'_>),
        cancel: &Cancel,
    ) -> Result<Image, LabError> {
        if let Some(image) = self.find() {
            return Ok(image);
        }
        if std::env::consts::ARCH != "x86_64" {
            return Err(LabError::Architecture(std::env::consts::ARCH));
        }
        fs::create_dir_all(&self.root).map_err(LabError::io(&self.root))?;
        let _lock = self.lock(progress, cancel)?;
        if let Some(image) = self.find() {
            return Ok(image);
        }
        self.sweep();
        check_tools()?;
        if !rustix::process::geteuid().is_root() {
            return Err(LabError::NotRoot);
        }
        let free = rustix::fs::statvfs(&self.root)
            .map_err(|error| LabError::io(&self.root)(error.into()))?;
        let free = free.f_bavail.saturating_mul(free.f_frsize);
        if free < BUILD_SPACE {
            return Err(LabError::Space {
                path: self.root.clone(),
                free,
                need: BUILD_SPACE,
                variable: "ASSAY_LAB_CACHE",
            });
        }
        let work = self.root.join(format!("{BUILDING}{}", std::process::id()));
        let built = self.build_in(&work, progress, cancel);
        let _ = fs::remove_dir_all(&work);
        built
    }

    /// One build at a time in this cache.
    fn lock(
        &self,
        progress: &mut dyn FnMut(Progress<'_>),
        cancel: &Cancel,
    ) -> Result<File, LabError> {
        let path = self.root.join("lock");
        let file = File::options()
            .create(true)
            .append(true)
            .open(&path)
            .map_err(LabError::io(&path))?;
        while flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            if cancel.is_cancelled() {
                return Err(LabError::Interrupted);
            }
            progress(Progress {
                step: "another assay is building the guest image: waiting for it",
                left: None,
                done: 0.0,
            });
            std::thread::sleep(Duration::from_millis(300));
        }
        Ok(file)
    }

    /// Removes what killed builds left. They ran in a mount namespace of their own, which ended
    /// with them: nothing is mounted in what they left.
    fn sweep(&self) {
        for entry in fs::read_dir(&self.root).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(BUILDING) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }

    fn build_in(
        &self,
        work: &Path,
        progress: &mut dyn FnMut(Progress<'_>),
        cancel: &Cancel,
    ) -> Result<Image, LabError> {
        fs::create_dir(work).map_err(LabError::io(work))?;
        for (name, content, executable) in recipe::files(self.zfs) {
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
        let ended = run(work, self.zfs, progress, cancel)?;
        if let Some(reason) = ended {
            let kept = self.root.join("build-failed.log");
            let _ = fs::rename(work.join(LOG), &kept);
            return Err(LabError::Build {
                reason,
                log: crate::console::tail(&kept, 15),
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

/// A power cut after the rename must not leave an image of zeros.
fn sync(dir: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(dir)? {
        File::open(entry?.path())?.sync_all()?;
    }
    File::open(dir)?.sync_all()
}

fn check_tools() -> Result<(), LabError> {
    for (tool, package) in [
        ("mmdebstrap", "mmdebstrap"),
        ("mke2fs", "e2fsprogs"),
        ("unshare", "util-linux"),
    ] {
        if Live.which(OsStr::new(tool)).is_none() {
            return Err(LabError::Missing { tool, package });
        }
    }
    Ok(())
}

/// The Debian mirror that this machine uses itself.
fn mirror() -> String {
    let argv = [
        "apt-get",
        "indextargets",
        "--format",
        "$(REPO_URI) $(RELEASE)",
    ];
    let argv = argv.map(OsStr::new);
    let targets = Live.run(&argv, Limits::default());
    let text = targets.map(|output| output.text()).unwrap_or_default();
    recipe::mirror(&text)
        .unwrap_or(recipe::DEFAULT_MIRROR)
        .to_owned()
}

/// Runs mmdebstrap to its end; says why when it failed.
///
/// It mounts /proc, /sys and device nodes into the tree. It gets namespaces of its own, so that
/// killing it kills all it started and unmounts all it mounted: only then is it safe to remove the
/// tree.
fn run(
    work: &Path,
    zfs: Zfs,
    progress: &mut dyn FnMut(Progress<'_>),
    cancel: &Cancel,
) -> Result<Option<String>, LabError> {
    let log = work.join(LOG);
    let output = File::create(&log).map_err(LabError::io(&log))?;
    let errors = output.try_clone().map_err(LabError::io(&log))?;
    let hook = |when: &str, name: &str| {
        let mut hook = OsString::from(format!("--{when}-hook="));
        hook.push(work.join(name));
        hook
    };
    let mirror = mirror();
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "--propagation", "private", "--pid", "--fork"])
        .args(["--kill-child", "--mount-proc", "mmdebstrap"])
        .args(recipe::arguments())
        .arg(hook("customize", "customize"))
        .args((zfs == Zfs::Backports).then(|| hook("setup", recipe::PREFER.0)))
        .args([recipe::RELEASE, "-", &mirror])
        .args(recipe::more_sources(zfs, &mirror))
        .env("TMPDIR", work)
        .env("LC_ALL", "C")
        .current_dir(work)
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors);
    die_with_us(&mut command);
    let mut child = command
        .spawn()
        .map_err(LabError::io(Path::new("unshare")))?;
    let mut steps = Steps::new();
    let mut reader = File::open(&log).map_err(LabError::io(&log))?;
    loop {
        if let Some(status) = child.try_wait().map_err(LabError::io(&log))? {
            return Ok((!status.success()).then(|| format!("mmdebstrap ended with {status}")));
        }
        if cancel.is_cancelled() {
            let _ = child.kill();
            let _ = child.wait();
            return Err(LabError::Interrupted);
        }
        let mut text = String::new();
        let at = reader.stream_position().unwrap_or(0);
        if reader.read_to_string(&mut text).is_err() {
            // Cut within a character: read again next time.
            let _ = reader.seek(SeekFrom::Start(at));
        }
        steps.read(&text);
        progress(steps.progress());
        std::thread::sleep(Duration::from_millis(300));
    }
}

/// How far a build is, from what mmdebstrap says.
struct Steps {
    at: usize,
    begun: Instant,
    /// Expected time of the whole build, corrected at every step.
    whole: f64,
}

/// What the log says when a step begins, its name for people, and its share of the time in per
/// mille, as a build on two busy cores went.
const STEPS: [(&str, &str, u32); 5] = [
    ("", "fetching the base system", 15),
    ("I: installing essential", "installing the base system", 15),
    ("I: installing remaining", "installing packages", 60),
    ("Loading new zfs", "compiling ZFS", 810),
    ("I: running --customize-hook", "making the image", 100),
];
/// Share from which on the pace so far tells how long the rest takes.
const ENOUGH: f64 = 0.05;
/// Seconds that a build is expected to take until then.
const USUAL: f64 = 300.0;

impl Steps {
    fn new() -> Self {
        Self {
            at: 0,
            begun: Instant::now(),
            whole: USUAL,
        }
    }

    /// Share of the time before a step, 0 to 1.
    fn before(step: usize) -> f64 {
        let shares = STEPS[..step].iter().map(|step| step.2);
        f64::from(shares.sum::<u32>()) / 1000.0
    }

    fn read(&mut self, text: &str) {
        for (index, (begin, _, _)) in STEPS.iter().enumerate().skip(self.at + 1) {
            if text.contains(begin) {
                self.at = index;
                let before = Self::before(index);
                // The first steps wait for the network and tell nothing about the rest.
                if before >= ENOUGH {
                    self.whole = self.begun.elapsed().as_secs_f64() / before;
                }
            }
        }
    }

    fn progress(&self) -> Progress<'static> {
        let passed = self.begun.elapsed().as_secs_f64();
        // A step that takes longer than its share does not run into the next one.
        let done = (passed / self.whole).clamp(Self::before(self.at), Self::before(self.at + 1));
        let left = (self.whole * (1.0 - done)).max(1.0);
        Progress {
            step: STEPS[self.at].1,
            left: Some(Duration::from_secs_f64(left)),
            done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_goes_forward_with_the_log_and_never_past_its_step() {
        assert_eq!(STEPS.iter().map(|step| step.2).sum::<u32>(), 1000);
        let mut steps = Steps::new();
        let mut last = steps.progress().done;
        for (begin, name, _) in &STEPS[1..] {
            steps.read(&format!("noise\n{begin}…\nmore noise\n"));
            let now = steps.progress();
            assert_eq!(now.step, *name);
            assert!(now.done > last && now.done < 1.0, "{name}");
            last = now.done;
        }
    }
}
