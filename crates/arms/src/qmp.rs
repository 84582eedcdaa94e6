//! Just enough of QEMU's monitor protocol (QMP, docs/interop/qmp-spec) to ask a storage daemon
//! what it has open.

use serde_json::{Value, json};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Asks one question on a connection of its own.
pub(crate) fn ask(socket: &Path, command: &str) -> io::Result<Value> {
    let mut stream = crate::nbd::connect(socket)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let mut lines = BufReader::new(stream.try_clone()?);
    read(&mut lines)?;
    say(&mut stream, &mut lines, "qmp_capabilities")?;
    say(&mut stream, &mut lines, command)
}

fn say(
    stream: &mut UnixStream,
    lines: &mut BufReader<UnixStream>,
    command: &str,
) -> io::Result<Value> {
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

fn read(lines: &mut BufReader<UnixStream>) -> io::Result<Value> {
    let mut line = String::new();
    if lines.read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    serde_json::from_str(&line).map_err(io::Error::other)
}
