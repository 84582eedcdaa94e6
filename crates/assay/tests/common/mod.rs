//! Runs the built binary as a user would, with a separate store and state directory.
#![allow(
    clippy::disallowed_methods,
    dead_code,
    reason = "tests drive the real program"
)]

pub mod browser;
pub mod guests;
pub mod launcher;
pub mod pages;
pub mod pools;
pub mod schemas;
pub mod servers;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;
use tempfile::TempDir;

/// Returns the program that tests upload to machines that are this computer: a small one that starts this one, because
/// a hundred megabytes through ssh cost more CPU time than most tests. The whole program is uploaded by the test of a
/// run over ssh.
pub fn uploaded() -> &'static str {
    static UPLOADED: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    UPLOADED.get_or_init(|| {
        let whole = Path::new(env!("CARGO_BIN_EXE_assay"));
        let Some(program) = launcher::program_that_executes(whole) else {
            return sent().to_owned();
        };
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("assay-uploaded");
        // Several test programs may do this at once.
        let own = file.with_extension(std::process::id().to_string());
        std::fs::write(&own, program).unwrap();
        std::fs::rename(&own, &file).unwrap();
        file.display().to_string()
    })
}

/// Returns this program without debug information, which is more than half of it. Created once for all tests; without
/// `strip` it is the complete program.
pub fn sent() -> &'static str {
    static SENT: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    SENT.get_or_init(|| {
        let whole = Path::new(env!("CARGO_BIN_EXE_assay"));
        let light = Path::new(env!("CARGO_TARGET_TMPDIR")).join("assay-sent");
        let changed = |path: &Path| path.metadata().and_then(|all| all.modified()).ok();
        if changed(&light) <= changed(whole) {
            // Several test programs may do this at once.
            let own = light.with_extension(std::process::id().to_string());
            let mut strip = Command::new("strip");
            let strip = strip.arg("-o").arg(&own).arg(whole).status();
            let made = strip.is_ok_and(|status| status.success());
            if !made || std::fs::rename(&own, &light).is_err() {
                return whole.display().to_string();
            }
        }
        light.display().to_string()
    })
}

pub struct Home {
    pub dir: TempDir,
}

pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Home {
    pub fn new() -> Self {
        Self::below(&std::env::temp_dir())
    }

    /// Creates a home in memory, for tests with thousands of small files: ext4 gives an inode that was freed a few
    /// seconds ago to no new file, and searches long for another one.
    pub fn in_memory() -> Self {
        const MEMORY: &str = "/dev/shm";
        const ENOUGH: u64 = 1 << 30;
        let usable = rustix::fs::statvfs(MEMORY).is_ok_and(|found| {
            let runs_programs = !found.f_flag.contains(rustix::fs::StatVfsMountFlags::NOEXEC);
            runs_programs && found.f_bavail.saturating_mul(found.f_frsize) >= ENOUGH
        });
        match usable {
            true => Self::below(Path::new(MEMORY)),
            false => Self::new(),
        }
    }

    fn below(parent: &Path) -> Self {
        use std::os::unix::fs::PermissionsExt as _;
        let home = Self {
            dir: tempfile::tempdir_in(parent).unwrap(),
        };
        // Some tests run assay as other users.
        std::fs::create_dir(home.locks()).unwrap();
        let shared = std::fs::Permissions::from_mode(0o1777);
        std::fs::set_permissions(home.locks(), shared).unwrap();
        home
    }

    /// Returns the directory of locks, in which nothing of other tests and of this machine is seen.
    pub fn locks(&self) -> PathBuf {
        self.dir.path().join("locks")
    }

    /// Returns a directory to measure, on the same file system as the build.
    pub fn target(&self) -> TempDir {
        tempfile::Builder::new()
            .prefix("target")
            .tempdir_in(env!("CARGO_TARGET_TMPDIR"))
            .unwrap()
    }

    pub fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    pub fn command<S: AsRef<std::ffi::OsStr>>(&self, args: &[S]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_assay"));
        command
            .args(args)
            .env("ASSAY_STORE", self.dir.path().join("store.db"))
            .env("ASSAY_STATE", self.state())
            .env("ASSAY_LOCKS", self.locks())
            .env("COLUMNS", "80")
            .env_remove("NO_COLOR")
            .stdin(Stdio::null());
        command
    }

    /// Normalises output for a snapshot: `HOME` for the directory of this test, `TARGET` for one to
    /// measure; without guests of other users and temporary objects of other tests.
    pub fn told(&self, said: &str) -> String {
        let said = assay_testing::normalize_output(said, &[(self.dir.path(), "HOME")]);
        let place = concat!(env!("CARGO_TARGET_TMPDIR"), "/target");
        let mut parts = said.split(place);
        let first = parts.next().unwrap_or_default().to_owned();
        let told = parts.fold(first, |told, part| {
            told + "TARGET" + part.trim_start_matches(|c: char| c.is_ascii_alphanumeric())
        });
        let lines = told.split_inclusive('\n').map(|line| {
            let guests = line.split_once(" is running or defined here; there ");
            guests.map_or(line.to_owned(), |(line, more)| {
                let end = if more.ends_with('\n') { "\n" } else { "" };
                format!("{line} is running or defined here{end}")
            })
        });
        lines.collect()
    }

    /// Returns the line with the reason of a refusal, for a snapshot.
    pub fn refusal(&self, ran: &Ran) -> String {
        let refused = |line: &&str| line.starts_with("assay: ") || line.starts_with("error: ");
        let line = ran.stderr.lines().find(refused);
        self.told(line.unwrap_or(&ran.stderr)) + "\n"
    }

    pub fn assay<S: AsRef<std::ffi::OsStr>>(&self, args: &[S]) -> Ran {
        ended(self.command(args))
    }
}

/// Time limit of a command in tests: a hanging command is killed together with its guest.
const LONGEST: Duration = Duration::from_secs(900);

/// Runs a command to its end.
pub fn ended(mut command: Command) -> Ran {
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let watch = std::thread::spawn(move || {
        if ended.recv_timeout(LONGEST) == Err(RecvTimeoutError::Timeout) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    });
    let output = child.wait_with_output().unwrap();
    drop(end);
    watch.join().unwrap();
    ran(output)
}

pub fn ran(output: Output) -> Ran {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let ran = Ran {
        code: output.status.code(),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    };
    assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
    ran
}

pub fn entries(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect()
}

/// Whether the real fio is installed; otherwise reports a skip.
pub fn fio() -> bool {
    let found = Command::new("fio")
        .arg("--version")
        .output()
        .is_ok_and(|o| o.status.success());
    if !found {
        assay_testing::skipped("fio", "fio is not installed");
    }
    found
}

/// Whether the test is root, for mounts and loop devices; otherwise reports a skip.
pub fn root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        assay_testing::skipped("root", "needs root");
    }
    root
}

/// Creates an executable script that replaces fio where the real one cannot fail on command.
pub fn script(dir: &Path, name: &str, body: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt as _;
    let path = dir.join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// A loop device on a file of zeros, detached on drop; `None` if not available.
pub struct Loop {
    pub device: String,
    dir: TempDir,
}

impl Loop {
    /// Creates it with this size in bytes.
    pub fn new(size: u64) -> Option<Self> {
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let image = dir.path().join("image");
        let file = std::fs::File::create(&image).unwrap();
        file.set_len(size).unwrap();
        let out = Command::new("losetup")
            .args(["-f", "--show"])
            .arg(&image)
            .output()
            .ok()?;
        let device = String::from_utf8(out.stdout).unwrap().trim().to_owned();
        if !out.status.success() || device.is_empty() {
            assay_testing::skipped(
                "loop",
                format_args!("no loop device: {}", String::from_utf8_lossy(&out.stderr)),
            );
            return None;
        }
        Some(Self { device, dir })
    }

    /// Returns the content of its backing file.
    pub fn content(&self) -> Vec<u8> {
        std::fs::read(self.dir.path().join("image")).unwrap()
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["-d", &self.device]).status();
    }
}
