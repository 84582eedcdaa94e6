//! sshd_config(5) and ssh_config(5), parsed like OpenSSH 9.2: `strdelim` of `misc.c` for the keyword, `argv_split` of
//! `misc.c` for the arguments.

use super::syntax::syntax_error;
use crate::error::ConfError;
use crate::text::{is_blank, line_ranges, to_lossy_text, trim};
use crate::tree::{Block, Directive, Inclusion, Item};
use assay_model::change::ConfigLanguage as Language;
use std::ops::Range;

pub fn parse(text: &[u8]) -> Result<Block, ConfError> {
    let mut root = Block::default();
    let mut block: Option<Block> = None;
    for line in line_ranges(text) {
        let mut line = trim(text, line);
        // `strdelim` ignores a `=` before the keyword.
        if text[line.clone()].first() == Some(&b'=') {
            line = trim(text, line.start + 1..line.end);
        }
        if line.is_empty() || matches!(text[line.start], b'#' | b'=') {
            continue;
        }
        let (key, rest) = parse_keyword(text, line.clone())?;
        let words = match (parse_arguments(text, rest.clone())?, is_raw(&key)) {
            (words, false) => words,
            (_, true) if rest.is_empty() => Vec::new(),
            (_, true) => vec![(rest.clone(), text[rest.clone()].to_vec())],
        };
        let end = words.last().map_or(rest.start, |word| word.0.end);
        let span = line.start..end.max(line.start + 1);
        let values: Vec<Vec<u8>> = words.iter().map(|word| word.1.clone()).collect();
        if key.eq_ignore_ascii_case("match") || key.eq_ignore_ascii_case("host") {
            root.items.extend(block.take().map(Item::Block));
            let mut head = vec![key];
            head.extend(values.iter().map(|value| to_lossy_text(value)));
            block = Some(Block {
                head,
                open: span.end,
                span,
                ..Block::default()
            });
            continue;
        }
        let value = match &values[..] {
            [value] if is_raw(&key) => value.clone(),
            values => join(values),
        };
        let item = if key.eq_ignore_ascii_case("include") {
            Item::Inclusion(Inclusion {
                key,
                pattern: to_lossy_text(&value),
                span: span.clone(),
            })
        } else {
            let start = words.first().map_or(span.end, |word| word.0.start);
            let quote = match &words[..] {
                [(word, _)] if !is_raw(&key) => {
                    Some(text[word.start]).filter(|&byte| is_quote(byte))
                }
                _ => None,
            };
            Item::Directive(Directive {
                key,
                value,
                quote,
                span: span.clone(),
                value_span: start..span.end,
                words: Vec::new(),
                inner: Vec::new(),
            })
        };
        let place = block.as_mut().unwrap_or(&mut root);
        place.span.end = span.end;
        place.items.push(item);
    }
    root.items.extend(block.map(Item::Block));
    Ok(root)
}

/// Returns whether a keyword takes the rest of its line unchanged, including quotes and `#`. These keywords are
/// commands, and the text that is appended to the version (`sForceCommand`, `sVersionAddendum` and `parse_command` of
/// servconf.c, `parse_command` of readconf.c).
pub fn is_raw(key: &str) -> bool {
    const RAW: [&str; 8] = [
        "authorizedkeyscommand",
        "authorizedprincipalscommand",
        "forcecommand",
        "versionaddendum",
        "knownhostscommand",
        "localcommand",
        "proxycommand",
        "remotecommand",
    ];
    RAW.iter().any(|raw| key.eq_ignore_ascii_case(raw))
}

/// A keyword with its arguments.
pub type Statement = (String, Vec<Vec<u8>>);

/// Parses one line of sshd_config or ssh_config. Returns the keyword as written, and its arguments without quotes;
/// `None` for an empty line or a comment.
///
/// # Errors
/// A quote is not closed.
pub fn parse_statement(line: &[u8]) -> Result<Option<Statement>, ConfError> {
    let root = parse(line)?;
    Ok(root.items.into_iter().next().map(|item| match item {
        Item::Directive(said) if is_raw(&said.key) => (said.key, vec![said.value]),
        Item::Directive(said) => (said.key, split_words(&said.value)),
        Item::Inclusion(said) => (said.key, split_words(said.pattern.as_bytes())),
        Item::Block(block) => {
            let mut head = block.head.into_iter();
            let key = head.next().unwrap_or_default();
            (key, head.map(String::into_bytes).collect())
        }
    }))
}

/// Splits a value that [`parse`] returned into its arguments.
pub fn split_words(value: &[u8]) -> Vec<Vec<u8>> {
    let words = split(value, false).unwrap_or_default();
    words.into_iter().map(|(_, value)| value).collect()
}

fn is_quote(byte: u8) -> bool {
    byte == b'"' || byte == b'\''
}

/// Returns the keyword and the range of the arguments.
fn parse_keyword(text: &[u8], line: Range<usize>) -> Result<(String, Range<usize>), ConfError> {
    let bytes = &text[line.clone()];
    if bytes[0] == b'"' {
        let Some(end) = bytes[1..].iter().position(|&byte| byte == b'"') else {
            return Err(syntax_error(
                Language::Ssh,
                text,
                line.start,
                "a quote is not closed",
            ));
        };
        let rest = trim(text, line.start + end + 2..line.end);
        return Ok((to_lossy_text(&bytes[1..=end]), rest));
    }
    let end = bytes
        .iter()
        .position(|&byte| is_blank(byte) || byte == b'=' || byte == b'"')
        .unwrap_or(bytes.len());
    if bytes.get(end) == Some(&b'"') {
        return Err(syntax_error(
            Language::Ssh,
            text,
            line.start,
            "a quote inside the keyword",
        ));
    }
    let mut rest = trim(text, line.start + end..line.end);
    // One `=` may separate the keyword and the arguments.
    if text[rest.clone()].first() == Some(&b'=') {
        rest = trim(text, rest.start + 1..rest.end);
    }
    Ok((to_lossy_text(&bytes[..end]), rest))
}

type Word = (Range<usize>, Vec<u8>);

/// Returns the arguments before a comment, with their positions and values.
fn parse_arguments(text: &[u8], range: Range<usize>) -> Result<Vec<Word>, ConfError> {
    split(&text[range.clone()], true)
        .map(|words| {
            let place = |(at, value): Word| (at.start + range.start..at.end + range.start, value);
            words.into_iter().map(place).collect()
        })
        .ok_or_else(|| syntax_error(Language::Ssh, text, range.start, "a quote is not closed"))
}

/// Splits text into words like `argv_split`. Both kinds of quotes are supported. A backslash escapes a quote, a
/// backslash or, outside of quotes, a blank. `None` if a quote is not closed.
fn split(bytes: &[u8], comments: bool) -> Option<Vec<Word>> {
    let mut words = Vec::new();
    let mut i = 0;
    while i < bytes.len() {
        if is_blank(bytes[i]) {
            i += 1;
            continue;
        }
        if comments && bytes[i] == b'#' {
            break;
        }
        let start = i;
        let mut value = Vec::new();
        let mut quote = None;
        while i < bytes.len() && (quote.is_some() || !is_blank(bytes[i])) {
            let byte = bytes[i];
            let next = bytes.get(i + 1).copied();
            let escaped = byte == b'\\'
                && next.is_some_and(|next| {
                    is_quote(next) || next == b'\\' || (quote.is_none() && next == b' ')
                });
            if escaped {
                value.extend(next);
                i += 1;
            } else if quote.is_none() && is_quote(byte) {
                quote = Some(byte);
            } else if quote == Some(byte) {
                quote = None;
            } else {
                value.push(byte);
            }
            i += 1;
        }
        if quote.is_some() {
            return None;
        }
        words.push((start..i, value));
    }
    Some(words)
}

/// Joins arguments on one line, and quotes them where necessary.
fn join(values: &[Vec<u8>]) -> Vec<u8> {
    // A single argument stays unquoted if that is unambiguous.
    let words: Vec<Vec<u8>> = values
        .iter()
        .map(|value| quote_value(value, None))
        .collect();
    words.join(&b' ')
}

fn quote_value(value: &[u8], quote: Option<u8>) -> Vec<u8> {
    let special = |&byte: &u8| is_blank(byte) || is_quote(byte) || byte == b'\\';
    let needed = value.is_empty() || value[0] == b'#' || value.iter().any(special);
    let quote = match (quote, needed) {
        (None, false) => return value.to_vec(),
        (quote, _) => quote.unwrap_or(b'"'),
    };
    let mut out = vec![quote];
    for &byte in value {
        if is_quote(byte) || byte == b'\\' {
            out.push(b'\\');
        }
        out.push(byte);
    }
    out.push(quote);
    out
}

/// Returns a value as written that is the rest of its line. The error is that a quote is not closed.
pub fn write_raw(value: &str) -> Result<String, &'static str> {
    match split(value.as_bytes(), true) {
        None => Err("a quote is not closed"),
        Some(_) if value.is_empty() => Err("a keyword needs an argument"),
        Some(_) if value.starts_with('=') => Err("an argument cannot begin with `=`"),
        Some(_) if value.trim() != value => Err("it begins or ends with a blank"),
        Some(_) => Ok(value.to_owned()),
    }
}

pub fn write_value(value: &str, quote: Option<u8>) -> Result<String, &'static str> {
    let words = split(value.as_bytes(), false).ok_or("a quote is not closed")?;
    let words: Vec<Vec<u8>> = words.into_iter().map(|word| word.1).collect();
    let written = match &words[..] {
        [] => return Err("a keyword needs an argument"),
        [first, ..] if first.first() == Some(&b'=') => {
            return Err("an argument cannot begin with `=`");
        }
        [word] => quote_value(word, quote),
        _ => join(&words),
    };
    String::from_utf8(written).map_err(|_| "it is not UTF-8")
}
