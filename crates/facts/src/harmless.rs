//! Rules for user-defined text that may be reported unchanged. The collectors and the `redact` functions use them.

/// Replaces a name, an address or a part of a text.
pub(crate) const LEFT_OUT: &str = "(left out)";

/// Returns a value unchanged if it is a number or a word of the kind that known settings have; else returns a
/// replacement.
pub(crate) fn word(value: &str) -> String {
    let plain = value.len() <= 8 && value.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if plain { value } else { "withheld" }.to_owned()
}

/// Whether a path or pattern of an include has only characters that are usual in file names.
pub(crate) fn is_pattern(value: &str) -> bool {
    let value = value.trim_matches(['"', '\'']);
    assay_model::secrets::is_plain(&value.replace(['*', '?', '[', ']'], "-"))
}

/// Replaces the path of a file whose name contains blanks, quotation marks or other unusual
/// characters.
pub(crate) const PATH_WITHHELD: &str = "(withheld)";

/// Returns the path if its characters are usual, else the replacement.
pub(crate) fn kept_path(value: &str) -> &str {
    if is_path(value) { value } else { PATH_WITHHELD }
}

/// Whether a path has only characters that are usual in file names.
pub(crate) fn is_path(value: &str) -> bool {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || b"/._+*@-".contains(&byte);
    assay_model::secrets::is_path(value) && value.len() <= 200 && value.bytes().all(known)
}
