//! Splits QEMU's command line into options, and parses the `key=value` lists and JSON in their arguments.

use serde_json::Value;
use std::collections::BTreeMap;

/// Options that take no argument, from qemu-options.hx of QEMU 2.1 to 10.1 and the output of `-help`.
pub(crate) const WITHOUT_ARGUMENT: [&str; 45] = [
    "S",
    "alt-grab",
    "audio-help",
    "ctrl-grab",
    "curses",
    "daemonize",
    "enable-fips",
    "enable-kvm",
    "enable-sync-profile",
    "full-screen",
    "h",
    "help",
    "mem-prealloc",
    "no-acpi",
    "no-fd-bootchk",
    "no-frame",
    "no-hpet",
    "no-kvm",
    "no-kvm-irqchip",
    "no-kvm-pit",
    "no-quit",
    "no-reboot",
    "no-shutdown",
    "no-user-config",
    "nodefaults",
    "nodefconfig",
    "nographic",
    "nouserconfig",
    "old-param",
    "one-insn-per-tb",
    "only-migratable",
    "portrait",
    "preconfig",
    "rtc-td-hack",
    "s",
    "sdl",
    "semihosting",
    "show-cursor",
    "singlestep",
    "snapshot",
    "usb",
    "version",
    "win2k-hack",
    "xen-attach",
    "xen-domid-restrict",
];

/// Flattened settings: nested settings have dotted names, as in QEMU (`file.cache.direct`).
pub(super) type Map = BTreeMap<String, String>;

/// Returns the options with their arguments in the order of the command line. A disk image without an option becomes
/// `hda`, as in QEMU.
pub(super) fn options(argv: &[String]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut words = argv.iter().skip(1);
    while let Some(word) = words.next() {
        let Some(name) = word.strip_prefix('-').filter(|name| !name.is_empty()) else {
            found.push(("hda".to_owned(), word.clone()));
            continue;
        };
        let name = name.strip_prefix('-').unwrap_or(name);
        let argument = match WITHOUT_ARGUMENT.contains(&name) {
            true => String::new(),
            false => words.next().cloned().unwrap_or_default(),
        };
        found.push((name.to_owned(), argument));
    }
    found
}

/// Parses `value,key=value,…` or a JSON object. A doubled comma in a value means one comma. If the first word has no
/// `=`, it is the value of the key `implied`. Any other word without `=` is a flag that is on.
pub(super) fn settings(text: &str, implied: &str) -> Map {
    let mut map = Map::new();
    if text.starts_with('{') {
        if let Ok(value) = serde_json::from_str::<Value>(text) {
            flatten("", &value, &mut map);
        }
        return map;
    }
    for (at, part) in split(text).into_iter().enumerate() {
        match part.split_once('=') {
            Some((key, value)) => map.insert(key.to_owned(), value.to_owned()),
            None if at == 0 && !implied.is_empty() => map.insert(implied.to_owned(), part),
            None if part.is_empty() => None,
            None => map.insert(part, "on".to_owned()),
        };
    }
    map
}

fn split(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            ',' if letters.peek() == Some(&',') => {
                letters.next();
                push(&mut parts, ',');
            }
            ',' => parts.push(String::new()),
            other => push(&mut parts, other),
        }
    }
    parts
}

fn push(parts: &mut [String], letter: char) {
    if let Some(last) = parts.last_mut() {
        last.push(letter);
    }
}

/// Flattens a JSON value. serde_json limits the depth to 128.
fn flatten(prefix: &str, value: &Value, map: &mut Map) {
    let under = |name: &str| match prefix {
        "" => name.to_owned(),
        _ => format!("{prefix}.{name}"),
    };
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                flatten(&under(name), member, map);
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                flatten(&under(&at.to_string()), item, map);
            }
        }
        Value::Null => {}
        Value::Bool(on) => {
            map.insert(prefix.to_owned(), if *on { "on" } else { "off" }.to_owned());
        }
        Value::String(text) => {
            map.insert(prefix.to_owned(), text.clone());
        }
        Value::Number(number) => {
            map.insert(prefix.to_owned(), number.to_string());
        }
    }
}

/// Returns whether QEMU interprets the value of a flag as on.
pub(super) fn is_on(value: &str) -> bool {
    matches!(value, "on" | "yes" | "true" | "y")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn commas_are_doubled_and_json_is_flattened() {
        let map = settings("file=/a,,b=c,if=none,snapshot", "");
        assert_eq!(map["file"], "/a,b=c");
        assert_eq!((&*map["if"], &*map["snapshot"]), ("none", "on"));
        assert_eq!(settings("q35,accel=kvm:tcg", "type")["type"], "q35");
        let map = settings(
            r#"{"driver":"raw","cache":{"direct":true},"file":{"driver":"file","x":[1]}}"#,
            "",
        );
        assert_eq!(map["cache.direct"], "on");
        assert_eq!(map["file.driver"], "file");
        assert_eq!(map["file.x.0"], "1");
    }

    #[test]
    fn options_and_their_arguments() {
        let argv = ["qemu", "-S", "--name", "x", "disk.img", "-m"].map(str::to_owned);
        let found = options(&argv);
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(
            found,
            [
                pair("S", ""),
                pair("name", "x"),
                pair("hda", "disk.img"),
                pair("m", "")
            ]
        );
    }

    proptest! {
        #[test]
        fn never_panics(argv in proptest::collection::vec(".{0,40}", 0..8)) {
            for (_, argument) in options(&argv) {
                let _ = settings(&argument, "driver");
            }
        }
    }
}
