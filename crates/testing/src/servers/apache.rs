//! Apache whose multi-processing module (MPM) is configured in a separate file. A supervisor restarts Apache whenever
//! it ends.

use crate::servers::{find_program, free_port, open_dir, path_text};
use assay_host::process::Running;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Directory of Apache's modules in Debian.
const MODULES: &str = "/usr/lib/apache2/modules";

/// Apache on a port of 127.0.0.1, which serves a file `small` of 1,000 bytes.
#[derive(Debug)]
pub struct Apache {
    _keeper: Running,
    port: u16,
    dir: tempfile::TempDir,
}

impl Apache {
    /// Starts Apache with the MPM prefork. Returns `None` and reports the reason if Apache or one of its MPMs is
    /// missing.
    ///
    /// # Panics
    /// Apache is installed and does not start.
    #[must_use]
    pub fn kept() -> Option<Self> {
        if crate::servers::skip(&["apache2", "bash"], false) {
            return None;
        }
        for mpm in ["event", "worker", "prefork"] {
            if !Path::new(&module_name(mpm)).exists() {
                crate::skipped("apache2", format_args!("without {mpm}"));
                return None;
            }
        }
        match Self::begin() {
            Ok(server) => Some(server),
            Err(error) => panic!("apache2: {error}"),
        }
    }

    fn begin() -> io::Result<Self> {
        let program = find_program("apache2")?;
        let dir = open_dir()?;
        let (www, port) = (dir.path().join("www"), free_port()?);
        fs::create_dir(&www)?;
        fs::write(www.join("small"), vec![b'x'; 1_000])?;
        let (root, config) = (dir.path().display(), dir.path().join("apache2.conf"));
        let user = match rustix::process::geteuid().is_root() {
            true => "User nobody\nGroup nogroup\n",
            false => "",
        };
        // As on Debian: exactly one file loads an MPM.
        fs::write(
            dir.path().join("mpm.load"),
            format!("LoadModule {}\n", Self::loads("prefork")),
        )?;
        fs::write(
            &config,
            format!(
                "Include {root}/mpm.load
LoadModule authz_core_module {MODULES}/mod_authz_core.so
{user}ServerRoot {root}
ServerName localhost
PidFile {root}/pid
ErrorLog {root}/log
DefaultRuntimeDir {root}
Listen 127.0.0.1:{port}
MaxKeepAliveRequests 0
DocumentRoot {root}/www
"
            ),
        )?;
        // Apache terminates its whole process group, so it gets a separate one. The kernel
        // terminates it if its parent ends, because it takes its workers along.
        let mut run = Command::new("setsid");
        run.args(["setpriv", "--pdeathsig", "TERM", "--"])
            .arg(&program);
        run.args(["-D", "FOREGROUND", "-f"]).arg(&config);
        // Waits until it ended: a server that is shutting down may still respond.
        let mut stop = Command::new("sh");
        stop.args([
            "-c",
            "pid=$(cat pid) && kill -TERM \"$pid\" && while kill -0 \"$pid\" 2>/dev/null; do sleep 0.02; done",
        ]);
        let stop = command_in(dir.path(), &stop);
        let mut ready = Command::new("bash");
        let connect = format!("exec 2>/dev/null 3<>/dev/tcp/127.0.0.1/{port}");
        ready.args(["-c", &connect]);
        let keeper = crate::servers::supervisor::keep(dir.path(), &run, &stop, &ready)?;
        Ok(Self {
            _keeper: keeper,
            port,
            dir,
        })
    }

    /// Returns the line `LoadModule` that loads an MPM.
    #[must_use]
    pub fn loads(mpm: &str) -> String {
        format!("mpm_{mpm}_module {}", module_name(mpm))
    }

    /// Returns the URL of a path that begins with `/`.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Returns the configuration file that loads the MPM.
    #[must_use]
    pub fn config(&self) -> PathBuf {
        self.dir.path().join("mpm.load")
    }

    /// Returns the command that validates the current configuration.
    #[must_use]
    pub fn configtest(&self) -> Vec<String> {
        let config = path_text(&self.dir.path().join("apache2.conf"));
        ["apache2", "-t", "-f", &config]
            .map(ToOwned::to_owned)
            .to_vec()
    }

    /// Returns the command that restarts Apache and waits until it responds.
    #[must_use]
    pub fn restart(&self) -> Vec<String> {
        vec![path_text(&self.dir.path().join("restart"))]
    }

    /// Returns the path of the file that contains the process id.
    #[must_use]
    pub fn pid(&self) -> PathBuf {
        self.dir.path().join("pid")
    }
}

/// Returns the command, modified to run in another directory.
fn command_in(dir: &Path, command: &Command) -> Command {
    let mut all = Command::new("env");
    all.arg("-C").arg(dir).arg(command.get_program());
    all.args(command.get_args());
    all
}

fn module_name(mpm: &str) -> String {
    format!("{MODULES}/mod_mpm_{mpm}.so")
}
