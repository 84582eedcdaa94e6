//! `assay serve install` and `remove`: a hardened service that systemd starts when somebody connects. Each file is
//! entered with its hash before it is written, so that removal takes back what was written and nothing else.

use super::super::watch::install::{
    Written, has_systemd, hash_text, remove_file, run_systemctl, units_dir, write_unit,
};
use super::super::watch::save;
use super::super::watch::units::quoted;
use crate::context;
use crate::global::Global;
use crate::status::Status;
use anyhow::Context as _;
use assay_host::{Host as _, LiveHost};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Begins what assay wrote.
const FIRST: &str = "# Written by `assay serve install`; `assay serve remove` removes it.\n";
const SERVICE: &str = "assay-serve.service";
const SOCKET: &str = "assay-serve.socket";

/// What the service may do: read the machine, write the directory of the store, speak with this machine.
const HARDENING: &str = "\
NoNewPrivileges=yes
CapabilityBoundingSet=
ProtectSystem=strict
ProtectHome=read-only
PrivateTmp=yes
PrivateDevices=yes
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectKernelLogs=yes
ProtectControlGroups=yes
ProtectClock=yes
ProtectHostname=yes
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
RemoveIPC=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
SystemCallErrorNumber=EPERM
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
UMask=0077
LimitNOFILE=2048
MemoryMax=512M
TasksMax=64
";

/// What a service of a user may be forbidden without root.
const USER_HARDENING: &str = "\
NoNewPrivileges=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallErrorNumber=EPERM
UMask=0077
LimitNOFILE=2048
";

/// Install a service that systemd starts when somebody connects
#[derive(clap::Args)]
pub(super) struct Install {
    /// Listen on this address and port
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7878")]
    listen: SocketAddr,
    /// Read the token that visitors need from this file
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Accept requests for this host name (repeatable)
    #[arg(long = "name", value_name = "NAME")]
    names: Vec<String>,
    /// Write the units to DIR and start nothing [default: systemd's]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Show what would be written and stop
    #[arg(long)]
    dry_run: bool,
}

/// Remove the installed service
#[derive(clap::Args)]
pub(super) struct Remove {
    /// Also remove files that were changed since
    #[arg(long)]
    force: bool,
}

impl Install {
    pub(super) fn run(&self, global: &Global) -> anyhow::Result<Status> {
        anyhow::ensure!(
            self.listen.ip().is_loopback() || self.token_file.is_some(),
            "cannot listen on {}: other machines could read the store. Give --token-file FILE, or listen on 127.0.0.1.",
            self.listen
        );
        let dir = match &self.dir {
            Some(dir) => std::path::absolute(dir)?,
            None => units_dir()?,
        };
        let is_system = rustix::process::geteuid().is_root();
        let files = [
            (dir.join(SERVICE), self.describe_service(global, is_system)?),
            (dir.join(SOCKET), self.describe_socket()),
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
                    found.starts_with(FIRST),
                    "{} exists and was not written by assay: remove it, or give it another name",
                    path.display()
                );
            }
        }
        let mut known = read_installed()?;
        known.extend(files.iter().map(|(path, text)| Written {
            path: path.clone(),
            hash: hash_text(text),
        }));
        let list = list_path()?;
        if let Some(parent) = list.parent() {
            assay_host::open_own_directory(parent).map_err(context::unwritten)?;
        }
        save(&list, &serde_json::to_vec(&known)?)?;
        for (path, text) in &files {
            write_unit(path, text)?;
            eprintln!("written: {}", path.display());
        }
        if has_systemd(&dir) {
            run_systemctl(&["daemon-reload"])?;
            run_systemctl(&["enable", "--now", SOCKET])?;
            eprintln!(
                "assay is on http://{}/ (assay serve remove undoes this)",
                self.listen
            );
        } else {
            eprintln!(
                "systemd does not run here, or does not read this directory: `systemctl enable --now {SOCKET}` where \
                 it does"
            );
        }
        Ok(Status::Ok)
    }

    fn describe_socket(&self) -> String {
        format!(
            "{FIRST}[Unit]\nDescription=Socket of assay serve\n\n[Socket]\nListenStream={}\n\n\
             [Install]\nWantedBy=sockets.target\n",
            self.listen
        )
    }

    fn describe_service(&self, global: &Global, is_system: bool) -> anyhow::Result<String> {
        let not_text = "a path is not UTF-8, which unit files are: use a symlink with such a name";
        let program = std::env::current_exe().context("cannot find the program file of assay")?;
        let mut line = quoted(program.to_str().context(not_text)?, true);
        let mut words = vec!["serve".to_owned()];
        if let Some(file) = &self.token_file {
            let file = std::path::absolute(file)?;
            words.extend([
                "--token-file".to_owned(),
                file.to_str().context(not_text)?.to_owned(),
            ]);
        }
        for name in &self.names {
            words.extend(["--name".to_owned(), name.clone()]);
        }
        for word in &words {
            line.push(' ');
            line.push_str(&quoted(word, true));
        }
        let store = context::store_path(global)?;
        let is_remote = assay_store::is_url(&store);
        let store = if is_remote {
            store
        } else {
            std::path::absolute(&store)?
        };
        let state = context::state_dir()?;
        let mut text = format!(
            "{FIRST}[Unit]\nDescription=The store of assay in a browser\nDocumentation=man:assay-serve(1)\n\
             Requires={SOCKET}\nAfter={SOCKET}\n\n[Service]\nType=exec\n"
        );
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let variables = [
            ("ASSAY_STORE", Some(&store)),
            ("ASSAY_STATE", Some(&state)),
            ("HOME", home.as_ref()),
        ];
        for (name, value) in variables {
            if let Some(value) = value {
                let value = value.to_str().context(not_text)?;
                text.push_str(&format!(
                    "Environment={}\n",
                    quoted(&format!("{name}={value}"), false)
                ));
            }
        }
        text.push_str(&format!("ExecStart={line}\nNice=5\n"));
        text.push_str(if is_system { HARDENING } else { USER_HARDENING });
        if is_system && !is_remote {
            // Readers of SQLite write the index of its log beside the store.
            let dir = store.parent().unwrap_or(Path::new("/"));
            let dir = quoted(&format!("-{}", dir.to_str().context(not_text)?), false);
            text.push_str(&format!("ReadWritePaths={dir}\n"));
            if self.listen.ip().is_loopback() {
                text.push_str("IPAddressDeny=any\nIPAddressAllow=localhost\n");
            }
        }
        Ok(text)
    }
}

impl Remove {
    pub(super) fn run(&self) -> anyhow::Result<Status> {
        let known = read_installed()?;
        if known.is_empty() {
            context::print("Nothing was installed.\n")?;
            return Ok(Status::Ok);
        }
        let is_read = known
            .iter()
            .any(|one| one.path.parent().is_some_and(has_systemd));
        if is_read {
            // The units may never have run.
            let _ = run_systemctl(&["disable", "--now", SOCKET]);
            let _ = run_systemctl(&["stop", SERVICE]);
        }
        let mut left: Vec<Written> = Vec::new();
        let mut paths: Vec<&PathBuf> = known.iter().map(|one| &one.path).collect();
        paths.sort();
        paths.dedup();
        for path in paths {
            let Ok(found) = LiveHost.read_text(path) else {
                continue;
            };
            let hashes = known.iter().filter(|one| one.path == *path);
            let is_ours = hashes.clone().any(|one| one.hash == hash_text(&found));
            if is_ours || (self.force && found.starts_with(FIRST)) {
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
        save(&list_path()?, &serde_json::to_vec(&left)?)?;
        if is_read {
            run_systemctl(&["daemon-reload"])?;
        }
        Ok(match left.is_empty() {
            true => Status::Ok,
            false => Status::Findings,
        })
    }
}

/// Returns what was written, or was about to be.
fn read_installed() -> anyhow::Result<Vec<Written>> {
    let path = list_path()?;
    if !path.exists() {
        return Ok(Vec::new());
    }
    let bytes = crate::input::bytes(&path, 1 << 20, "what was installed")?;
    serde_json::from_slice(&bytes).with_context(|| format!("{} is damaged", path.display()))
}

fn list_path() -> anyhow::Result<PathBuf> {
    Ok(context::state_dir()?.join("serve/installed.json"))
}
