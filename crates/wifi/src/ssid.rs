//! Names of networks (SSIDs), which are up to 32 arbitrary bytes.

use assay_render::text::escape_line;
use std::fmt::Write as _;

/// Text that is shown for a network without a name.
pub const NAMELESS: &str = "(no name)";

/// Name of a network (SSID).
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ssid(Vec<u8>);

impl Ssid {
    /// Creates a name from bytes. A name that consists only of zeros is hidden (IEEE 802.11, 9.4.2.2).
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        match bytes.iter().all(|byte| *byte == 0) {
            true => Self::default(),
            false => Self(bytes.to_vec()),
        }
    }

    /// Parses a name from the output of `iw`, in which some bytes are written as `\x` and two digits.
    #[must_use]
    pub fn from_escaped(text: &str) -> Self {
        let mut bytes = Vec::with_capacity(text.len());
        let mut rest = text.as_bytes();
        while let Some((first, behind)) = rest.split_first() {
            let hex = rest.strip_prefix(b"\\x").and_then(|rest| rest.get(..2));
            let byte = hex
                .and_then(|hex| std::str::from_utf8(hex).ok())
                .and_then(|hex| u8::from_str_radix(hex, 16).ok());
            match byte {
                Some(byte) => {
                    bytes.push(byte);
                    rest = &rest[4..];
                }
                None => {
                    bytes.push(*first);
                    rest = behind;
                }
            }
        }
        Self::new(&bytes)
    }

    /// Returns whether the name is hidden.
    #[must_use]
    pub fn is_hidden(&self) -> bool {
        self.0.is_empty()
    }

    /// Formats the name for users. Escapes invalid UTF-8 as `\xNN`, and also invisible characters and backslashes, so
    /// that different names look different.
    #[must_use]
    pub fn shown(&self) -> String {
        if self.is_hidden() {
            return NAMELESS.to_owned();
        }
        let mut out = String::new();
        for chunk in self.0.utf8_chunks() {
            out.push_str(&escape_line(&chunk.valid().replace('\\', "\\\\")));
            for byte in chunk.invalid() {
                let _ = write!(out, "\\x{byte:02x}");
            }
        }
        match out == NAMELESS {
            true => format!("\\x28{}", &NAMELESS[1..]),
            false => out,
        }
    }

    /// Removes all differences between names that are hard to see: case, spaces, punctuation and similar letters.
    /// Returns `None` if too little remains for a comparison.
    #[must_use]
    pub fn folded(&self) -> Option<String> {
        let text = std::str::from_utf8(&self.0).ok()?;
        let folded: String = text
            .chars()
            .flat_map(char::to_lowercase)
            .map(alike)
            .filter(|c| c.is_alphanumeric())
            .collect();
        (folded.chars().count() >= 4).then_some(folded)
    }
}

/// Returns the letter that looks like this character (part of Unicode TS 39, confusables.txt).
fn alike(c: char) -> char {
    match c {
        '0' | 'о' | 'ο' => 'o',
        '1' | 'i' | '|' | 'і' | 'ι' | 'ı' => 'l',
        '5' | 'ѕ' => 's',
        'а' | 'α' => 'a',
        'е' => 'e',
        'р' | 'ρ' => 'p',
        'с' => 'c',
        'у' => 'y',
        'х' => 'x',
        c => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_iw_escapes_is_read_back() {
        assert_eq!(Ssid::from_escaped(r"Caf\xc3\xa9").shown(), "Café");
        assert_eq!(Ssid::from_escaped(r"a\xffb\x20").shown(), r"a\xffb ");
        assert_eq!(Ssid::from_escaped(r"\x5cx41").shown(), r"\\x41");
        assert_eq!(
            Ssid::from_escaped(r"a\x0ab\x1b[31m").shown(),
            r"a\nb\u{1b}[31m"
        );
        assert!(Ssid::from_escaped(r"\x00\x00\x00").is_hidden());
        assert_eq!(Ssid::from_escaped(r"\xé").shown(), r"\\xé");
    }

    #[test]
    fn names_that_look_alike_fold_to_one() {
        let fold = |text: &str| Ssid::new(text.as_bytes()).folded();
        assert_eq!(fold("Home-Net 01"), fold("HОMENET O1"));
        assert_ne!(fold("HomeNet"), fold("HomeNet Guest"));
        assert_eq!(fold("!!a"), None);
    }

    proptest! {
        #[test]
        fn different_names_are_shown_differently(a in any::<Vec<u8>>(), b in any::<Vec<u8>>()) {
            let (a, b) = (Ssid::new(&a), Ssid::new(&b));
            prop_assert_eq!(a == b, a.shown() == b.shown());
        }
    }
}
