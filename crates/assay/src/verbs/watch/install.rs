//! `assay fleet watch install` and `remove`. Files are recorded with their hash before they are written, so that an
//! interrupted installation is known, and files of others are never removed.

use super::{What, dir, name, save, units};
use crate::context;
use crate::status::Status;
use anyhow::Context as _;
use assay_host::{Host as _, Limits, LiveHost};
use assay_model::Nanos;
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Shortest interval: a check takes a second of every machine.
const MOST_OFTEN: Nanos = Nanos(60_000_000_000);

#[derive(clap::Args)]
pub(super) struct Install {
    #[command(flatten)]
    what: What,
    /// Check this often, such as 15m, 1h or 24h
    #[arg(long, value_name = "TIME", default_value = "1h")]
    every: Nanos,
    /// Write the units to DIR and start nothing [default: systemd's]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Show what would be written and stop
    #[arg(long)]
    dry_run: bool,
}

#[derive(clap::Args)]
pub(super) struct Remove {
    /// Also remove files that were changed since
    #[arg(long)]
    force: bool,
}

/// A file that was written, or was about to be.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::verbs) struct Written {
    #[serde(with = "assay_host::path_json")]
    pub(in crate::verbs) path: PathBuf,
    /// BLAKE3 of its content.
    pub(in crate::verbs) hash: String,
}

impl Install {
    pub(super) fn run(&self) -> anyhow::Result<Status> {
        anyhow::ensure!(
            self.every >= MOST_OFTEN,
            "--every {}: a minute is the shortest",
            self.every
        );
        let place = match &self.dir {
            Some(dir) => std::path::absolute(dir)?,
            None => units_dir()?,
        };
        let program =
            std::env::current_exe().context("the program file of assay cannot be found")?;
        let state = context::state_dir()?;
        let variables = [("ASSAY_STATE", state.into_os_string())];
        let service = units::service(&program, &self.words()?, &variables)
            .context("a word of the command is not UTF-8, which files of systemd have to be")?;
        let files = [
            (place.join(format!("{}.service", units::NAME)), service),
            (
                place.join(format!("{}.timer", units::NAME)),
                units::timer(self.every),
            ),
        ];
        if self.dry_run {
            for (path, text) in &files {
                context::print(&format!("{}\n{text}\n", path.display()))?;
            }
            return Ok(Status::Ok);
        }
        for (path, _) in &files {
            if let Ok(found) = LiveHost.read_text(path) {
                anyhow::ensure!(
                    units::is_ours(&found),
                    "{} is there and was not written by assay: remove it, or give it another name",
                    path.display()
                );
            }
        }
        let written: Vec<Written> = files
            .iter()
            .map(|(path, text)| Written {
                path: path.clone(),
                hash: hash_text(text),
            })
            .collect();
        // Includes files of an earlier installation with other options, which belong to assay too.
        let mut known = installed()?;
        known.extend(written);
        save(&list()?, &serde_json::to_vec(&known)?)?;
        for (path, text) in &files {
            write_unit(path, text)?;
            eprintln!("written: {}", path.display());
        }
        match has_systemd(&place) {
            true => {
                run_systemctl(&["daemon-reload"])?;
                run_systemctl(&["enable", "--now", &format!("{}.timer", units::NAME)])?;
                eprintln!(
                    "the timer runs: `systemctl list-timers {}.timer`",
                    units::NAME
                );
            }
            false => eprintln!(
                "systemd does not run here, or does not read this directory: `systemctl enable --now {}.timer` \
                 where it does",
                units::NAME
            ),
        }
        Ok(Status::Ok)
    }

    /// Returns the command line of the service.
    fn words(&self) -> anyhow::Result<Vec<OsString>> {
        let mut all: Vec<OsString> = ["watch", "now", "--quiet"].map(OsString::from).into();
        all.extend(["--at-least".into(), name(self.what.at_least).into()]);
        let file = |path: &Path| -> anyhow::Result<OsString> {
            Ok(std::path::absolute(path)?.into_os_string())
        };
        if let Some(path) = &self.what.known.inventory {
            all.extend(["--inventory".into(), file(path)?]);
        }
        if let Some(path) = &self.what.known.ansible {
            all.extend(["--ansible".into(), file(path)?]);
        }
        if let Some(path) = &self.what.own.advice_dir {
            all.extend(["--advice-dir".into(), file(path)?]);
        }
        if let Some(path) = self.what.how.ssh_config() {
            all.extend(["--ssh-config".into(), path.into_os_string()]);
        }
        if self.what.how.sudo {
            all.push("--sudo".into());
        }
        if let Some(seconds) = self.what.how.deadline {
            all.extend(["--deadline".into(), seconds.to_string().into()]);
        }
        if let Some(address) = &self.what.mail {
            all.extend(["--mail".into(), address.into()]);
        }
        all.extend(self.what.names.iter().map(OsString::from));
        if let Some((program, arguments)) = self.what.command.split_first() {
            // A service has another working directory and PATH.
            let program = match LiveHost.which(program) {
                Some(path) => path.into_os_string(),
                None => anyhow::bail!(
                    "{}: there is no such command",
                    program.to_string_lossy().escape_debug()
                ),
            };
            all.extend(["--".into(), program]);
            all.extend(arguments.iter().cloned());
        }
        Ok(all)
    }
}

impl Remove {
    pub(super) fn run(&self) -> anyhow::Result<Status> {
        let known = installed()?;
        if known.is_empty() {
            context::print("Nothing was installed.\n")?;
            return Ok(Status::Ok);
        }
        let read = known
            .iter()
            .any(|one| one.path.parent().is_some_and(has_systemd));
        if read {
            // The timer may never have run.
            let _ = run_systemctl(&["disable", "--now", &format!("{}.timer", units::NAME)]);
        }
        let mut left: Vec<Written> = Vec::new();
        let mut paths: Vec<&PathBuf> = known.iter().map(|one| &one.path).collect();
        paths.sort();
        paths.dedup();
        for path in paths {
            let hashes = known.iter().filter(|one| one.path == *path);
            let Ok(found) = LiveHost.read_text(path) else {
                continue;
            };
            let ours = hashes.clone().any(|one| one.hash == hash_text(&found));
            if ours || (self.force && units::is_ours(&found)) {
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
        save(&list()?, &serde_json::to_vec(&left)?)?;
        if read {
            run_systemctl(&["daemon-reload"])?;
        }
        Ok(match left.is_empty() {
            true => Status::Ok,
            false => Status::Findings,
        })
    }
}

/// Returns the recorded files.
fn installed() -> anyhow::Result<Vec<Written>> {
    let path = list()?;
    match path.exists() {
        false => Ok(Vec::new()),
        true => {
            let bytes = crate::input::bytes(&path, 1 << 20, "what was installed")?;
            serde_json::from_slice(&bytes).with_context(|| format!("{} is damaged", path.display()))
        }
    }
}

fn list() -> anyhow::Result<PathBuf> {
    Ok(dir()?.join("installed.json"))
}

pub(in crate::verbs) fn hash_text(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_string()
}

/// Returns the directory of units: the system's for root, else the user's.
pub(in crate::verbs) fn units_dir() -> anyhow::Result<PathBuf> {
    if rustix::process::geteuid().is_root() {
        return Ok("/etc/systemd/system".into());
    }
    let own = context::own_advice().context("neither XDG_CONFIG_HOME nor HOME is set")?;
    let config = own.parent().and_then(Path::parent).unwrap_or(&own);
    Ok(config.join("systemd/user"))
}

/// Whether systemd runs (sd_booted(3)) and reads units of this directory.
pub(in crate::verbs) fn has_systemd(dir: &Path) -> bool {
    Path::new("/run/systemd/system").is_dir() && units_dir().is_ok_and(|place| place == dir)
}

pub(in crate::verbs) fn run_systemctl(words: &[&str]) -> anyhow::Result<()> {
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

/// Writes a unit atomically.
pub(in crate::verbs) fn write_unit(path: &Path, text: &str) -> anyhow::Result<()> {
    if let Some(parent) = path.parent() {
        assay_host::open_own_directory(parent).map_err(context::unwritten)?;
    }
    assay_host::write_output(path, text.as_bytes()).map_err(context::unwritten)
}

#[allow(
    clippy::disallowed_methods,
    reason = "a file that assay wrote and whose content it knows"
)]
pub(in crate::verbs) fn remove_file(path: &Path) -> anyhow::Result<()> {
    std::fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display()))
}
