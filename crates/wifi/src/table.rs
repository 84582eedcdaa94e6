//! Reads lists with one record per line and a separator between fields.

use crate::reading::LONGEST_LINE;

/// A record: number of its first line from 1, and its fields. The fields are `None` if the record is unterminated or
/// too long.
pub(crate) type Record = (usize, Option<Vec<Vec<u8>>>);

/// Iterates over the records of a list.
pub(crate) struct Records<'a> {
    bytes: &'a [u8],
    at: usize,
    line: usize,
    separator: u8,
    /// Whether fields may be quoted and may then contain line ends (RFC 4180).
    quoted: bool,
}

impl<'a> Records<'a> {
    pub(crate) fn new(bytes: &'a [u8], separator: u8, quoted: bool) -> Self {
        Self {
            bytes,
            at: 0,
            line: 1,
            separator,
            quoted,
        }
    }

    /// Skips the line that starts at byte `begin`, which cannot be read as a record.
    fn give_up(&mut self, begin: usize, line: usize) {
        let rest = self.bytes.get(begin..).unwrap_or_default();
        let length = rest.iter().position(|byte| *byte == b'\n');
        self.at = begin + length.map_or(rest.len(), |length| length + 1);
        self.line = line + 1;
    }
}

impl Iterator for Records<'_> {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        let (begin, line) = (self.at, self.line);
        self.bytes.get(begin).copied()?;
        let mut fields = Vec::new();
        let mut field = Vec::new();
        let mut within = false;
        loop {
            if self.at - begin > LONGEST_LINE {
                self.give_up(begin, line);
                return Some((line, None));
            }
            let byte = self.bytes.get(self.at).copied();
            self.at += 1;
            match byte {
                None if within => {
                    // An unterminated quote makes only its own line unreadable, not the rest of the file.
                    self.give_up(begin, line);
                    return Some((line, None));
                }
                Some(b'"') if within => match self.bytes.get(self.at) {
                    Some(b'"') => {
                        field.push(b'"');
                        self.at += 1;
                    }
                    _ => within = false,
                },
                Some(byte) if within => {
                    self.line += usize::from(byte == b'\n');
                    field.push(byte);
                }
                Some(b'"') if self.quoted && field.is_empty() => within = true,
                Some(b'\n') | None => {
                    self.line += 1;
                    if field.last() == Some(&b'\r') {
                        field.pop();
                    }
                    fields.push(field);
                    return Some((line, Some(fields)));
                }
                Some(byte) if byte == self.separator => fields.push(std::mem::take(&mut field)),
                Some(byte) => field.push(byte),
            }
        }
    }
}

/// Names of the columns, from the heading of a list.
pub(crate) struct Heading(Vec<String>);

impl Heading {
    pub(crate) fn new(fields: &[Vec<u8>]) -> Self {
        let name = |field: &Vec<u8>| String::from_utf8_lossy(field).trim().to_ascii_lowercase();
        Self(fields.iter().map(name).collect())
    }

    /// Returns the index of a column. Upper and lower case count as equal.
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.0
            .iter()
            .position(|known| known.eq_ignore_ascii_case(name))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Vec<(usize, Option<Vec<String>>)> {
        Records::new(text.as_bytes(), b',', true)
            .map(|(line, fields)| {
                let text = |field: Vec<u8>| String::from_utf8(field).unwrap();
                (
                    line,
                    fields.map(|fields| fields.into_iter().map(text).collect()),
                )
            })
            .collect()
    }

    #[test]
    fn quotes_hold_separators_and_lines() {
        let some = |fields: &[&str]| Some(fields.iter().map(|f| (*f).to_owned()).collect());
        assert_eq!(
            read("a,\"b,\"\"\nc\",d\r\ne\n\"f"),
            [
                (1, some(&["a", "b,\"\nc", "d"])),
                (3, some(&["e"])),
                (4, None),
            ]
        );
        assert_eq!(read("\"a\nb\n"), [(1, None), (2, some(&["b"]))]);
        assert_eq!(read("a\"b,c"), [(1, some(&["a\"b", "c"]))]);
    }

    proptest! {
        #[test]
        fn every_list_ends(bytes in proptest::collection::vec(prop_oneof![Just(b'"'), Just(b','), Just(b'\n'), any::<u8>()], 0..300), quoted in any::<bool>()) {
            let records: Vec<Record> = Records::new(&bytes, b',', quoted).collect();
            let lines = bytes.split(|byte| *byte == b'\n').count();
            prop_assert!(records.len() <= lines);
            prop_assert!(records.windows(2).all(|pair| pair[0].0 < pair[1].0));
        }
    }
}
