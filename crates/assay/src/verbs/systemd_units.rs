//! Writes and removes the systemd units of `assay serve install` and `assay fleet watch install`, and runs systemctl.
//! The `install` modules of these verbs contain the text of the units.

use crate::context;
use crate::status::Status;
use anyhow::Context as _;
use assay_host::{Host as _, Limits, LiveHost};
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// A unit file that assay wrote, or was about to write when the installation was interrupted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct WrittenUnit {
    #[serde(with = "assay_host::path_json")]
    path: PathBuf,
    /// BLAKE3 hash of the content.
    hash: String,
}

/// The units of one verb. Each file is recorded with its hash before it is written. Therefore an interrupted
/// installation can be removed, and files of others are never removed.
pub(super) struct InstalledUnits {
    /// First line of every unit; it marks files that assay wrote.
    pub(super) first: &'static str,
    /// Path of the file that records which units were written.
    pub(super) record: PathBuf,
}

impl InstalledUnits {
    /// Writes the units, and starts `unit` if systemd reads their directory.
    ///
    /// # Errors
    /// A file of another origin exists, a file cannot be written, or systemctl fails.
    pub(super) fn install(&self, files: &[(PathBuf, String)], unit: &str) -> anyhow::Result<bool> {
        for (path, _) in files {
            anyhow::ensure!(
                read_unit(path)?.is_none_or(|found| self.is_ours(&found)),
                "{} exists and was not written by assay: remove it, or rename it",
                path.display()
            );
        }
        // Includes files of an earlier installation with other options, which belong to assay too.
        let mut known = self.read_record()?;
        for (path, text) in files {
            let written = WrittenUnit {
                path: path.clone(),
                hash: hash_bytes(text.as_bytes()),
            };
            if !known.contains(&written) {
                known.push(written);
            }
        }
        self.save_record(&known)?;
        for (path, text) in files {
            write_file(path, text.as_bytes())?;
            eprintln!("written: {}", path.display());
        }
        let is_read = files.iter().any(|(path, _)| is_read_by_systemd(path));
        if is_read {
            run_systemctl(&["daemon-reload"])?;
            run_systemctl(&["enable", "--now", unit])?;
        } else {
            eprintln!(
                "systemd does not run here, or does not read this directory: `systemctl enable --now {unit}` where \
                 it does"
            );
        }
        Ok(is_read)
    }

    /// Stops `units` and removes their files. Only the first unit is enabled. Files whose content was changed stay,
    /// unless `is_forced`.
    ///
    /// # Errors
    /// A file cannot be removed, or systemctl fails.
    pub(super) fn remove(&self, units: &[&str], is_forced: bool) -> anyhow::Result<Status> {
        let known = self.read_record()?;
        if known.is_empty() {
            context::print("Nothing was installed.\n")?;
            return Ok(Status::Ok);
        }
        let is_read = known.iter().any(|one| is_read_by_systemd(&one.path));
        if is_read {
            // The units may never have run.
            let _ = run_systemctl(&[&["disable", "--now"], &units[..1]].concat());
            let _ = run_systemctl(&[&["stop"], units].concat());
        }
        let mut left: Vec<WrittenUnit> = Vec::new();
        let mut paths: Vec<&PathBuf> = known.iter().map(|one| &one.path).collect();
        paths.sort();
        paths.dedup();
        for path in paths {
            let found = match read_unit(path) {
                Ok(Some(found)) => found,
                Ok(None) => continue,
                // What replaced it is not a file, or cannot be read.
                Err(_) => Vec::new(),
            };
            let hashes = known.iter().filter(|one| one.path == *path);
            let is_unchanged = hashes.clone().any(|one| one.hash == hash_bytes(&found));
            if is_unchanged || (is_forced && self.is_ours(&found)) {
                remove_file(path)?;
                eprintln!("removed: {}", path.display());
            } else {
                left.extend(hashes.cloned());
                eprintln!(
                    "{} was changed since and is left; --force removes it",
                    path.display()
                );
            }
        }
        self.save_record(&left)?;
        if is_read {
            run_systemctl(&["daemon-reload"])?;
        }
        Ok(match left.is_empty() {
            true => Status::Ok,
            false => Status::Findings,
        })
    }

    fn is_ours(&self, found: &[u8]) -> bool {
        found.starts_with(self.first.as_bytes())
    }

    fn read_record(&self) -> anyhow::Result<Vec<WrittenUnit>> {
        if !self.record.exists() {
            return Ok(Vec::new());
        }
        let bytes = crate::input::bytes(&self.record, 1 << 20, "what was installed")?;
        serde_json::from_slice(&bytes)
            .with_context(|| format!("{} is damaged", self.record.display()))
    }

    fn save_record(&self, units: &[WrittenUnit]) -> anyhow::Result<()> {
        write_file(&self.record, &serde_json::to_vec(units)?)
    }
}

/// Prints the units, for `--dry-run`.
pub(super) fn print_units(files: &[(PathBuf, String)]) -> anyhow::Result<()> {
    for (path, text) in files {
        context::print(&format!("{}\n{text}\n", path.display()))?;
    }
    Ok(())
}

/// Returns the directory for units: the directory on the command line, else the directory of systemd.
pub(super) fn choose_dir(named: Option<&Path>) -> anyhow::Result<PathBuf> {
    match named {
        Some(dir) => Ok(std::path::absolute(dir)?),
        None => find_systemd_dir(),
    }
}

/// Returns the directory from which systemd reads units: system units for root, else user units.
fn find_systemd_dir() -> anyhow::Result<PathBuf> {
    if rustix::process::geteuid().is_root() {
        return Ok("/etc/systemd/system".into());
    }
    let own = context::own_advice().context("neither XDG_CONFIG_HOME nor HOME is set")?;
    let config = own.parent().and_then(Path::parent).unwrap_or(&own);
    Ok(config.join("systemd/user"))
}

/// Quotes a word for systemd (systemd.service(5), "Command lines"; systemd.unit(5), "Specifiers"). Escapes quotation
/// marks, backslashes and specifiers; on a command line, also escapes variables.
pub(super) fn quote_for_systemd(word: &str, is_command_line: bool) -> String {
    let mut text = String::from("\"");
    for c in word.chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            '%' => text.push_str("%%"),
            '$' if is_command_line => text.push_str("$$"),
            '\n' => text.push_str("\\n"),
            '\t' => text.push_str("\\t"),
            c if c.is_control() => text.push_str(&format!("\\x{:02x}", u32::from(c) & 0xff)),
            c => text.push(c),
        }
    }
    text.push('"');
    text
}

/// Returns whether systemd is running (sd_booted(3)) and reads this unit.
fn is_read_by_systemd(unit: &Path) -> bool {
    Path::new("/run/systemd/system").is_dir()
        && find_systemd_dir().is_ok_and(|dir| unit.parent() == Some(&dir))
}

fn run_systemctl(words: &[&str]) -> anyhow::Result<()> {
    let mut all = vec!["systemctl"];
    if !rustix::process::geteuid().is_root() {
        all.push("--user");
    }
    all.extend(words);
    let words: Vec<&OsStr> = all.iter().map(OsStr::new).collect();
    let done = LiveHost.run(&words, Limits::default())?;
    anyhow::ensure!(
        done.status == 0,
        "{}: {}",
        all.join(" "),
        String::from_utf8_lossy(&done.stderr).trim()
    );
    Ok(())
}

fn hash_bytes(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_string()
}

/// Returns the content of a unit; `None` if the file does not exist. Fails if the file cannot be read, because assay
/// may not have written it.
fn read_unit(path: &Path) -> anyhow::Result<Option<Vec<u8>>> {
    match path.symlink_metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        _ => Ok(Some(LiveHost.read(path)?)),
    }
}

/// Writes a file atomically. Creates its directory if it is missing.
fn write_file(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    if let Some(parent) = path.parent() {
        assay_host::open_own_directory(parent).map_err(context::unwritten)?;
    }
    assay_host::write_output(path, content).map_err(context::unwritten)
}

#[allow(
    clippy::disallowed_methods,
    reason = "a file that assay wrote and whose content it knows"
)]
fn remove_file(path: &Path) -> anyhow::Result<()> {
    std::fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_mean_themselves() {
        let quote = quote_for_systemd;
        assert_eq!(quote("a b", true), "\"a b\"");
        assert_eq!(quote("50% of $HOME", true), "\"50%% of $$HOME\"");
        assert_eq!(quote("A=$x", false), "\"A=$x\"");
        assert_eq!(quote("a\"\\\nb", true), "\"a\\\"\\\\\\nb\"");
    }
}
