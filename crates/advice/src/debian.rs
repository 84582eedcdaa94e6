//! Compares versions of Debian packages in dpkg's order (Debian Policy, section 5.6.12). A security update of a stable
//! release has a suffix of its own, `1:9.2p1-2+deb12u3`, so the comparison takes backported fixes into account.

use std::cmp::Ordering;

/// A version `[epoch:]upstream[-revision]`. Invalid versions have the same order as in dpkg.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Version<'a> {
    epoch: u64,
    upstream: &'a str,
    revision: &'a str,
}

impl<'a> Version<'a> {
    fn new(text: &'a str) -> Self {
        let text = text.trim();
        let (epoch, rest) = match text.split_once(':') {
            Some((epoch, rest)) => (epoch.parse().unwrap_or(0), rest),
            None => (0, text),
        };
        let (upstream, revision) = rest.rsplit_once('-').unwrap_or((rest, ""));
        Self {
            epoch,
            upstream,
            revision,
        }
    }
}

/// Compares two versions in dpkg's order.
pub(crate) fn compare(one: &str, other: &str) -> Ordering {
    let (one, other) = (Version::new(one), Version::new(other));
    one.epoch
        .cmp(&other.epoch)
        .then_with(|| part(one.upstream, other.upstream))
        .then_with(|| part(one.revision, other.revision))
}

/// Compares texts that consist of alternating non-digits and numbers. `~` sorts before the end of the text, the end
/// before letters, and letters before other characters. A missing revision equals 0.
fn part(one: &str, other: &str) -> Ordering {
    let (mut one, mut other) = (one.as_bytes(), other.as_bytes());
    while !one.is_empty() || !other.is_empty() {
        let (words, numbers) = (split(one, false), split(other, false));
        let longest = words.0.len().max(numbers.0.len());
        for at in 0..longest {
            let order = weight(words.0.get(at)).cmp(&weight(numbers.0.get(at)));
            if order != Ordering::Equal {
                return order;
            }
        }
        let (mine, theirs) = (split(words.1, true), split(numbers.1, true));
        let order = number(mine.0, theirs.0);
        if order != Ordering::Equal {
            return order;
        }
        (one, other) = (mine.1, theirs.1);
    }
    Ordering::Equal
}

/// Splits the text after its leading digits, or after its leading non-digits.
fn split(text: &[u8], digits: bool) -> (&[u8], &[u8]) {
    let is = |byte: &u8| byte.is_ascii_digit() == digits;
    text.split_at(text.iter().take_while(|byte| is(byte)).count())
}

fn weight(byte: Option<&u8>) -> i32 {
    match byte {
        Some(b'~') => -1,
        None => 0,
        Some(byte) if byte.is_ascii_alphabetic() => i32::from(*byte),
        Some(byte) => i32::from(*byte) + 256,
    }
}

/// Compares two numbers of any length.
fn number(one: &[u8], other: &[u8]) -> Ordering {
    let bare = |digits: &[u8]| {
        let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
        digits[zeros..].to_vec()
    };
    let (one, other) = (bare(one), bare(other));
    one.len().cmp(&other.len()).then_with(|| one.cmp(&other))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn as_policy_orders_them() {
        // Policy 5.6.12: "~~", "~~a", "~", the empty part, "a".
        let parts = ["1~~", "1~~a", "1~", "1", "1a"];
        for pair in parts.windows(2) {
            assert_eq!(compare(pair[0], pair[1]), Ordering::Less, "{pair:?}");
        }
        for (older, newer) in [
            ("1.0~beta1~svn1245", "1.0~beta1"),
            ("1.0~beta1", "1.0"),
            ("9.9-1", "1:0.1-1"),
            ("1.9", "1.10"),
            ("1:9.2p1-2+deb12u2", "1:9.2p1-2+deb12u3"),
            ("1:9.2p1-2+deb12u9", "1:9.2p1-2+deb12u10"),
            ("1:9.2p1-2", "1:9.2p1-2+deb12u1"),
            ("2:4.17.4~rc1", "2:4.17.4"),
            ("1.0-1~bpo12+1", "1.0-1"),
        ] {
            assert_eq!(compare(older, newer), Ordering::Less, "{older} {newer}");
            assert_eq!(compare(newer, older), Ordering::Greater, "{older} {newer}");
        }
        for (one, same) in [("1.0", "1.0-0"), ("0:1", "1"), ("1.01", "1.1"), ("", "0")] {
            assert_eq!(compare(one, same), Ordering::Equal, "{one} {same}");
        }
    }

    /// Compares with the real dpkg. The versions consist of random parts for which a wrong order is likely.
    #[test]
    #[allow(clippy::disallowed_methods, reason = "asks the real dpkg")]
    fn as_dpkg_orders_them() {
        const PIECES: [&str; 12] = [
            "1", "01", "10", "9", "~", "+", ".", "a", "rc", "~~", "deb12u", "-",
        ];
        let mut seed = 0x2545_f491_u32;
        let mut next = |below: usize| {
            seed ^= seed << 13;
            seed ^= seed >> 17;
            seed ^= seed << 5;
            seed as usize % below
        };
        let mut version = || {
            let epoch = ["", "", "0:", "1:"][next(4)];
            let pieces: Vec<&str> = (0..1 + next(5)).map(|_| PIECES[next(12)]).collect();
            format!("{epoch}1{}", pieces.concat())
        };
        let mut asked = 0;
        for _ in 0..150 {
            let (one, other) = (version(), version());
            // dpkg rejects an empty revision.
            if one.ends_with('-') || other.ends_with('-') {
                continue;
            }
            let says = |relation| {
                let ask = ["--compare-versions", &one, relation, &other];
                let asked = std::process::Command::new("dpkg").args(ask).status();
                asked.map(|status| status.success())
            };
            let Ok(older) = says("lt") else {
                return assay_testing::skipped("dpkg", "this is no Debian");
            };
            assert_eq!(
                compare(&one, &other) == Ordering::Less,
                older,
                "{one} {other}"
            );
            assert_eq!(
                compare(&one, &other) == Ordering::Equal,
                says("eq").unwrap(),
                "{one} {other}"
            );
            asked += 1;
        }
        assert!(asked > 80, "{asked}");
    }

    proptest! {
        #[test]
        fn an_order(a in "[0-9a~.+:-]{0,12}", b in "[0-9a~.+:-]{0,12}") {
            prop_assert_eq!(compare(&a, &b), compare(&b, &a).reverse());
            prop_assert_eq!(compare(&a, &a), Ordering::Equal);
        }

        #[test]
        fn any_text_is_survived(a in any::<String>(), b in any::<String>()) {
            let _ = compare(&a, &b);
        }
    }
}
