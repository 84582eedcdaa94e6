//! Rules that decide which user-defined text may be reported unchanged. The collectors and the `redact` functions use
//! them.

/// Replaces a private name, address or part of a text.
pub(crate) const LEFT_OUT: &str = "(left out)";

/// Returns a value unchanged if it is a number or looks like the word values of known settings. Otherwise returns a
/// replacement.
pub(crate) fn word(value: &str) -> String {
    let plain = value.len() <= 8 && value.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if plain { value } else { "withheld" }.to_owned()
}

/// Returns whether the path or pattern of an include has only characters that are usual in file names.
pub(crate) fn is_pattern(value: &str) -> bool {
    let value = value.trim_matches(['"', '\'']);
    assay_model::secrets::is_plain(&value.replace(['*', '?', '[', ']'], "-"))
}

/// Replaces the path of a file if the path contains blanks, quotation marks or other unusual characters.
pub(crate) const PATH_WITHHELD: &str = "(withheld)";

/// Returns the path if all its characters are usual, else the replacement.
pub(crate) fn kept_path(value: &str) -> &str {
    if is_path(value) { value } else { PATH_WITHHELD }
}

/// Returns whether a path has only characters that are usual in file names.
pub(crate) fn is_path(value: &str) -> bool {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || b"/._+*@-".contains(&byte);
    assay_model::secrets::is_path(value) && value.len() <= 200 && value.bytes().all(known)
}
