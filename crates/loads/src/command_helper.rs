//! Runs command loads in a helper process, which is a second, small process of assay.
//!
//! The kernel copies the page tables of a process that starts a program with fork(2), because the program needs
//! `PR_SET_PDEATHSIG`. For a tuning session of 70 MB this takes 2.4 ms, within the measured time of the command. The
//! helper process has hardly any memory, so that its fork is cheap.
//!
//! The helper runs whole loads ([`crate::command::run`]): one line of JSON is one request or one result. It ends, and
//! kills the process group of the command, when assay requests this or ends. If the helper itself is killed, the kernel
//! kills the command.

use crate::Cancel;
use crate::command::{self, CommandRequest};
use crate::measured::{LOOK, LoadError, LoadResult};
use assay_host::process::{Dies, Running};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::Signal;
use std::fs::File;
use std::io::{self, BufRead, PipeReader, PipeWriter, Read as _, Write};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Maximum time between a cancellation and the result of the cancelled load.
const CANCEL_LIMIT: Duration = Duration::from_secs(3);

/// Starts the helper process when the first load runs, and restarts the helper if it has ended.
#[derive(Debug)]
pub struct CommandHelper {
    start: fn() -> Command,
    process: Mutex<Option<HelperProcess>>,
}

#[derive(Debug)]
struct HelperProcess {
    requests: PipeWriter,
    results: PipeReader,
    /// Declared last: the pipes close before the process is ended.
    running: Running,
}

impl CommandHelper {
    /// Creates a helper that does not run yet. `start` returns the command of a process that calls [`serve`].
    #[must_use]
    pub fn new(start: fn() -> Command) -> Self {
        Self {
            start,
            process: Mutex::new(None),
        }
    }

    /// Runs a load as [`command::run`] does. If the helper process cannot be used, this process runs the load.
    ///
    /// # Errors
    /// See [`command::run`].
    pub fn run(&self, request: &CommandRequest, cancel: &Cancel) -> Result<LoadResult, LoadError> {
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        let running = process
            .take()
            .map_or_else(|| HelperProcess::start((self.start)()), Ok);
        let done = running.and_then(|mut helper| Ok((helper.run(request, cancel)?, helper)));
        match done {
            Ok((result, helper)) => {
                // A cancelled helper has ended.
                *process = Some(helper).filter(|_| !cancel.is_cancelled());
                result
            }
            Err(_) => command::run(request, cancel),
        }
    }
}

impl HelperProcess {
    fn start(mut command: Command) -> io::Result<Self> {
        let (input, requests) = io::pipe()?;
        let (results, output) = io::pipe()?;
        command.stdout(output).stderr(Stdio::inherit());
        let input = File::from(OwnedFd::from(input));
        let running = Running::start_with_input(command, input, Dies::Asked)?;
        Ok(Self {
            requests,
            results,
            running,
        })
    }

    /// Runs a load. The outer error means that the helper process cannot be used.
    fn run(
        &mut self,
        request: &CommandRequest,
        cancel: &Cancel,
    ) -> io::Result<Result<LoadResult, LoadError>> {
        write_line(&mut self.requests, request)?;
        let mut line = Vec::new();
        let mut buffer = [0; 16 << 10];
        let mut cancelled: Option<Instant> = None;
        while line.last() != Some(&b'\n') {
            if cancel.is_cancelled() && cancelled.is_none() {
                self.running.signal(Signal::TERM);
                cancelled = Some(Instant::now());
            }
            if cancelled.is_some_and(|since| since.elapsed() > CANCEL_LIMIT) {
                return Err(io::ErrorKind::TimedOut.into());
            }
            if !self.wait_for_result()? {
                continue;
            }
            match self.results.read(&mut buffer) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) => line.extend_from_slice(&buffer[..n]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(serde_json::from_slice(&line)?)
    }

    /// Waits for a part of the result, at most [`LOOK`]. Returns whether a part can be read.
    fn wait_for_result(&self) -> io::Result<bool> {
        let time = Timespec {
            tv_sec: 0,
            tv_nsec: LOOK.subsec_nanos().into(),
        };
        let mut fds = [PollFd::new(&self.results, PollFlags::IN)];
        match poll(&mut fds, Some(&time)) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// Executes the requests of a [`CommandHelper`] until `requests` ends or `cancel` is set.
///
/// # Errors
/// A request cannot be read or parsed, or a result cannot be written.
pub fn serve(requests: impl BufRead, mut results: impl Write, cancel: &Cancel) -> io::Result<()> {
    for line in requests.lines() {
        let request: CommandRequest = serde_json::from_str(&line?)?;
        write_line(&mut results, &command::run(&request, cancel))?;
        if cancel.is_cancelled() {
            break;
        }
    }
    Ok(())
}

fn write_line(output: &mut impl Write, value: &impl serde::Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    output.write_all(&line)?;
    output.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measured::Timing;
    use assay_model::Nanos;
    use assay_model::load::PrintedFigure;
    use assay_model::sample::Operation;
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt as _;

    fn request(argv: &[&[u8]]) -> CommandRequest {
        CommandRequest {
            argv: argv
                .iter()
                .map(|word| OsString::from_vec(word.to_vec()))
                .collect(),
            prints: None,
            timing: Timing {
                washout: Nanos(0),
                runtime: Nanos(50_000_000),
                limit: Nanos(20_000_000_000),
            },
        }
    }

    /// Plays the role of the helper process for the tests below.
    #[test]
    fn helper() {
        if std::env::var_os("ASSAY_TEST_COMMAND_HELPER").is_none() {
            return;
        }
        let results = File::options().write(true).open("/proc/self/fd/3").unwrap();
        serve(io::stdin().lock(), results, &Cancel::default()).unwrap();
    }

    /// Starts this test program again. Its own output goes to file descriptor 1, and the results to 3.
    fn start() -> Command {
        let mut command = Command::new("sh");
        let script = "exec 3>&1 >/dev/null 2>&1; exec \"$0\" --exact command_helper::tests::helper --nocapture";
        command
            .args(["-c", script])
            .arg(std::env::current_exe().unwrap())
            .env("ASSAY_TEST_COMMAND_HELPER", "1");
        command
    }

    fn broken() -> Command {
        Command::new("/no/such/program")
    }

    fn runs(measured: &LoadResult) -> u64 {
        measured.worker.of(Operation::Run).unwrap().count
    }

    #[test]
    fn several_loads_run_in_one_helper_and_fail_as_they_do_here() {
        let helper = CommandHelper::new(start);
        let cancel = Cancel::default();
        let pid = || {
            let process = helper.process.lock().unwrap();
            process.as_ref().map(|process| process.running.pid())
        };
        let measured = helper.run(&request(&[b"sleep", b"0.01"]), &cancel).unwrap();
        assert!(
            runs(&measured) > 0 && measured.worker.of(Operation::Run).unwrap().lat.min > 9_000_000
        );
        let first = pid();
        assert!(first.is_some());
        for argv in [
            &[&b"/no/such/program"[..]][..],
            &[b"sh", b"-c", b"echo why >&2; exit 3"],
            &[b"sh", b"-c", b"kill -9 $$"],
            &[],
        ] {
            let here = command::run(&request(argv), &cancel).unwrap_err();
            let there = helper.run(&request(argv), &cancel).unwrap_err();
            assert_eq!(
                (here.kind(), here.to_string()),
                (there.kind(), there.to_string())
            );
        }
        let odd = request(&[b"test", b"\xff\n", b"=", b"\xff\n"]);
        assert!(runs(&helper.run(&odd, &cancel).unwrap()) > 0);
        let mut prints = request(&[b"echo", b"rate = 1500.1"]);
        prints.prints = Some(PrintedFigure {
            name: "rate".to_owned(),
            pattern: None,
        });
        let printed = helper.run(&prints, &cancel).unwrap();
        let printed = &printed.worker.of(Operation::Run).unwrap().printed;
        assert!(printed.iter().all(|figure| (figure - 1500.1).abs() < 1e-9));
        assert_eq!(pid(), first);
    }

    #[test]
    fn without_a_usable_helper_the_load_runs_here() {
        let helper = CommandHelper::new(broken);
        let measured = helper
            .run(&request(&[b"true"]), &Cancel::default())
            .unwrap();
        assert!(runs(&measured) > 0);
        // A killed helper.
        let helper = CommandHelper::new(start);
        helper
            .run(&request(&[b"true"]), &Cancel::default())
            .unwrap();
        helper
            .process
            .lock()
            .unwrap()
            .as_mut()
            .unwrap()
            .running
            .kill()
            .unwrap();
        let measured = helper
            .run(&request(&[b"true"]), &Cancel::default())
            .unwrap();
        assert!(runs(&measured) > 0);
    }

    #[test]
    fn cancelling_ends_the_load_and_the_helper() {
        let helper = CommandHelper::new(start);
        let cancel = Cancel::default();
        let later = cancel.clone();
        let thread = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(200));
            later.cancel();
        });
        // The helper of this test has no handler, so that the signal ends it: the load is cancelled here.
        let measured = helper.run(&request(&[b"sleep", b"100"]), &cancel).unwrap();
        assert!(measured.cancelled);
        thread.join().unwrap();
    }
}
