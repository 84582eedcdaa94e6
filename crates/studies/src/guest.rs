//! Operations in guests that several benches need.

use crate::StudyError;
use assay_fio::json::FioDocument;
use assay_host::Limits;
use assay_lab::{Accel, Guest};
use std::ffi::OsStr;
use std::time::Duration;

/// Runs a command in a guest and returns its output.
///
/// # Errors
/// The command fails or exceeds `limit`, or the guest is gone.
pub fn run_command(guest: &Guest, argv: &[&str], limit: Duration) -> Result<String, StudyError> {
    let words: Vec<&OsStr> = argv.iter().map(OsStr::new).collect();
    let output = guest.run(&words, Limits { timeout: limit })?;
    match output.success() {
        true => Ok(output.text()),
        false => Err(StudyError::measure(argv.join(" "), output.complaint())),
    }
}

/// Runs a job file in a guest and returns fio's result.
///
/// # Errors
/// fio fails, prints no result or exceeds `limit`, or the guest is gone.
pub fn run_fio(guest: &Guest, job: &str, limit: Duration) -> Result<FioDocument, StudyError> {
    let fail = |reason: &dyn std::fmt::Display| StudyError::measure("fio", reason);
    let output = guest.fio(job, limit)?;
    if !output.success() {
        return Err(fail(&output.complaint()));
    }
    let mut documents = assay_fio::json::parse(output.stdout).map_err(|error| fail(&error))?;
    documents.pop().ok_or_else(|| fail(&"it printed no result"))
}

/// Returns a description of a guest for the study's record, as names and values.
#[must_use]
pub fn describe_guest(guest: &Guest) -> Vec<(String, String)> {
    let entry = guest.entry();
    let accel = match guest.accel().accel {
        Accel::Kvm => "KVM".to_owned(),
        Accel::Tcg => match &guest.accel().why {
            Some(why) => format!("emulated (TCG): {why}"),
            None => "emulated (TCG)".to_owned(),
        },
    };
    let mut lines = vec![
        ("guest".to_owned(), accel),
        (
            "guest memory".to_owned(),
            format!("{} MiB, {} processors", entry.memory_mib, entry.cpus),
        ),
    ];
    for (name, argv) in [
        ("guest kernel", &["uname", "-sr"][..]),
        ("fio", &["fio", "--version"]),
    ] {
        if let Ok(text) = run_command(guest, argv, Duration::from_secs(60)) {
            lines.push((name.to_owned(), text.trim().to_owned()));
        }
    }
    lines
}

/// Returns whether a guest is emulated, and not virtualised with KVM.
#[must_use]
pub fn is_emulated(guest: &Guest) -> bool {
    guest.accel().accel == Accel::Tcg
}
