//! `assay serve install` and `remove`: installs a hardened service that systemd starts at the first connection (socket
//! activation).

use super::super::systemd_units::{InstalledUnits, choose_dir, print_units, quote_for_systemd};
use crate::context;
use crate::global::Global;
use crate::status::Status;
use anyhow::Context as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// First line of the units that assay writes.
const FIRST: &str = "# Written by `assay serve install`; `assay serve remove` removes it.\n";
const SERVICE: &str = "assay-serve.service";
const SOCKET: &str = "assay-serve.socket";

/// Restrictions of the service in its unit file. The service can still read files, write to the directory of the store,
/// and use network sockets.
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

/// Restrictions that also work in a user's systemd service, which has no root privileges.
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
    /// Also remove files that were changed after installation
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
        let dir = choose_dir(self.dir.as_deref())?;
        let is_system = rustix::process::geteuid().is_root();
        let files = [
            (dir.join(SERVICE), self.describe_service(global, is_system)?),
            (dir.join(SOCKET), self.describe_socket()),
        ];
        if self.dry_run {
            print_units(&files)?;
            return Ok(Status::Ok);
        }
        if installed_units()?.install(&files, SOCKET)? {
            eprintln!(
                "assay is on http://{}/ (assay serve remove undoes this)",
                self.listen
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
        let mut line = quote_for_systemd(program.to_str().context(not_text)?, true);
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
            line.push_str(&quote_for_systemd(word, true));
        }
        let store = context::store_path(global)?;
        anyhow::ensure!(
            !has_password(&store),
            "cannot write the URL of the store into a unit, which every user can read: it contains a password. Put the \
             password into ~/.pgpass, and leave it out of --store."
        );
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
                    quote_for_systemd(&format!("{name}={value}"), false)
                ));
            }
        }
        text.push_str(&format!("ExecStart={line}\nNice=5\n"));
        text.push_str(if is_system { HARDENING } else { USER_HARDENING });
        if is_system && !is_remote {
            // Readers of SQLite write the index of its log beside the store.
            let dir = store.parent().unwrap_or(Path::new("/"));
            let dir = dir.to_str().context(not_text)?;
            // The service sees a directory that exists when it starts; the first measurement may come later.
            text.push_str(&format!(
                "ExecStartPre=+/bin/mkdir -p -m 700 {}\nReadWritePaths={}\n",
                quote_for_systemd(dir, true),
                quote_for_systemd(dir, false)
            ));
            if self.listen.ip().is_loopback() {
                text.push_str("IPAddressDeny=any\nIPAddressAllow=localhost\n");
            }
        }
        Ok(text)
    }
}

impl Remove {
    pub(super) fn run(&self) -> anyhow::Result<Status> {
        installed_units()?.remove(&[SOCKET, SERVICE], self.force)
    }
}

/// Returns whether the URL of a store contains a password.
fn has_password(store: &Path) -> bool {
    let text = store.to_string_lossy();
    let (before, parameters) = text.split_once('?').unwrap_or((&text, ""));
    assay_store::is_url(store)
        && (assay_store::shown(Path::new(before)) != Path::new(before)
            || parameters.contains("password"))
}

fn installed_units() -> anyhow::Result<InstalledUnits> {
    Ok(InstalledUnits {
        first: FIRST,
        record: context::state_dir()?.join("serve/installed.json"),
    })
}
