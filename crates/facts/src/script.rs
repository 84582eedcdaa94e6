//! Generates the shell collector: a POSIX shell script for machines without assay that reads the same sources as the
//! collectors of this crate. The script is generated from the tables of the collectors and of [`crate::redact`], so
//! that both read and keep the same text.
//!
//! Two awk programs run on the other machine: `clean.awk` keeps only harmless text, `pack.awk` writes the archive.
//! Tests compare their output with the rules in [`crate::redact`].

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

/// Timeout in seconds of one command on the other machine.
const SECONDS: u64 = 20;

/// Default time in seconds after which the script ends.
const END: u64 = 600;

/// Maximum number of names that are read in one directory, or below the directory of a program.
const MOST: usize = 5000;

/// Returns the script. `version` is the version of assay, which the script writes into the archive.
#[must_use]
pub fn script(version: &str) -> String {
    with_words(version, "")
}

fn with_words(version: &str, words: &str) -> String {
    let seconds = SECONDS.to_string();
    // The awk text is quoted with single quotation marks, so it must not contain any.
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
        .replace("@@RPM@@", &self::join_words(&packages::RPM))
        .replace("@@DEPENDENCIES@@", &not_asked::DEPENDENCIES.join(" "))
        .replace("@@MODE_OF@@", &table::mode_of().join(" "))
        .replace("@@SECONDS@@", &seconds)
        .replace("@@END@@", &END.to_string())
        .replace("@@MOST@@", &MOST.to_string())
        .replace("@@VERSION@@", version)
        .replace("@@PATHS@@", words)
}

/// Returns the script for a machine of which `paths` are described in more detail.
///
/// # Errors
/// A path is not absolute, or cannot be quoted.
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

/// Returns the calls of shell functions that read the sources with a fixed path.
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
                writeln!(out, "    file {} {}", class, join_words(paths))
            }
            Want::Files(class, dir, patterns) => {
                let patterns: Vec<String> = patterns.iter().map(|one| quote_word(one)).collect();
                writeln!(out, "    files {} {dir} {}", class, patterns.join(" "))
            }
            Want::Tree(class, dir) => writeln!(out, "    tree {} {dir}", class),
            Want::Dir(dirs) => writeln!(out, "    dir {}", join_words(dirs)),
            Want::Present(paths) => writeln!(out, "    present {}", join_words(paths)),
        };
    }
    for argv in crate::collectors::tools::commands() {
        let _ = writeln!(out, "    ask version {}", join_words(argv));
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
        .map(|argv| format!("        ask report {}\n", join_words(argv)))
        .collect()
}

fn join_words(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| quote_word(word)).collect();
    words.join(" ")
}

/// Quotes a word for the shell if it contains special characters.
fn quote_word(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-,:=+@".contains(&byte);
    match !word.is_empty() && word.bytes().all(plain) {
        true => word.to_owned(),
        false => format!("'{word}'"),
    }
}
