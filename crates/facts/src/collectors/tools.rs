//! Collects the versions of the measuring tools, of the tools whose output is parsed, and of the services in the
//! catalogue of advice.

use crate::gather::Gather;
use assay_model::{FactKind, FactPlace};

/// Tools, as (name in the fact, command that prints the version).
const TOOLS: [(&str, &[&str]); 14] = [
    ("fio", &["fio", "--version"]),
    ("qemu-img", &["qemu-img", "--version"]),
    ("qemu-storage-daemon", &["qemu-storage-daemon", "--version"]),
    ("btrfs", &["btrfs", "version"]),
    ("zfs", &["zfs", "version"]),
    ("mkfs.ext4", &["mkfs.ext4", "-V"]),
    ("mkfs.xfs", &["mkfs.xfs", "-V"]),
    ("mkfs.btrfs", &["mkfs.btrfs", "--version"]),
    ("nginx", &["nginx", "-v"]),
    ("ssh", &["ssh", "-V"]),
    ("dovecot", &["dovecot", "--version"]),
    ("pgbench", &["pgbench", "--version"]),
    ("mariadbd", &["mariadbd", "--version"]),
    ("postfix", &["postconf", "-h", "-d", "mail_version"]),
];

/// Number of version commands. Each command runs in a thread of its own.
pub(crate) const COUNT: usize = TOOLS.len();

/// Returns whether a command is one of the version commands in `TOOLS`.
pub(crate) fn is_version(argv: &[&str]) -> bool {
    TOOLS.iter().any(|(_, known)| *known == argv)
}

/// Returns all version commands, for the shell collector.
pub(crate) fn commands() -> impl Iterator<Item = &'static [&'static str]> {
    TOOLS.iter().map(|(_, argv)| *argv)
}

pub(crate) fn collect(g: &mut Gather<'_>, which: usize) {
    let Some((tool, argv)) = TOOLS.get(which) else {
        return;
    };
    let key = format!("tool.{tool}");
    if let Some(output) = g.ask(&key, argv) {
        // nginx, ssh and mkfs.ext4 write to standard error.
        let text = output.text() + &String::from_utf8_lossy(&output.stderr);
        let mut lines = text.lines().map(str::trim);
        if let Some(line) = lines.find(|line| !line.is_empty()) {
            // mariadbd prints the path by which it was called.
            let line = match line.split_once(' ') {
                Some((path, _)) if path.starts_with('/') => {
                    &line[path.rfind('/').map_or(0, |at| at + 1)..]
                }
                _ => line,
            };
            g.facts
                .known(key, line, FactKind::Runtime, FactPlace::command(*argv));
        }
    }
}
