//! Runs a command until it ends or its time limit expires.

use crate::error::{HostError, command_line};
use crate::process::{Dies, Keep, Leftovers, Running};
use crate::{CommandOutput, Limits, MAX_BYTES};
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Runs `program` with the arguments `argv[1..]`. The kernel kills the command when assay ends. Otherwise a command of
/// a killed assay could change something after a later assay has rolled everything back.
pub(crate) fn run(
    program: &Path,
    argv: &[&OsStr],
    limits: Limits,
) -> Result<CommandOutput, HostError> {
    let failed = |reason: String| HostError::Command {
        argv: command_line(argv),
        reason,
    };
    let begin = Instant::now();
    let mut command = Command::new(program);
    command
        .args(argv.iter().skip(1))
        .env("LC_ALL", "C")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .current_dir("/");
    let keep = Keep {
        stdout: MAX_BYTES,
        stderr: MAX_BYTES,
        leftovers: Leftovers::Leave,
    };
    let collected = Running::start(command, Dies::WithThread)
        .and_then(|running| {
            running.collect(keep, |look| {
                look.overfull || look.now - begin >= limits.timeout
            })
        })
        .map_err(|error| failed(error.to_string()))?;
    if collected.overfull {
        return Err(failed(format!("wrote more than {} MiB", MAX_BYTES >> 20)));
    }
    if collected.stopped {
        return Err(HostError::Timeout {
            argv: command_line(argv),
            limit: limits.timeout,
        });
    }
    Ok(CommandOutput {
        status: collected.ended.code(),
        stdout: collected.stdout,
        stderr: collected.stderr,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Host as _, LiveHost};
    use std::time::Duration;

    fn argv<'a>(words: &'a [&'a str]) -> Vec<&'a OsStr> {
        words.iter().map(OsStr::new).collect()
    }

    #[test]
    fn output_and_status_are_kept_apart() {
        let script = "echo out; echo err >&2; exit 3";
        let found = LiveHost
            .run(&argv(&["sh", "-c", script]), Limits::default())
            .unwrap();
        assert_eq!((found.status, found.text().as_str()), (3, "out\n"));
        assert_eq!(found.complaint(), "exit status 3: err");
    }

    #[test]
    fn much_output_on_both_pipes_does_not_block() {
        let script = "head -c 1000000 /dev/zero; head -c 1000000 /dev/zero >&2";
        let found = LiveHost
            .run(&argv(&["sh", "-c", script]), Limits::default())
            .unwrap();
        assert_eq!(
            (found.stdout.len(), found.stderr.len()),
            (1_000_000, 1_000_000)
        );
    }

    #[test]
    fn a_command_that_hangs_is_not_waited_for() {
        let limits = Limits {
            timeout: Duration::from_millis(200),
        };
        let error = LiveHost.run(&argv(&["sleep", "1000"]), limits).unwrap_err();
        assert!(matches!(error, HostError::Timeout { .. }), "{error}");
    }

    #[test]
    fn a_service_that_it_started_is_neither_waited_for_nor_killed() {
        // Like an old init script, whose service keeps both pipes open.
        let script = "sleep 1000 & echo $!";
        let found = LiveHost
            .run(&argv(&["sh", "-c", script]), Limits::default())
            .unwrap();
        let pid = found.text().trim().parse().unwrap();
        let service = crate::ProcessId::of(pid).expect("it runs on");
        crate::HostMut::kill(&LiveHost, service).unwrap();
    }

    #[test]
    fn endless_output_is_an_error_and_ends_it() {
        let error = LiveHost
            .run(&argv(&["yes"]), Limits::default())
            .unwrap_err();
        assert_eq!(error.to_string(), "yes: wrote more than 32 MiB");
    }

    #[test]
    fn a_command_that_is_not_installed_is_absent() {
        let error = LiveHost
            .run(&argv(&["assay-no-such-command"]), Limits::default())
            .unwrap_err();
        assert!(error.is_absent());
        assert_eq!(
            error.to_string(),
            "assay-no-such-command: command not found"
        );
    }

    #[test]
    fn speaks_english_and_reads_nothing() {
        let found = LiveHost
            .run(&argv(&["sh", "-c", "echo $LC_ALL; cat"]), Limits::default())
            .unwrap();
        assert_eq!(found.text(), "C\n");
    }
}
