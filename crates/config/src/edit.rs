//! Reads and edits one setting of a configuration file, in any of the supported languages.

use crate::error::ConfError;
use crate::languages::{
    format_statement, nginx, parse, same_key, whole_lines, worded_lines, write_value,
};
use crate::select::{block_head, select};
use crate::switch;
use crate::text::{
    is_blank, line_end, line_ending, line_indent, line_number, line_start, splice_text,
    stands_alone,
};
use crate::tree::{Block, Directive, Item};
use crate::{FoundSetting, Include};
use assay_model::change::ConfigLanguage as Language;
use std::ops::Range;

/// Returns the value of a key in a file; `None` if no line sets the key.
///
/// # Errors
/// The text is not of this language; the section is missing or ambiguous; an nginx directive is repeated; the value is
/// not UTF-8.
pub fn get(
    language: Language,
    text: &[u8],
    section: &[String],
    key: &str,
) -> Result<Option<FoundSetting>, ConfError> {
    if language == Language::Lines {
        return whole_lines::get(text, section, key);
    }
    let root = parse(language, text)?;
    let blocks = select(language, text, &root, section)?;
    if let Some(switch) = switch::parse_switch(language, key) {
        return switch.get(text, &blocks);
    }
    let Some(directive) = find_winner(language, text, &blocks, key)? else {
        return Ok(None);
    };
    let line = line_number(text, directive.span.start);
    let value = String::from_utf8(directive.value).map_err(|_| ConfError::NotText {
        key: key.to_owned(),
        line,
    })?;
    Ok(Some(FoundSetting {
        value,
        line,
        rivals: find_rivals(language, text, &blocks, section, directive.span.start),
    }))
}

/// Returns the text of the file after the key is set. Changes the existing line, or adds a line at the end of the
/// section. For `ssh`, the new line is put before the first `Include`, because otherwise the included files would take
/// precedence.
///
/// # Errors
/// The errors of [`get`]; the key or the value cannot be written in this language.
pub fn set(
    language: Language,
    text: &[u8],
    section: &[String],
    key: &str,
    value: &str,
) -> Result<Vec<u8>, ConfError> {
    if language == Language::Lines {
        return whole_lines::set(text, section, key, value);
    }
    let root = parse(language, text)?;
    let blocks = select(language, text, &root, section)?;
    if let Some(switch) = switch::parse_switch(language, key) {
        return switch.set(text, &blocks, value);
    }
    let refused = |why| ConfError::Value {
        key: key.to_owned(),
        value: value.to_owned(),
        why,
    };
    let directive = find_winner(language, text, &blocks, key)?;
    let quote = directive.as_ref().and_then(|directive| directive.quote);
    let written = write_value(language, key, value, quote).map_err(refused)?;
    let new = match (&directive, blocks.last()) {
        (Some(directive), _) => replace(text, directive, &written),
        (None, Some(block)) => insert(
            language,
            text,
            block,
            &join_like_others(
                language,
                text,
                &root,
                format_statement(language, key, &written),
            ),
        ),
        (None, None) => return Ok(text.to_vec()),
    };
    // The written text must be read back as the same value.
    let plain = |value: &str| write_value(language, key, value, None);
    match get(language, &new, section, key) {
        Ok(Some(found)) if plain(&found.value) == plain(value) => Ok(new),
        Ok(Some(_)) => Err(refused("it would be read back as something else")),
        _ => Err(ConfError::Key {
            key: key.to_owned(),
            why: "a line with it would not be read back",
        }),
    }
}

/// Returns the text of the file after all lines for the key in this section are removed.
///
/// # Errors
/// The errors of [`get`]. A key whose value is `on` or `off` cannot be removed; set it to `off`.
pub fn remove(
    language: Language,
    text: &[u8],
    section: &[String],
    key: &str,
) -> Result<Vec<u8>, ConfError> {
    if language == Language::Lines {
        return Err(ConfError::Key {
            key: key.to_owned(),
            why: "a line is set to `off`, not removed",
        });
    }
    let root = parse(language, text)?;
    let blocks = select(language, text, &root, section)?;
    if switch::parse_switch(language, key).is_some() {
        return Err(ConfError::Key {
            key: key.to_owned(),
            why: "a block or an include is set to `off`, not removed",
        });
    }
    if language == Language::Fstab {
        return Err(ConfError::Key {
            key: key.to_owned(),
            why: "a mount is not removed; its options can be set to `defaults`",
        });
    }
    find_winner(language, text, &blocks, key)?;
    let mut new = text.to_vec();
    for directive in find_occurrences(language, text, &blocks, key).iter().rev() {
        new = take_out(&new, directive);
    }
    Ok(new)
}

/// Returns all include lines.
///
/// # Errors
/// The text is not of this language.
pub fn find_includes(language: Language, text: &[u8]) -> Result<Vec<Include>, ConfError> {
    fn walk(text: &[u8], block: &Block, section: &[String], out: &mut Vec<Include>) {
        for item in &block.items {
            match item {
                Item::Directive(_) => {}
                Item::Inclusion(inclusion) => out.push(Include {
                    pattern: inclusion.pattern.clone(),
                    line: line_number(text, inclusion.span.start),
                    section: section.to_vec(),
                }),
                Item::Block(inner) => {
                    let section = [section, &[block_head(inner)]].concat();
                    walk(text, inner, &section, out);
                }
            }
        }
    }
    let mut out = Vec::new();
    walk(text, &parse(language, text)?, &[], &mut out);
    Ok(out)
}

/// Returns all lines for the key, in the order of the file.
pub(crate) fn find_occurrences(
    language: Language,
    text: &[u8],
    blocks: &[&Block],
    key: &str,
) -> Vec<Directive> {
    let directives = blocks.iter().flat_map(|block| block.directives());
    match language {
        Language::Nginx => directives
            .filter_map(|directive| nginx::with_longer_key(text, directive, key))
            .collect(),
        Language::Words => directives
            .filter_map(|directive| worded_lines::with_longer_key(text, directive, key))
            .collect(),
        _ => directives
            .filter(|directive| same_key(language, &directive.key, key))
            .cloned()
            .collect(),
    }
}

/// Returns the line that takes effect for the key.
fn find_winner(
    language: Language,
    text: &[u8],
    blocks: &[&Block],
    key: &str,
) -> Result<Option<Directive>, ConfError> {
    let all = find_occurrences(language, text, blocks, key);
    match language {
        Language::Ssh => Ok(all.into_iter().next()),
        Language::Nginx | Language::Apache | Language::Words | Language::Fstab if all.len() > 1 => {
            Err(ConfError::Ambiguous {
                what: key.to_owned(),
                lines: all
                    .iter()
                    .map(|directive| line_number(text, directive.span.start))
                    .collect(),
                way_out: match language {
                    Language::Nginx | Language::Words => {
                        "put more of its words into the key, such as `add_header X-Frame-Options`"
                    }
                    _ => "name a file or a section in which it stands once",
                },
            })
        }
        _ => Ok(all.into_iter().next_back()),
    }
}

fn find_rivals(
    language: Language,
    text: &[u8],
    blocks: &[&Block],
    section: &[String],
    at: usize,
) -> Vec<Include> {
    let inclusions = blocks.iter().flat_map(|block| block.inclusions());
    inclusions
        .filter(|inclusion| match language {
            Language::Ssh => inclusion.span.start < at,
            Language::Nginx => false,
            _ => inclusion.span.start > at,
        })
        .map(|inclusion| Include {
            pattern: inclusion.pattern.clone(),
            line: line_number(text, inclusion.span.start),
            section: section.to_vec(),
        })
        .collect()
}

/// Returns the comment lines and blank lines within a value, each with a line end.
fn inner_lines(text: &[u8], directive: &Directive, from: usize) -> Vec<u8> {
    let inner = directive.inner.iter().filter(|line| line.start >= from);
    let lines: Vec<&[u8]> = inner.map(|line| &text[line.clone()]).collect();
    lines.join(line_ending(text))
}

fn replace(text: &[u8], directive: &Directive, value: &str) -> Vec<u8> {
    let place = directive.value_span.clone();
    let before = text[..place.start].last().copied().unwrap_or(b' ');
    let mut new = Vec::new();
    if !value.is_empty() && !is_blank(before) && !matches!(before, b'=' | b':' | b'\n') {
        new.push(b' ');
    }
    new.extend(value.as_bytes());
    // Comments before the value stay in their place.
    if directive.inner.iter().any(|line| line.start >= place.start) {
        new.extend(line_ending(text));
        new.extend(inner_lines(text, directive, place.start));
    }
    splice_text(text, place, &new)
}

fn take_out(text: &[u8], directive: &Directive) -> Vec<u8> {
    let span = directive.span.clone();
    let inner = inner_lines(text, directive, 0);
    if !stands_alone(text, &span) || !inner.is_empty() {
        // Inside a line, the blank before the statement is removed too.
        let before = &text[line_start(text, span.start)..span.start];
        let joined = before.last() == Some(&b' ') && before.iter().any(|&byte| !is_blank(byte));
        return splice_text(text, span.start - usize::from(joined)..span.end, &inner);
    }
    splice_text(text, whole_lines(text, &span), b"")
}

/// Extends a range to whole lines with their line ends. If the last line of the text has no line end, the range
/// includes the line end before this line instead.
fn whole_lines(text: &[u8], span: &Range<usize>) -> Range<usize> {
    let (mut start, end) = (line_start(text, span.start), line_end(text, span.end));
    if end == text.len() && text.last() != Some(&b'\n') {
        // The last line end itself is excluded: a `\r` before it may be part of the text.
        let newline = line_ending(&text[..start.saturating_sub(1)]);
        start -= match text[..start].ends_with(newline) {
            true => newline.len(),
            false => usize::from(start > 0),
        };
    }
    start..end
}

/// Returns a new statement `key = value` without blanks if all others of the file are written so: hostapd and vsftpd
/// take a blank beside the sign for a part of the name or of the value.
fn join_like_others(language: Language, text: &[u8], root: &Block, statement: String) -> String {
    if !matches!(language, Language::KeyValue | Language::Ini) {
        return statement;
    }
    let inner = root.blocks().flat_map(Block::directives);
    let mut others = root.directives().chain(inner).peekable();
    let is_joined = |other: &Directive| {
        let sign = other.span.start + other.key.len();
        text.get(sign) == Some(&b'=')
            && (other.value.is_empty() || other.value_span.start == sign + 1)
    };
    match others.peek().is_some() && others.all(is_joined) {
        true => statement.replacen(" = ", "=", 1),
        false => statement,
    }
}

fn insert(language: Language, text: &[u8], block: &Block, statement: &str) -> Vec<u8> {
    if let Some(close) = block.close {
        let line = line_start(text, close);
        if text[line..close].iter().all(|&byte| is_blank(byte)) {
            let step: &[u8] = match language {
                Language::Nginx => b"    ",
                _ => b"  ",
            };
            let sibling = block.items.last().map(|item| item.span().start);
            let indentation = match sibling {
                Some(at) => line_indent(text, at).to_vec(),
                None => [line_indent(text, block.span.start), step].concat(),
            };
            return insert_line(text, line, &[&indentation, statement.as_bytes()].concat());
        }
        let last = block.items.last().map(|item| item.span().end);
        let at = last.unwrap_or(block.open);
        return splice_text(text, at..at, format!(" {statement}").as_bytes());
    }
    let inclusion = block.inclusions().next();
    if let (Language::Ssh, Some(inclusion)) = (language, inclusion) {
        let start = inclusion.span.start;
        let line = [line_indent(text, start), statement.as_bytes()].concat();
        return insert_line(text, line_start(text, start), &line);
    }
    let (at, indentation) = match language {
        Language::Ssh | Language::Ini | Language::Mysql => end_of_section(text, block),
        // A line without a blank before it would begin another service.
        Language::PostfixServices => (end_of_section(text, block).0, b"  ".to_vec()),
        _ => (text.len(), Vec::new()),
    };
    insert_line(text, at, &[&indentation, statement.as_bytes()].concat())
}

/// Returns the offset at which a new line of the section must be inserted, and the indentation of this line. For
/// languages in which a section ends where the next one begins.
fn end_of_section(text: &[u8], block: &Block) -> (usize, Vec<u8>) {
    if let Some(last) = block.directives().next_back() {
        let at = last.span.start;
        return (
            line_end(text, last.span.end),
            line_indent(text, at).to_vec(),
        );
    }
    if !block.head.is_empty() {
        return (
            line_end(text, block.open),
            line_indent(text, block.span.start).to_vec(),
        );
    }
    let first = block.blocks().next();
    let at = first.map_or(text.len(), |block| line_start(text, block.span.start));
    (at, Vec::new())
}

fn insert_line(text: &[u8], at: usize, line: &[u8]) -> Vec<u8> {
    let newline = line_ending(text);
    let unfinished = at == text.len() && text.last().is_some_and(|&byte| byte != b'\n');
    let new = match unfinished {
        true => [newline, line].concat(),
        false => [line, newline].concat(),
    };
    splice_text(text, at..at, &new)
}
