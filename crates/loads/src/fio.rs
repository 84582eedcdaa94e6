//! Runs fio as the load generator. Finds fio, checks its version, and runs it as a child process that ends with assay.

mod log;

use crate::Cancel;
use assay_host::process::{Dies, Running};
use assay_host::{Host, HostError, Limits};
use assay_model::sample::RatePoint;
use assay_model::workload::Engine;
use assay_model::{Bytes, Nanos};
use rustix::process::Signal;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Oldest version of fio that has all options which assay uses: `sync=dsync` was added in 3.23 (fio commit eb9f8d7f).
pub const OLDEST: (u32, u32) = (3, 23);
/// Newest version of fio whose result format was tested.
pub const NEWEST: (u32, u32) = (3, 42);

/// A fio that is installed and whose version is supported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fio {
    /// Path of the executable.
    pub program: PathBuf,
    /// Version as fio prints it: `fio-3.33`.
    pub version: String,
    /// Warning if fio is newer than [`NEWEST`]; else `None`.
    pub remark: Option<String>,
}

/// Reason why fio cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FioError {
    /// fio is not installed.
    #[error(
        "fio is not installed; it is the load generator: `apt install fio` (Debian, Ubuntu, Proxmox) or `dnf install fio` (Fedora, RHEL)"
    )]
    Missing,
    /// fio cannot be started.
    #[error("{program}: cannot be started: {source}")]
    Start {
        /// Path of the executable.
        program: PathBuf,
        /// Error of the kernel.
        source: io::Error,
    },
    /// The output of `--version` cannot be parsed, or the version is too old.
    #[error("`{program} --version` answers `{answer}`: assay needs fio {}.{} or newer", OLDEST.0, OLDEST.1)]
    Version {
        /// Path of the executable.
        program: PathBuf,
        /// First line of the output.
        answer: String,
    },
    /// This fio does not support an I/O engine that the job needs.
    #[error(
        "{version} has no engine `{engine}`{}: its own answer is `{answer}`",
        match *engine { "nbd" => "; on Fedora and RHEL it is in the package fio-engine-nbd, Debian 12's fio has it built in", _ => "" }
    )]
    Engine {
        /// Version as fio prints it.
        version: String,
        /// Name of the engine.
        engine: &'static str,
        /// Error message of fio.
        answer: String,
    },
    /// The work directory cannot be used.
    #[error("{path}: {source}")]
    Io {
        /// Path of the file or directory.
        path: PathBuf,
        /// Error of the kernel.
        source: io::Error,
    },
}

/// How a fio process ended, whatever its result is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FioEnd {
    /// fio exited with this status; 128 + signal if a signal ended fio.
    Exited(i32),
    /// The user interrupted the run.
    Cancelled,
    /// fio was killed because it exceeded the time limit.
    TimedOut,
}

/// Result of a fio process after its end.
#[derive(Clone, Debug)]
pub struct FioOutput {
    /// Result in fio's JSON+ format; empty if fio wrote no result.
    pub json: Vec<u8>,
    /// Standard error of fio, at most 64 KiB.
    pub stderr: String,
    /// How the process ended.
    pub ended: FioEnd,
    /// Time from the start of the process to its end.
    pub wall: Nanos,
    /// User and system CPU time of the process; `None` if fio ran in a guest.
    pub cpu: Option<Nanos>,
    /// Rate over time, as the sum of all jobs.
    pub series: Vec<RatePoint>,
}

/// Parameters of one run of fio.
#[derive(Clone, Debug)]
pub struct FioRequest<'a> {
    /// Text of the job file for fio.
    pub job: &'a str,
    /// Directory for the job file, the result and the logs. Relative file names in the job refer to this directory.
    pub work_dir: &'a Path,
    /// Time between two points of the rate log.
    pub log_every: Nanos,
    /// Size of each I/O in bytes.
    pub block: Bytes,
    /// Time limit, after which fio is killed.
    pub limit: Nanos,
}

fn parse_version(answer: &str) -> Option<(u32, u32)> {
    let numbers = answer.trim().strip_prefix("fio-")?;
    let mut parts = numbers.split(['.', '-']);
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

impl Fio {
    /// Finds fio on PATH, or uses `program`. Checks the version.
    ///
    /// # Errors
    /// fio is missing or too old, or the program is not fio.
    pub fn find(host: &dyn Host, program: Option<&Path>) -> Result<Self, FioError> {
        let program = program.unwrap_or(Path::new("fio")).to_owned();
        let argv = [program.as_os_str(), OsStr::new("--version")];
        let output = host
            .run(&argv, Limits::default())
            .map_err(|error| match error {
                HostError::NoCommand { .. } | HostError::NotFound { .. } => FioError::Missing,
                error => FioError::Version {
                    program: program.clone(),
                    answer: error.reason(),
                },
            })?;
        let answer = String::from_utf8_lossy(&output.stdout);
        let answer = answer.lines().next().unwrap_or_default().trim().to_owned();
        match parse_version(&answer) {
            Some(version) if version >= OLDEST => Ok(Self {
                remark: (version > NEWEST).then(|| {
                    format!(
                        "{answer} is newer than fio {}.{}, the newest whose results this assay knows",
                        NEWEST.0, NEWEST.1
                    )
                }),
                program,
                version: answer,
            }),
            _ => Err(FioError::Version { program, answer }),
        }
    }

    /// Checks whether this fio supports an I/O engine, by making fio list the options of the engine.
    ///
    /// # Errors
    /// [`FioError::Engine`] if fio does not support the engine.
    pub fn has_engine(&self, host: &dyn Host, engine: Engine) -> Result<(), FioError> {
        let Some(name) = engine.fio() else {
            return Ok(());
        };
        let help = format!("--enghelp={name}");
        let argv = [self.program.as_os_str(), OsStr::new(&help)];
        let answer = match host.run(&argv, Limits::default()) {
            Ok(output) if output.success() => return Ok(()),
            Ok(output) => output.complaint(),
            Err(error) => error.reason(),
        };
        Err(FioError::Engine {
            version: self.version.clone(),
            engine: name,
            answer,
        })
    }

    /// Returns the asynchronous I/O engine that works on this machine. This is io_uring if fio and the kernel support
    /// it (containers often forbid it), else libaio.
    #[must_use]
    pub fn best_engine(&self, work_dir: &Path, cancel: &Cancel) -> Engine {
        let probe = work_dir.join("probe");
        let request = FioRequest {
            job: "[probe]\nfilename=probe\nioengine=io_uring\nrw=read\nbs=4096\nsize=4096\nthread=1\n",
            ..self.small(work_dir)
        };
        let works = File::create(&probe)
            .and_then(|file| file.set_len(4096))
            .is_ok()
            && self
                .run(&request, cancel)
                .is_ok_and(|output| output.ended == FioEnd::Exited(0));
        let _ = fs::remove_file(&probe);
        if works {
            Engine::IoUring
        } else {
            Engine::Libaio
        }
    }

    /// Measures how long fio takes to start, prepare and end, with its null engine. Each sample takes this additional
    /// time.
    ///
    /// # Errors
    /// fio cannot be started, or fails on the simplest job.
    pub fn overhead(&self, work_dir: &Path, cancel: &Cancel) -> Result<Nanos, FioError> {
        let request = FioRequest {
            job: "[overhead]\nioengine=null\nthread=1\nsize=4096\nbs=4096\nrw=read\n",
            ..self.small(work_dir)
        };
        Ok(self.run(&request, cancel)?.wall)
    }

    /// Returns a job that does almost nothing.
    fn small<'a>(&self, work_dir: &'a Path) -> FioRequest<'a> {
        FioRequest {
            job: "",
            work_dir,
            log_every: Nanos(100_000_000),
            block: Bytes(4096),
            limit: Nanos(20_000_000_000),
        }
    }

    /// Runs one job file to its end.
    ///
    /// # Errors
    /// fio could not be started. If fio started, [`FioOutput::ended`] contains how it ended.
    pub fn run(&self, request: &FioRequest<'_>, cancel: &Cancel) -> Result<FioOutput, FioError> {
        let dir = request.work_dir;
        let [job, json, stderr] = ["job.fio", "result.json", "stderr"].map(|name| dir.join(name));
        let io = |path: &Path| {
            let path = path.to_owned();
            move |source| FioError::Io { path, source }
        };
        fs::write(&job, request.job).map_err(io(&job))?;
        let _ = fs::remove_file(&json);
        log::remove(dir);
        let errors = File::create(&stderr).map_err(io(&stderr))?;
        let mut command = Command::new(&self.program);
        command
            .current_dir(dir)
            .args([
                "--output-format=json+",
                "--output=result.json",
                "--eta=never",
            ])
            .arg(format!("--write_bw_log={}", log::PREFIX))
            .arg(format!(
                "--log_avg_msec={}",
                (request.log_every.0 / 1_000_000).max(1)
            ))
            .arg("--allow_mounted_write=0")
            .arg("job.fio")
            .stdout(Stdio::null())
            .stderr(errors);
        let start = Instant::now();
        // Jobs run as threads (`thread=1`), so killing the process ends all of them.
        let running = Running::start(command, Dies::WithThread);
        let running = running.map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => FioError::Missing,
            _ => FioError::Start {
                program: self.program.clone(),
                source,
            },
        })?;
        let waited = wait(running, start, request.limit, cancel);
        let (ended, cpu) = waited.map_err(io(&self.program))?;
        Ok(FioOutput {
            wall: start.elapsed().into(),
            json: fs::read(&json).unwrap_or_default(),
            stderr: read_start(&stderr),
            ended,
            cpu: Some(cpu),
            series: log::read(dir, request.log_every, request.block),
        })
    }
}

/// Waits until fio ends. After the time limit or a cancellation, first sends SIGINT, so that fio can still write its
/// result. Then kills fio if it does not end.
fn wait(
    mut running: Running,
    start: Instant,
    limit: Nanos,
    cancel: &Cancel,
) -> io::Result<(FioEnd, Nanos)> {
    /// Time limit for fio to write its result after SIGINT.
    const END_LIMIT: Duration = Duration::from_secs(5);
    /// Maximum time until a cancellation by a signal handler is noticed.
    const LOOK: Duration = Duration::from_millis(200);
    let limit = Duration::from(limit);
    let mut asked: Option<(Instant, FioEnd)> = None;
    while !running.wait(LOOK)? {
        let now = Instant::now();
        match asked {
            None if cancel.is_cancelled() => asked = Some((now, FioEnd::Cancelled)),
            None if now - start > limit => asked = Some((now, FioEnd::TimedOut)),
            Some((since, _)) if now - since > END_LIMIT => {
                running.signal(Signal::KILL);
                continue;
            }
            _ => continue,
        }
        running.signal(Signal::INT);
    }
    let ended = running.reap()?;
    // A process that ended by itself after our signal still counts as interrupted.
    let why = asked.map_or(FioEnd::Exited(ended.code()), |(_, why)| why);
    Ok((why, ended.cpu.into()))
}

fn read_start(path: &Path) -> String {
    let mut bytes = Vec::new();
    if let Ok(file) = File::open(path) {
        let _ = file.take(64 << 10).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns fio's own error message in one line. This is the first line of standard error that reports an error, else
/// the first line.
#[must_use]
pub fn find_complaint(stderr: &str) -> Option<&str> {
    let mut lines = stderr
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty());
    let bad = |line: &str| {
        let lower = line.to_ascii_lowercase();
        [
            "error",
            "fail",
            "denied",
            "no space",
            "not supported",
            "invalid",
            "bad option",
        ]
        .iter()
        .any(|word| lower.contains(word))
    };
    lines
        .clone()
        .find(|line| bad(line))
        .or_else(|| lines.next())
}

#[cfg(test)]
mod tests;
