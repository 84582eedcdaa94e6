//! `--each-module`: measures the time of each PAM module and each program of pam_motd, after the user has agreed.

use super::server_knowledge;
use crate::progress::Meter;
use anyhow::{Context as _, bail, ensure};
use assay_login::cause::{LoginKind, PamLine, ServerKnowledge};
use assay_login::motd_programs::{MotdProgramTime, list_motd_programs, time_motd_program};
use assay_login::pam_timing::{PamModuleTime, SshServer, time_modules};
use assay_login::ssh::SshTarget;
use assay_login::watch::WatchedServer;
use serde::Serialize;
use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::time::Duration;

/// Times of the PAM modules and motd programs that run during a login.
#[derive(Default, Serialize, schemars::JsonSchema)]
pub(super) struct ModuleTimes {
    /// Modules in the order in which they were called.
    pub(super) modules: Vec<PamModuleTime>,
    /// Programs of pam_motd, run one by one.
    pub(super) motd: Vec<MotdProgramTime>,
}

/// The server, the modules and the programs that `--each-module` will run.
pub(super) struct ModulePlan {
    server: SshServer,
    programs: Vec<PathBuf>,
}

impl ModulePlan {
    /// Determines the server, and the modules and programs that its PAM stack runs.
    ///
    /// # Errors
    /// The server is not an sshd of this machine, the user is not root, or PAM is off.
    pub(super) fn new(watched: &WatchedServer, known: &ServerKnowledge) -> anyhow::Result<Self> {
        ensure!(
            rustix::process::geteuid().is_root(),
            "cannot time each module of PAM: this needs root, on the machine of the server"
        );
        let Some(listener) = watched.listeners.first() else {
            bail!(
                "cannot time each module of PAM: no sshd of this machine listens there. Run assay on the server."
            );
        };
        let link = |name: &str| std::fs::read_link(format!("/proc/{name}/ns/mnt")).ok();
        ensure!(
            link("self") == link(&listener.to_string()),
            "cannot time each module of PAM: the sshd (process {listener}) runs in a container. Run assay in it."
        );
        let stack = known.pam.as_deref().unwrap_or_default();
        ensure!(
            !stack.is_empty(),
            "cannot time each module of PAM: sshd uses none (UsePAM no), or its file in /etc/pam.d cannot be read"
        );
        let program = std::fs::read_link(format!("/proc/{listener}/exe")).ok();
        let program = program.filter(|program| program.exists());
        let program = program.or_else(server_knowledge::find_sshd);
        let runs_motd = |line: &PamLine| {
            line.module == "pam_motd" && !line.arguments.iter().any(|word| word == "noupdate")
        };
        let named = known.setting("pamservicename");
        Ok(Self {
            server: SshServer {
                program: program.context("cannot find the program of sshd")?,
                config: server_knowledge::find_config(&watched.listeners),
                service: named
                    .filter(|name| !name.is_empty())
                    .unwrap_or("sshd")
                    .to_owned(),
            },
            programs: match stack.iter().any(runs_motd) {
                true => list_motd_programs(),
                false => Vec::new(),
            },
        })
    }

    fn describe(&self) -> String {
        let mut text = "To time each module of PAM, assay logs in once more, through an sshd of its own without a port \
                        (`sshd -i`).\nThis sshd sees a copy of /etc/pam.d with a time stamp before each module. All \
                        modules run as in any login,\nso that hooks of pam_exec and the like run once more.\n"
            .to_owned();
        if !self.programs.is_empty() {
            text += "Then these programs run as root, one by one:\n";
            for program in &self.programs {
                text += &format!("  {}\n", program.display().to_string().escape_debug());
            }
        }
        text
    }

    /// Asks the user whether to run the modules and programs. With `yes`, returns true without asking.
    ///
    /// # Errors
    /// There is no terminal to ask on.
    pub(super) fn is_agreed(&self, yes: bool) -> anyhow::Result<bool> {
        if yes {
            return Ok(true);
        }
        ensure!(
            std::io::stdin().is_terminal(),
            "{}cannot ask whether to run this: there is no terminal. Use --yes.",
            self.describe()
        );
        eprint!("{}Begin? [y/N] ", self.describe());
        std::io::stderr().flush()?;
        let mut answer = String::new();
        std::io::stdin().lock().read_line(&mut answer)?;
        Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
    }

    /// Logs in once, then runs the programs.
    ///
    /// # Errors
    /// The login failed, or the user interrupted.
    pub(super) fn run(
        &self,
        target: &SshTarget,
        limit: Duration,
        stop: &dyn Fn() -> bool,
        meter: &mut Meter,
    ) -> anyhow::Result<ModuleTimes> {
        let dir =
            tempfile::tempdir().context("cannot make a directory for the copy of /etc/pam.d")?;
        meter.say("a login with each module of PAM timed".to_owned());
        let modules = time_modules(target, &self.server, dir.path(), limit, stop)?;
        let mut motd = Vec::new();
        for program in &self.programs {
            meter.say(format!("timing {}", program.display()));
            motd.push(time_motd_program(program, limit, stop)?);
        }
        Ok(ModuleTimes { modules, motd })
    }
}

/// Returns which modules and motd programs of the server to measure.
///
/// # Errors
/// As `ModulePlan::new`.
pub(super) fn plan_modules(
    server: &server_knowledge::LoginServer,
    watched: &WatchedServer,
    user: Option<&str>,
) -> anyhow::Result<ModulePlan> {
    let known = server_knowledge::of(LoginKind::Ssh, server, watched, user);
    ModulePlan::new(watched, &known)
}
