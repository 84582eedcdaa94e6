//! Versions in the output of programs, which are compared by their numbers.

use std::cmp::Ordering;

/// The first version in a text, such as `qemu-img version 7.2.22 (Debian …)`, `OpenSSH_9.2p1`, `zfs-2.1.11-1`,
/// `nginx/1.22.1` or `6.18.0-rc3`. Versions are compared number by number. Missing numbers count as 0, and a release
/// candidate comes before its release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    numbers: Vec<u64>,
    candidate: bool,
}

impl Version {
    /// Finds the first version in a text; `None` if the text contains no number.
    pub(crate) fn find(text: &str) -> Option<Self> {
        let start = text.find(|c: char| c.is_ascii_digit())?;
        let text = &text[start..];
        let end = text
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(text.len());
        let (numbers, rest) = text.split_at(end);
        let mut numbers = numbers
            .split('.')
            .filter(|number| !number.is_empty())
            .map(str::parse)
            .collect::<Result<Vec<u64>, _>>()
            .ok()?;
        while numbers.last() == Some(&0) {
            numbers.pop();
        }
        let rest = rest.trim_start_matches(['-', '~', '_', '.', '+']);
        let candidate = ["rc", "beta", "alpha", "pre"]
            .iter()
            .any(|mark| rest.starts_with(mark));
        Some(Self { numbers, candidate })
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        self.numbers
            .cmp(&other.numbers)
            .then(other.candidate.cmp(&self.candidate))
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn version(text: &str) -> Version {
        Version::find(text).unwrap()
    }

    #[test]
    fn as_programs_print_them() {
        for (older, newer) in [
            (
                "qemu-img version 5.1.0",
                "qemu-img version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)",
            ),
            (
                "OpenSSH_6.8p1",
                "OpenSSH_9.2p1 Debian-2+deb12u7, OpenSSL 3.0.17",
            ),
            ("zfs-0.8.6-1", "zfs-2.1.11-1"),
            ("nginx/1.9.1", "nginx version: nginx/1.22.1"),
            ("2.2.0-rc4", "2.2.0"),
            ("2.1.99", "2.2.0~rc1"),
            ("4.2.8", "4.3-rc1"),
        ] {
            assert!(version(older) < version(newer), "{older} {newer}");
        }
        assert_eq!(version("7.0"), version("v7.0.0"));
        assert_eq!(Version::find("none"), None);
        assert_eq!(Version::find("99999999999999999999999"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in any::<String>()) {
            let _ = Version::find(&text);
        }

        #[test]
        fn ordered_as_numbers_are(a in 0u64..100, b in 0u64..100, c in 0u64..100, d in 0u64..100) {
            let compared = version(&format!("x-{a}.{b}")).cmp(&version(&format!("y {c}.{d}")));
            prop_assert_eq!(compared, (a, b).cmp(&(c, d)));
        }
    }
}
