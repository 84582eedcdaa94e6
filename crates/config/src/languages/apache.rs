//! Apache httpd 2.4: one directive per line, and sections `<Name …>` … `</Name>` (`configuring.html`, "Syntax of the
//! Configuration Files", in its manual). Names are case-insensitive.
//! A directive that continues in the next line is rejected, because it is one line for Apache but several lines for the
//! editor.

use super::syntax::{DEEPEST, syntax_error};
use crate::error::ConfError;
use crate::text::{is_blank, line_ranges, to_lossy_text, trim};
use crate::tree::{Block, Directive, Inclusion, Item};
use assay_model::change::ConfigLanguage as Language;

pub fn parse(text: &[u8]) -> Result<Block, ConfError> {
    let error = |at: usize, what: &str| syntax_error(Language::Apache, text, at, what);
    let mut open: Vec<Block> = vec![Block::default()];
    for whole in line_ranges(text) {
        let line = trim(text, whole.clone());
        let bytes = &text[line.clone()];
        if text[whole].last() == Some(&b'\\') {
            return Err(error(
                line.start,
                "a line that goes on in the next: put it on one line",
            ));
        }
        match bytes {
            [] | [b'#', ..] => continue,
            [b'<', b'/', name @ .., b'>'] => {
                let block = open.pop().filter(|_| !open.is_empty());
                let (Some(mut block), Some(outer)) = (block, open.last_mut()) else {
                    return Err(error(line.start, "a section ends that never began"));
                };
                let name = to_lossy_text(name);
                let own = block.head.first().map_or("", String::as_str);
                if !own.eq_ignore_ascii_case(name.trim()) {
                    return Err(error(line.start, "another section ends than began last"));
                }
                block.span.end = line.end;
                block.close = Some(line.start);
                outer.items.push(Item::Block(block));
            }
            [b'<', inner @ .., b'>'] => {
                if open.len() > DEEPEST {
                    return Err(error(line.start, "sections in too many sections"));
                }
                let head: Vec<String> = to_lossy_text(inner)
                    .split_whitespace()
                    .map(str::to_owned)
                    .collect();
                if head.is_empty() {
                    return Err(error(line.start, "a section without a name"));
                }
                open.push(Block {
                    head,
                    open: line.end,
                    span: line,
                    ..Block::default()
                });
            }
            [b'<', ..] => return Err(error(line.start, "a `>` is missing")),
            _ => {
                let item = parse_statement(text, line);
                if let Some(block) = open.last_mut() {
                    block.items.push(item);
                }
            }
        }
    }
    match (open.pop(), open.is_empty()) {
        (Some(root), true) => Ok(root),
        (block, _) => {
            let at = block.map_or(0, |block| block.span.start);
            Err(error(at, "a section is not closed"))
        }
    }
}

fn parse_statement(text: &[u8], line: std::ops::Range<usize>) -> Item {
    let bytes = &text[line.clone()];
    let end = bytes.iter().position(|&byte| is_blank(byte));
    let end = line.start + end.unwrap_or(bytes.len());
    let value = trim(text, end..line.end);
    let key = to_lossy_text(&text[line.start..end]);
    if key.eq_ignore_ascii_case("Include") || key.eq_ignore_ascii_case("IncludeOptional") {
        return Item::Inclusion(Inclusion {
            key,
            pattern: to_lossy_text(&text[value]),
            span: line,
        });
    }
    Item::Directive(Directive {
        key,
        value: text[value.clone()].to_vec(),
        quote: None,
        span: line,
        value_span: value,
        words: Vec::new(),
        inner: Vec::new(),
    })
}

pub fn write_value(value: &str) -> Result<String, &'static str> {
    match () {
        () if value.trim() != value => Err("it begins or ends with a blank"),
        () if value.ends_with('\\') => Err("it ends with a backslash"),
        () => Ok(value.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use crate::{get, set};
    use assay_model::change::ConfigLanguage::Apache;

    const TEXT: &[u8] = b"# LoadModule no\n  LoadModule mpm_event_module  /m/event.so \n<IfModule mpm_event_module>\n\tThreadsPerChild 25\n</IfModule>\nInclude x.conf\n";

    fn read(section: &[&str], key: &str) -> Option<String> {
        let section: Vec<String> = section.iter().map(|head| (*head).to_owned()).collect();
        get(Apache, TEXT, &section, key)
            .unwrap()
            .map(|found| found.value)
    }

    #[test]
    fn lines_and_sections() {
        let module = "mpm_event_module  /m/event.so";
        assert_eq!(read(&[], "loadmodule").as_deref(), Some(module));
        let threads = read(&["IfModule mpm_event_module"], "ThreadsPerChild");
        assert_eq!(threads.as_deref(), Some("25"));
        assert_eq!(read(&[], "ThreadsPerChild"), None);
        let new = set(Apache, TEXT, &[], "LoadModule", "a_module /m/a.so").unwrap();
        let old = String::from_utf8_lossy(TEXT).replace(module, "a_module /m/a.so");
        assert_eq!(String::from_utf8_lossy(&new), old);
    }

    #[test]
    fn what_is_none_is_refused() {
        for bad in [
            "</If>",
            "<If x>\n",
            "<If x",
            "<If>\n</Else>",
            "<>\n</>",
            "A b \\\n c",
            "A b\\",
        ] {
            assert!(get(Apache, bad.as_bytes(), &[], "A").is_err(), "{bad}");
        }
        let twice = b"LoadModule a b\nLoadModule c d\n";
        assert!(get(Apache, twice, &[], "LoadModule").is_err());
        for bad in [" x", "x\\", "x\ny"] {
            assert!(set(Apache, b"A b\n", &[], "A", bad).is_err(), "{bad}");
        }
    }
}
