//! Swap areas in use (proc_swaps(5)).

use crate::gather::Gather;
use assay_model::FactKind;

pub(crate) const SWAPS: &str = "/proc/swaps";

pub(crate) fn collect(g: &mut Gather<'_>) {
    let Some(text) = g.read("swap", SWAPS) else {
        return;
    };
    for line in text.lines().skip(1) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [path, kind, size, _, priority, ..] = words.as_slice() else {
            continue;
        };
        let subject = ["swap", path];
        let key = |name: &str| format!("swap.{path}.{name}");
        let device = path.strip_prefix("/dev/").unwrap_or_default();
        let on = match device {
            _ if *kind == "file" => "file",
            name if name.starts_with("zram") => "zram",
            // zvols are named zd0, zd16 … (zvol(4) has no other names in /dev).
            name if name.strip_prefix("zd").is_some_and(|rest| {
                !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit())
            }) =>
            {
                "zvol"
            }
            _ => "device",
        };
        g.facts.known(key("on"), on, FactKind::Runtime, SWAPS);
        for (name, value) in [("kib", size), ("priority", priority)] {
            if let Ok(number) = value.parse::<i64>() {
                g.facts.known(key(name), number, FactKind::Runtime, SWAPS);
            }
        }
        g.about(subject);
    }
}

/// Redacts a line of /proc/swaps: drops the path of a swap file, which may be private.
pub(crate) fn redact(line: &str) -> String {
    let mut words: Vec<&str> = line.split_whitespace().collect();
    if words.first() == Some(&"Filename") || words.is_empty() {
        return line.to_owned();
    }
    let device = words[0].strip_prefix("/dev/").is_some_and(|name| {
        let plain =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_/".contains(&byte);
        name.bytes().all(plain)
    });
    if !device && words[0] != "/swapfile" && words[0] != "/(left-out)" {
        words[0] = "/(left-out)";
    }
    let kind = matches!(words.get(1), Some(&("partition" | "file")));
    let numbers = || words[2..].iter().all(|word| word.parse::<i64>().is_ok());
    let rest = kind && numbers();
    match rest && words.len() <= 6 {
        true => words.join("\t"),
        false => String::new(),
    }
}
