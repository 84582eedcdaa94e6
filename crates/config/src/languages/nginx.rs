//! nginx: parses the configuration token by token, like `ngx_conf_read_token` of nginx 1.22
//! (`src/core/ngx_conf_file.c`).

use super::syntax::{DEEPEST, syntax_error};
use crate::error::ConfError;
use crate::text::to_lossy_text;
use crate::tree::{Block, Directive, Inclusion, Item};
use assay_model::change::ConfigLanguage as Language;
use std::ops::Range;

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Word(Range<usize>),
    Semicolon(usize),
    Open(usize),
    Close(usize),
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// Returns the next token at or after `at`; `None` at the end of the text. The error is an offset and a description.
fn next_token(text: &[u8], mut at: usize) -> Result<Option<Token>, (usize, &'static str)> {
    loop {
        match text.get(at) {
            None => return Ok(None),
            Some(&byte) if is_space(byte) => at += 1,
            Some(b'#') => at = crate::text::line_end(text, at),
            Some(b';') => return Ok(Some(Token::Semicolon(at))),
            Some(b'{') => return Ok(Some(Token::Open(at))),
            Some(b'}') => return Ok(Some(Token::Close(at))),
            Some(_) => break,
        }
    }
    let start = at;
    let quote = text[at];
    if quote == b'"' || quote == b'\'' {
        at += 1;
        while text.get(at).is_some_and(|&byte| byte != quote) {
            at += 1 + usize::from(text[at] == b'\\');
        }
        let end = at + 1;
        return match text.get(end) {
            _ if at >= text.len() => Err((start, "a quote is not closed")),
            None | Some(b' ' | b'\t' | b'\r' | b'\n' | b';' | b'{' | b')') => {
                Ok(Some(Token::Word(start..end)))
            }
            Some(_) => Err((end, "no space after a closing quote")),
        };
    }
    while let Some(&byte) = text.get(at) {
        match byte {
            b'\\' => at += 2,
            b'$' if text.get(at + 1) == Some(&b'{') => at += 2,
            b';' | b'{' => break,
            byte if is_space(byte) => break,
            _ => at += 1,
        }
    }
    Ok(Some(Token::Word(start..at.min(text.len()))))
}

fn unquote_word(text: &[u8], word: &Range<usize>) -> Vec<u8> {
    let raw = &text[word.clone()];
    match raw {
        [quote @ (b'"' | b'\''), inner @ .., last] if quote == last => inner.to_vec(),
        _ => raw.to_vec(),
    }
}

/// Returns the value of a word. Its quotes are removed, and its backslashes are interpreted like in
/// `ngx_conf_read_token`.
pub fn word_meaning(text: &[u8], word: &Range<usize>) -> Vec<u8> {
    let inner = unquote_word(text, word);
    let mut out = Vec::with_capacity(inner.len());
    let mut at = 0;
    while let Some(&byte) = inner.get(at) {
        let (byte, taken) = match (byte, inner.get(at + 1)) {
            (b'\\', Some(&next @ (b'"' | b'\'' | b'\\'))) => (next, 2),
            (b'\\', Some(b't')) => (b'\t', 2),
            (b'\\', Some(b'r')) => (b'\r', 2),
            (b'\\', Some(b'n')) => (b'\n', 2),
            (byte, _) => (byte, 1),
        };
        out.push(byte);
        at += taken;
    }
    out
}

pub fn parse(text: &[u8]) -> Result<Block, ConfError> {
    let error = |(at, what): (usize, &str)| syntax_error(Language::Nginx, text, at, what);
    let mut open: Vec<Block> = vec![Block::default()];
    let mut words: Vec<Range<usize>> = Vec::new();
    let mut at = 0;
    while let Some(token) = next_token(text, at).map_err(error)? {
        match token {
            Token::Word(word) => {
                at = word.end;
                words.push(word);
            }
            Token::Semicolon(place) => {
                at = place + 1;
                let item = parse_statement(text, &words, place)
                    .ok_or_else(|| error((place, "a `;` after nothing")))?;
                words.clear();
                if let Some(block) = open.last_mut() {
                    block.items.push(item);
                }
            }
            Token::Open(place) => {
                at = place + 1;
                let Some(first) = words.first() else {
                    return Err(error((place, "a `{` after nothing")));
                };
                let block = Block {
                    head: words
                        .iter()
                        .map(|w| to_lossy_text(&unquote_word(text, w)))
                        .collect(),
                    span: first.start..at,
                    open: at,
                    ..Block::default()
                };
                // Lua code inside braces has its own syntax.
                if block.head[0].ends_with("_by_lua_block") {
                    at = end_of_lua(text, at)
                        .ok_or_else(|| error((place, "a `{` is not closed")))?;
                }
                words.clear();
                if open.len() > DEEPEST {
                    return Err(error((place, "blocks in too many blocks")));
                }
                open.push(block);
            }
            Token::Close(place) => {
                at = place + 1;
                if !words.is_empty() {
                    return Err(error((place, "a `;` is missing before `}`")));
                }
                let block = open.pop().filter(|_| !open.is_empty());
                let (Some(mut block), Some(outer)) = (block, open.last_mut()) else {
                    return Err(error((place, "a `}` without `{`")));
                };
                block.span.end = at;
                block.close = Some(place);
                outer.items.push(Item::Block(block));
            }
        }
    }
    if let Some(word) = words.first() {
        return Err(error((word.start, "a `;` is missing at the end")));
    }
    match (open.pop(), open.is_empty()) {
        (Some(root), true) => Ok(root),
        (block, _) => {
            let at = block.map_or(0, |block| block.span.start);
            Err(error((at, "a `{` is not closed")))
        }
    }
}

/// Returns the offset of the brace that closes the Lua code that begins at `at`.
fn end_of_lua(text: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0;
    loop {
        match (*text.get(at)?, text.get(at + 1)) {
            (b'}', _) if depth == 0 => return Some(at),
            (b'}', _) => depth -= 1,
            (b'{', _) => depth += 1,
            (b'-', Some(b'-')) => at = crate::text::line_end(text, at) - 1,
            (quote @ (b'"' | b'\''), _) => {
                at += 1;
                while *text.get(at)? != quote {
                    at += 1 + usize::from(text[at] == b'\\');
                }
            }
            _ => {}
        }
        at += 1;
    }
}

fn parse_statement(text: &[u8], words: &[Range<usize>], semicolon: usize) -> Option<Item> {
    let (first, rest) = words.split_first()?;
    let key = to_lossy_text(&unquote_word(text, first));
    let span = first.start..semicolon + 1;
    if key == "include" {
        let pattern = rest
            .first()
            .map(|word| to_lossy_text(&unquote_word(text, word)));
        let pattern = pattern.unwrap_or_default();
        return Some(Item::Inclusion(Inclusion { key, pattern, span }));
    }
    Some(Item::Directive(Directive {
        value: as_line(text, rest),
        value_span: value_range(first.end, rest, semicolon),
        key,
        quote: None,
        span,
        words: words.to_vec(),
        inner: Vec::new(),
    }))
}

/// Joins words with single spaces. Each word remains as written in the file.
fn as_line(text: &[u8], words: &[Range<usize>]) -> Vec<u8> {
    let words: Vec<&[u8]> = words.iter().map(|word| &text[word.clone()]).collect();
    words.join(&b' ')
}

fn value_range(key_end: usize, words: &[Range<usize>], semicolon: usize) -> Range<usize> {
    match (words.first(), words.last()) {
        (Some(first), Some(last)) => first.start..last.end,
        _ => key_end..semicolon,
    }
}

/// Extends the key of a directive by more of its words, if these words are equal to the words of `key`.
pub fn with_longer_key(text: &[u8], directive: &Directive, key: &str) -> Option<Directive> {
    let wanted: Vec<&str> = key.split_ascii_whitespace().collect();
    let (head, rest) = directive.words.split_at_checked(wanted.len())?;
    let same = |(word, wanted): (&Range<usize>, &&str)| {
        unquote_word(text, word) == wanted.as_bytes() || &text[word.clone()] == wanted.as_bytes()
    };
    let semicolon = directive.span.end - 1;
    (!head.is_empty() && head.iter().zip(&wanted).all(same)).then(|| Directive {
        value: as_line(text, rest),
        value_span: value_range(head[head.len() - 1].end, rest, semicolon),
        ..directive.clone()
    })
}

pub fn write_value(value: &str) -> Result<String, &'static str> {
    let text = value.as_bytes();
    let mut words = Vec::new();
    let mut at = 0;
    loop {
        match next_token(text, at).map_err(|(_, what)| what)? {
            Some(Token::Word(word)) => {
                // A backslash at the end would escape the `;`.
                if word.end > text.len() || trailing_backslash(&text[word.clone()]) {
                    return Err("it ends with a backslash");
                }
                at = word.end;
                words.push(word);
            }
            Some(_) => return Err("`;`, `{` and `}` must be in quotes"),
            None if text[at..].contains(&b'#') => return Err("a comment cannot be a value"),
            None => break,
        }
    }
    String::from_utf8(as_line(text, &words)).map_err(|_| "it is not UTF-8")
}

fn trailing_backslash(word: &[u8]) -> bool {
    let quoted = matches!(word.first(), Some(b'"' | b'\''));
    !quoted && word.iter().rev().take_while(|&&byte| byte == b'\\').count() % 2 == 1
}
