//! From a line of a file to the words that name its setting.

use crate::edit::find_occurrences;
use crate::error::ConfError;
use crate::languages::parse;
use crate::select::{block_head, select};
use crate::switch;
use crate::text::line_number;
use crate::tree::Block;
use assay_model::change::ConfigLanguage as Language;

/// What names a setting that stands in a file: see the crate's words on sections and keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingAtLine {
    /// The blocks around it.
    pub section: Vec<String>,
    /// Its key as the file writes it.
    pub key: String,
}

/// The setting with this key that stands in a line, from 1, named so that [`crate::get`] and its
/// siblings find that block and no other. Nothing when the line is not one for this key, or no words tell
/// its block from the others.
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
    // Two blocks that the same words mean would be changed for each other.
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

/// The whole head where it is the only one, else its place among those that the head would mean.
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

/// The key of the line as it is written there.
fn key_as_written(
    language: Language,
    text: &[u8],
    block: &Block,
    line: usize,
    key: &str,
) -> Option<String> {
    let here = |at: usize| line_number(text, at) == line;
    if language == Language::Ini {
        // smb.conf(5): blanks and case do not matter in the name of a parameter.
        let plain = |name: &str| -> String {
            let name = name.split_whitespace().collect::<String>();
            name.to_ascii_lowercase()
        };
        let mut all = block.directives();
        return all
            .find(|one| here(one.span.start) && plain(&one.key) == plain(key))
            .map(|one| one.key.clone());
    }
    let all = find_occurrences(language, text, &[block], key);
    all.iter()
        .any(|one| here(one.span.start))
        .then(|| key.to_owned())
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
        let dovecot = "x = y\n!include auth-system.conf.ext\n";
        let key = "!include auth-system.conf.ext";
        assert!(named(Language::Dovecot, dovecot, 2, key).is_some());
    }
}
