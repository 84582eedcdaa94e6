//! The query of a URL, which contains filters and choices. Together with the path, it describes the whole state of a
//! page.

use std::collections::BTreeMap;

/// Maximum number of parameters. Further parameters are ignored.
const MOST_PARAMETERS: usize = 64;
/// Maximum number of characters of a value. Further characters are ignored.
const MOST_CHARACTERS: usize = 512;

/// Decoded parameters of a query, each with its values in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct QueryParameters(BTreeMap<String, Vec<String>>);

impl QueryParameters {
    /// Decodes a query such as `a=1&b=two+words`.
    pub(crate) fn parse(query: &str) -> Self {
        let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, value) in form_urlencoded::parse(query.as_bytes()).take(MOST_PARAMETERS) {
            let value: String = value.trim().chars().take(MOST_CHARACTERS).collect();
            if !value.is_empty() {
                all.entry(name.into_owned()).or_default().push(value);
            }
        }
        Self(all)
    }

    /// Returns the first value of a parameter. An empty value counts as missing.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.first().map(String::as_str)
    }

    /// Returns all values of a parameter; empty if the parameter is missing.
    pub(crate) fn all(&self, name: &str) -> &[String] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }

    /// Returns the requested page number, from 1. Returns 1 if the parameter is missing or invalid.
    pub(crate) fn page(&self) -> usize {
        let number = self.get("page").and_then(|text| text.parse().ok());
        number.unwrap_or(1).clamp(1, 1_000_000)
    }

    /// Encodes the query with one parameter replaced, or removed if `value` is `None`.
    pub(crate) fn with(&self, name: &str, value: Option<&str>) -> String {
        let mut encoder = form_urlencoded::Serializer::new(String::new());
        for (key, values) in self.0.iter().filter(|(key, _)| *key != name) {
            for value in values {
                encoder.append_pair(key, value);
            }
        }
        if let Some(value) = value {
            encoder.append_pair(name, value);
        }
        encoder.finish()
    }
}

/// Encodes parameters for a link, as in `a=1&b=two+words`.
pub(crate) fn encode(pairs: &[(&str, &str)]) -> String {
    form_urlencoded::Serializer::new(String::new())
        .extend_pairs(pairs)
        .finish()
}

/// Encodes a name as one segment of a path.
pub(crate) fn encode_segment(name: &str) -> String {
    // A space is `%20` in a path, `+` only in a query.
    let encoded: String = form_urlencoded::byte_serialize(name.as_bytes()).collect();
    encoded.replace('+', "%20")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_decoded_and_encoded_again() {
        let query = QueryParameters::parse("a=1&b=two+words&b=%3Cb%3E&empty=&page=3");
        assert_eq!(query.get("b"), Some("two words"));
        assert_eq!(query.all("b"), ["two words", "<b>"]);
        assert_eq!((query.get("empty"), query.page()), (None, 3));
        assert_eq!(query.with("b", None), "a=1&page=3");
        assert_eq!(
            query.with("page", Some("4")),
            "a=1&b=two+words&b=%3Cb%3E&page=4"
        );
        let long = QueryParameters::parse(&format!("q={}", "x".repeat(100_000)));
        assert_eq!(long.get("q").map(str::len), Some(MOST_CHARACTERS));
        assert_eq!(QueryParameters::parse("page=-1").page(), 1);
    }

    #[test]
    fn a_name_is_one_segment() {
        assert_eq!(encode_segment("a b/<c>"), "a%20b%2F%3Cc%3E");
    }
}
