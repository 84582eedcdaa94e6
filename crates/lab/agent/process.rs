//! Runs commands. Each command has its own process group, its output is sent immediately, and it is killed with its
//! group.

use crate::Answer;
use crate::files;
use crate::protocol::{CHUNK, Reply};
use std::ffi::OsString;
use std::io::{Read, Write as _};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// Interval at which the agent reports that a command still runs.
const HEARTBEAT: Duration = Duration::from_secs(5);

const SIGINT: i32 = 2;
const SIGKILL: i32 = 9;

enum Event {
    /// One of the two pipes reached its end.
    Eof,
    /// assay requests that the command is killed.
    Kill,
    /// assay requests that the command ends.
    Interrupt,
}

/// A running command of a guest.
pub struct Running {
    events: Sender<Event>,
    input: Option<Sender<Vec<u8>>>,
}

impl Running {
    /// Kills the command with its process group.
    pub fn kill(self) {
        let _ = self.events.send(Event::Kill);
    }

    /// Sends SIGINT to the command and its process group.
    pub fn interrupt(&self) {
        let _ = self.events.send(Event::Interrupt);
    }

    /// Passes `bytes` to standard input; empty `bytes` close it.
    pub fn input(&self, bytes: Vec<u8>) {
        if let Some(input) = &self.input {
            let _ = input.send(bytes);
        }
    }
}

/// Starts a command. Returns `None` if the command could not be started, after a reply with the reason.
pub fn start(
    argv: Vec<Vec<u8>>,
    limit: Option<Duration>,
    input: bool,
    answer: Answer,
) -> Option<Running> {
    let mut words = argv.into_iter().map(OsString::from_vec);
    let program = words.next().and_then(|name| files::which(&name));
    let Some(program) = program else {
        answer.send(&Reply::NoCommand);
        return None;
    };
    let stdin = if input { Stdio::piped() } else { Stdio::null() };
    let mut child = match Command::new(program)
        .args(words)
        .env("LC_ALL", "C")
        .env("HOME", "/root")
        .env("PATH", files::PATH)
        .current_dir("/")
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
    {
        Ok(child) => child,
        Err(error) => {
            answer.refuse(&error);
            return None;
        }
    };
    // The agent is protected from lack of memory, and that is inherited: what runs for assay has to
    // be killed before the system that it runs in.
    let _ = std::fs::write(format!("/proc/{}/oom_score_adj", child.id()), "0");
    let (events, received) = channel();
    pump(child.stdout.take(), Reply::Out, &answer, &events);
    pump(child.stderr.take(), Reply::Err, &answer, &events);
    let input = child.stdin.take().map(|stdin| feed(stdin, answer.clone()));
    std::thread::spawn(move || {
        let reply = supervise(&mut child, &received, limit, &answer);
        answer.send(&reply);
    });
    Some(Running { events, input })
}

/// Sends the output from a pipe until the end of the pipe.
fn pump(
    pipe: Option<impl Read + Send + 'static>,
    reply: fn(Vec<u8>) -> Reply,
    answer: &Answer,
    events: &Sender<Event>,
) {
    let (answer, events) = (answer.clone(), events.clone());
    std::thread::spawn(move || {
        let mut buffer = vec![0; CHUNK];
        if let Some(mut pipe) = pipe {
            while let Ok(count @ 1..) = pipe.read(&mut buffer) {
                answer.send(&reply(buffer[..count].to_vec()));
            }
        }
        let _ = events.send(Event::Eof);
    });
}

/// Writes standard input on a separate thread, so that a command that does not read cannot block the
/// port. assay sends the next piece only after the agent has confirmed the previous one.
fn feed(mut stdin: std::process::ChildStdin, answer: Answer) -> Sender<Vec<u8>> {
    let (sender, received) = channel::<Vec<u8>>();
    std::thread::spawn(move || {
        for bytes in received {
            // A command that closed its input ignores the rest, as in a pipe.
            if bytes.is_empty() || stdin.write_all(&bytes).is_err() {
                break;
            }
            answer.send(&Reply::Ready);
        }
    });
    sender
}

/// Waits for the end of both pipes and of the process. At the time limit, kills the process group.
fn supervise(
    child: &mut Child,
    events: &Receiver<Event>,
    limit: Option<Duration>,
    answer: &Answer,
) -> Reply {
    let mut told = Instant::now();
    let deadline = limit.map(|limit| Instant::now() + limit);
    let mut open = 2;
    let mut pause = Duration::from_micros(200);
    loop {
        if open == 0 {
            if let Ok(Some(status)) = child.try_wait() {
                let code = status.code();
                return Reply::Exit(code.unwrap_or_else(|| 128 + status.signal().unwrap_or(0)));
            }
            pause = (pause * 2).min(Duration::from_millis(20));
        }
        let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
        let wait = match open {
            0 => pause,
            _ => HEARTBEAT,
        };
        match events.recv_timeout(left.map_or(wait, |left| left.min(wait))) {
            Ok(Event::Eof) => open -= 1,
            Ok(Event::Interrupt) => signal_group(child, SIGINT),
            Ok(Event::Kill) => {
                kill_group(child);
                return Reply::Exit(128 + 9);
            }
            Err(RecvTimeoutError::Timeout) if left.is_some_and(|left| left <= wait) => {
                kill_group(child);
                return Reply::TimedOut;
            }
            Err(RecvTimeoutError::Timeout) => {
                if told.elapsed() >= HEARTBEAT {
                    told = Instant::now();
                    answer.send(&Reply::Alive);
                }
            }
            // Nobody holds the other end any more; both pipes are at their end.
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(pause),
        }
    }
}

/// Kills a command and its children, and reaps the command.
fn kill_group(child: &mut Child) {
    signal_group(child, SIGKILL);
    let _ = child.wait();
}

/// Sends a signal to a command and to its children.
fn signal_group(child: &Child, number: i32) {
    unsafe extern "C" {
        fn kill(pid: i32, signal: i32) -> i32;
    }
    if let Ok(pid) = i32::try_from(child.id()) {
        // SAFETY: kill(2) takes two numbers and touches no memory of ours. The child is not yet
        // waited for, so its number still is that of its group.
        unsafe { kill(-pid, number) };
    }
}
