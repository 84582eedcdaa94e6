//! Inputs as text.

/// Text as every reader of ours takes it: what is not UTF-8 is replaced.
pub(super) fn to_text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// Seeds from text.
pub(super) fn text_seeds(seeds: &[&str]) -> Vec<Vec<u8>> {
    seeds.iter().map(|seed| seed.as_bytes().to_vec()).collect()
}
