//! Converts inputs from and to text.

/// Converts bytes to text as all parsers of assay do: invalid UTF-8 is replaced.
pub(super) fn to_text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// Converts texts to seeds.
pub(super) fn text_seeds(seeds: &[&str]) -> Vec<Vec<u8>> {
    seeds.iter().map(|seed| seed.as_bytes().to_vec()).collect()
}
