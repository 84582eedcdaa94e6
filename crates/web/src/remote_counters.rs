//! Reads the counters of a server on another machine over one ssh session that stays open. A script for any POSIX shell
//! runs in the session. For each line that the script receives, it reads `/proc` and answers with the counters and the
//! time of the remote machine. Nothing is installed there, and the script ends with the session.
//!
//! The answers are untrusted text. Their size is limited, and an unexpected line ends the session. If the session ends,
//! the measurement continues, but the CPU time is unknown.

mod answers;
mod counters;

use crate::procfs;
use crate::server::ServerProcesses;
use answers::{Answer, Shared};
use assay_fleet::SessionError;
use assay_fleet::line::{Line, Lines};
use assay_fleet::session::{SessionFault, SshSession};
use assay_model::web::ServerUse;
use counters::Counters;
use std::io::{PipeWriter, Write as _};
use std::sync::atomic::Ordering;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Script that the remote shell runs.
const SCRIPT: &str = include_str!("remote_counters/script.sh");
/// Maximum number of bytes that the remote machine may print before the script's first line.
const MOST_BEFORE: usize = 1 << 20;
/// Interval at which `stop` is checked.
const LOOK: Duration = Duration::from_millis(100);

/// An ssh session with the server's machine.
#[derive(Debug)]
pub struct There {
    name: String,
    root: bool,
    /// Whether the remote machine is this machine under another host name.
    same: bool,
    to: Mutex<PipeWriter>,
    shared: Arc<Shared>,
}

/// Remote processes whose CPU time is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemoteCounted {
    /// The processes with these ids and their descendants.
    Processes(Vec<u32>),
    /// The processes of the control group with this path.
    Group(String),
}

/// A requested reading of the remote counters.
pub(crate) struct Asked {
    there: Arc<There>,
    number: Result<u64, String>,
    at: Instant,
    group: Option<String>,
}

impl PartialEq for There {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for There {}

impl Drop for There {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }
}

impl There {
    /// Logs in and starts the script. Checks `stop` several times a second.
    ///
    /// # Errors
    /// [`SessionError`], whose message contains a way to proceed.
    pub fn open(session: &SshSession, stop: &dyn Fn() -> bool) -> Result<Arc<Self>, SessionError> {
        assay_fleet::session::check_name(&session.host)?;
        let (mut line, mut to) = Line::start(session).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => session.failed(
                SessionFault::NoSsh,
                "there is no ssh here: install the OpenSSH client",
            ),
            _ => session.failed(SessionFault::Other, &format!("ssh: {error}")),
        })?;
        let mut lines = Lines::default();
        if to.write_all(SCRIPT.as_bytes()).is_err() {
            return Err(line.ended(session, b""));
        }
        let begun = Instant::now();
        let (uid, boot) = loop {
            if stop() {
                return Err(session.failed(SessionFault::Interrupted, "interrupted"));
            }
            if begun.elapsed() > session.deadline {
                let seconds = session.deadline.as_secs();
                let reason = format!("no answer after {seconds} s: --deadline gives it more time");
                return Err(session.failed(SessionFault::Deadline, &reason));
            }
            match line.heard.recv_timeout(LOOK) {
                Ok(bytes) => lines.push(&bytes),
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(line.ended(session, &lines.rest()));
                }
            }
            if lines.all() > MOST_BEFORE {
                let reason = "it prints more than 1 MiB before it does what it is asked: look at what its login shell prints";
                return Err(session.failed(SessionFault::TooMuch, reason));
            }
            if let Some(ready) = std::iter::from_fn(|| lines.next()).find_map(|text| ready(&text)) {
                break ready;
            }
        };
        if boot.is_empty() {
            let reason = "it has no /proc as Linux has, so its CPU time is not known";
            return Err(session.failed(SessionFault::Other, reason));
        }
        let own = procfs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let shared = Arc::<Shared>::default();
        let (reader, session) = (Arc::clone(&shared), session.clone());
        let name = session.failed(SessionFault::Other, "").host;
        std::thread::spawn(move || reader.read(line, lines, &session));
        Ok(Arc::new(Self {
            name,
            root: uid == 0,
            same: own.trim() == boot,
            to: Mutex::new(to),
            shared,
        }))
    }

    /// Returns the name of the remote machine, without control characters.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns why the session ended; `None` while it is open.
    #[must_use]
    pub fn gone(&self) -> Option<String> {
        self.shared.state().gone.clone()
    }

    /// Finds the processes that listen on a port of the remote machine.
    ///
    /// # Errors
    /// The remote user cannot see such a process. The text contains a way to proceed.
    pub fn listening(self: &Arc<Self>, port: u16) -> Result<ServerProcesses, String> {
        let answer = self.ask(&format!("listening {port:04X}"))?;
        let holders = counters::holders(&answer.lines)?;
        match holders {
            None => Err(format!(
                "nobody listens on port {port} there, in the network namespace of that login: --server-pid or --cgroup names the server"
            )),
            Some(pids) if !pids.is_empty() => Ok(self.counting(RemoteCounted::Processes(pids))),
            Some(_) if !self.root => Err(format!(
                "only root sees whose socket listens on port {port} there: log in as root, or say --sudo, or name the process with --server-pid"
            )),
            Some(_) => Err(format!("no process there holds the socket of port {port}")),
        }
    }

    /// Selects a process of the remote machine, with its descendants, for counting.
    ///
    /// # Errors
    /// The process cannot be read.
    pub fn process(self: &Arc<Self>, pid: u32) -> Result<ServerProcesses, String> {
        self.tried(RemoteCounted::Processes(vec![pid]))
            .map_err(|why| format!("--server-pid {pid}: {why}"))
    }

    /// Selects a control group (version 2) of the remote machine for counting.
    ///
    /// # Errors
    /// The group cannot be read.
    pub fn group(self: &Arc<Self>, path: &str) -> Result<ServerProcesses, String> {
        let path = ServerProcesses::group_path(path)
            .to_string_lossy()
            .into_owned();
        if path.len() > 4096 || path.contains(|c: char| c.is_control()) {
            return Err("--cgroup: a control group has no control characters in it".to_owned());
        }
        self.tried(RemoteCounted::Group(path.clone()))
            .map_err(|why| format!("{path}: {why}"))
    }

    /// Reads the counters once, to check that they can be read.
    fn tried(self: &Arc<Self>, counts: RemoteCounted) -> Result<ServerProcesses, String> {
        let answer = self.ask(&counts.question())?;
        Counters::read(&answer.lines)?;
        Ok(self.counting(counts))
    }

    fn counting(self: &Arc<Self>, counts: RemoteCounted) -> ServerProcesses {
        ServerProcesses::There(Arc::clone(self), counts)
    }

    fn ask(&self, question: &str) -> Result<Answer, String> {
        let number = self.begin(question)?;
        self.shared.answer(number)
    }

    /// Sends a request and returns its number, without waiting for the answer.
    fn begin(&self, question: &str) -> Result<u64, String> {
        let number = {
            let mut state = self.shared.state();
            if let Some(why) = &state.gone {
                return Err(why.clone());
            }
            state.last += 1;
            let number = state.last;
            state.asked.insert(number, Instant::now());
            number
        };
        let (what, rest) = question.split_once(' ').unwrap_or((question, ""));
        let mut to = self.to.lock().unwrap_or_else(PoisonError::into_inner);
        // Requests have a few hundred bytes and at most two are waiting, so the pipe has room for them.
        match writeln!(to, "{what} {number} {rest}") {
            Ok(()) => Ok(number),
            // The remote side has ended; its reader thread will know the reason.
            Err(_) => Err(self.shared.end_soon()),
        }
    }
}

impl RemoteCounted {
    fn question(&self) -> String {
        match self {
            Self::Processes(roots) => {
                let roots: Vec<String> = roots.iter().map(u32::to_string).collect();
                format!("processes {}", roots.join(" "))
            }
            Self::Group(path) => format!("group {path}"),
        }
    }
}

impl Asked {
    pub(crate) fn now(there: &Arc<There>, counts: &RemoteCounted) -> Self {
        let at = Instant::now();
        Self {
            there: Arc::clone(there),
            number: there.begin(&counts.question()),
            at,
            group: match counts {
                RemoteCounted::Group(path) => Some(format!("group {path}")),
                RemoteCounted::Processes(_) => None,
            },
        }
    }

    /// Returns how long the answer took. If there is no answer yet, returns how long the request has been waiting.
    pub(crate) fn took(&self) -> Duration {
        let Ok(number) = self.number else {
            return Duration::ZERO;
        };
        let state = self.there.shared.state();
        match state.answers.get(&number) {
            Some(answer) => answer.came - answer.asked,
            None if state.gone.is_some() => Duration::ZERO,
            None => self.at.elapsed(),
        }
    }

    /// Returns the resources that were used since the earlier reading `then`.
    pub(crate) fn since(&self, then: &Self) -> Result<ServerUse, String> {
        let answer = |asked: &Self| asked.there.shared.answer(asked.number.clone()?);
        let used = used(&answer(then)?, &answer(self)?)?;
        let what = self.group.as_ref().unwrap_or(&used.what);
        Ok(ServerUse {
            what: format!("{what} on {}", self.there.name),
            machine: used.machine.filter(|_| !self.there.same),
            ..used
        })
    }
}

/// Returns the resources that were used between two answers.
fn used(first: &Answer, last: &Answer) -> Result<ServerUse, String> {
    let window = between(first, last)?;
    let (then, now) = (Counters::read(&first.lines)?, Counters::read(&last.lines)?);
    let machine = now.machine_since(&then);
    let used = now.counted.since(&then.counted, window)?;
    let all = window.0 as f64 * f64::from(machine.cpus);
    // Allow one more tick at both ends.
    match used.cpu.0 as f64 > all * 1.05 + 50e6 {
        true => Err("it tells more CPU time than it has CPUs".to_owned()),
        false => Ok(ServerUse {
            machine: Some(machine),
            ..used
        }),
    }
}

/// Parses the bytes of the answers to requests 1 and 2, and returns the resources that were used between them. Assumes
/// that no local time passed between the requests. For tests.
///
/// # Errors
/// The bytes are not valid answers.
#[doc(hidden)]
pub fn told(bytes: &[u8]) -> Result<ServerUse, String> {
    let (shared, now) = (Shared::default(), Instant::now());
    shared.state().asked = [(1, now), (2, now)].into();
    let (mut lines, mut open) = (Lines::default(), None);
    lines.push(bytes);
    while let Some(text) = lines.next() {
        shared.take(&mut open, &text, now)?;
    }
    let answers = std::mem::take(&mut shared.state().answers);
    match &answers.into_values().collect::<Vec<Answer>>()[..] {
        [first, last] => {
            let _ = counters::holders(&first.lines);
            used(first, last)
        }
        _ => Err("there are not two answers".to_owned()),
    }
}

/// Returns the time between two readings by the remote clock. The remote time must be consistent with the local times,
/// because each reading happened between its request and its answer.
fn between(first: &Answer, last: &Answer) -> Result<assay_model::Nanos, String> {
    let up = |answer: &Answer| counters::up(&answer.lines);
    let window = up(last)?.checked_sub(up(first)?);
    let window = window.ok_or("its clock went backwards")?;
    let least = last.asked.saturating_duration_since(first.came);
    let most = last.came.saturating_duration_since(first.asked);
    // The remote clock has ticks of 10 ms (proc_uptime(5)).
    let slack = Duration::from_millis(30) + most / 100;
    if window + slack < least || window > most + slack || window.is_zero() {
        return Err(format!(
            "its clock went {:.2} s while {:.2} s to {:.2} s passed here",
            window.as_secs_f64(),
            least.as_secs_f64(),
            most.as_secs_f64()
        ));
    }
    // The request was sent early by the duration of the first one. If it takes much longer, the reading may be
    // later than the load.
    let (took, expected) = (last.came - last.asked, first.came - first.asked);
    let allowed = expected.min(window / 4) + window / 10 + Duration::from_millis(20);
    if took > allowed {
        return Err(format!(
            "its counters came {:.2} s after they were asked for, which may be behind the load: --seconds makes steps longer",
            took.as_secs_f64()
        ));
    }
    Ok(assay_model::Nanos::from(window))
}

/// Parses the script's first line, which contains the user id and the identity of the machine and of its boot.
fn ready(line: &str) -> Option<(u32, String)> {
    let (uid, boot) = line.strip_prefix("assay-counters 1 ")?.split_once(' ')?;
    Some((uid.parse().ok()?, boot.trim_end().to_owned()))
}
