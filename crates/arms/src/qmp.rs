//! Just enough of QEMU's monitor protocol (QMP, docs/interop/qmp-spec) to ask a storage daemon
//! what it has open.

use serde_json::{Value, json};
use std::io::{self, BufRead, BufReader, Read as _, Write};
use std::path::Path;
use std::time::Duration;

/// Longest answer that is read, in bytes.
const LONGEST: u64 = 16 << 20;

/// Asks one question on a connection of its own.
pub(crate) fn ask(socket: &Path, command: &str) -> io::Result<Value> {
    let stream = crate::nbd::connect(socket)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    talk(BufReader::new(&stream), &stream, command)
}

/// Greeting, capabilities, the question.
pub(crate) fn talk(
    mut lines: impl BufRead,
    mut stream: impl Write,
    command: &str,
) -> io::Result<Value> {
    read(&mut lines)?;
    say(&mut stream, &mut lines, "qmp_capabilities")?;
    say(&mut stream, &mut lines, command)
}

fn say(stream: &mut impl Write, lines: &mut impl BufRead, command: &str) -> io::Result<Value> {
    let request = json!({ "execute": command });
    stream.write_all(format!("{request}\n").as_bytes())?;
    loop {
        let mut answer = read(lines)?;
        if let Some(value) = answer.get_mut("return") {
            return Ok(value.take());
        }
        if let Some(error) = answer.get("error") {
            let text = error.get("desc").and_then(Value::as_str);
            return Err(io::Error::other(text.unwrap_or("refused").to_owned()));
        }
        // Anything else is an event.
    }
}

fn read(lines: &mut impl BufRead) -> io::Result<Value> {
    let mut line = String::new();
    if lines.take(LONGEST).read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    serde_json::from_str(&line).map_err(io::Error::other)
}
