//! Versions of the tools that measure or whose answers are read.

use crate::gather::Gather;
use assay_model::FactKind;

const TOOLS: [(&str, &[&str]); 4] = [
    ("fio", &["fio", "--version"]),
    ("qemu-img", &["qemu-img", "--version"]),
    ("btrfs", &["btrfs", "version"]),
    ("zfs", &["zfs", "version"]),
];

/// How many tools there are: each is asked on a thread of its own.
pub(crate) const COUNT: usize = TOOLS.len();

pub(crate) fn collect(g: &mut Gather<'_>, which: usize) {
    let Some((tool, argv)) = TOOLS.get(which) else {
        return;
    };
    let key = format!("tool.{tool}");
    if let Some(output) = g.ask(&key, argv) {
        let text = output.text();
        let line = text.lines().next().unwrap_or_default().trim();
        g.facts.known(key, line, FactKind::Runtime, argv.join(" "));
    }
}
