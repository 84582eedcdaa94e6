//! What of somebody's text may be told as it is: asked by collectors and by the rules of `redact`.

/// Stands where a name, an address or a part of a text was left out.
pub(crate) const LEFT_OUT: &str = "(left out)";

/// A value that is a number or a word, as those of the settings that are asked for are; anything else
/// is somebody's text.
pub(crate) fn word(value: &str) -> String {
    let plain = value.len() <= 8 && value.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if plain { value } else { "withheld" }.to_owned()
}

/// A path to include, perhaps a pattern, with nothing in it but what names of files have.
pub(crate) fn is_pattern(value: &str) -> bool {
    let value = value.trim_matches(['"', '\'']);
    assay_model::secrets::is_plain(&value.replace(['*', '?', '[', ']'], "-"))
}

/// Stands for the path of a file whose name has blanks, quotes or other letters that names of files seldom have.
pub(crate) const PATH_WITHHELD: &str = "(withheld)";

/// The path, or that there is one.
pub(crate) fn kept_path(value: &str) -> &str {
    if is_path(value) { value } else { PATH_WITHHELD }
}

/// A path without anything in it that names of files do not have.
pub(crate) fn is_path(value: &str) -> bool {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || b"/._+*@-".contains(&byte);
    assay_model::secrets::is_path(value) && value.len() <= 200 && value.bytes().all(known)
}
