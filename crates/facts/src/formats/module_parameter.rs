//! Parses parameters of kernel modules as the kernel does: it splits a line (lib/cmdline.c, next_arg) and converts a
//! value of each type (kernel/params.c, param_set_*; lib/kstrtox.c with base 0). No I/O.

/// Types of known parameters, by module.
const TYPES: &str = include_str!("module_parameters.txt");

/// Type of a parameter, which determines how the kernel parses its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// An integer of this many bits. Signed and unsigned values are accepted, because the type differs between releases
    /// of a module.
    Bits(u32),
    /// A boolean. In some releases, the parameter is a number.
    Flag,
}

/// The value that the kernel reads from a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading {
    /// The value of an integer parameter.
    Number(i128),
    /// The value of a boolean parameter, as a word.
    Word(String),
    /// The kernel rejects the value and therefore does not load the module.
    Refused {
        /// What is wrong with the value.
        why: &'static str,
        /// The number that was probably intended, and that the kernel accepts; `None` if the intention is unclear.
        meant: Option<u64>,
    },
}

/// Returns the type of a parameter; `None` if it is unknown. Hyphens in the name are equivalent to underscores.
#[must_use]
pub fn type_of(module: &str, parameter: &str) -> Option<Type> {
    let (module, parameter) = (module.replace('-', "_"), parameter.replace('-', "_"));
    let lines = TYPES.lines().filter(|line| !line.starts_with('#'));
    lines.into_iter().find_map(|line| {
        let mut words = line.split(' ');
        let (of, kind) = (words.next()?, words.next()?);
        let known = of == module && words.any(|name| name == parameter);
        known.then_some(match kind {
            "flag" => Type::Flag,
            bits => Type::Bits(bits.parse().unwrap_or(64)),
        })
    })
}

/// Splits a line of parameters as the kernel does. Blanks outside of quotation marks end a parameter. Quotation marks
/// around a value or a whole parameter are removed. Returns the name, the value if there is one, and the original text
/// of each parameter.
#[must_use]
pub fn arguments(line: &str) -> Vec<(String, Option<String>, String)> {
    let mut found = Vec::new();
    let mut rest = line.trim_start();
    while !rest.is_empty() {
        let mut quoted = false;
        let end = rest.find(|c: char| {
            quoted ^= c == '"';
            c.is_ascii_whitespace() && !quoted
        });
        let (written, behind) = rest.split_at(end.unwrap_or(rest.len()));
        rest = behind.trim_start();
        // A quotation mark before the name ends after the value.
        let whole = match written.strip_prefix('"') {
            Some(inner) => inner.strip_suffix('"').unwrap_or(inner),
            None => written,
        };
        let (name, value) = match whole.split_once('=') {
            Some((name, value)) if !name.is_empty() => (name, Some(value)),
            _ => (whole, None),
        };
        let value = value.map(|value| match value.strip_prefix('"') {
            Some(inner) => inner.strip_suffix('"').unwrap_or(inner),
            None => value,
        });
        // The text after `--` is for init, not for the module.
        if name == "--" && value.is_none() {
            break;
        }
        found.push((
            name.to_owned(),
            value.map(str::to_owned),
            written.to_owned(),
        ));
    }
    found
}

/// Parses a value as the kernel does for this type. One newline at the end is ignored.
#[must_use]
pub fn read(kind: Type, value: Option<&str>) -> Reading {
    match (kind, value) {
        (Type::Bits(bits), Some(text)) => number(bits, text),
        (Type::Bits(_), None) => Reading::Refused {
            why: "a blank stands before or after `=`, so that it has no value",
            meant: None,
        },
        // A flag without a value is set.
        (Type::Flag, text) => parse_flag(text.unwrap_or("1")),
    }
}

/// Parses a boolean like kstrtobool, which reads one letter, and a second letter after `o`. Numbers are accepted too,
/// because some parameters were numbers in earlier releases.
fn parse_flag(text: &str) -> Reading {
    let mut letters = text.chars().map(|c| c.to_ascii_lowercase());
    let on = match (letters.next(), letters.next()) {
        (Some('y' | '1'), _) | (Some('o'), Some('n')) => Some("Y"),
        (Some('n' | '0'), _) | (Some('o'), Some('f')) => Some("N"),
        _ => None,
    };
    match (on, number(32, text)) {
        (Some(on), _) => Reading::Word(on.to_owned()),
        (None, Reading::Number(number)) => Reading::Number(number),
        // Some releases read `true`, `false`, `enable` and `disable`.
        _ if text.starts_with(['t', 'T', 'f', 'F', 'e', 'E', 'd', 'D']) => {
            Reading::Word(text.to_owned())
        }
        _ => Reading::Refused {
            why: "it is neither yes nor no",
            meant: None,
        },
    }
}

fn number(bits: u32, text: &str) -> Reading {
    let refused = |why| Reading::Refused {
        why,
        meant: parse_size(text).filter(|meant| u128::from(*meant) < 1 << bits),
    };
    let line = text.strip_suffix('\n').unwrap_or(text);
    let (negative, digits) = match line.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, line.strip_prefix('+').unwrap_or(line)),
    };
    let hex = digits.strip_prefix("0x").or(digits.strip_prefix("0X"));
    let hex = hex.filter(|rest| rest.starts_with(|c: char| c.is_ascii_hexdigit()));
    let (base, digits) = match hex {
        Some(rest) => (16, rest),
        // A leading zero means octal, also for `0` itself.
        None if digits.starts_with('0') => (8, digits),
        None => (10, digits),
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(base)) {
        let why = match () {
            () if digits.starts_with('0')
                && base == 8
                && digits.bytes().all(|b| b.is_ascii_digit()) =>
            {
                "a number that begins with 0 is octal, and has no 8 or 9"
            }
            () if digits.starts_with(|c: char| c.is_ascii_digit()) => {
                "only digits are read: no unit, no point, no blank"
            }
            () => "it is no number",
        };
        return refused(why);
    }
    let value = u128::from_str_radix(digits, base).ok();
    let value = value.and_then(|value| i128::try_from(value).ok());
    let value = value.map(|value| if negative { -value } else { value });
    let fits = |value: &i128| (-(1 << (bits - 1))..1 << bits).contains(value);
    match value.filter(fits) {
        Some(value) => Reading::Number(value),
        None => refused("it is too large for the parameter"),
    }
}

/// Parses a size such as `8G`, `512M`, `1.5 GiB` or `8_589_934_592` in bytes.
fn parse_size(text: &str) -> Option<u64> {
    let text = text
        .trim()
        .trim_matches(['"', '\''])
        .replace(['_', ','], "");
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (digits, unit) = text.split_at(end.unwrap_or(text.len()));
    let unit = unit.trim().to_ascii_lowercase();
    let unit = unit.trim_end_matches("ib").trim_end_matches('b');
    let shift = match unit {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        _ => return None,
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let scale = 10u128.checked_pow(u32::try_from(part.len()).ok()?)?;
    let units: u128 = format!("{whole}{part}").parse().ok()?;
    u64::try_from(units.checked_mul(1 << shift)? / scale).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(value: &str) -> Reading {
        read(Type::Bits(64), Some(value))
    }

    /// Expected values follow lib/kstrtox.c of Linux 6.1 (`_parse_integer_fixup_radix`, `_kstrtoull`, `kstrtoll`), and
    /// were verified by writes to parameters of types ulong and uint under /sys/module.
    #[test]
    fn numbers_as_the_kernel_reads_them() {
        for (text, number) in [
            ("8589934592", 8_589_934_592),
            ("0x200000000", 8_589_934_592),
            ("0X200000000", 8_589_934_592),
            ("0100000000000", 8_589_934_592),
            ("+8589934592", 8_589_934_592),
            ("8589934592\n", 8_589_934_592),
            ("-1", -1),
            ("0", 0),
            ("00", 0),
            ("18446744073709551615", 18_446_744_073_709_551_615),
        ] {
            assert_eq!(of(text), Reading::Number(number), "{text}");
        }
        for (text, meant) in [
            ("8G", Some(8 << 30)),
            ("512M", Some(512 << 20)),
            ("1.5GiB", Some(3 << 29)),
            ("8 ", Some(8)),
            (" 8", Some(8)),
            ("'8'", Some(8)),
            ("8_000", Some(8000)),
            ("8,000", Some(8000)),
            ("8589934592\n\n", Some(8_589_934_592)),
            ("50%", None),
            ("", None),
            ("0x", None),
            ("0xG", None),
            ("08", Some(8)),
            ("1e9", None),
            ("0b11", None),
            ("--1", None),
            ("18446744073709551616", None),
        ] {
            match of(text) {
                Reading::Refused { meant: found, .. } => assert_eq!(found, meant, "{text}"),
                other => panic!("{text}: {other:?}"),
            }
        }
        let small = |text| read(Type::Bits(32), Some(text));
        assert_eq!(small("4294967295"), Reading::Number(4_294_967_295));
        assert!(matches!(
            small("4294967296"),
            Reading::Refused { meant: None, .. }
        ));
        assert!(matches!(
            read(Type::Bits(64), None),
            Reading::Refused { .. }
        ));
    }

    #[test]
    fn flags_are_read_by_their_first_letter() {
        for text in ["Y", "yes", "1", "on", "ON", "1x"] {
            assert_eq!(read(Type::Flag, Some(text)), Reading::Word("Y".to_owned()));
        }
        for text in ["N", "no", "0", "off"] {
            assert_eq!(read(Type::Flag, Some(text)), Reading::Word("N".to_owned()));
        }
        assert_eq!(read(Type::Flag, None), Reading::Word("Y".to_owned()));
        for text in ["", "o", "wahr", "'1'"] {
            let read = read(Type::Flag, Some(text));
            assert!(matches!(read, Reading::Refused { .. }), "{text}: {read:?}");
        }
    }

    #[test]
    fn arguments_as_the_kernel_takes_them_apart() {
        let of = |line: &str| -> Vec<(String, Option<String>)> {
            let all = arguments(line).into_iter();
            all.map(|(name, value, _)| (name, value)).collect()
        };
        let pair = |name: &str, value: &str| (name.to_owned(), Some(value.to_owned()));
        let alone = |name: &str| (name.to_owned(), None);
        assert_eq!(
            of("a=1\tb=\"2 3\" c"),
            [pair("a", "1"), pair("b", "2 3"), alone("c")]
        );
        assert_eq!(of("\"a=1 2\" b='3"), [pair("a", "1 2"), pair("b", "'3")]);
        assert_eq!(of("a = 8G"), [alone("a"), alone("="), alone("8G")]);
        assert_eq!(of("a= -- b=1"), [pair("a", ""),]);
        assert_eq!(type_of("zfs", "zfs_arc_max"), Some(Type::Bits(64)));
        assert_eq!(type_of("kvm-intel", "nested"), Some(Type::Flag));
        assert_eq!(type_of("zfs", "zfs-txg-timeout"), Some(Type::Bits(32)));
        assert_eq!(type_of("zfs", "zfs_made_up"), None);
    }

    proptest! {
        #[test]
        fn never_panics(text in ".{0,30}") {
            let _ = arguments(&text);
            let _ = (read(Type::Bits(32), Some(&text)), read(Type::Flag, Some(&text)));
        }

        #[test]
        fn numbers_mean_what_they_say(number in any::<u64>()) {
            for text in [format!("{number}"), format!("{number:#x}"), format!("0{number:o}")] {
                prop_assert_eq!(of(&text), Reading::Number(i128::from(number)));
            }
        }
    }
}
