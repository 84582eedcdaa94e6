//! Load that runs a command repeatedly and measures the time from spawn to exit.

use crate::Cancel;
use crate::measured::{Done, LoadError, LoadResult, Tally, Timing, finish, rest};
use crate::printed_figures::find_figure;
use assay_host::process::{Collected, Dies, Keep, Leftovers, Running};
use assay_model::Nanos;
use assay_model::load::PrintedFigure;
use assay_model::sample::Operation;
use assay_model::secrets;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Parameters of the load that runs a command.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CommandRequest {
    /// Program and arguments, without a shell.
    pub argv: Vec<OsString>,
    /// Figure to read from the command's output, in addition to the run time; `None` measures only the run time.
    pub prints: Option<PrintedFigure>,
    /// Duration of the load, and time limit of one run of the command.
    pub timing: Timing,
}

/// Runs the command repeatedly, one run at a time. Standard input is empty. The output is read and discarded, because
/// some programs do less work if their output goes to /dev/null. Background processes of a command are killed at its
/// end.
///
/// # Errors
/// The command does not exist, or no run succeeded. If some runs succeeded, the failed runs are in
/// `LoadResult::errors`.
pub fn run(request: &CommandRequest, cancel: &Cancel) -> Result<LoadResult, LoadError> {
    let Some(program) = request.argv.first() else {
        return Err(LoadError::Request {
            what: "command".to_owned(),
            why: "no program given".to_owned(),
        });
    };
    let program = program.to_string_lossy().into_owned();
    let begin = Instant::now();
    let mut tally = Tally::new(&request.timing, begin);
    let mut cpu = Duration::ZERO;
    while tally.goes_on(Instant::now()) && !cancel.is_cancelled() {
        let start = Instant::now();
        let running = start_command(&request.argv).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => LoadError::NoCommand {
                program: program.clone(),
            },
            _ => LoadError::Start {
                program: program.clone(),
                source,
            },
        })?;
        let limit = request.timing.limit;
        let keep = match request.prints {
            Some(_) => KEEP_OUTPUT,
            None => KEEP,
        };
        let collected = running.collect(keep, |look| {
            cancel.is_cancelled() || look.now - start >= Duration::from(limit)
        });
        let collected = collected.map_err(|source| LoadError::Io {
            what: "waiting for a command".into(),
            source,
        })?;
        if collected.stopped && cancel.is_cancelled() {
            break;
        }
        cpu += collected.ended.cpu;
        let mut done = judge(&collected, &program, limit);
        let mut printed = None;
        if let (Some(wanted), Ok(_)) = (&request.prints, &done) {
            match read_printed(wanted, &collected, &program) {
                Ok(value) => printed = Some(value),
                Err(error) => done = Err(error),
            }
        }
        let failed = done.is_err();
        if !failed {
            tally.record_complaint(find_complaint(&collected));
        }
        tally.record(start, collected.at, done);
        tally.record_printed(start, printed);
        if failed {
            rest(cancel);
        }
    }
    finish(
        ("command", Operation::Run),
        vec![tally],
        begin.elapsed(),
        cpu,
        cancel,
    )
}

/// Parts of the output that are kept, which are enough for an error message.
const KEEP: Keep = Keep {
    stdout: 4096,
    stderr: 4096,
    leftovers: Leftovers::Kill,
};

/// Part of standard output that is kept, which is enough for the report of a load generator.
const KEEP_OUTPUT: Keep = Keep {
    stdout: 4 << 20,
    stderr: 1 << 20,
    ..KEEP
};

/// Returns the first error message of a run that succeeded: a line of standard error, else a line of standard output
/// that mentions an error or a failure.
fn find_complaint(collected: &Collected) -> Option<String> {
    let errors = first_line(&collected.stderr, |_| true);
    let complains = |line: &str| {
        let line = line.to_ascii_lowercase();
        ["error", "fail", "fatal"]
            .iter()
            .any(|word| line.contains(word))
    };
    errors.or_else(|| first_line(&collected.stdout, complains))
}

/// Returns the first line that has text and fits, without secrets.
fn first_line(output: &[u8], fits: impl Fn(&str) -> bool) -> Option<String> {
    let text = String::from_utf8_lossy(output);
    let mut lines = text.lines().map(str::trim);
    let line = lines.find(|line| !line.is_empty() && fits(line))?;
    Some(secrets::withhold_in_text(line))
}

/// Returns the figure that a run printed. Searches standard output first, then standard error.
fn read_printed(
    wanted: &PrintedFigure,
    collected: &Collected,
    program: &str,
) -> Result<f64, LoadError> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (output, errors) = (text(&collected.stdout), text(&collected.stderr));
    find_figure(wanted, &output)
        .or_else(|why| find_figure(wanted, &errors).map_err(|_| why))
        .map_err(|why| LoadError::NoFigure {
            program: program.to_owned(),
            why,
        })
}

fn start_command(argv: &[OsString]) -> io::Result<Running> {
    let mut command = Command::new(&argv[0]);
    command
        .args(&argv[1..])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    Running::start(command, Dies::WithThread)
}

fn judge(collected: &Collected, program: &str, limit: Nanos) -> Done {
    if collected.stopped {
        return Err(LoadError::TimedOut {
            what: program.to_owned(),
            limit,
        });
    }
    if collected.ended.success() {
        return Ok(0);
    }
    Err(LoadError::Exit {
        program: program.to_owned(),
        status: collected.ended.to_string(),
        stderr: first_line(&collected.stderr, |_| true).unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    fn request(argv: &[&[u8]], washout: u64, runtime: u64) -> CommandRequest {
        CommandRequest {
            argv: argv
                .iter()
                .map(|a| OsStr::from_bytes(a).to_owned())
                .collect(),
            prints: None,
            timing: Timing {
                washout: Nanos(washout * 1_000_000),
                runtime: Nanos(runtime * 1_000_000),
                limit: Nanos(2_000_000_000),
            },
        }
    }

    #[test]
    fn a_real_command_is_counted() {
        let request = request(
            &[b"sh", b"-c", b"sleep 0.02; echo out; echo err >&2"],
            100,
            400,
        );
        let measured = run(&request, &Cancel::default()).unwrap();
        let io = measured.worker.of(Operation::Run).unwrap();
        assert!(io.count > 0 && io.lat.n == io.count && io.lat.histogram.count() == io.count);
        // A sleep lasts at least as long as requested.
        assert!(io.lat.min >= 20_000_000 && io.runtime.0 >= 20_000_000 * io.count);
        assert!(measured.cpu.0 > 0 && measured.errors.is_empty() && !measured.cancelled);
    }

    #[test]
    fn arguments_reach_the_command_as_they_are() {
        let dir = tempfile::tempdir().unwrap();
        let odd = dir.path().join(OsStr::from_bytes(b"a b;$(c)\\'\"\xff\n"));
        std::fs::write(&odd, "").unwrap();
        let request = request(&[b"test", b"-f", odd.as_os_str().as_bytes()], 0, 1);
        run(&request, &Cancel::default()).unwrap();
    }

    #[test]
    fn what_fails_says_how() {
        let missing = run(&request(&[b"/no/such/program"], 0, 1), &Cancel::default());
        assert!(matches!(missing, Err(LoadError::NoCommand { .. })));
        assert!(run(&request(&[], 0, 1), &Cancel::default()).is_err());
        let failing = request(&[b"sh", b"-c", b"echo ' why' >&2; exit 3"], 0, 20);
        let error = run(&failing, &Cancel::default()).unwrap_err();
        assert_eq!(error.to_string(), "sh: ended with exit status 3: why");
        let killed = request(&[b"sh", b"-c", b"kill -9 $$"], 0, 20);
        let error = run(&killed, &Cancel::default()).unwrap_err();
        assert_eq!(error.to_string(), "sh: ended with signal 9");
    }

    #[test]
    fn an_error_message_of_a_successful_run_is_kept() {
        let complaint = |script: &[u8]| {
            let measured = run(&request(&[b"sh", b"-c", script], 0, 1), &Cancel::default());
            let measured = measured.unwrap();
            measured
                .worker
                .of(Operation::Run)
                .unwrap()
                .complaint
                .clone()
        };
        let of = |script: &[u8]| complaint(script).unwrap_or_default();
        assert_eq!(of(b"echo; echo ' no cache' >&2"), "no cache");
        assert_eq!(of(b"echo done; echo 'Error: no cache'"), "Error: no cache");
        assert_eq!(complaint(b"echo 12 requests in 0.5 s"), None);
    }

    #[test]
    fn failures_among_successes_are_counted_apart() {
        let dir = tempfile::tempdir().unwrap();
        let flip = dir.path().join("flip");
        let script = b"rmdir \"$1\" 2>/dev/null || { mkdir \"$1\"; exit 1; }";
        let path = flip.as_os_str().as_bytes();
        let measured = run(
            &request(&[b"sh", b"-c", script, b"sh", path], 0, 200),
            &Cancel::default(),
        );
        let measured = measured.unwrap();
        assert_eq!(measured.errors[0].kind, "exit-status");
        insta::assert_snapshot!(measured.errors[0].first, @"sh: ended with exit status 1");
        let good = measured.worker.of(Operation::Run).unwrap().count;
        assert!(good.abs_diff(measured.errors[0].count) <= 1);
    }

    #[test]
    fn one_that_hangs_is_killed_with_what_it_started() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pid");
        let script = b"sleep 1000 & echo $! > \"$1\"; wait";
        let path = file.as_os_str().as_bytes();
        let mut hanging = request(&[b"sh", b"-c", script, b"sh", path], 0, 1);
        hanging.timing.limit = Nanos(300_000_000);
        let error = run(&hanging, &Cancel::default()).unwrap_err();
        assert!(matches!(error, LoadError::TimedOut { .. }), "{error}");
        let pid = std::fs::read_to_string(&file).unwrap();
        let stat = format!("/proc/{}/stat", pid.trim());
        // The kernel ends the process later; a zombie waits for its adoptive parent.
        while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z")) {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn much_output_does_not_block_it() {
        let request = request(&[b"head", b"-c", b"3000000", b"/dev/zero"], 0, 1);
        assert!(run(&request, &Cancel::default()).is_ok());
    }

    #[test]
    fn cancelling_ends_it() {
        let cancel = Cancel::default();
        let later = cancel.clone();
        let thread = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            later.cancel();
        });
        let mut request = request(&[b"sleep", b"100"], 0, 100);
        request.timing.limit = Nanos(200_000_000_000);
        let measured = run(&request, &cancel).unwrap();
        assert!(measured.cancelled && measured.worker.of(Operation::Run).unwrap().count == 0);
        thread.join().unwrap();
    }
}
