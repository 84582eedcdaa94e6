//! Languages with several settings per line: fstab(5), modprobe.d(5), and Postfix services in master(5).

use crate::text::{is_blank, line_ranges, to_lossy_text, trim};
use crate::tree::{Block, Directive, Item};
use std::ops::Range;

/// Returns the ranges of the words of a line; none for a comment.
fn words_of(text: &[u8], line: Range<usize>) -> Vec<Range<usize>> {
    let line = trim(text, line);
    if text[line.clone()].first() == Some(&b'#') {
        return Vec::new();
    }
    let (mut words, mut start) = (Vec::new(), None);
    for at in line.clone() {
        match is_blank(text[at]) {
            true => words.extend(start.take().map(|start| start..at)),
            false => {
                start.get_or_insert(at);
            }
        }
    }
    words.extend(start.map(|start| start..line.end));
    words
}

fn directive(text: &[u8], key: String, span: Range<usize>, value_span: Range<usize>) -> Item {
    Item::Directive(Directive {
        key,
        value: text[value_span.clone()].to_vec(),
        quote: None,
        span,
        value_span,
        words: Vec::new(),
        inner: Vec::new(),
    })
}

/// Parses fstab. The key is the mount point as written, the value is its options.
pub fn parse_fstab(text: &[u8]) -> Block {
    let mut root = Block::default();
    for line in line_ranges(text) {
        if let [device, point, _, options, ..] = &words_of(text, line)[..] {
            let key = to_lossy_text(&text[point.clone()]);
            root.items.push(directive(
                text,
                key,
                device.start..options.end,
                options.clone(),
            ));
        }
    }
    root
}

/// Parses modprobe.d. The key consists of the module and its parameter, such as `zfs zfs_arc_max`.
pub fn parse_modprobe(text: &[u8]) -> Block {
    let mut root = Block::default();
    let mut continues = false;
    for line in line_ranges(text) {
        let ends = text[trim(text, line.clone())].ends_with(b"\\");
        if std::mem::replace(&mut continues, ends) || ends {
            continue;
        }
        let words = words_of(text, line);
        let [command, module, options @ ..] = &words[..] else {
            continue;
        };
        if &text[command.clone()] != b"options" {
            continue;
        }
        for option in options {
            let Some(equals) = text[option.clone()].iter().position(|&byte| byte == b'=') else {
                continue;
            };
            let name = &text[option.start..option.start + equals];
            let key = format!(
                "{} {}",
                to_lossy_text(&text[module.clone()]),
                to_lossy_text(name)
            );
            // The last option takes its line along.
            let start = if options.len() == 1 {
                command.start
            } else {
                option.start
            };
            let value = option.start + equals + 1..option.end;
            root.items
                .push(directive(text, key, start..option.end, value));
        }
    }
    root
}

/// Parses master.cf. There is one block per service, which contains its options `-o name=value`.
pub fn parse_postfix_services(text: &[u8]) -> Block {
    let mut root = Block::default();
    let mut service: Option<Block> = None;
    for line in line_ranges(text) {
        let words = words_of(text, line.clone());
        let Some(first) = words.first() else { continue };
        if first.start == line.start {
            root.items.extend(service.take().map(Item::Block));
            let head = words
                .iter()
                .take(2)
                .map(|word| to_lossy_text(&text[word.clone()]))
                .collect();
            service = Some(Block {
                head,
                open: line.end,
                span: line,
                ..Block::default()
            });
        }
        let Some(block) = &mut service else { continue };
        block.span.end = words.last().map_or(block.span.end, |word| word.end);
        for pair in words.windows(2) {
            let option = &text[pair[1].clone()];
            let equals = option.iter().position(|&byte| byte == b'=');
            if let (b"-o", Some(equals)) = (&text[pair[0].clone()], equals) {
                let key = to_lossy_text(&option[..equals]);
                let value = pair[1].start + equals + 1..pair[1].end;
                block
                    .items
                    .push(directive(text, key, pair[0].start..pair[1].end, value));
            }
        }
    }
    root.items.extend(service.map(Item::Block));
    root
}

/// Returns a value as written if it is one word. The error is the reason why it is not.
pub fn write_word(value: &str, may_be_empty: bool) -> Result<String, &'static str> {
    match () {
        () if value.is_empty() && !may_be_empty => Err("it is empty"),
        () if value.starts_with('#') => Err("a comment cannot be a value"),
        () if value.ends_with('\\') => Err("it ends with a backslash"),
        () if value.chars().any(char::is_whitespace) => Err("it has a blank"),
        () => Ok(value.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use crate::{get, remove, set};
    use assay_model::change::ConfigLanguage::{Fstab, Modprobe, PostfixServices};

    fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(bytes)
    }

    #[test]
    fn options_of_a_mount() {
        let fstab =
            b"# /srv\nUUID=1 / ext4 defaults 0 1\n/dev/b\t/srv\txfs\tnobarrier,noatime 0 2 # x\n";
        let found = get(Fstab, fstab, &[], "/srv").unwrap().unwrap();
        assert_eq!((found.value.as_str(), found.line), ("nobarrier,noatime", 3));
        let new = set(Fstab, fstab, &[], "/srv", "noatime").unwrap();
        assert_eq!(text(&new), text(fstab).replace("nobarrier,", ""));
        assert!(
            remove(Fstab, fstab, &[], "/srv").is_err(),
            "a mount is not removed"
        );
        assert!(set(Fstab, fstab, &[], "/none", "a").is_err());
        for bad in ["", "a b", "#a"] {
            assert!(set(Fstab, fstab, &[], "/srv", bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn options_of_a_module() {
        let file = b"# options zfs a=1\noptions zfs a=1 b=2\noptions zfs c=3\nblacklist x\n";
        let key = |name: &str| format!("zfs {name}");
        assert_eq!(
            get(Modprobe, file, &[], &key("b")).unwrap().unwrap().value,
            "2"
        );
        let gone = remove(Modprobe, file, &[], &key("a")).unwrap();
        assert_eq!(text(&gone), text(file).replace("zfs a=1 b", "zfs b"));
        let gone = remove(Modprobe, file, &[], &key("c")).unwrap();
        assert_eq!(text(&gone), text(file).replace("options zfs c=3\n", ""));
        let new = set(Modprobe, b"", &[], &key("a"), "4").unwrap();
        assert_eq!(text(&new), "options zfs a=4\n");
    }

    #[test]
    fn options_of_a_service() {
        let file = b"smtp inet n - y - - smtpd -o a=1\nsub inet n - y - - smtpd\n  -o a=2\n# c\n  -o b={x}\n";
        let of = |name: &str| vec![format!("{name} inet")];
        assert_eq!(
            get(PostfixServices, file, &of("sub"), "a")
                .unwrap()
                .unwrap()
                .value,
            "2"
        );
        let new = set(PostfixServices, file, &of("sub"), "a", "3").unwrap();
        assert_eq!(text(&new), text(file).replace("a=2", "a=3"));
        let gone = remove(PostfixServices, file, &of("smtp"), "a").unwrap();
        assert_eq!(text(&gone), text(file).replace(" -o a=1", ""));
        let gone = remove(PostfixServices, file, &of("sub"), "a").unwrap();
        assert_eq!(text(&gone), text(file).replace("  -o a=2\n", ""));
        let new = set(PostfixServices, file, &of("smtp"), "c", "1").unwrap();
        assert_eq!(text(&new), text(file).replace("a=1\n", "a=1\n  -o c=1\n"));
    }
}
