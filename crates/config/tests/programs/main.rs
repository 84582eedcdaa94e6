//! Compares complete configurations, with includes and scopes, with the output of the programs themselves. The
//! configurations are fixed difficult ones, and random ones that consist of difficult parts.
#![allow(clippy::disallowed_methods, reason = "a test asks real programs")]

mod dovecot;
mod nginx;
mod postfix;
mod samba;
mod ssh;
mod sysctl;

use assay_config::effective::files::{FileFault, Files};
use assay_config::effective::{Effective, Program, Trouble, read_effective};
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Output};

/// The files of this machine.
struct Disk;

fn fault(error: std::io::Error) -> FileFault {
    match error.kind() {
        std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => FileFault::Absent,
        _ => FileFault::Unreadable(error.to_string()),
    }
}

impl Files for Disk {
    fn read(&self, path: &Path) -> Result<Vec<u8>, FileFault> {
        std::fs::read(path).map_err(fault)
    }

    fn list(&self, dir: &Path) -> Result<Vec<OsString>, FileFault> {
        let entries = std::fs::read_dir(dir).map_err(fault)?;
        entries
            .map(|entry| entry.map(|entry| entry.file_name()).map_err(fault))
            .collect()
    }

    fn exists(&self, path: &Path) -> Result<bool, FileFault> {
        Ok(path.symlink_metadata().is_ok())
    }
}

fn read(program: Program, main: &Path) -> Effective {
    read_effective(program, main, &Disk).unwrap()
}

/// Returns whether the result contains a problem: the program would reject the configuration, or this crate did not
/// understand a part.
fn refused(ours: &Effective) -> bool {
    ours.problems.iter().any(|problem| {
        let absent = matches!(
            problem.trouble,
            Trouble::Unread {
                fault: FileFault::Absent,
                ..
            }
        );
        absent || !matches!(problem.trouble, Trouble::Unread { .. })
    })
}

/// Runs a program. If the program is not installed, prints a note and returns `None`.
fn ask(argv: &[&str]) -> Option<Output> {
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new(argv[0])
        .args(&argv[1..])
        .env("PATH", format!("{path}:/usr/sbin:/sbin"))
        .env("LC_ALL", "C")
        .output();
    if let Err(error) = &output {
        assay_testing::skipped(argv[0], format_args!("{}: {error}", argv[0]));
    }
    output.ok()
}

fn stdout(output: &Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Random numbers that are the same in every run, from xorshift with a fixed seed.
struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % limit
    }

    fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}
