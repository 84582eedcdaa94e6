//! QEMU's monitor: JSON over a socket (docs/interop/qmp-spec in QEMU's tree).

use crate::error::LabError;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read as _, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Longest answer that is read, in bytes.
const LONGEST: u64 = 16 << 20;
/// QEMU answers at once or is stuck.
const QEMU_ANSWERS_WITHIN: Duration = Duration::from_secs(20);

/// A connection to the monitor, ready for commands.
pub struct Qmp {
    reader: Box<dyn BufRead + Send>,
    writer: Box<dyn Write + Send>,
    events: Vec<Value>,
}

impl Qmp {
    /// Over a socket of QEMU.
    pub fn new(stream: UnixStream) -> Result<Self, LabError> {
        let ready = stream
            .set_read_timeout(Some(QEMU_ANSWERS_WITHIN))
            .and_then(|()| stream.set_write_timeout(Some(QEMU_ANSWERS_WITHIN)));
        ready.map_err(|error| refused("connection", error))?;
        let writer = stream.try_clone();
        let writer = writer.map_err(|error| refused("connection", error))?;
        Self::over(Box::new(BufReader::new(stream)), Box::new(writer))
    }

    /// Takes the greeting and leaves negotiation mode.
    pub fn over(
        reader: Box<dyn BufRead + Send>,
        writer: Box<dyn Write + Send>,
    ) -> Result<Self, LabError> {
        let mut qmp = Self {
            reader,
            writer,
            events: Vec::new(),
        };
        qmp.read("greeting")?;
        qmp.execute("qmp_capabilities", json!({}))?;
        Ok(qmp)
    }

    /// Runs a command and returns what it returns. Events that come before it are kept.
    pub fn execute(&mut self, command: &str, arguments: Value) -> Result<Value, LabError> {
        let line = json!({ "execute": command, "arguments": arguments }).to_string();
        self.writer
            .write_all(line.as_bytes())
            .map_err(|error| refused(command, error))?;
        loop {
            let mut answer = self.read(command)?;
            if let Some(error) = answer.get("error") {
                let reason = error["desc"].as_str().unwrap_or("no reason given");
                return Err(refused(command, reason));
            }
            if let Some(found) = answer.get_mut("return") {
                return Ok(found.take());
            }
            if answer.get("event").is_some() {
                self.events.push(answer);
            }
        }
    }

    /// The events that came since the last call, up to the last answer.
    pub fn take_events(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.events)
    }

    fn read(&mut self, command: &str) -> Result<Value, LabError> {
        let mut line = String::new();
        let read = self.reader.by_ref().take(LONGEST).read_line(&mut line);
        match read.map_err(|error| refused(command, error))? {
            0 => Err(refused(command, "the connection ended")),
            _ => serde_json::from_str(&line).map_err(|error| refused(command, error)),
        }
    }
}

fn refused(command: &str, reason: impl ToString) -> LabError {
    LabError::Qmp {
        command: command.to_owned(),
        reason: reason.to_string(),
    }
}
