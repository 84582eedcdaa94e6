//! Finds broken ciphers in a cipher list of OpenSSL (openssl-ciphers(1)). In such a list, a word adds ciphers, `!`
//! removes them permanently, `-` removes them until another word adds them, and `+` only reorders them.

/// Kinds of broken ciphers, each with the words that remove all ciphers of this kind from a list.
const BROKEN: [(&str, &[&str]); 5] = [
    ("RC4", &["RC4", "ALL", "COMPLEMENTOFALL"]),
    ("no encryption", &["eNULL", "NULL", "COMPLEMENTOFALL"]),
    ("EXPORT", &["EXP", "EXPORT", "LOW", "ALL"]),
    ("no authentication", &["aNULL", "ALL"]),
    // OpenSSL 1.1.0 and later counts 3DES as MEDIUM.
    ("3DES", &["3DES", "MEDIUM", "ALL"]),
];

/// Returns the words of a cipher list that add broken ciphers, except ciphers that a later word removes.
pub(crate) fn weak(list: &str) -> Vec<String> {
    let words = list
        .trim()
        .trim_matches(['"', '\''])
        .split([':', ',', ' ', ';']);
    let mut offered: Vec<(&str, usize)> = Vec::new();
    let mut never: Vec<&str> = Vec::new();
    for word in words.filter(|word| !word.is_empty() && !word.starts_with(['@', '+'])) {
        let bare = word.trim_start_matches(['!', '-']);
        if bare.len() == word.len() {
            let kind = kind_of(word).filter(|kind| {
                let killed = |never: &&str| *never == word || BROKEN[*kind].1.contains(never);
                !never.iter().any(killed)
            });
            offered.extend(kind.map(|kind| (word, kind)));
            continue;
        }
        offered.retain(|(offer, kind)| *offer != bare && !BROKEN[*kind].1.contains(&bare));
        if word.starts_with('!') {
            never.push(bare);
        }
    }
    let mut words: Vec<String> = offered.iter().map(|(word, _)| (*word).to_owned()).collect();
    words.dedup();
    words
}

/// Returns the kind of broken ciphers that a word adds. A word may join several properties with `+`.
fn kind_of(word: &str) -> Option<usize> {
    let has = |part: &str| word.split(['+', '-', '_']).any(|one| one == part);
    let found = [
        has("RC4") || has("ARCFOUR"),
        has("eNULL") || has("NULL"),
        has("EXP") || word.starts_with("EXPORT") || word.starts_with("EXP1024"),
        has("aNULL") || has("ADH") || has("AECDH"),
        has("3DES") || has("CBC3"),
    ];
    found.into_iter().position(|found| found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_of_a_list() {
        for (list, expected) in [
            ("HIGH:RC4-SHA:!aNULL", vec!["RC4-SHA"]),
            ("HIGH:+RC4", vec![]),
            ("HIGH:+RC4:RC4", vec!["RC4"]),
            ("RC4:-RC4:HIGH", vec![]),
            ("-RC4:RC4", vec!["RC4"]),
            ("!RC4:RC4", vec![]),
            ("RC4:!RC4-MD5", vec!["RC4"]),
            ("ECDHE-RSA-RC4-SHA", vec!["ECDHE-RSA-RC4-SHA"]),
            ("kRSA+RC4:HIGH", vec!["kRSA+RC4"]),
            ("ALL:eNULL:RC4", vec!["eNULL", "RC4"]),
            ("ALL:!aNULL:!eNULL:!EXP", vec![]),
            ("\"HIGH:EXP-RC4-MD5\"", vec!["EXP-RC4-MD5"]),
            ("ADH:HIGH:!ADH", vec![]),
            ("AES128-SHA:DES-CBC3-SHA", vec!["DES-CBC3-SHA"]),
            ("AES128-SHA:EDH-RSA-DES-CBC3-SHA:!3DES", vec![]),
            ("HIGH:+3DES:!MEDIUM", vec![]),
            ("DEFAULT@SECLEVEL=0", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(weak(list), expected, "{list}");
        }
    }
}
