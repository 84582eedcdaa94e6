//! Module parameters as modprobe.d(5) configures them.

use crate::gather::{Gather, lossy, scalar};
use crate::module_parameter::{self, Reading};
use assay_model::secrets::names_a_secret;
use assay_model::{FactKind, FactPlace, Span};
use serde_json::Value;
use std::collections::BTreeMap;

const DIRS: [&str; 5] = [
    "/etc/modprobe.d",
    "/run/modprobe.d",
    "/usr/local/lib/modprobe.d",
    "/usr/lib/modprobe.d",
    "/lib/modprobe.d",
];

pub(crate) fn collect(g: &mut Gather<'_>) {
    for file in config_files(g, "module", &DIRS) {
        let Some(text) = g.read(&format!("module.{file}"), &file) else {
            continue;
        };
        for option in parse(&text) {
            let place = FactPlace::File {
                path: file.clone(),
                line: Some(option.line),
                span: option.span,
            };
            note(g, &option, place);
        }
    }
    // The kernel also reads module parameters from its own command line.
    if let Some(line) = g.read("module", super::kernel::CMDLINE) {
        for (name, value, written) in module_parameter::arguments(&line) {
            let Some((module, parameter)) = name.split_once('.') else {
                continue;
            };
            let option = Setting {
                module: module.replace('-', "_"),
                parameter: parameter.to_owned(),
                value,
                written,
                line: 1,
                span: None,
            };
            if let Some(refused) = find_refusal(&option) {
                note_refusal(
                    g,
                    &option,
                    refused,
                    &FactPlace::from(super::kernel::CMDLINE),
                );
            }
        }
    }
}

/// A configured parameter of a kernel module.
struct Setting {
    module: String,
    parameter: String,
    value: Option<String>,
    /// The value as written in the file, with quotation marks.
    written: String,
    line: usize,
    span: Option<Span>,
}

impl Setting {
    fn key(&self, what: &str) -> String {
        format!("module.{}.{}.{what}", self.module, self.parameter)
    }

    fn reading(&self) -> Option<Reading> {
        let kind = module_parameter::type_of(&self.module, &self.parameter)?;
        if self.written.contains("(withheld)") {
            // All numbers are harmless text and are kept; a word may have been removed from a
            // cleaned file.
            let number = matches!(kind, module_parameter::Type::Bits(_));
            return (number && !names_a_secret(&self.parameter)).then_some(Reading::Refused {
                why: "it is no number",
                meant: None,
            });
        }
        Some(module_parameter::read(kind, self.value.as_deref()))
    }
}

/// Notes the value of a parameter. Normally the last value applies. A rejected value is noted wherever it occurs,
/// because the kernel stops there.
fn note(g: &mut Gather<'_>, option: &Setting, place: FactPlace) {
    let written = option.value.as_deref().unwrap_or("1");
    let value = match option.reading() {
        Some(Reading::Number(number)) => match i64::try_from(number) {
            Ok(number) => number.into(),
            Err(_) => u64::try_from(number).map_or_else(|_| written.into(), Value::from),
        },
        Some(Reading::Word(_)) | None => scalar(written),
        Some(Reading::Refused { .. }) => written.into(),
    };
    g.facts.known(
        option.key("configured"),
        value,
        FactKind::Configured,
        place.clone(),
    );
    if let Some(refused) = find_refusal(option) {
        note_refusal(g, option, refused, &place);
    }
    g.about(["module", &format!("{}.{}", option.module, option.parameter)]);
}

fn find_refusal(option: &Setting) -> Option<(&'static str, Option<u64>)> {
    match option.reading()? {
        Reading::Refused { why, meant } => Some((why, meant)),
        _ => None,
    }
}

/// Notes that the module rejects a configured value, with the original text, its place, the reason, and a valid value.
fn note_refusal(
    g: &mut Gather<'_>,
    option: &Setting,
    (why, meant): (&str, Option<u64>),
    place: &FactPlace,
) {
    // The kernel stops at the first rejected value.
    if g.facts.map.contains_key(&option.key("refused")) {
        return;
    }
    let remedy = match meant {
        Some(number) => format!("write `{}={number}`", option.parameter),
        None => format!("take `{}` away", option.written.replace('`', "\'")),
    };
    let at = match place {
        FactPlace::File {
            path,
            line: Some(line),
            ..
        } => format!("{path}:{line}"),
        other => other.to_string(),
    };
    for (what, value) in [
        ("refused", option.written.as_str()),
        ("refused_at", &at),
        ("refused_because", why),
        ("module", &option.module),
        ("remedy", &remedy),
    ] {
        g.facts
            .known(option.key(what), value, FactKind::Configured, place.clone());
    }
    g.about(["module", &format!("{}.{}", option.module, option.parameter)]);
}

/// Returns the `*.conf` files of the directories, sorted by file name. `dirs` is in order of precedence: of several
/// files with the same name, only the first is read.
pub(crate) fn config_files(g: &mut Gather<'_>, key: &str, dirs: &[&str]) -> Vec<String> {
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    for dir in dirs {
        for name in g.list(&format!("{key}.{dir}"), dir) {
            let name = lossy(&name);
            if name.ends_with(".conf") {
                files
                    .entry(name.clone())
                    .or_insert_with(|| format!("{dir}/{name}"));
            }
        }
    }
    files.into_values().collect()
}

/// Parses the settings of `options MODULE name=value …` lines (modprobe.d(5); kmod, shared/util.c, getline_wrapped). A
/// backslash at the end of a line appends the next line without a space; hyphens in names are equivalent to
/// underscores.
fn parse(text: &str) -> Vec<Setting> {
    let mut found = Vec::new();
    let lines: Vec<&str> = text.lines().collect();
    let mut at = 0;
    while at < lines.len() {
        let start = at;
        let mut joined = String::new();
        while let Some(part) = lines.get(at).and_then(|line| line.strip_suffix('\\')) {
            joined.push_str(part);
            at += 1;
        }
        joined.push_str(lines.get(at).copied().unwrap_or_default());
        at += 1;
        let rest = joined.trim_start();
        let Some(rest) = rest.strip_prefix("options") else {
            continue;
        };
        let (true, Some((module, rest))) = (
            rest.starts_with([' ', '\t']),
            rest.trim_start().split_once([' ', '\t']),
        ) else {
            continue;
        };
        for (name, value, written) in module_parameter::arguments(rest) {
            let own = (start..at.min(lines.len())).find(|line| lines[*line].contains(&written));
            let span = own.and_then(|line| {
                let before = &lines[line][..lines[line].find(&written)?];
                Some(Span {
                    column: before.chars().count() + 1,
                    length: written.chars().count(),
                })
            });
            found.push(Setting {
                module: module.replace('-', "_"),
                parameter: name.replace('-', "_"),
                value,
                written,
                line: own.unwrap_or(start) + 1,
                span,
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    #[test]
    fn options_with_their_lines() {
        let text = "# zfs\noptions zfs zfs_arc_max=8589934592 zfs_txg_timeout=10\nblacklist floppy\noptions kvm-intel \\\n  nested=Y\n";
        let found: Vec<(String, String, Option<String>, usize)> = parse(text)
            .into_iter()
            .map(|one| (one.module, one.parameter, one.value, one.line))
            .collect();
        let one = |module: &str, name: &str, value: &str, line| {
            (
                module.to_owned(),
                name.to_owned(),
                Some(value.to_owned()),
                line,
            )
        };
        assert_eq!(found[0], one("zfs", "zfs_arc_max", "8589934592", 2));
        assert_eq!(found[1].1, "zfs_txg_timeout");
        assert_eq!(found[2], one("kvm_intel", "nested", "Y", 5));
        assert_eq!(found.len(), 3);
    }

    fn facts(text: &str) -> assay_model::Facts {
        let host = Recorded::new().file("/etc/modprobe.d/zfs.conf", text);
        let mut g = Gather::new(&host);
        collect(&mut g);
        g.facts
    }

    #[test]
    fn what_the_module_refuses() {
        for (text, line) in [
            ("options zfs zfs_arc_max=8G\n", 1),
            ("# x\noptions zfs zfs_txg_timeout=5 zfs_arc_max=50%\n", 2),
            ("options zfs zfs_arc_max = 8589934592\n", 1),
            ("options zfs zfs_arc_max='8589934592'\n", 1),
            ("options zfs zfs-arc-max=8,589,934,592\n", 1),
            // The kernel stops at the first value, although the last one is valid.
            (
                "options zfs zfs_arc_max=4G\noptions zfs zfs_arc_max=4294967296\n",
                1,
            ),
            ("options zfs zfs_arc_max=99999999999999999999\n", 1),
            ("options zfs \\\n  zfs_arc_max=8GiB\n", 2),
            ("options zfs zfs_arc_max\n", 1),
        ] {
            let facts = facts(text);
            let key = "module.zfs.zfs_arc_max.refused_at";
            let expected = format!("/etc/modprobe.d/zfs.conf:{line}");
            assert_eq!(facts.str(key), Some(expected.as_str()), "{text}");
        }
        for (text, value) in [
            ("options zfs zfs_arc_max=0x200000000\n", 8_589_934_592),
            ("options zfs zfs_arc_max=\"8589934592\"\n", 8_589_934_592),
            ("options zfs zfs_arc_max=0100000000000\n", 8_589_934_592),
            ("options zfs zfs-arc-max=+1 zfs_arc_max=2\n", 2),
            ("options zfs zfs_arc_\\\nmax=8589934592\n", 8_589_934_592),
        ] {
            let facts = facts(text);
            let found = facts.u64("module.zfs.zfs_arc_max.configured");
            assert_eq!(found, Some(value), "{text}");
            assert!(!facts.map.contains_key("module.zfs.zfs_arc_max.refused"));
        }
        let withheld = facts("options zfs zfs_arc_max=(withheld)\n");
        assert!(withheld.map.contains_key("module.zfs.zfs_arc_max.refused"));
        let unknown = facts("options zfs zfs_new_one=8G\noptions kvm_amd nested=(withheld)\n");
        assert!(!unknown.map.keys().any(|key| key.ends_with("refused")));
    }

    #[test]
    fn the_command_line_of_the_kernel_counts_too() {
        let host =
            Recorded::new().file("/proc/cmdline", "root=/dev/sda1 zfs.zfs_arc_max=8G quiet\n");
        let mut g = Gather::new(&host);
        collect(&mut g);
        let at = g.facts.str("module.zfs.zfs_arc_max.refused_at");
        assert_eq!(at, Some("/proc/cmdline"));
    }
}
