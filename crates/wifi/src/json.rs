//! Finds the line numbers of objects and fields in JSON. `serde_json` has already parsed the text, so the text
//! is well-formed.

use crate::reading::ReadError;
use serde::de::IgnoredAny;

/// A JSON object with its position in the text.
#[derive(Clone, Debug)]
pub(crate) struct Object<'a> {
    /// Text of the object.
    pub(crate) text: &'a str,
    /// Line number, from 1.
    pub(crate) line: usize,
    /// Names of the fields as in the text, each with its line.
    fields: Vec<(&'a str, usize)>,
}

impl Object<'_> {
    /// Returns the line of a field. If the field is absent, returns the line of the object.
    pub(crate) fn line_of(&self, name: &str) -> usize {
        let mut fields = self.fields.iter().rev();
        fields
            .find(|(known, _)| *known == name)
            .map_or(self.line, |(_, line)| *line)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.fields.iter().any(|(known, _)| *known == name)
    }
}

/// Returns the top-level objects: the text itself, the items of a list, and the items of lists within an object. Also
/// accepts several consecutive documents, as written by `mongoexport`.
pub(crate) fn objects(text: &str) -> Result<Vec<Object<'_>>, ReadError> {
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    let mut ends = Vec::new();
    while let Some(document) = stream.next() {
        document.map_err(|error| ReadError::Json {
            line: error.line(),
            column: error.column(),
            what: plain(&error.to_string()),
        })?;
        ends.push(stream.byte_offset());
    }
    let mut walk = Walk {
        text,
        bytes: text.as_bytes(),
        lines: Lines::new(text),
        found: Vec::new(),
    };
    let mut begin = 0;
    for end in ends {
        walk.document(begin);
        begin = end;
    }
    Ok(walk.found)
}

/// Removes the position from an error message of the parser, because the position is reported separately.
fn plain(message: &str) -> String {
    message
        .split(" at line ")
        .next()
        .unwrap_or(message)
        .to_owned()
}

/// Offsets of the line ends, for the conversion of byte offsets to line numbers.
struct Lines(Vec<usize>);

impl Lines {
    fn new(text: &str) -> Self {
        Self(text.match_indices('\n').map(|(at, _)| at).collect())
    }

    fn of(&self, at: usize) -> usize {
        self.0.partition_point(|end| *end < at) + 1
    }
}

struct Walk<'a> {
    text: &'a str,
    bytes: &'a [u8],
    lines: Lines,
    found: Vec<Object<'a>>,
}

impl<'a> Walk<'a> {
    fn byte(&self, at: usize) -> u8 {
        self.bytes.get(at).copied().unwrap_or(0)
    }

    fn blank(&self, mut at: usize) -> usize {
        while self.byte(at).is_ascii_whitespace() {
            at += 1;
        }
        at
    }

    fn document(&mut self, begin: usize) {
        let begin = self.blank(begin);
        match self.byte(begin) {
            b'[' => self.list(begin),
            b'{' => {
                let values: Vec<usize> = self.object(begin);
                for value in values {
                    if self.byte(value) == b'[' {
                        self.list(value);
                    }
                }
            }
            _ => {}
        }
    }

    /// Reads the objects of a list.
    fn list(&mut self, begin: usize) {
        let mut at = self.blank(begin + 1);
        while at < self.bytes.len() && self.byte(at) != b']' {
            if self.byte(at) == b'{' {
                self.object(at);
            }
            at = self.blank(self.behind(at));
            if self.byte(at) == b',' {
                at = self.blank(at + 1);
            }
        }
    }

    /// Reads an object. Returns the offsets of the values of its fields.
    fn object(&mut self, begin: usize) -> Vec<usize> {
        let mut fields = Vec::new();
        let mut values = Vec::new();
        let mut at = self.blank(begin + 1);
        while at < self.bytes.len() && self.byte(at) != b'}' {
            let end = self.behind(at);
            let name = self.text.get(at + 1..end.saturating_sub(1));
            fields.push((name.unwrap_or_default(), self.lines.of(at)));
            // Skip the colon and the space before the value.
            let value = self.blank(self.blank(end) + 1);
            values.push(value);
            at = self.blank(self.behind(value));
            if self.byte(at) == b',' {
                at = self.blank(at + 1);
            }
        }
        let end = (at + 1).min(self.bytes.len());
        self.found.push(Object {
            text: self.text.get(begin..end).unwrap_or_default(),
            line: self.lines.of(begin),
            fields,
        });
        values
    }

    /// Returns the offset after the value that starts at `at`. The result is always greater than `at`.
    fn behind(&self, at: usize) -> usize {
        let mut depth = 0usize;
        let mut within = false;
        let mut place = at;
        while place < self.bytes.len() {
            let byte = self.byte(place);
            place += 1;
            match byte {
                b'\\' if within => place += 1,
                b'"' => {
                    within = !within;
                    if !within && depth == 0 {
                        return place;
                    }
                }
                _ if within => {}
                b'{' | b'[' => depth += 1,
                b'}' | b']' => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        return place;
                    }
                }
                _ => {}
            }
            // A number or literal ends before a character that cannot be part of it.
            let next = self.byte(place);
            if depth == 0
                && !within
                && matches!(
                    next,
                    b',' | b'}' | b']' | b':' | b' ' | b'\n' | b'\r' | b'\t'
                )
            {
                return place;
            }
        }
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    #[test]
    fn objects_and_fields_have_their_lines() {
        let text = "{\"meta\": {\"rc\":\"ok\"},\n \"data\": [\n  {\"a\": \"x]}\\\"\",\n   \"b\": [1, {\"c\": 2}]},\n  5, {} ]}\n{\"d\":1}";
        let found = objects(text).unwrap();
        let told: Vec<(usize, usize)> = found.iter().map(|o| (o.line, o.line_of("b"))).collect();
        assert_eq!(told, [(1, 1), (3, 4), (5, 5), (6, 6)]);
        for object in &found {
            assert!(
                serde_json::from_str::<Value>(object.text).is_ok(),
                "{object:?}"
            );
        }
        let error = objects("[\n{\"a\": }]").unwrap_err();
        assert!(matches!(error, ReadError::Json { line: 2, .. }), "{error}");
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<i64>().prop_map(Value::from),
            ".{0,6}".prop_map(Value::from),
            any::<bool>().prop_map(Value::from),
            Just(Value::Null)
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                proptest::collection::vec((".{0,4}", inner), 0..5)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn an_object_is_what_serde_reads(value in value(), wide in any::<bool>()) {
            let text = if wide { format!("{value:#}") } else { value.to_string() };
            let found = objects(&text).unwrap();
            let expected: Vec<&Value> = match &value {
                Value::Array(items) => items.iter().filter(|item| item.is_object()).collect(),
                Value::Object(fields) => {
                    let lists = fields.values().filter_map(Value::as_array).flatten();
                    std::iter::once(&value).chain(lists.filter(|item| item.is_object())).collect()
                }
                _ => Vec::new(),
            };
            let read: Vec<Value> = found.iter().map(|object| serde_json::from_str(object.text).unwrap()).collect();
            prop_assert_eq!(read.iter().collect::<Vec<_>>(), expected);
        }
    }
}
