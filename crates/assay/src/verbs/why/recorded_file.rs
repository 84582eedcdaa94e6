//! The file of `--record` and `--replay`.

use crate::context::unwritten;
use crate::status::Unreadable;
use assay_host::OutputFile;
use assay_why::{MachineLook, RecordingHeader, WatchRecording, read_recording, write_line};
use std::io::{BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};

/// A recording that is being written; it gets its name when it is complete.
pub(super) struct RecordingFile {
    path: PathBuf,
    out: BufWriter<OutputFile>,
}

impl RecordingFile {
    /// Begins a recording.
    pub(super) fn create(path: &Path, header: &RecordingHeader) -> anyhow::Result<Self> {
        // Names of processes and groups are private.
        let out = OutputFile::create_private(path).map_err(unwritten)?;
        let mut file = Self {
            path: path.to_owned(),
            out: BufWriter::new(out),
        };
        write_line(&mut file.out, header)?;
        Ok(file)
    }

    /// Adds an observation.
    pub(super) fn add(&mut self, look: &MachineLook) -> anyhow::Result<()> {
        Ok(write_line(&mut self.out, look)?)
    }

    /// Ends the recording.
    pub(super) fn finish(mut self) -> anyhow::Result<()> {
        self.out.flush()?;
        let out = self
            .out
            .into_inner()
            .map_err(std::io::IntoInnerError::into_error)?;
        out.publish().map_err(unwritten)?;
        eprintln!("recording written to {}", self.path.display());
        Ok(())
    }
}

/// Reads a recording.
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
