//! Finds the section and key of the setting on a given line of a file.

use crate::edit::find_occurrences;
use crate::error::ConfError;
use crate::languages::parse;
use crate::select::{block_head, select};
use crate::switch;
use crate::text::{line_number, to_lossy_text};
use crate::tree::Block;
use assay_model::change::ConfigLanguage as Language;

/// Section and key of a setting in a file. The documentation of the crate describes both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingAtLine {
    /// Selectors of the enclosing blocks.
    pub section: Vec<String>,
    /// The key as written in the file.
    pub key: String,
}

/// Key that matches any setting that begins on the line.
const ANY: &str = "*";

/// Returns the section of the block whose head is on a line (counted from 1). `None` if no block begins there, or if no
/// section distinguishes it from other blocks.
///
/// # Errors
/// The text is not of this language.
pub fn section_at_line(
    language: Language,
    text: &[u8],
    line: usize,
) -> Result<Option<Vec<String>>, ConfError> {
    fn search(
        language: Language,
        text: &[u8],
        block: &Block,
        line: usize,
        section: &mut Vec<String>,
    ) -> bool {
        let there: Vec<&Block> = block.blocks().collect();
        there.iter().enumerate().any(|(at, inner)| {
            section.push(block_selector(language, &there, at));
            let found = line_number(text, inner.span.start) == line
                || search(language, text, inner, line, section);
            if !found {
                section.pop();
            }
            found
        })
    }
    let root = parse(language, text)?;
    let mut section = Vec::new();
    let found = search(language, text, &root, line, &mut section);
    let one = |chosen: Vec<&Block>| {
        let mut all = chosen.iter();
        all.any(|block| line_number(text, block.span.start) == line)
    };
    let found = found && select(language, text, &root, &section).is_ok_and(one);
    Ok(found.then_some(section))
}

/// Returns the section and key of the setting with this key on a line (counted from 1). The key `*` matches any
/// setting. If several lines of the block have the key, the returned key contains so many words of the line that it is
/// unique (nginx, and languages whose statements are words). With the returned section, [`crate::get`] and the related
/// functions find exactly this block. `None` if the line has no setting with this key, or if no section identifies its
/// block uniquely.
///
/// # Errors
/// The text is not of this language.
pub fn setting_at_line(
    language: Language,
    text: &[u8],
    line: usize,
    key: &str,
) -> Result<Option<SettingAtLine>, ConfError> {
    let root = parse(language, text)?;
    if switch::parse_switch(language, key).is_some() {
        let found = crate::get(language, text, &[], key)?;
        return Ok(found.map(|_| SettingAtLine {
            section: Vec::new(),
            key: key.to_owned(),
        }));
    }
    let found = search(language, text, &root, line, key, &mut Vec::new());
    // If one section selects two blocks, an edit could change the wrong one.
    Ok(found.filter(|found| {
        let chosen = select(language, text, &root, &found.section);
        chosen.is_ok_and(|chosen| {
            chosen
                .iter()
                .any(|block| has(language, text, block, line, key))
        })
    }))
}

fn search(
    language: Language,
    text: &[u8],
    block: &Block,
    line: usize,
    key: &str,
    section: &mut Vec<String>,
) -> Option<SettingAtLine> {
    if let Some(key) = key_as_written(language, text, block, line, key) {
        let section = section.clone();
        return Some(SettingAtLine { section, key });
    }
    let there: Vec<&Block> = block.blocks().collect();
    for (at, inner) in there.iter().enumerate() {
        section.push(block_selector(language, &there, at));
        let found = search(language, text, inner, line, key, section);
        section.pop();
        if found.is_some() {
            return found;
        }
    }
    None
}

/// Returns a selector of a block: the whole head if it is unique, otherwise the first word with the block's number.
fn block_selector(language: Language, there: &[&Block], at: usize) -> String {
    let name = block_head(there[at]);
    let meant = crate::select::matching_blocks(language, there, &name);
    let place = meant.iter().position(|one| std::ptr::eq(*one, there[at]));
    match place {
        Some(place)
            if meant.len() > 1 && !crate::languages::merges_blocks(language, &there[at].head) =>
        {
            format!("{name}[{}]", place + 1)
        }
        _ => name,
    }
}

fn has(language: Language, text: &[u8], block: &Block, line: usize, key: &str) -> bool {
    key_as_written(language, text, block, line, key).is_some()
}

/// Returns the key as written on the line.
fn key_as_written(
    language: Language,
    text: &[u8],
    block: &Block,
    line: usize,
    key: &str,
) -> Option<String> {
    let here = |at: usize| line_number(text, at) == line;
    if language == Language::Ini {
        // smb.conf(5): names of parameters are compared without blanks and case.
        let plain = |name: &str| -> String {
            let name = name.split_whitespace().collect::<String>();
            name.to_ascii_lowercase()
        };
        let mut all = block.directives();
        return all
            .find(|one| here(one.span.start) && (key == ANY || plain(&one.key) == plain(key)))
            .map(|one| one.key.clone());
    }
    if key == ANY {
        let mut all = block.directives();
        let found = all.find(|one| here(one.span.start))?;
        return match found.key == ANY {
            true => Some(found.key.clone()),
            false => key_as_written(language, text, block, line, &found.key),
        };
    }
    let all = find_occurrences(language, text, &[block], key);
    let meant = all.iter().find(|one| here(one.span.start))?;
    if all.len() > 1 && matches!(language, Language::Nginx | Language::Words) {
        let words = meant
            .words
            .iter()
            .map(|word| to_lossy_text(&text[word.clone()]));
        let words: Vec<String> = words.collect();
        let first = key.split_ascii_whitespace().count();
        let longer = (first + 1..=words.len()).map(|count| words[..count].join(" "));
        let mut alone =
            longer.filter(|key| find_occurrences(language, text, &[block], key).len() == 1);
        return alone.next().or_else(|| Some(key.to_owned()));
    }
    Some(key.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(language: Language, text: &str, line: usize, key: &str) -> Option<(String, String)> {
        let found = setting_at_line(language, text.as_bytes(), line, key).unwrap()?;
        Some((found.section.join(" > "), found.key))
    }

    #[test]
    fn a_line_is_found_again_by_its_name() {
        let sshd = "UseDNS yes\nMatch User git\n UseDNS yes\nMatch User git\n UseDNS no\n";
        let at = |line| named(Language::Ssh, sshd, line, "usedns").map(|(section, _)| section);
        assert_eq!(at(1).as_deref(), Some(""));
        assert_eq!(at(3).as_deref(), Some("Match User git[1]"));
        assert_eq!(at(5).as_deref(), Some("Match User git[2]"));
        assert_eq!(at(2), None);
        for line in [1, 3, 5] {
            let found = setting_at_line(Language::Ssh, sshd.as_bytes(), line, "UseDNS");
            let SettingAtLine { section, key } = found.unwrap().unwrap();
            let again = crate::get(Language::Ssh, sshd.as_bytes(), &section, &key);
            assert_eq!(again.unwrap().unwrap().line, line);
        }
        let nginx =
            "http {\n server { ssl_protocols SSLv3; }\n server {\n  ssl_protocols SSLv3;\n }\n}\n";
        let at = |line| named(Language::Nginx, nginx, line, "ssl_protocols");
        assert_eq!(at(2).unwrap().0, "http > server[1]");
        assert_eq!(at(4).unwrap().0, "http > server[2]");
        let smb = "[global]\n Server  Signing = no\n";
        assert_eq!(
            named(Language::Ini, smb, 2, "server signing"),
            Some(("global".to_owned(), "Server  Signing".to_owned()))
        );
        assert_eq!(named(Language::Ini, smb, 1, "server signing"), None);
        let nginx = "server {\n allow a;\n allow b;\n deny all;\n}\n";
        let at = |line, key| named(Language::Nginx, nginx, line, key).map(|(_, key)| key);
        assert_eq!(at(3, "allow").as_deref(), Some("allow b"));
        assert_eq!(at(4, "*").as_deref(), Some("deny"));
        let head = |line| section_at_line(Language::Nginx, nginx.as_bytes(), line).unwrap();
        assert_eq!(head(1), Some(vec!["server".to_owned()]));
        assert_eq!(head(2), None);
        let dovecot = "x = y\n!include auth-system.conf.ext\n";
        let key = "!include auth-system.conf.ext";
        assert!(named(Language::Dovecot, dovecot, 2, key).is_some());
    }
}
