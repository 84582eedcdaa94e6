//! Client of QEMU's monitor protocol, which is JSON over a stream (docs/interop/qmp-spec in QEMU's tree).

use serde_json::{Value, json};
use std::io::{self, BufRead, BufReader, ErrorKind, Read as _, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// Maximum size of an answer in bytes.
const LONGEST: u64 = 16 << 20;
/// Time limit of an answer. A QEMU that takes longer is stuck.
const QEMU_ANSWERS_WITHIN: Duration = Duration::from_secs(20);

/// Reason why a command has no result.
#[derive(Debug, thiserror::Error)]
pub enum QmpError {
    /// QEMU refused the command.
    #[error("QEMU refused {command}: {reason}")]
    Refused {
        /// Name of the command.
        command: String,
        /// Error message of QEMU.
        reason: String,
    },
    /// The connection broke, or the answer did not arrive in time.
    #[error("QEMU did not answer {command}: {source}")]
    Connection {
        /// Name of the command.
        command: String,
        /// Error of the kernel.
        source: io::Error,
    },
    /// The answer of QEMU is not JSON.
    #[error("QEMU's answer to {command} cannot be understood: {source}")]
    Language {
        /// Name of the command.
        command: String,
        /// Error of the JSON parser.
        source: serde_json::Error,
    },
}

impl QmpError {
    /// Returns whether QEMU has ended or closed the connection.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        use ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
        matches!(self, Self::Connection { source, .. }
            if matches!(source.kind(), BrokenPipe | ConnectionReset | UnexpectedEof))
    }
}

/// A connection to a QEMU monitor that is ready for commands.
pub struct Qmp {
    reader: Box<dyn BufRead + Send>,
    writer: Box<dyn Write + Send>,
    answers_within: Duration,
    /// Bytes of an incomplete line.
    line: Vec<u8>,
    events: Vec<Value>,
}

impl Qmp {
    /// Connects to a monitor socket of QEMU. The path may be longer than a socket address permits.
    ///
    /// # Errors
    /// No program listens on the socket, or the listener is not a QEMU monitor.
    pub fn connect(socket: &Path) -> Result<Self, QmpError> {
        let connect = || -> io::Result<_> {
            let stream = assay_host::socket::connect(socket)?;
            stream.set_read_timeout(Some(QEMU_ANSWERS_WITHIN))?;
            stream.set_write_timeout(Some(QEMU_ANSWERS_WITHIN))?;
            Ok((stream.try_clone()?, stream))
        };
        let (writer, reader) = connect().map_err(connection_lost("connection"))?;
        let reader = Box::new(BufReader::new(reader));
        Self::over(reader, Box::new(writer), QEMU_ANSWERS_WITHIN)
    }

    /// Reads the greeting and leaves negotiation mode. A read that times out ([`ErrorKind::WouldBlock`],
    /// [`ErrorKind::TimedOut`]) is repeated until `answers_within` has passed.
    ///
    /// # Errors
    /// The other side is not a QEMU monitor.
    pub fn over(
        reader: Box<dyn BufRead + Send>,
        writer: Box<dyn Write + Send>,
        answers_within: Duration,
    ) -> Result<Self, QmpError> {
        let mut qmp = Self {
            reader,
            writer,
            answers_within,
            line: Vec::new(),
            events: Vec::new(),
        };
        qmp.answer("greeting")?;
        qmp.execute("qmp_capabilities", json!({}))?;
        Ok(qmp)
    }

    /// Runs a command and returns its result. Events that arrive before the result are stored.
    ///
    /// # Errors
    /// QEMU refuses the command, has ended, or sends invalid JSON.
    pub fn execute(&mut self, command: &str, arguments: Value) -> Result<Value, QmpError> {
        let line = json!({ "execute": command, "arguments": arguments });
        self.writer
            .write_all(format!("{line}\n").as_bytes())
            .map_err(connection_lost(command))?;
        loop {
            let mut answer = self.answer(command)?;
            if let Some(error) = answer.get("error") {
                let reason = error["desc"].as_str().unwrap_or("no reason given");
                return Err(QmpError::Refused {
                    command: command.to_owned(),
                    reason: reason.to_owned(),
                });
            }
            if let Some(found) = answer.get_mut("return") {
                return Ok(found.take());
            }
            self.keep(answer);
        }
    }

    /// Removes and returns the events that were received until now. Does not read from the connection, so events after
    /// the last answer are not included.
    pub fn take_events(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.events)
    }

    /// Returns the events since the last call. If there are none, waits at most `within` for the next event.
    ///
    /// # Errors
    /// QEMU has ended, or sends invalid JSON.
    pub fn wait_for_events(&mut self, within: Duration) -> Result<Vec<Value>, QmpError> {
        while self.events.is_empty() {
            match self.read("events", within)? {
                Some(said) => self.keep(said),
                None => break,
            }
        }
        Ok(self.take_events())
    }

    fn keep(&mut self, said: Value) {
        if said.get("event").is_some() {
            self.events.push(said);
        }
    }

    fn answer(&mut self, command: &str) -> Result<Value, QmpError> {
        let answer = self.read(command, self.answers_within)?;
        answer.ok_or_else(|| connection_lost(command)(ErrorKind::TimedOut.into()))
    }

    /// Reads the next line. Returns `None` if the line does not arrive in time.
    fn read(&mut self, command: &str, within: Duration) -> Result<Option<Value>, QmpError> {
        let deadline = Instant::now() + within;
        loop {
            let rest = LONGEST.saturating_sub(self.line.len() as u64);
            let mut limited = self.reader.by_ref().take(rest);
            match limited.read_until(b'\n', &mut self.line) {
                Ok(0) => return Err(connection_lost(command)(ErrorKind::UnexpectedEof.into())),
                Ok(_) => {
                    let line = std::mem::take(&mut self.line);
                    return serde_json::from_slice(&line).map(Some).map_err(|source| {
                        QmpError::Language {
                            command: command.to_owned(),
                            source,
                        }
                    });
                }
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    if Instant::now() >= deadline {
                        return Ok(None);
                    }
                }
                Err(error) => return Err(connection_lost(command)(error)),
            }
        }
    }
}

fn connection_lost(command: &str) -> impl Fn(io::Error) -> QmpError {
    move |source| QmpError::Connection {
        command: command.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;
    use std::io::Read;

    /// Recorded output of QEMU 7.2 in pieces. An empty piece stands for a time without output.
    struct Pieces(VecDeque<&'static str>);

    impl Read for Pieces {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            match self.0.pop_front() {
                Some("") => Err(ErrorKind::TimedOut.into()),
                Some(piece) => {
                    into[..piece.len()].copy_from_slice(piece.as_bytes());
                    Ok(piece.len())
                }
                None => Ok(0),
            }
        }
    }

    const GREETING: &str = "{\"QMP\": {\"version\": {}, \"capabilities\": []}}\r\n";

    fn talk(pieces: &[&'static str]) -> Result<Qmp, QmpError> {
        let said = [GREETING].into_iter().chain(pieces.iter().copied());
        let reader = BufReader::new(Pieces(said.collect()));
        let long = Duration::from_secs(60);
        Qmp::over(Box::new(reader), Box::new(io::sink()), long)
    }

    #[test]
    fn a_line_that_comes_in_pieces_is_one_line() {
        let mut qmp = talk(&["{\"retu", "", "rn\": {}}\r\n", "", "{\"return\": 7}\r\n"]).unwrap();
        assert_eq!(qmp.execute("query-status", json!({})).unwrap(), json!(7));
    }

    #[test]
    fn events_are_kept_wherever_they_come() {
        let mut qmp = talk(&[
            "{\"event\": \"RESUME\"}\r\n{\"return\": {}}\r\n",
            "{\"event\": \"STOP\"}\r\n",
        ])
        .unwrap();
        let names = |events: Vec<Value>| -> Vec<_> {
            let name = |event: Value| event["event"].as_str().map(str::to_owned);
            events.into_iter().filter_map(name).collect()
        };
        assert_eq!(names(qmp.take_events()), ["RESUME"]);
        let next = qmp.wait_for_events(Duration::ZERO).unwrap();
        assert_eq!(names(next), ["STOP"]);
        let end = qmp.wait_for_events(Duration::ZERO).unwrap_err();
        assert!(end.is_gone());
    }

    #[test]
    fn what_does_not_come_in_time_is_no_end() {
        let mut qmp = talk(&["{\"return\": {}}\r\n", "", "{\"event\": \"STOP\"}\r\n"]).unwrap();
        assert_eq!(
            qmp.wait_for_events(Duration::ZERO).unwrap(),
            [] as [Value; 0]
        );
        assert_eq!(qmp.wait_for_events(Duration::ZERO).unwrap().len(), 1);
    }

    #[test]
    fn a_refusal_bears_the_words_of_qemu() {
        let said =
            "{\"return\": {}}\n{\"error\": {\"class\": \"GenericError\", \"desc\": \"no\"}}\n";
        let refused = talk(&[said]).unwrap().execute("cont", json!({}));
        assert!(matches!(refused, Err(QmpError::Refused { reason, .. }) if reason == "no"));
        let garbage = talk(&["{\"return\": {}}\n", "qemu: no\n"]).unwrap();
        let mut garbage = garbage;
        let said = garbage.execute("cont", json!({}));
        assert!(matches!(said, Err(QmpError::Language { .. })));
    }
}
