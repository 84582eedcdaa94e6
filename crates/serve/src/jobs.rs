//! Commands of assay that visitors started. Each command is a child process with an argument vector (no shell), is
//! stopped by SIGINT as with Ctrl-C, and is logged before it starts. If the server is killed, the kernel sends SIGTERM
//! to the child processes, which then revert their changes.

use crate::action_request::ActionRequest;
use crate::lock;
use assay_host::process::{Dies, Running};
use jiff::Timestamp;
use rustix::process::Signal;
use serde::Serialize;
use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::watch;

/// Maximum number of output lines of a job that are kept.
const MOST_LINES: usize = 400;
/// Maximum number of bytes of a line that are kept.
const MOST_LINE_BYTES: u64 = 4_096;
/// Maximum number of jobs in memory. The log contains all jobs.
const MOST_JOBS: usize = 200;
/// Maximum number of running jobs. At most one of them measures or changes the machine.
const MOST_RUNNING: usize = 8;
/// Interval between two checks whether a job has ended.
const INTERVAL: Duration = Duration::from_millis(100);

/// Configuration of the commands that visitors can start.
pub struct ActionOptions {
    /// Path of the assay executable that commands run.
    pub program: PathBuf,
    /// Store to which the commands write.
    pub store: PathBuf,
    /// Directory with the user's own advice; `None` without one.
    pub advice_dir: Option<PathBuf>,
    /// Path of the log, which contains who started and stopped which command.
    pub log: PathBuf,
}

/// A command that a visitor started, running or ended.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) id: usize,
    pub(crate) kind: &'static str,
    pub(crate) subject: String,
    /// Complete command line, for users.
    pub(crate) command: String,
    pub(crate) started: Timestamp,
    output: Mutex<JobOutput>,
    /// How often visitors have requested to stop the job.
    stops: AtomicUsize,
    /// Notifies the streams of the job when a line arrives or when the job ends.
    changes: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct JobOutput {
    lines: VecDeque<String>,
    /// Number of lines received, including lines that are no longer kept.
    count: usize,
    ended: Option<(Timestamp, String)>,
}

impl Job {
    /// Returns the number of lines received and the last lines. If the job has ended, also returns when and how.
    pub(crate) fn output(&self) -> (usize, Vec<String>, Option<(Timestamp, String)>) {
        let output = lock(&self.output);
        (
            output.count,
            output.lines.iter().cloned().collect(),
            output.ended.clone(),
        )
    }

    /// Returns the number of lines received, and the last line.
    pub(crate) fn last_line(&self) -> (usize, Option<String>) {
        let output = lock(&self.output);
        (output.count, output.lines.back().cloned())
    }

    /// Returns a receiver that is notified when a line arrives or when the job ends.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    pub(crate) fn is_running(&self) -> bool {
        lock(&self.output).ended.is_none()
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stops.load(Ordering::SeqCst) > 0
    }

    /// Returns whether the job measures or changes the machine. Only one such job runs at a time.
    fn is_exclusive(&self) -> bool {
        self.kind != "why"
    }
}

/// All jobs of a server, running and ended.
pub(crate) struct JobTable {
    options: ActionOptions,
    /// Secret that every form contains. A page of another site cannot read the secret, so it cannot send a valid form.
    pub(crate) form_token: String,
    jobs: Mutex<Vec<Arc<Job>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// Reason why a job was not started.
#[derive(Debug)]
pub(crate) enum StartRefusal {
    /// Another job is running that measures or changes the machine.
    Busy(Arc<Job>),
    /// The log cannot be written, or the program cannot be started.
    Failed(String),
}

#[derive(Serialize)]
struct LogLine<'a> {
    at: String,
    event: &'a str,
    /// Process id of the server, which distinguishes jobs of different servers. Each server numbers its jobs from 1.
    server: u32,
    job: usize,
    from: &'a str,
    command: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<&'a str>,
}

impl JobTable {
    /// Creates an empty table and opens the log.
    ///
    /// # Errors
    /// The kernel returns no random bytes, or the log cannot be opened.
    pub(crate) fn new(options: ActionOptions) -> io::Result<Self> {
        let mut secret = [0; 32];
        rustix::rand::getrandom(&mut secret, rustix::rand::GetRandomFlags::empty())?;
        open_log(&options.log)?;
        Ok(Self {
            options,
            form_token: blake3::hash(&secret).to_hex().to_string(),
            jobs: Mutex::default(),
            threads: Mutex::default(),
        })
    }

    /// Returns the jobs, the newest first.
    pub(crate) fn list(&self) -> Vec<Arc<Job>> {
        lock(&self.jobs).iter().rev().cloned().collect()
    }

    /// Returns the job with this id.
    pub(crate) fn find(&self, id: &str) -> Option<Arc<Job>> {
        let id: usize = id.parse().ok()?;
        lock(&self.jobs).iter().find(|job| job.id == id).cloned()
    }

    /// Returns the numbers of the running jobs.
    pub(crate) fn list_running(&self) -> Vec<usize> {
        let jobs = lock(&self.jobs);
        let running = jobs.iter().filter(|job| job.is_running());
        running.map(|job| job.id).collect()
    }

    /// Returns the running job of this kind; `None` if there is none.
    pub(crate) fn running(&self, kind: &str) -> Option<Arc<Job>> {
        let jobs = lock(&self.jobs);
        jobs.iter()
            .find(|job| job.kind == kind && job.is_running())
            .cloned()
    }

    /// Starts a command and logs it. `from` is the address of the visitor.
    ///
    /// # Errors
    /// Another job measures, or the command cannot be logged or started.
    pub(crate) fn start(
        self: &Arc<Self>,
        request: ActionRequest,
        from: &str,
    ) -> Result<Arc<Job>, StartRefusal> {
        let mut jobs = lock(&self.jobs);
        let mut words: Vec<std::ffi::OsString> = Vec::new();
        let mut own = request.words.iter();
        // Options that belong to the verb stand before `--`.
        words.extend(own.next().map(Into::into));
        words.extend(["--color".into(), "never".into()]);
        if let (Some(dir), "trial" | "tune") = (&self.options.advice_dir, request.kind) {
            words.extend(["--advice-dir".into(), dir.clone().into()]);
        }
        words.extend(own.map(Into::into));
        let shown = std::iter::once("assay").chain(request.words.iter().map(String::as_str));
        let job = Arc::new(Job {
            id: jobs.last().map_or(1, |job| job.id + 1),
            kind: request.kind,
            subject: request.subject,
            command: shell_words::join(shown),
            started: Timestamp::now(),
            output: Mutex::default(),
            stops: AtomicUsize::new(0),
            changes: watch::Sender::new(()),
        });
        let running: Vec<&Arc<Job>> = jobs.iter().filter(|one| one.is_running()).collect();
        let busy = match running.len() < MOST_RUNNING {
            true => running
                .iter()
                .find(|one| one.is_exclusive() && job.is_exclusive()),
            false => running.first(),
        };
        if let Some(busy) = busy {
            return Err(StartRefusal::Busy(Arc::clone(busy)));
        }
        self.log("start", &job, from, None)
            .map_err(|error| StartRefusal::Failed(format!("cannot write the log: {error}")))?;
        if jobs.len() >= MOST_JOBS {
            let oldest = jobs.iter().position(|job| !job.is_running());
            oldest.map(|at| jobs.remove(at));
        }
        let (table, this) = (self.clone(), job.clone());
        // The kernel signals the child when the thread that started it ends: this one lives as long as the child.
        let thread = std::thread::Builder::new()
            .name(format!("job-{}", job.id))
            .spawn(move || table.carry_out(&this, &words))
            .map_err(|error| StartRefusal::Failed(format!("cannot start a thread: {error}")))?;
        jobs.push(job.clone());
        let mut threads = lock(&self.threads);
        threads.retain(|thread| !thread.is_finished());
        threads.push(thread);
        Ok(job)
    }

    /// Stops a job as Ctrl-C does. Has no effect on a job that has ended.
    pub(crate) fn stop(&self, job: &Job, from: &str) {
        if !job.is_running() {
            return;
        }
        job.stops.fetch_add(1, Ordering::SeqCst);
        // The stop happens even if the disk with the log is full.
        let _ = self.log("stop", job, from, None);
    }

    /// Stops all jobs and waits until they have ended.
    pub(crate) fn end_all(&self) {
        for job in &self.list() {
            self.stop(job, "the end of the server");
        }
        let threads: Vec<_> = lock(&self.threads).drain(..).collect();
        for thread in threads {
            let _ = thread.join();
        }
    }

    fn carry_out(&self, job: &Job, words: &[std::ffi::OsString]) {
        let end = match self.run_child(job, words) {
            Ok(end) => end,
            Err(error) => format!("cannot start assay: {error}"),
        };
        let _ = self.log("end", job, "", Some(&end));
        lock(&job.output).ended = Some((Timestamp::now(), end));
        job.changes.send_replace(());
    }

    fn run_child(&self, job: &Job, words: &[std::ffi::OsString]) -> io::Result<String> {
        let (reader, writer) = io::pipe()?;
        let mut command = Command::new(&self.options.program);
        command
            .args(words)
            // A URL may contain a password, and every user can read the arguments of a process.
            .env("ASSAY_STORE", &self.options.store)
            .stdout(OwnedFd::from(writer.try_clone()?))
            .stderr(OwnedFd::from(writer));
        let mut running = Running::start(command, Dies::Asked)?;
        std::thread::scope(|scope| {
            scope.spawn(|| read_lines(reader, job));
            let mut signalled = 0;
            while !running.wait(INTERVAL)? {
                let stops = job.stops.load(Ordering::SeqCst);
                if stops > signalled {
                    signalled = stops;
                    running.signal(Signal::INT);
                }
            }
            let end = running.reap()?;
            Ok(end.to_string())
        })
    }

    fn log(&self, event: &str, job: &Job, from: &str, end: Option<&str>) -> io::Result<()> {
        let line = LogLine {
            at: Timestamp::now().to_string(),
            event,
            server: std::process::id(),
            job: job.id,
            from,
            command: &job.command,
            end,
        };
        let mut text = serde_json::to_string(&line)?;
        text.push('\n');
        let mut file = open_log(&self.options.log)?;
        file.write_all(text.as_bytes())?;
        file.sync_data()
    }
}

fn open_log(path: &Path) -> io::Result<File> {
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir)?;
    }
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(0o600);
    options.custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32);
    options.open(path)
}

fn read_lines(reader: io::PipeReader, job: &Job) {
    let mut reader = BufReader::new(reader);
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        let read = reader
            .by_ref()
            .take(MOST_LINE_BYTES)
            .read_until(b'\n', &mut bytes);
        if !matches!(read, Ok(1..)) {
            return;
        }
        let text = String::from_utf8_lossy(&bytes);
        let mut output = lock(&job.output);
        output
            .lines
            .push_back(assay_render::text::escape_line(text.trim_end()));
        output.count += 1;
        if output.lines.len() > MOST_LINES {
            output.lines.pop_front();
        }
        drop(output);
        job.changes.send_replace(());
    }
}
