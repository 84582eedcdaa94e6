//! The collector: a POSIX shell script that reads what the collectors of this crate read, for machines
//! without assay. It is made from the tables of the collectors and of [`crate::redact`], so that it asks for
//! the same and lets through the same.
//!
//! Two programs for awk do the work on the other machine: `clean.awk` lets through what is known to be
//! harmless, `pack.awk` writes the archive. Tests hold both against the rules in [`crate::redact`].

mod table;
#[cfg(test)]
mod tests;

use crate::collectors::services::{not_asked, packages};
use std::fmt::Write as _;
use std::path::PathBuf;
pub(crate) use table::WHOLE;
use table::{WANTS, Want};
#[cfg(test)]
pub(crate) use tests::FORMS;

const SHELL: &str = include_str!("script/collector.sh");
const CLEAN: &str = include_str!("script/clean.awk");
const PACK: &str = include_str!("script/pack.awk");

/// After so many seconds a command on the other machine is killed.
const SECONDS: u64 = 20;

/// After so many seconds the script ends itself, when its caller states no other time.
const END: u64 = 600;

/// Most names that are read in one directory, or below the directory of a program.
const MOST: usize = 5000;

/// The collector. `version` is that of assay, and stands in what it writes.
#[must_use]
pub fn script(version: &str) -> String {
    with_words(version, "")
}

fn with_words(version: &str, words: &str) -> String {
    let seconds = SECONDS.to_string();
    // The text for awk stands between single quotation marks, which it therefore must not hold.
    let clean = CLEAN.replace("@@TABLES@@\n", &table::tables());
    let pack = PACK.replace("@@SECONDS@@", &seconds);
    let disk: Vec<&str> = table::disk().collect();
    SHELL
        .replace("@@CLEAN@@", clean.trim_end())
        .replace("@@PACK@@", pack.trim_end())
        .replace("@@COLLECT@@\n", &collect())
        .replace("@@DISK@@", &disk.join(" "))
        .replace("@@CGROUP@@", &table::CGROUP.join(" "))
        .replace("@@ZFS_ASKED@@", crate::collectors::zfs::ASKED)
        .replace("@@LVM@@\n", &lvm())
        .replace("@@RPM@@", &self::words(&packages::RPM))
        .replace("@@DEPENDENCIES@@", &not_asked::DEPENDENCIES.join(" "))
        .replace("@@MODE_OF@@", &table::mode_of().join(" "))
        .replace("@@SECONDS@@", &seconds)
        .replace("@@END@@", &END.to_string())
        .replace("@@MOST@@", &MOST.to_string())
        .replace("@@VERSION@@", version)
        .replace("@@PATHS@@", words)
}

/// The collector, with paths of the other machine that it looks at more closely.
///
/// # Errors
/// A path that is not absolute, or that cannot stand in a script.
pub fn script_for(version: &str, paths: &[PathBuf]) -> Result<String, String> {
    let mut words = String::new();
    for path in paths {
        let shown = || path.display().to_string().escape_debug().to_string();
        let text = path
            .to_str()
            .filter(|text| !text.contains(['\n', '\t', '\0']));
        let text = text.ok_or_else(|| format!("{}: not a path that a script can name", shown()))?;
        if !text.starts_with('/') {
            return Err(format!("{}: say the whole path on that machine", shown()));
        }
        let _ = write!(words, " '{}'", text.replace('\'', "'\\''"));
    }
    Ok(with_words(version, &words))
}

/// Calls of the shell functions for what has a fixed place, and what is asked for at all.
fn collect() -> String {
    let mut out = String::from("    cat <<'ASKED'\n");
    for pattern in table::asked() {
        let _ = writeln!(out, "Q {pattern}");
    }
    for tool in table::tools() {
        let _ = writeln!(out, "P {tool}");
    }
    out.push_str("ASKED\n");
    for want in WANTS {
        let _ = match want {
            Want::File(class, paths) => {
                writeln!(out, "    file {} {}", class, words(paths))
            }
            Want::Files(class, dir, patterns) => {
                let patterns: Vec<String> = patterns.iter().map(|one| quoted(one)).collect();
                writeln!(out, "    files {} {dir} {}", class, patterns.join(" "))
            }
            Want::Tree(class, dir) => writeln!(out, "    tree {} {dir}", class),
            Want::Dir(dirs) => writeln!(out, "    dir {}", words(dirs)),
            Want::Present(paths) => writeln!(out, "    present {}", words(paths)),
        };
    }
    for argv in crate::collectors::tools::commands() {
        let _ = writeln!(out, "    ask version {}", words(argv));
    }
    for which in ["--vm", "--container"] {
        let _ = writeln!(out, "    ask word systemd-detect-virt {which}");
    }
    for name in crate::collectors::sysctl::NAMES {
        let _ = writeln!(out, "    file numbers /proc/sys/{}", name.replace('.', "/"));
    }
    out
}

fn lvm() -> String {
    let asks = [
        &crate::lvm::LVS[..],
        &crate::lvm::VGS[..],
        &crate::lvm::PVS[..],
        &crate::lvm::HEALTH[..],
    ];
    asks.iter()
        .map(|argv| format!("        ask report {}\n", words(argv)))
        .collect()
}

fn words(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    words.join(" ")
}

/// A word of the shell: in quotation marks where it has letters that mean something there.
fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-,:=+@".contains(&byte);
    match !word.is_empty() && word.bytes().all(plain) {
        true => word.to_owned(),
        false => format!("'{word}'"),
    }
}
