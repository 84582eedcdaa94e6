//! Programs that run for an arm. They work in the arm's directory and are given plain relative
//! names there, so that no name of a directory, however hostile or long, has to be escaped for
//! them. The kernel kills them when assay ends.

use crate::ArmError;
use assay_instruments::Cancel;
use rustix::process::Signal;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock, mpsc};
use std::time::Duration;

/// A running program; killed when dropped.
pub(crate) struct Running {
    child: Child,
    /// As messages name it.
    name: String,
    log: PathBuf,
}

/// What to run.
pub(crate) struct Program<'a> {
    /// The executable.
    pub path: &'a Path,
    /// Work directory.
    pub dir: &'a Path,
    /// Name of the file in it that takes standard error.
    pub log: &'a str,
}

impl Program<'_> {
    fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or(self.path.as_os_str());
        name.to_string_lossy().into_owned()
    }

    /// Starts it, with standard output thrown away.
    pub fn start<S: AsRef<OsStr>>(&self, args: &[S]) -> Result<Running, ArmError> {
        self.spawn(args, Stdio::null())
    }

    fn spawn<S: AsRef<OsStr>>(&self, args: &[S], stdout: Stdio) -> Result<Running, ArmError> {
        let log = self.dir.join(self.log);
        let stderr = File::create(&log).map_err(ArmError::io(&log))?;
        let mut command = Command::new(self.path);
        command
            .args(args)
            .current_dir(self.dir)
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(stderr)
            // Ctrl-C is for assay, which ends its children in order.
            .process_group(0);
        let child = spawn(command).map_err(ArmError::io(self.path))?;
        Ok(Running {
            child,
            name: self.name(),
            log,
        })
    }

    /// Runs it to its end and returns its standard output.
    pub fn run<S: AsRef<OsStr>>(&self, args: &[S], cancel: &Cancel) -> Result<String, ArmError> {
        let out = self.dir.join("stdout");
        let file = File::create(&out).map_err(ArmError::io(&out))?;
        let mut running = self.spawn(args, file.into())?;
        let mut pause = Duration::from_millis(1);
        let status = loop {
            match running.child.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) => {}
                Err(source) => return Err(ArmError::io(self.path)(source)),
            }
            if cancel.is_cancelled() {
                return Err(ArmError::Cancelled);
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(50));
        };
        let text = read_start(&out);
        let _ = fs::remove_file(&out);
        match status.success() {
            true => Ok(text),
            false => Err(ArmError::Tool {
                complaint: running.complaint().unwrap_or_else(|| match status.code() {
                    Some(code) => format!("exit status {code}"),
                    None => format!("ended by signal {}", status.signal().unwrap_or(0)),
                }),
                program: running.name.clone(),
            }),
        }
    }
}

impl Running {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Why it ended, when it did.
    pub fn ended(&mut self) -> Option<ArmError> {
        let status = self.child.try_wait().ok().flatten()?;
        Some(ArmError::Tool {
            program: self.name.clone(),
            complaint: self.complaint().unwrap_or_else(|| status.to_string()),
        })
    }

    /// Waits until `ready` says yes.
    pub fn wait_until(
        &mut self,
        cancel: &Cancel,
        mut ready: impl FnMut() -> bool,
    ) -> Result<(), ArmError> {
        const PATIENCE: u32 = 3000;
        for _ in 0..PATIENCE {
            if ready() {
                return Ok(());
            }
            if let Some(error) = self.ended() {
                return Err(error);
            }
            if cancel.is_cancelled() {
                return Err(ArmError::Cancelled);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Err(ArmError::Server {
            program: self.name.clone(),
            reason: self
                .complaint()
                .unwrap_or_else(|| "it is not ready after 30 s".to_owned()),
        })
    }

    /// What standard error says went wrong, in one line: what stands behind the name of the program
    /// or `ERROR:`, else the first line. Some tools tell their version or their usage as well.
    fn complaint(&self) -> Option<String> {
        let text = read_start(&self.log);
        let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
        let named = format!("{}: ", self.name);
        let line = lines()
            .find_map(|line| line.strip_prefix(&named))
            .or_else(|| lines().find_map(|line| line.strip_prefix("ERROR: ")))
            .or_else(|| lines().next())?;
        Some(line.to_owned())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read_start(path: &Path) -> String {
    let mut bytes = Vec::new();
    if let Ok(file) = File::open(path) {
        let _ = file.take(1 << 20).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

type Order = (Command, mpsc::Sender<io::Result<Child>>);

/// Starts a child that the kernel kills when assay ends. PR_SET_PDEATHSIG is about the thread that
/// forked, so one thread, which lives as long as assay, forks them all.
fn spawn(mut command: Command) -> io::Result<Child> {
    static SPAWNER: OnceLock<Mutex<mpsc::Sender<Order>>> = OnceLock::new();
    die_with_us(&mut command);
    let spawner = SPAWNER.get_or_init(|| {
        let (sender, orders) = mpsc::channel::<Order>();
        std::thread::spawn(move || {
            for (mut command, answer) in orders {
                let _ = answer.send(command.spawn());
            }
        });
        Mutex::new(sender)
    });
    let (answer, child) = mpsc::channel();
    let gone = || io::Error::other("the thread that starts programs has ended");
    match spawner.lock() {
        Ok(sender) => sender.send((command, answer)).map_err(|_| gone())?,
        Err(_) => return Err(gone()),
    }
    child.recv().map_err(|_| gone())?
}

#[allow(
    unsafe_code,
    reason = "pre_exec is the only way to set PR_SET_PDEATHSIG in the child"
)]
fn die_with_us(command: &mut Command) {
    let us = rustix::process::getpid();
    // SAFETY: between fork and exec the closure makes two system calls and nothing else; it does
    // not allocate and takes no lock.
    unsafe {
        command.pre_exec(move || {
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            match rustix::process::getppid() == Some(us) {
                true => Ok(()),
                // It ended before the wish was known.
                false => Err(rustix::io::Errno::SRCH.into()),
            }
        });
    }
}
