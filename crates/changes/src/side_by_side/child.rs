//! Programs that an arm needs while it exists. The programs run in the arm's directory and get relative names. So no
//! directory name needs escaping, however long or unusual it is. The kernel kills them when assay ends.

use crate::side_by_side::ArmError;
use assay_host::process::{self, Dies};
use assay_loads::Cancel;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// A running program. The program is killed when this value is dropped.
pub(crate) struct Running {
    process: process::Running,
    /// Name of the program, as shown in messages.
    name: String,
    log: PathBuf,
}

/// Interval at which a waiting function checks for an interruption.
const LOOK: Duration = Duration::from_millis(50);

/// A program to run.
pub(crate) struct Program<'a> {
    /// Path of the executable.
    pub path: &'a Path,
    /// Working directory of the program.
    pub dir: &'a Path,
    /// Name of the file in `dir` that receives standard error.
    pub log: &'a str,
}

impl Program<'_> {
    fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or(self.path.as_os_str());
        name.to_string_lossy().into_owned()
    }

    /// Starts the program and discards its standard output.
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
            .stdout(stdout)
            .stderr(stderr);
        let process = process::Running::start(command, Dies::WithAssay);
        Ok(Running {
            process: process.map_err(ArmError::io(self.path))?,
            name: self.name(),
            log,
        })
    }

    /// Runs the program to its end and returns its standard output.
    pub fn run<S: AsRef<OsStr>>(&self, args: &[S], cancel: &Cancel) -> Result<String, ArmError> {
        let out = self.dir.join("stdout");
        let file = File::create(&out).map_err(ArmError::io(&out))?;
        let mut running = self.spawn(args, file.into())?;
        let ended = loop {
            let waited = running.process.wait(LOOK);
            if waited.map_err(ArmError::io(self.path))? {
                break running.process.reap().map_err(ArmError::io(self.path))?;
            }
            if cancel.is_cancelled() {
                return Err(ArmError::Cancelled);
            }
        };
        let text = read_start(&out);
        let _ = fs::remove_file(&out);
        match ended.success() {
            true => Ok(text),
            false => Err(running.complained(&ended)),
        }
    }
}

impl Running {
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Returns an error if the program has ended.
    pub fn ended(&mut self) -> Option<ArmError> {
        let ended = self.process.ended().ok().flatten()?;
        Some(self.complained(&ended))
    }

    fn complained(&self, ended: &process::ProgramEnd) -> ArmError {
        ArmError::Tool {
            program: self.name.clone(),
            complaint: self.complaint().unwrap_or_else(|| ended.to_string()),
        }
    }

    /// Waits until `ready` returns true. Fails if the program ends or takes too long.
    pub fn wait_until(
        &mut self,
        cancel: &Cancel,
        mut ready: impl FnMut() -> bool,
    ) -> Result<(), ArmError> {
        /// Maximum number of checks until the program must be ready.
        const LOOKS: u32 = 3000;
        for _ in 0..LOOKS {
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
            source: self
                .complaint()
                .unwrap_or_else(|| "it is not ready after 30 s".to_owned())
                .into(),
        })
    }

    /// Returns the error message from standard error, in one line: the text after the program's name or `ERROR:`,
    /// otherwise the first line. Some tools also print their version or usage.
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

fn read_start(path: &Path) -> String {
    let mut bytes = Vec::new();
    if let Ok(file) = File::open(path) {
        let _ = file.take(1 << 20).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
