//! Helpers for tests: how a test reports that it was skipped, or how many attacks it tried.
//!
//! A test that cannot run calls [`skipped`]. A test that attacks assay reports the number of attempts with
//! [`attacked`]. `cargo test` hides the output of a passing test, so both reports are also written to the file that
//! `ASSAY_TEST_NOTES` names. `scripts/test` and `scripts/attack` print tables from this file.
#![allow(
    clippy::disallowed_methods,
    reason = "tests write their notes to a file that the caller names"
)]

pub mod servers;
use std::ffi::OsStr;
use std::fmt::Display;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

/// Reports that a test does not run because `part` is missing. `part` is a short name such as `fio`, `root` or
/// `guest-image`; `why` is the reason as text for people.
///
/// With `ASSAY_NO_SKIP=1`, a skipped test fails. The exceptions are parts that this machine cannot have;
/// `ASSAY_MAY_SKIP` lists them, separated by commas.
///
/// # Panics
/// The test must not be skipped.
pub fn skipped(part: &str, why: impl Display) {
    eprintln!("skipped: {part}: {why}");
    note(&format!("skipped\t{part}\t{why}\t{}", test_name()));
    let variable = |name| std::env::var(name).unwrap_or_default();
    if variable("ASSAY_NO_SKIP") == "1" {
        let allowed = variable("ASSAY_MAY_SKIP");
        assert!(
            allowed.split(',').any(|may| may == part),
            "skipped for want of `{part}` ({why}), and ASSAY_NO_SKIP=1 allows that only for `{allowed}`"
        );
    }
}

/// Reports how many attacks were tried, and how many of them assay withstood.
///
/// # Panics
/// No attack was tried, or an attack succeeded.
pub fn attacked(name: &str, tried: u64, held: u64) {
    println!("attack: {name}: tried {tried}, held {held}");
    note(&format!("attack\t{name}\t{tried}\t{held}"));
    hold(name, tried, held);
}

fn hold(name: &str, tried: u64, held: u64) {
    assert!(tried > 0, "{name}: no attack was tried");
    assert_eq!(tried, held, "{name}: not all attacks were held");
}

/// Stops an attacking thread when the value is dropped, also after a panic. Otherwise a failing test would wait for its
/// attacker forever.
pub struct Stop<'a>(pub &'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Normalises output for a snapshot. Replaces each value that differs between runs, such as the test's directory, by
/// its placeholder, in the given order.
#[must_use]
pub fn normalize_output<K: AsRef<OsStr>>(said: impl Display, known: &[(K, &str)]) -> String {
    known.iter().fold(said.to_string(), |said, (thing, name)| {
        said.replace(&*thing.as_ref().to_string_lossy(), name)
    })
}

/// Replaces every number by `#`, for snapshots of output with sizes, times or processes.
#[must_use]
pub fn without_figures(said: impl Display) -> String {
    let mut out = String::new();
    for character in said.to_string().chars() {
        match character {
            '0'..='9' if out.ends_with('#') => {}
            '0'..='9' => out.push('#'),
            other => out.push(other),
        }
    }
    out
}

/// Returns the factor for the number of attacks, from the environment variable `ASSAY_ATTACK`; at least 1.
#[must_use]
pub fn attack_factor() -> u64 {
    let given = std::env::var("ASSAY_ATTACK").ok();
    given.and_then(|text| text.parse().ok()).unwrap_or(1).max(1)
}

/// Returns the name of the running test, which the test harness uses as the name of the thread.
fn test_name() -> String {
    let thread = std::thread::current();
    let program = std::env::current_exe().ok();
    let program = program
        .as_deref()
        .and_then(|path| path.file_stem())
        .map(|name| name.to_string_lossy().into_owned());
    // Without the hash that Cargo appends.
    let program = program.unwrap_or_default();
    let program = program.rsplit_once('-').map_or(&*program, |(name, _)| name);
    format!("{program}::{}", thread.name().unwrap_or("?"))
}

fn note(line: &str) {
    let Some(path) = std::env::var_os("ASSAY_TEST_NOTES") else {
        return;
    };
    // One write, so that lines of several test programs do not interleave.
    let line = format!("{}\n", line.replace('\n', " "));
    let written = std::fs::File::options()
        .create(true)
        .append(true)
        .open(&path)
        .and_then(|mut file| file.write_all(line.as_bytes()));
    if let Err(error) = written {
        eprintln!("{}: {error}", path.display());
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn an_attack_that_was_not_held_fails() {
        for (tried, held) in [(2, 1), (0, 0)] {
            let failed = std::panic::catch_unwind(|| super::hold("no attack at all", tried, held));
            assert!(failed.is_err(), "{tried} {held}");
        }
    }
}
