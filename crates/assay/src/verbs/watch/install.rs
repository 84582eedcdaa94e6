//! `assay fleet watch install` and `remove`: installs a systemd timer that runs `assay fleet watch now` with the
//! options of the command line.

use super::super::systemd_units::{InstalledUnits, choose_dir, print_units};
use super::{What, dir, name, units};
use crate::context;
use crate::status::Status;
use anyhow::Context as _;
use assay_host::{Host as _, LiveHost};
use assay_model::Nanos;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Minimum interval in nanoseconds. A check takes about one second of CPU time on every machine.
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
    /// Also remove files that were changed after installation
    #[arg(long)]
    force: bool,
}

impl Install {
    pub(super) fn run(&self) -> anyhow::Result<Status> {
        anyhow::ensure!(
            self.every >= MOST_OFTEN,
            "--every {}: a minute is the shortest",
            self.every
        );
        let dir = choose_dir(self.dir.as_deref())?;
        let program =
            std::env::current_exe().context("the program file of assay cannot be found")?;
        let state = context::state_dir()?;
        let variables = [("ASSAY_STATE", state.into_os_string())];
        let service = units::service(&program, &self.words()?, &variables)
            .context("a word of the command is not UTF-8, which files of systemd have to be")?;
        let files = [
            (dir.join(format!("{}.service", units::NAME)), service),
            (
                dir.join(format!("{}.timer", units::NAME)),
                units::timer(self.every),
            ),
        ];
        if self.dry_run {
            print_units(&files)?;
            return Ok(Status::Ok);
        }
        let timer = format!("{}.timer", units::NAME);
        if installed_units()?.install(&files, &timer)? {
            eprintln!("the timer runs: `systemctl list-timers {timer}`");
        }
        Ok(Status::Ok)
    }

    /// Returns the command line that the service runs.
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
        let timer = format!("{}.timer", units::NAME);
        installed_units()?.remove(&[&timer], self.force)
    }
}

fn installed_units() -> anyhow::Result<InstalledUnits> {
    Ok(InstalledUnits {
        first: units::FIRST,
        record: dir()?.join("installed.json"),
    })
}
