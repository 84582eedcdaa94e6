//! Recordings: JSON Lines with a header and one snapshot on each line. Reading is strict: a damaged, too long or
//! misplaced line is an error with its line number.

use crate::machine_snapshot::MachineSnapshot;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, Read as _, Write};

/// Version of the format.
const FORMAT: u32 = 1;
/// Maximum length of a line in bytes.
const LONGEST_LINE: usize = 16 << 20;
/// Maximum number of snapshots.
const MOST_LOOKS: usize = 100_000;
/// Maximum size of a recording in bytes.
const MOST_BYTES: usize = 1 << 30;

/// The first line of a recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordingHeader {
    /// Version of the format.
    #[serde(rename = "assay-why")]
    pub format: u32,
    /// Name of the machine; not escaped.
    pub machine: String,
    /// Version of its kernel; not escaped.
    pub kernel: String,
    /// Time of the first snapshot in milliseconds since 1970.
    pub started_ms: u64,
    /// What the user asked about; not escaped.
    #[serde(default)]
    pub subject: crate::WatchSubject,
}

impl RecordingHeader {
    /// Returns a header of the current format.
    #[must_use]
    pub fn new(
        machine: String,
        kernel: String,
        started_ms: u64,
        thing: crate::WatchSubject,
    ) -> Self {
        Self {
            format: FORMAT,
            machine,
            kernel,
            started_ms,
            subject: thing,
        }
    }
}

/// All snapshots of one watch.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchRecording {
    /// Machine, kernel, start and subject of the watch.
    pub header: RecordingHeader,
    /// Snapshots in order of time.
    pub looks: Vec<MachineSnapshot>,
}

/// Why a recording cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// A line is damaged.
    #[error("line {line}: {message}")]
    Line {
        /// Line number, from 1.
        line: usize,
        /// Description of the damage.
        message: String,
    },
    /// The file cannot be read or written.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// Writes one line of a recording: the header, or one snapshot of the machine.
///
/// # Errors
/// The writer fails.
pub fn write_line(out: &mut dyn Write, line: &impl Serialize) -> Result<(), RecordingError> {
    let mut text = serde_json::to_vec(line).map_err(std::io::Error::other)?;
    text.push(b'\n');
    out.write_all(&text)?;
    Ok(())
}

/// Reads a recording.
///
/// # Errors
/// The reader fails, or a line is damaged; the first such line is reported.
pub fn read_recording(input: &mut dyn BufRead) -> Result<WatchRecording, RecordingError> {
    let fault = |line: usize, message: String| RecordingError::Line { line, message };
    let mut header: Option<RecordingHeader> = None;
    let mut looks: Vec<MachineSnapshot> = Vec::new();
    let mut bytes = 0;
    let mut text = Vec::new();
    for line in 1.. {
        text.clear();
        let got = input
            .take(LONGEST_LINE as u64 + 1)
            .read_until(b'\n', &mut text)?;
        if got == 0 {
            break;
        }
        bytes += got;
        if text.len() > LONGEST_LINE || bytes > MOST_BYTES || looks.len() >= MOST_LOOKS {
            return Err(fault(line, "the recording is too long".to_owned()));
        }
        if text.pop_if(|byte| *byte == b'\n').is_none() {
            return Err(fault(
                line,
                "the line has no end: the recording was cut off".to_owned(),
            ));
        }
        let damaged = |error: serde_json::Error| {
            fault(
                line,
                format!("column {}: {}", error.column(), describe(&error)),
            )
        };
        if header.is_none() {
            let read: RecordingHeader = serde_json::from_slice(&text).map_err(damaged)?;
            if read.format != FORMAT {
                let message = format!(
                    "format {} is not known; this assay reads {FORMAT}",
                    read.format
                );
                return Err(fault(line, message));
            }
            header = Some(read);
            continue;
        }
        let look: MachineSnapshot = serde_json::from_slice(&text).map_err(damaged)?;
        if looks.last().is_some_and(|last| look.at_ms <= last.at_ms) {
            return Err(fault(
                line,
                "this sample is not later than the one before it".to_owned(),
            ));
        }
        looks.push(look);
    }
    let header = header.ok_or_else(|| fault(1, "the recording is empty".to_owned()))?;
    if looks.len() < 2 {
        let message = "at least two samples are needed; record for longer".to_owned();
        return Err(fault(looks.len() + 1, message));
    }
    Ok(WatchRecording { header, looks })
}

/// Returns the message of serde_json without its position, which is relative to the line.
fn describe(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line ") {
        Some((message, _)) => message.to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests;
