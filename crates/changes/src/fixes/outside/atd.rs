//! atd: submits a job that runs in the next minute. Each job submits the following job. Jobs survive a reboot, and atd
//! runs overdue jobs late.

use super::{OutsideError, WatchedChange, absent_is_fine, write_file};
use crate::fixes::program::find_processes;
use assay_host::process::{Dies, Running};
use assay_host::{HostMut, Limits};
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read as _, Seek as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Name of the file that contains the number of the current job.
pub(super) const JOB: &str = "job";
const LIMIT: Duration = Duration::from_secs(30);

/// Checks whether atd runs.
pub(super) fn check_running(host: &dyn HostMut) -> Result<(), String> {
    match host.which(OsStr::new("at")).is_some() && !find_processes(host, "atd").is_empty() {
        true => Ok(()),
        false => Err("no atd runs".to_owned()),
    }
}

/// Maximum number of attempts to submit a job. Without a job, no further check would follow.
const ATTEMPTS: usize = 3;

/// Submits the job for the next check. The new job is submitted before the old one is removed, so that a job always
/// exists, even after a failure or a kill.
pub(super) fn enter_next_job(
    order: &WatchedChange,
    dir: &Path,
    host: &dyn HostMut,
) -> Result<(), OutsideError> {
    let path = dir.join(JOB);
    let mut entered = enter_job(order);
    for _ in 1..ATTEMPTS {
        if entered.is_ok() {
            break;
        }
        entered = enter_job(order);
    }
    let job = entered.map_err(OutsideError::file(Path::new("at")))?;
    remove_job(dir, host);
    write_file(&path, job.as_bytes(), 0o600).map_err(OutsideError::file(&path))
}

fn enter_job(order: &WatchedChange) -> io::Result<String> {
    let command = order.command();
    let program = command.split(' ').next().unwrap_or_default();
    let script = format!("[ -x {program} ] || exit 0\nexec {command} >/dev/null 2>&1\n");
    let mut answer = file_in_memory()?;
    let mut at = Command::new("at");
    at.args(["-M", "now", "+", "1", "minute"])
        .current_dir("/")
        .env_clear()
        .env(
            "PATH",
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        )
        .env("HOME", "/root")
        .stdout(Stdio::null())
        .stderr(answer.try_clone()?);
    let mut running = Running::start_with_bytes(at, script.as_bytes(), Dies::WithThread)?;
    if !running.wait(LIMIT)? {
        running.kill()?;
        return Err(io::Error::other("no answer"));
    }
    let success = running.reap()?.success();
    let mut text = String::new();
    answer.rewind()?;
    answer.read_to_string(&mut text)?;
    match (success, job_number(&text)) {
        (true, Some(number)) => Ok(number),
        _ => Err(io::Error::other(text.trim().to_owned())),
    }
}

/// Parses the number in `job 7 at Wed Nov 25 10:50:00 2026`.
fn job_number(answer: &str) -> Option<String> {
    let line = answer.lines().find_map(|line| line.strip_prefix("job "))?;
    let number = line.split(' ').next()?;
    number
        .bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| number.to_owned())
}

/// Creates an unnamed file for the output of `at`.
fn file_in_memory() -> io::Result<fs::File> {
    let flags = rustix::fs::MemfdFlags::CLOEXEC;
    Ok(fs::File::from(rustix::fs::memfd_create("answer", flags)?))
}

/// Removes the current job.
pub(super) fn remove_job(dir: &Path, host: &dyn HostMut) {
    let path = dir.join(JOB);
    if let Ok(job) = fs::read_to_string(&path) {
        let argv = [OsStr::new("atrm"), OsStr::new(job.trim())];
        let _ = host.run(&argv, Limits { timeout: LIMIT });
        let _ = absent_is_fine(fs::remove_file(&path));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_job() {
        let answer =
            "warning: commands will be executed using /bin/sh\njob 7 at Wed Nov 25 10:50:00 2026\n";
        assert_eq!(job_number(answer).as_deref(), Some("7"));
        assert_eq!(job_number("job x at\n"), None);
        assert_eq!(
            job_number("Can't open /var/run/atd.pid to signal atd. No atd running?\n"),
            None
        );
    }
}
