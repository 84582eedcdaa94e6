//! Parsers and writers of the supported languages, with one module for each language.

mod apache;
mod dovecot;
mod flat;
mod line_options;
mod mysql;
pub mod nginx;
pub mod postfix;
mod postgresql;
mod shell_assignments;
pub mod ssh;
mod syntax;
pub mod whole_lines;
pub mod worded_lines;

use crate::effective::sysctl_name;
use crate::error::ConfError;
use crate::tree::Block;
use assay_model::change::ConfigLanguage as Language;

/// Parses a whole file into its root block.
pub fn parse(language: Language, text: &[u8]) -> Result<Block, ConfError> {
    let mut root = match language {
        Language::Ssh => ssh::parse(text)?,
        Language::Nginx => nginx::parse(text)?,
        Language::Apache => apache::parse(text)?,
        Language::Postfix => postfix::parse(text)?,
        Language::Dovecot => dovecot::parse(text)?,
        Language::Nsswitch => flat::parse(text, b':', false),
        Language::KeyValue | Language::Sysctl => flat::parse(text, b'=', false),
        Language::Ini => flat::parse(text, b'=', true),
        Language::Words => worded_lines::parse(text),
        Language::Shell => shell_assignments::parse(text),
        Language::Postgresql => postgresql::parse(text),
        Language::Mysql => mysql::parse(text),
        Language::Fstab => line_options::parse_fstab(text),
        Language::Modprobe => line_options::parse_modprobe(text),
        Language::PostfixServices => line_options::parse_postfix_services(text),
        // Whole lines have no structure.
        Language::Lines => Block::default(),
    };
    root.span = 0..text.len();
    Ok(root)
}

/// Returns whether two keys mean the same setting of the program.
pub fn same_key(language: Language, a: &str, b: &str) -> bool {
    match language {
        Language::Ssh | Language::Apache | Language::Postgresql => a.eq_ignore_ascii_case(b),
        Language::Mysql => mysql::same_name(a, b),
        Language::Sysctl => sysctl_name(a) == sysctl_name(b),
        _ => a == b,
    }
}

/// Returns whether the program merges several blocks with this head.
pub fn merges_blocks(language: Language, head: &[String]) -> bool {
    match language {
        Language::Ini | Language::Mysql => true,
        // Lists of arbitrary names have no name of their own (SET_STRLIST).
        Language::Dovecot => head.len() > 1 || head == ["plugin"] || head == ["dict"],
        _ => false,
    }
}

/// Returns the value as written in a file, with the given quotes if possible. The error is the reason why the value
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
        Language::Words => worded_lines::write_value(value),
        Language::Shell => shell_assignments::write_value(value, quote),
        Language::Postgresql => postgresql::write_value(value, quote),
        Language::Mysql => mysql::write_value(value, quote),
        Language::Fstab => line_options::write_word(value, false),
        Language::Modprobe | Language::PostfixServices => line_options::write_word(value, true),
        Language::Postfix
        | Language::Nsswitch
        | Language::KeyValue
        | Language::Sysctl
        | Language::Lines
        | Language::Ini => match value.trim() == value {
            true => Ok(value.to_owned()),
            false => Err("it begins or ends with a blank"),
        },
    }
}

/// Returns the text of a new statement.
pub fn format_statement(language: Language, key: &str, value: &str) -> String {
    let text = match language {
        Language::Ssh | Language::Apache | Language::Words => format!("{key} {value}"),
        Language::Nginx if value.is_empty() => format!("{key};"),
        Language::Nginx => format!("{key} {value};"),
        Language::Nsswitch => format!("{key}: {value}"),
        Language::Shell => format!("{key}={value}"),
        Language::Modprobe => format!("options {key}={value}"),
        Language::PostfixServices => format!("-o {key}={value}"),
        Language::Mysql if value.is_empty() => key.to_owned(),
        Language::Postfix
        | Language::Dovecot
        | Language::KeyValue
        | Language::Ini
        | Language::Postgresql
        | Language::Mysql
        | Language::Sysctl
        | Language::Lines
        | Language::Fstab => format!("{key} = {value}"),
    };
    text.trim_end().to_owned()
}
