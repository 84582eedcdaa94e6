//! Converts the bytes of a journal into lines, also after a crash or a disk error.

use crate::journal_format::{FIRST_FORMAT, FORMAT, Header, Line, State};
use assay_host::seal::{has_seal, is_torn_line, unseal};

/// What the bytes of a journal contain.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Read {
    /// The header is incomplete, because the process ended before the session had begun.
    Unborn,
    /// The journal has a header, or damage in its place.
    Journal(Box<Lines>),
}

/// The readable lines of a journal.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Lines {
    /// The header; `None` if it was damaged.
    pub(crate) header: Option<Header>,
    pub(crate) state: State,
    /// Number of the first damaged line, and a description of the damage.
    pub(crate) damaged: Option<(usize, String)>,
    /// Number of the next line to write.
    pub(crate) next: u64,
    /// Number of bytes to keep. The bytes after them are a line that a crash cut off.
    pub(crate) keep: usize,
}

/// Parses a journal. An incomplete last line is ignored. This is safe because each line is durable before the next
/// action begins: an action announced in this line was not begun, and whether an earlier action succeeded is checked on
/// the machine.
///
/// # Errors
/// The reason why the format is unknown.
pub(crate) fn read(bytes: &[u8]) -> Result<Read, String> {
    // A power cut may leave zero bytes in place of a line.
    let zeros = bytes.iter().rev().take_while(|byte| **byte == 0).count();
    let text = &bytes[..bytes.len() - zeros];
    let Some(first) = text.split_inclusive(|byte| *byte == b'\n').next() else {
        return Ok(Read::Unborn);
    };
    let line = first.strip_suffix(b"\n").unwrap_or(first);
    if let Ok(header) = serde_json::from_slice::<Header>(line)
        && header.format == FIRST_FORMAT
    {
        return Ok(Read::Journal(Box::new(first_format(
            text,
            bytes.len(),
            header,
        ))));
    }
    let header = match unseal(line) {
        Some((0, body)) => Some(match serde_json::from_slice::<Header>(&body) {
            Ok(header) if header.format == FORMAT => header,
            other => return Err(describe_foreign_line(&body, other.err())),
        }),
        Some(_) => None,
        // The header is durable before any action.
        None if first.len() == text.len() && is_torn_line(line, 0) => return Ok(Read::Unborn),
        None if has_seal(line) => None,
        None if format_of(line).is_some_and(|format| format != u64::from(FORMAT)) => {
            return Err(describe_foreign_line(line, None));
        }
        None if first.len() == text.len() && !first.ends_with(b"\n") => return Ok(Read::Unborn),
        None if !has_seal(text) && format_of(line).is_none() => {
            let error = serde_json::from_slice::<Header>(line).err();
            return Err(describe_foreign_line(line, error));
        }
        None => None,
    };
    Ok(Read::Journal(Box::new(read_sealed_lines(text, header))))
}

fn describe_foreign_line(line: &[u8], error: Option<serde_json::Error>) -> String {
    match (format_of(line), error) {
        (Some(format), _) if format != u64::from(FORMAT) && format != u64::from(FIRST_FORMAT) => {
            format!(
                "a journal of format {format}; this assay knows formats {FIRST_FORMAT} and {FORMAT}: use the newer assay that wrote it to take its changes back"
            )
        }
        (_, Some(error)) => format!("not a journal of assay ({error})"),
        (_, None) => "not a journal of assay".to_owned(),
    }
}

fn format_of(line: &[u8]) -> Option<u64> {
    let value: serde_json::Value = serde_json::from_slice(line).ok()?;
    value.get("assay-journal")?.as_u64()
}

/// Reads lines with numbers and checksums.
fn read_sealed_lines(text: &[u8], header: Option<Header>) -> Lines {
    let mut found = Lines {
        damaged: match header {
            Some(_) => None,
            None => Some((1, "it does not match its checksum".to_owned())),
        },
        header,
        state: State::default(),
        next: 0,
        keep: 0,
    };
    let mut end = 0;
    for (number, whole) in (1..).zip(text.split_inclusive(|byte| *byte == b'\n')) {
        end += whole.len();
        let line = whole.strip_suffix(b"\n").unwrap_or(whole);
        // An empty line was written after a damaged line.
        if line.is_empty() {
            found.keep = end;
            continue;
        }
        let Some((own, body)) = unseal(line) else {
            let cut_off = line.len() == whole.len() && is_torn_line(line, found.next);
            if !cut_off {
                found.damage(number, "it does not match its checksum");
                found.next += 1;
                found.keep = end;
            }
            continue;
        };
        found.keep = end;
        if own != found.next {
            let reason = match own > found.next {
                true => format!("line {} should be here and is missing", found.next + 1),
                false => "it was written earlier than the lines before it".to_owned(),
            };
            found.damage(number, &reason);
        }
        found.next = own.saturating_add(1);
        match serde_json::from_slice::<Line>(&body) {
            Ok(line) => found.take(line),
            // The header was already checked.
            Err(_) if own == 0 => {}
            Err(error) => found.damage(number, &format!("this assay does not know it ({error})")),
        }
    }
    found
}

impl Lines {
    fn damage(&mut self, line: usize, reason: &str) {
        self.damaged.get_or_insert((line, reason.to_owned()));
    }

    fn take(&mut self, line: Line) {
        if let (Line::Resumed { pid }, Some(header)) = (&line, &mut self.header) {
            header.pid = *pid;
        }
        self.state.apply(line);
    }
}

/// Reads a journal of assay 0.1. An unreadable line counts as damage if another line follows, unless that line records
/// that another process took over the session.
fn first_format(text: &[u8], keep: usize, header: Header) -> Lines {
    let mut found = Lines {
        header: Some(header),
        state: State::default(),
        damaged: None,
        next: 0,
        keep,
    };
    let mut unreadable = None;
    let lines = text.split_inclusive(|byte| *byte == b'\n').enumerate();
    for (number, line) in lines.skip(1) {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let whole = line.ends_with(b"\n");
        match serde_json::from_slice::<Line>(line) {
            Ok(line) => {
                let torn: Option<(usize, bool)> = unreadable.take();
                if let Some((number, _)) = torn
                    && !matches!(line, Line::Resumed { .. })
                {
                    found.damage(number, "it cannot be read");
                }
                found.take(line);
            }
            Err(_) => unreadable = unreadable.or(Some((number + 1, whole))),
        }
    }
    // A line with its line end was written completely.
    if let Some((number, true)) = unreadable {
        found.damage(number, "it cannot be read");
    }
    found
}

#[cfg(test)]
mod tests;
