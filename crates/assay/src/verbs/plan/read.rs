//! Reads inputs that several subcommands share: files, standard input, commands of this machine, and sizes and rates of
//! the command line.

use crate::input;
use crate::status::Unreadable;
use assay_host::{Host, Limits, LiveHost};
use assay_planner::{PlannerError, size};
use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

/// Maximum size of a recorded output in bytes; 100,000 snapshots take about 40 MB.
const LARGEST: u64 = 512 << 20;

/// Reads a file as text, or standard input for `-`. Bytes that are not UTF-8 become U+FFFD.
pub fn file(path: &Path) -> anyhow::Result<String> {
    let bytes = input::bytes(path, LARGEST, "recorded output")?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the standard output of a command on this machine.
pub fn command(argv: &[&str]) -> anyhow::Result<String> {
    let words: Vec<&OsStr> = argv.iter().map(OsStr::new).collect();
    let limits = Limits {
        timeout: Duration::from_secs(60),
    };
    let output = LiveHost.run(&words, limits).map_err(|error| {
        Unreadable(format!(
            "{error}. Record the output on that machine and give it as a file."
        ))
    })?;
    if !output.success() {
        return Err(Unreadable(format!("{}: {}", argv.join(" "), output.complaint())).into());
    }
    Ok(output.text())
}

/// Parses a size for clap.
pub fn size(text: &str) -> Result<u64, PlannerError> {
    size::parse_amount(text)
}

/// Parses a recordsize or volblocksize for clap.
pub fn block(text: &str) -> Result<u64, PlannerError> {
    size::parse_block(text)
}

/// Parses a rate for clap: `150MB/s`, `150MB`.
pub fn rate(text: &str) -> Result<u64, PlannerError> {
    size(text.strip_suffix("/s").unwrap_or(text))
}

/// Parses a fraction for clap: `80%` or `0.8`.
pub fn share(text: &str) -> Result<f64, PlannerError> {
    let (number, scale) = match text.strip_suffix('%') {
        Some(number) => (number, 100.0),
        None => (text, 1.0),
    };
    number
        .trim()
        .parse::<f64>()
        .ok()
        .map(|value| value / scale)
        .filter(|value| (0.0..=1.0).contains(value))
        .ok_or_else(|| {
            PlannerError::value(
                format!("`{}`", text.escape_debug()),
                "give a share such as 80% or 0.8",
            )
        })
}
