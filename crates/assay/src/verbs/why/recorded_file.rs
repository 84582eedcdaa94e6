//! Reads and writes the recording file of `--record` and `--replay`.

use crate::context::unwritten;
use crate::status::Unreadable;
use assay_host::OutputFile;
use assay_why::{MachineSnapshot, RecordingHeader, WatchRecording, read_recording, write_line};
use std::io::{BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

/// A recording that is being written. The file gets its final name only when it is complete.
pub(super) struct RecordingFile {
    path: PathBuf,
    out: RecordingSink,
}

/// Destination of a recording.
enum RecordingSink {
    File(BufWriter<OutputFile>),
    /// Standard output, for the path `-`.
    Standard(std::io::Stdout),
}

impl RecordingSink {
    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Self::File(file) => file,
            Self::Standard(out) => out,
        }
    }
}

impl RecordingFile {
    /// Creates the file, and writes the header.
    pub(super) fn create(path: &Path, header: &RecordingHeader) -> anyhow::Result<Self> {
        let out = match path == Path::new("-") {
            true => RecordingSink::Standard(std::io::stdout()),
            // Names of processes and groups are nobody else's business.
            false => RecordingSink::File(BufWriter::new(
                OutputFile::create_private(path).map_err(unwritten)?,
            )),
        };
        let mut file = Self {
            path: path.to_owned(),
            out,
        };
        write_line(file.out.writer(), header)?;
        Ok(file)
    }

    /// Appends one sample of the machine.
    pub(super) fn add(&mut self, look: &MachineSnapshot) -> anyhow::Result<()> {
        Ok(write_line(self.out.writer(), look)?)
    }

    /// Completes the recording, and publishes the file under its final name.
    pub(super) fn finish(mut self) -> anyhow::Result<()> {
        self.out.writer().flush()?;
        let RecordingSink::File(file) = self.out else {
            return Ok(());
        };
        let out = file
            .into_inner()
            .map_err(std::io::IntoInnerError::into_error)?;
        out.publish().map_err(unwritten)?;
        eprintln!("recording written to {}", self.path.display());
        Ok(())
    }
}

/// Writes a complete recording that was received from another machine.
pub(super) fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    if path == Path::new("-") {
        return Ok(std::io::stdout().write_all(bytes)?);
    }
    let mut out = OutputFile::create_private(path).map_err(unwritten)?;
    out.write_all(bytes)?;
    out.publish().map_err(unwritten)?;
    eprintln!("recording written to {}", path.display());
    Ok(())
}

/// Reads and decodes a recording file.
#[allow(
    clippy::disallowed_methods,
    reason = "the user named this file on the command line"
)]
pub(super) fn read(path: &Path) -> anyhow::Result<WatchRecording> {
    let shown = path.display();
    let is_standard_input = path == Path::new("-");
    let recording = match is_standard_input {
        true => read_recording(&mut std::io::stdin().lock()),
        false => {
            let file = std::fs::File::open(path)
                .map_err(|error| Unreadable(format!("cannot open {shown}: {error}")))?;
            read_recording(&mut BufReader::new(file))
        }
    };
    recording.map_err(|error| Unreadable(format!("cannot replay {shown}: {error}")).into())
}
