//! Replaces whole lines of any text file. The key is the new text of a line. The section consists of the present text
//! of the line, and of its number among the lines that have one of these two texts. The value is `on` if the line has
//! the new text, `off` if it has the present text.

use crate::FoundSetting;
use crate::error::ConfError;
use crate::text::{line_number, line_ranges, splice_text};
use std::ops::Range;

const ON: &str = "on";
const OFF: &str = "off";

/// Returns the section that identifies the line with number `line` (counted from 1), if `new` is its new text. `None`
/// if there is no such line, or if it is not UTF-8.
#[must_use]
pub fn line_section(text: &[u8], line: usize, new: &str) -> Option<Vec<String>> {
    let range = line_ranges(text).nth(line.checked_sub(1)?)?;
    let old = std::str::from_utf8(&text[range.clone()]).ok()?;
    let before = line_ranges(text).filter(|other| other.start <= range.start);
    let forms = before.filter(|other| is_form(&text[other.clone()], old, new));
    Some(vec![old.to_owned(), forms.count().to_string()])
}

fn is_form(line: &[u8], old: &str, new: &str) -> bool {
    line == old.as_bytes() || line == new.as_bytes()
}

/// A line, as its range in the file and its text.
type Line<'a> = (Range<usize>, &'a [u8]);

/// Returns the range of the line that section and key identify, and the text of the line in the file.
fn find<'a>(text: &'a [u8], section: &[String], new: &str) -> Result<Option<Line<'a>>, ConfError> {
    let refused = |why| ConfError::Key {
        key: new.to_owned(),
        why,
    };
    let [old, number] = section else {
        return Err(refused("the section is the present line and its number"));
    };
    let number: usize = number
        .parse()
        .map_err(|_| refused("the number of the line is none"))?;
    if old == new
        || [old, new]
            .iter()
            .any(|form| form.contains(['\n', '\r', '\0']))
    {
        return Err(refused("it is not another line"));
    }
    let mut forms = line_ranges(text).filter(|line| is_form(&text[line.clone()], old, new));
    let found = number.checked_sub(1).and_then(|before| forms.nth(before));
    Ok(found.map(|line| (line.clone(), &text[line])))
}

/// Returns which of the two texts the line has: `on` for the new text, `off` for the present text. `None` if there is
/// no such line.
pub fn get(text: &[u8], section: &[String], new: &str) -> Result<Option<FoundSetting>, ConfError> {
    let found = find(text, section, new)?;
    Ok(found.map(|(line, form)| FoundSetting {
        value: match form == new.as_bytes() {
            true => ON.to_owned(),
            false => OFF.to_owned(),
        },
        line: line_number(text, line.start),
        rivals: Vec::new(),
    }))
}

/// Returns the text of the file in which the line has the new text (`on`) or the present text (`off`).
pub fn set(text: &[u8], section: &[String], new: &str, value: &str) -> Result<Vec<u8>, ConfError> {
    let refused = |why| ConfError::Value {
        key: new.to_owned(),
        value: value.to_owned(),
        why,
    };
    let Some((line, _)) = find(text, section, new)? else {
        return Err(refused("the line is not there"));
    };
    match value {
        ON => Ok(splice_text(text, line, new.as_bytes())),
        OFF => Ok(splice_text(text, line, section[0].as_bytes())),
        _ => Err(refused("a line is `on` or `off`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit;
    use assay_model::change::ConfigLanguage::Lines;

    #[test]
    fn a_line_is_exchanged_and_comes_back() {
        let text = b"a\r\n  any; # x\nany;\n  any; # x\nend";
        for (line, number) in [(2, "1"), (4, "2")] {
            let new = "  none; # x";
            let section = line_section(text, line, new).unwrap();
            assert_eq!(section, ["  any; # x", number]);
            let found = edit::get(Lines, text, &section, new).unwrap().unwrap();
            assert_eq!((found.value.as_str(), found.line), ("off", line));
            let changed = edit::set(Lines, text, &section, new, "on").unwrap();
            let lines: Vec<&[u8]> = changed.split(|&byte| byte == b'\n').collect();
            assert_eq!(lines[line - 1], new.as_bytes());
            let found = edit::get(Lines, &changed, &section, new).unwrap().unwrap();
            assert_eq!((found.value.as_str(), found.line), ("on", line));
            assert_eq!(
                edit::set(Lines, &changed, &section, new, "off").unwrap(),
                text
            );
            assert_eq!(edit::set(Lines, text, &section, new, "off").unwrap(), text);
        }
        // Both lines, one after the other.
        let new = "  none; # x";
        let first = line_section(text, 2, new).unwrap();
        let once = edit::set(Lines, text, &first, new, "on").unwrap();
        let second = line_section(&once, 4, new).unwrap();
        assert_eq!(second[1], "2");
        let twice = edit::set(Lines, &once, &second, new, "on").unwrap();
        assert_eq!(twice.iter().filter(|&&byte| byte == b'#').count(), 2);
        assert!(
            edit::get(Lines, &twice, &first, new)
                .unwrap()
                .unwrap()
                .value
                == "on"
        );
    }

    #[test]
    fn a_line_that_is_gone_is_not_set() {
        let section = vec!["a".to_owned(), "1".to_owned()];
        assert_eq!(edit::get(Lines, b"c\n", &section, "b").unwrap(), None);
        assert!(edit::set(Lines, b"c\n", &section, "b", "on").is_err());
        assert!(edit::set(Lines, b"a\n", &section, "b", "x").is_err());
        assert!(edit::set(Lines, b"a\n", &section, "b\nc", "on").is_err());
        assert!(edit::get(Lines, b"a\n", &[], "b").is_err());
        assert!(edit::remove(Lines, b"a\n", &section, "b").is_err());
        assert_eq!(line_section(b"a\n", 2, "b"), None);
        assert_eq!(line_section(b"\xff\n", 1, "b"), None);
    }
}
