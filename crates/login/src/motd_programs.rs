//! Times the programs of /etc/update-motd.d one by one, as pam_motd runs them.

use crate::LoginError;
use crate::pipe::{PipeOutput, ProgramLines};
use assay_model::Nanos;
use serde::Serialize;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Directory of the programs.
const DIRECTORY: &str = "/etc/update-motd.d";
/// Search path that pam_motd sets.
const SEARCH_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Time of a program of pam_motd.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct MotdProgramTime {
    /// Path of the program.
    pub program: PathBuf,
    /// Time of the program. If the program was killed at the time limit, it would have taken longer.
    pub took: Nanos,
    /// Whether the program was killed because it exceeded the time limit.
    pub is_cut: bool,
}

/// Lists the programs in the order in which pam_motd runs them. Leaves out names with characters that run-parts(8) does
/// not accept.
#[must_use]
pub fn list_motd_programs() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(DIRECTORY).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| {
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
            let name = path.file_name().and_then(|name| name.to_str());
            let mode =
                std::fs::metadata(path).map(|found| (found.is_file(), found.permissions().mode()));
            name.is_some_and(|name| name.chars().all(plain))
                && mode.is_ok_and(|(is_file, mode)| is_file && mode & 0o111 != 0)
        })
        .collect();
    found.sort();
    found
}

/// Runs a program, discards its output, and returns its time.
///
/// # Errors
/// The user interrupted.
pub fn time_motd_program(
    program: &Path,
    limit: Duration,
    stop: &dyn Fn() -> bool,
) -> Result<MotdProgramTime, LoginError> {
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("PATH", SEARCH_PATH)
        .current_dir("/");
    let begin = Instant::now();
    let mut is_cut = false;
    // A program that does not start is passed over by run-parts as well.
    if let Ok(mut lines) = ProgramLines::start(command) {
        while let Ok((_, came)) = lines.next(begin + limit, stop) {
            match came {
                PipeOutput::Line(..) => {}
                PipeOutput::Ended => break,
                PipeOutput::Late => {
                    is_cut = true;
                    break;
                }
                PipeOutput::Stopped => return Err(LoginError::Interrupted),
            }
        }
    }
    Ok(MotdProgramTime {
        program: program.to_owned(),
        took: begin.elapsed().into(),
        is_cut,
    })
}
