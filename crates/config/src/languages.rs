//! The languages, one module each: parsing a file and writing a value.

mod apache;
mod dovecot;
mod flat;
pub mod nginx;
pub mod postfix;
pub mod ssh;
mod syntax;

use crate::error::ConfError;
use crate::tree::Block;
use assay_model::change::ConfigLanguage as Language;

/// Parses a whole file.
pub fn parse(language: Language, text: &[u8]) -> Result<Block, ConfError> {
    let mut root = match language {
        Language::Ssh => ssh::parse(text)?,
        Language::Nginx => nginx::parse(text)?,
        Language::Apache => apache::parse(text)?,
        Language::Postfix => postfix::parse(text)?,
        Language::Dovecot => dovecot::parse(text)?,
        Language::Nsswitch => flat::parse(text, b':', false),
        Language::KeyValue => flat::parse(text, b'=', false),
        Language::Ini => flat::parse(text, b'=', true),
    };
    root.span = 0..text.len();
    Ok(root)
}

/// Whether the program treats two keys as the same.
pub fn same_key(language: Language, a: &str, b: &str) -> bool {
    match language {
        Language::Ssh | Language::Apache => a.eq_ignore_ascii_case(b),
        _ => a == b,
    }
}

/// Whether the program merges several blocks with this head.
pub fn merges_blocks(language: Language, head: &[String]) -> bool {
    match language {
        Language::Ini => true,
        // Lists of arbitrary names have no name of their own (SET_STRLIST).
        Language::Dovecot => head.len() > 1 || head == ["plugin"] || head == ["dict"],
        _ => false,
    }
}

/// Returns the value as written in the file, in the given quotes if possible; as error, the reason why it
/// cannot be written.
pub fn write_value(
    language: Language,
    key: &str,
    value: &str,
    quote: Option<u8>,
) -> Result<String, &'static str> {
    if value.contains(['\n', '\r', '\0']) {
        return Err("it has a line break or a NUL byte");
    }
    match language {
        Language::Ssh if ssh::is_raw(key) => ssh::write_raw(value),
        Language::Ssh => ssh::write_value(value, quote),
        Language::Nginx => nginx::write_value(value),
        Language::Apache => apache::write_value(value),
        Language::Dovecot => dovecot::write_value(value, quote),
        Language::Postfix | Language::Nsswitch | Language::KeyValue | Language::Ini => {
            match value.trim() == value {
                true => Ok(value.to_owned()),
                false => Err("it begins or ends with a blank"),
            }
        }
    }
}

/// Writes a new statement.
pub fn format_statement(language: Language, key: &str, value: &str) -> String {
    let text = match language {
        Language::Ssh | Language::Apache => format!("{key} {value}"),
        Language::Nginx if value.is_empty() => format!("{key};"),
        Language::Nginx => format!("{key} {value};"),
        Language::Nsswitch => format!("{key}: {value}"),
        Language::Postfix | Language::Dovecot | Language::KeyValue | Language::Ini => {
            format!("{key} = {value}")
        }
    };
    text.trim_end().to_owned()
}
