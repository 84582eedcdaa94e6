//! Escapes all output of assay as the last step before writing. Characters that change how a terminal or an editor
//! displays text become visible.
//!
//! Code that arranges text in columns calls [`crate::text::escape_line`] before, because an escape takes several
//! columns. This module escapes the characters that such code has not escaped.

use crate::text::is_deceptive;
use serde::de::IgnoredAny;
use std::borrow::Cow;
use std::io::{self, Write};

/// Escapes deceptive characters of an output. In JSON, they become `\u202e`, so that the values stay the same;
/// elsewhere `\u{202e}`. Newlines and tabs stay. If `styled` is true, the colours of [`crate::Style`] stay too.
#[must_use]
pub fn escape_output(text: &str, styled: bool) -> Cow<'_, str> {
    if !text.chars().any(is_suspicious) {
        return Cow::Borrowed(text);
    }
    match is_json(text) {
        true => escape_json(text),
        false => Cow::Owned(escape_text(text, styled)),
    }
}

/// Escapes deceptive characters of JSON. They can occur only in strings, and the values of the strings stay the same.
#[must_use]
pub fn escape_json(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_suspicious) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match is_suspicious(c) {
            false => out.push(c),
            true => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
    }
    Cow::Owned(out)
}

/// A writer that passes JSON through [`escape_json`]. Each call of `write` must contain whole characters; serde_json
/// does this.
#[derive(Debug)]
pub struct EscapingJsonWriter<W>(pub W);

impl<W: Write> Write for EscapingJsonWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match std::str::from_utf8(bytes) {
            Ok(text) => self.0.write_all(escape_json(text).as_bytes())?,
            Err(_) => self.0.write_all(bytes)?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn is_suspicious(c: char) -> bool {
    is_deceptive(c) && !matches!(c, '\n' | '\t')
}

/// Returns whether a text consists of one or several JSON documents.
fn is_json(text: &str) -> bool {
    let mut documents = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    text.trim_start().starts_with(['{', '[']) && documents.all(|one| one.is_ok())
}

fn escape_text(text: &str, styled: bool) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = match measure_paint_sequence(rest).filter(|_| styled) {
            Some(paint) => paint,
            // Windows and RFC 4180 (CSV) end lines with CRLF.
            None if rest.starts_with("\r\n") => 2,
            None if is_suspicious(c) => {
                out.extend(c.escape_default());
                rest = &rest[c.len_utf8()..];
                continue;
            }
            None => c.len_utf8(),
        };
        out.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    out
}

/// Returns the length in bytes of the colour sequence at the start of a text, if it is a sequence that [`crate::Style`]
/// writes. Sequences for concealed and reversed text do not count.
fn measure_paint_sequence(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\x1b[")?;
    let (parameters, _) = parameters.split_once('m')?;
    let plain = parameters.split(';').all(|one| {
        matches!(
            one.parse::<u8>(),
            Ok(0..=4 | 22 | 24 | 30..=37 | 39 | 90..=97)
        )
    });
    plain.then_some("\x1b[".len() + parameters.len() + "m".len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HOSTILE: &str = "a\x1b[31m\x1b[8m\u{9b}31m\x7f\u{202e}\u{2066}\u{200f}\u{61c}\rb";

    #[test]
    fn text_shows_what_it_holds() {
        let shown = escape_output(HOSTILE, false);
        assert!(!shown.chars().any(is_suspicious), "{shown:?}");
        assert_eq!(escape_output("a\tb\r\nc\n", false), "a\tb\r\nc\n");
        let painted = crate::Style {
            color: true,
            width: 80,
        }
        .paint("1;31", "x");
        assert_eq!(
            escape_output(&format!("{painted}\u{202e}"), true),
            format!("{painted}\\u{{202e}}")
        );
        assert!(!escape_output(HOSTILE, true).contains("\x1b[8m"));
        assert!(!escape_output(&painted, false).contains('\x1b'));
    }

    #[test]
    fn json_keeps_its_values() {
        let value = serde_json::json!({ "name": HOSTILE, HOSTILE: ["\u{e0001}"] });
        for text in [
            value.to_string(),
            format!("{value:#}\n"),
            format!("{value}\n{value}\n"),
        ] {
            let shown = escape_output(&text, true);
            assert!(!shown.chars().any(is_suspicious), "{shown:?}");
            let read = serde_json::Deserializer::from_str(&shown).into_iter::<serde_json::Value>();
            assert!(read.map(Result::unwrap).all(|read| read == value));
        }
        let mut written = EscapingJsonWriter(Vec::new());
        serde_json::to_writer(&mut written, &value).unwrap();
        assert_eq!(written.0, escape_json(&value.to_string()).as_bytes());
        // Looks like JSON and is not.
        assert!(escape_output("{\u{9b}}", false).contains("\\u{9b}"));
    }

    proptest! {
        #[test]
        fn nothing_deceptive_comes_through(text in any::<String>(), styled in any::<bool>()) {
            let shown = escape_output(&text, styled);
            let odd = |c: char| is_suspicious(c) && c != '\r' && !(styled && c == '\x1b');
            prop_assert!(!shown.chars().any(odd));
        }
    }
}
