//! A private MariaDB that listens only on a Unix socket.

use crate::servers::{check, find, open_dir, path_text};
use assay_host::process::{Dies, Running};
use std::fs;
use std::io;
use std::os::unix::fs::chown;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// Name and id of the user that runs the server if the test runs as root.
const NOBODY: (&str, u32) = ("nobody", 65_534);

/// A MariaDB server with an empty database `bench` and one user, `root`, who needs no password on the socket.
#[derive(Debug)]
pub struct MariaDb {
    _server: Running,
    dir: tempfile::TempDir,
}

impl MariaDb {
    /// Creates the data directory and starts the server. Returns `None` and reports the reason if MariaDB's server is
    /// missing.
    ///
    /// # Panics
    /// The server is installed and does not start.
    #[must_use]
    pub fn start() -> Option<Self> {
        if crate::servers::skip(&["mariadbd", "mariadb-install-db", "mariadb-slap"], false) {
            return None;
        }
        match Self::make() {
            Ok(server) => Some(server),
            Err(error) => panic!("mariadb: {error}"),
        }
    }

    fn make() -> io::Result<Self> {
        let dir = open_dir()?;
        let data = dir.path().join("data");
        fs::create_dir(&data)?;
        let user = match rustix::process::geteuid().is_root() {
            true => {
                for path in [&data, dir.path()] {
                    chown(path, Some(NOBODY.1), Some(NOBODY.1))?;
                }
                format!("user = {}\n", NOBODY.0)
            }
            false => String::new(),
        };
        let at = dir.path().display();
        let config = dir.path().join("my.cnf");
        fs::write(
            &config,
            format!(
                "[mysqld]\n{user}datadir = {at}/data\nsocket = {at}/socket\npid-file = {at}/pid\nskip-networking\n\
                 innodb_buffer_pool_size = 32M\ninnodb_log_file_size = 8M\n[client]\nsocket = {at}/socket\nuser = root\n"
            ),
        )?;
        let defaults = format!("--defaults-file={}", config.display());
        check(&[
            "mariadb-install-db",
            &defaults,
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
        ])?;
        let log = fs::File::create(dir.path().join("log"))?;
        let program = find("mariadbd").unwrap_or_else(|| PathBuf::from("mariadbd"));
        let mut command = Command::new(program);
        command.arg(&defaults).stdout(log.try_clone()?).stderr(log);
        let server = Self {
            _server: Running::start(command, Dies::WithAssay)?,
            dir,
        };
        let end = Instant::now() + Duration::from_secs(60);
        while server.ask("CREATE DATABASE IF NOT EXISTS bench").is_err() {
            if Instant::now() > end {
                let log = fs::read_to_string(server.dir.path().join("log"))?;
                return Err(io::Error::other(log));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(server)
    }

    /// Returns the command line of a client program for this server.
    #[must_use]
    pub fn client(&self, program: &str) -> Vec<String> {
        let defaults = path_text(&self.dir.path().join("my.cnf"));
        vec![program.to_owned(), format!("--defaults-file={defaults}")]
    }

    fn ask(&self, sql: &str) -> io::Result<String> {
        let argv = self.client("mariadb");
        let done = Command::new(&argv[0])
            .args(&argv[1..])
            .args(["-NBe", sql])
            .output()?;
        match done.status.success() {
            true => Ok(String::from_utf8_lossy(&done.stdout).trim().to_owned()),
            false => Err(io::Error::other(
                String::from_utf8_lossy(&done.stderr).into_owned(),
            )),
        }
    }

    /// Executes SQL.
    ///
    /// # Panics
    /// The server returns an error.
    #[must_use]
    pub fn sql(&self, sql: &str) -> String {
        self.ask(sql)
            .unwrap_or_else(|error| panic!("{sql}: {error}"))
    }
}
