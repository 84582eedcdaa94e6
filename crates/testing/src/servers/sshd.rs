//! A private OpenSSH server in a network namespace with a slow resolver.

use crate::servers::dns::{ADDRESS, SlowDns};
use crate::servers::{check, find_program, is_running, open_dir, path_text, start};
use assay_host::process::Running;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Port of the server. The default port is free, because the namespace contains no other service.
const PORT: u16 = 22;

/// An sshd to which root can log in with a key, at [`ADDRESS`]. By default it uses no PAM and has `UseDNS yes`.
#[derive(Debug)]
pub struct Sshd {
    program: PathBuf,
    server: Running,
    /// Namespace in which sshd runs.
    pub dns: SlowDns,
    dir: tempfile::TempDir,
}

impl Sshd {
    /// Starts sshd in the namespace, which needs root.
    ///
    /// # Errors
    /// OpenSSH's server, client or key generator is missing, or sshd does not start.
    pub fn start(dns: SlowDns) -> io::Result<Self> {
        Self::configured(dns, "PermitUserRC no\nUsePAM no\nUseDNS yes", None)
    }

    /// Starts sshd with additional lines of configuration. If sshd shall use PAM, `pam` contains the lines of the PAM
    /// stack. In both texts, `{dir}` stands for the private directory.
    ///
    /// # Errors
    /// See [`Sshd::start`].
    pub fn configured(dns: SlowDns, settings: &str, pam: Option<&str>) -> io::Result<Self> {
        let program = find_program("sshd")?;
        find_program("ssh")?;
        find_program("ssh-keygen")?;
        let dir = open_dir()?;
        for name in ["host_key", "id"] {
            let key = path_text(&dir.path().join(name));
            check(&["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", &key])?;
        }
        let path = dir.path().display();
        let settings = settings.replace("{dir}", &path.to_string());
        let config = dir.path().join("sshd_config");
        fs::write(
            &config,
            format!(
                "{settings}
Port {PORT}
HostKey {path}/host_key
PidFile {path}/pid
AuthorizedKeysFile {path}/id.pub
# The directory belongs to the user who runs the test.
StrictModes no
PermitRootLogin yes
GSSAPIAuthentication no
"
            ),
        )?;
        if let Some(pam) = pam {
            let file = dir.path().join("pam");
            fs::write(&file, pam.replace("{dir}", &path.to_string()))?;
            dns.replace("/etc/pam.d/sshd", &file)?;
        }
        let argv = [
            &path_text(&program)[..],
            "-D",
            "-f",
            &path_text(&config),
            "-E",
        ];
        let mut argv = dns.inside(&argv);
        argv.push(dir.path().join("log").into());
        let mut command = Command::new(&argv[0]);
        command.args(&argv[1..]);
        let sshd = Self {
            program,
            server: start(command)?,
            dns,
            dir,
        };
        sshd.wait()?;
        Ok(sshd)
    }

    /// Waits until sshd has written its process id, after which it listens.
    fn wait(&self) -> io::Result<()> {
        let pid = self.dir.path().join("pid");
        let end = Instant::now() + Duration::from_secs(10);
        while Instant::now() < end && is_running(&self.server) {
            if pid.exists() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Err(io::Error::other(format!(
            "sshd does not start:\n{}",
            self.log()
        )))
    }

    /// Returns a command that enters the namespace, logs in and runs `true`.
    #[must_use]
    pub fn login(&self) -> Vec<OsString> {
        let known = format!(
            "UserKnownHostsFile={}",
            path_text(&self.dir.path().join("known"))
        );
        let key = path_text(&self.dir.path().join("id"));
        let host = format!("root@{ADDRESS}");
        let port = PORT.to_string();
        let options = [
            "BatchMode=yes",
            "StrictHostKeyChecking=no",
            "IdentitiesOnly=yes",
            &known,
        ];
        let mut argv = vec!["ssh", "-F", "none", "-p", &port, "-i", &key];
        argv.extend(options.iter().flat_map(|option| ["-o", *option]));
        argv.extend([&host[..], "true"]);
        self.dns.inside(&argv)
    }

    /// Returns the private directory, which contains the private key `id`, the authorized key `id.pub`, and the `known`
    /// hosts.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Returns the path of the configuration file.
    #[must_use]
    pub fn config(&self) -> PathBuf {
        self.dir.path().join("sshd_config")
    }

    /// Returns the command that validates a configuration, whose path replaces `{file}`. The command runs inside the
    /// namespace, where sshd finds its directory.
    #[must_use]
    pub fn validate(&self) -> Vec<String> {
        let argv = self
            .dns
            .inside(&[&path_text(&self.program)[..], "-t", "-f", "{file}"]);
        argv.iter()
            .map(|part| part.to_string_lossy().into_owned())
            .collect()
    }

    /// Returns the command that makes sshd read its configuration again. The listener restarts with the same process
    /// id.
    #[must_use]
    pub fn reload(&self) -> Vec<String> {
        ["kill", "-HUP", &self.server.pid().to_string()]
            .map(ToOwned::to_owned)
            .to_vec()
    }

    /// Returns the content of the log.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }
}
