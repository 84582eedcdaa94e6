//! A private PostgreSQL that listens on a Unix socket, and optionally on a TCP port with TLS.

use assay_host::process::{Dies, Running};
use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// User that runs the server, because PostgreSQL refuses to run as root.
const USER: &str = "nobody";

/// A PostgreSQL server with one superuser, `assay`, who needs no password on the socket.
#[derive(Debug)]
pub struct Postgres {
    programs: PathBuf,
    dir: tempfile::TempDir,
    server: Option<Running>,
    /// TCP port with TLS; `None` if the server listens only on the socket.
    tls_port: Option<u16>,
}

impl Postgres {
    /// Creates a cluster and starts it. Returns `None` and reports the reason if PostgreSQL is missing.
    ///
    /// # Panics
    /// PostgreSQL is installed and does not start.
    #[must_use]
    pub fn start() -> Option<Self> {
        let Some(programs) = find_programs() else {
            crate::skipped("postgresql", "not installed");
            return None;
        };
        let made = Self::make(programs).and_then(|mut server| {
            server.up()?;
            Ok(server)
        });
        match made {
            Ok(server) => Some(server),
            Err(error) => panic!("postgresql: {error}"),
        }
    }

    /// Like [`Postgres::start`], but the server also listens with TLS on a port of 127.0.0.1. `certificate` and `key`
    /// are in PEM.
    ///
    /// # Panics
    /// PostgreSQL is installed and does not start.
    #[must_use]
    pub fn start_with_tls(certificate: &str, key: &str) -> Option<(Self, u16)> {
        let programs = find_programs().or_else(|| {
            crate::skipped("postgresql", "not installed");
            None
        })?;
        let made = Self::make(programs).and_then(|mut server| {
            let port = std::net::TcpListener::bind("127.0.0.1:0")?
                .local_addr()?
                .port();
            let (data, config) = (server.dir.path().join("data"), server.config());
            for (name, text) in [("server.crt", certificate), ("server.key", key)] {
                let path = data.join(name);
                fs::write(&path, text)?;
                fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
                if rustix::process::geteuid().is_root() {
                    let (user, group) = postgres_user()?;
                    chown(&path, Some(user), Some(group))?;
                }
            }
            let mut settings = fs::read_to_string(&config)?;
            settings += &format!("port = {port}\nssl = on\n");
            fs::write(&config, settings)?;
            server.tls_port = Some(port);
            server.up()?;
            Ok((server, port))
        });
        match made {
            Ok(server) => Some(server),
            Err(error) => panic!("postgresql: {error}"),
        }
    }

    fn make(programs: PathBuf) -> io::Result<Self> {
        let dir = tempfile::Builder::new().prefix("pg").tempdir()?;
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755))?;
        let data = dir.path().join("data");
        fs::create_dir(&data)?;
        if rustix::process::geteuid().is_root() {
            let (user, group) = postgres_user()?;
            chown(&data, Some(user), Some(group))?;
            chown(dir.path(), Some(user), Some(group))?;
        }
        let server = Self {
            programs,
            dir,
            server: None,
            tls_port: None,
        };
        let made = server
            .command("initdb")
            .args([
                "--no-sync",
                "--auth=trust",
                "--username=assay",
                "--encoding=UTF8",
                "--locale=C",
                "-D",
            ])
            .arg(&data)
            .stdin(Stdio::null())
            .output()?;
        match made.status.success() {
            true => Ok(server),
            false => Err(io::Error::other(
                String::from_utf8_lossy(&made.stderr).into_owned(),
            )),
        }
    }

    /// Like [`Postgres::start`], but a supervisor restarts the server, and all settings are in one file that trials can
    /// change.
    ///
    /// # Panics
    /// PostgreSQL is installed and does not start.
    #[must_use]
    pub fn kept() -> Option<Self> {
        let programs = find_programs().or_else(|| {
            crate::skipped("postgresql", "not installed");
            None
        })?;
        let made = Self::make(programs).and_then(|mut server| {
            let dir = server.dir.path().to_owned();
            let own = format!(
                "listen_addresses = ''\nunix_socket_directories = '{}'\nfsync = off\n",
                dir.display()
            );
            let mut config = fs::read(server.config())?;
            config.extend(own.into_bytes());
            fs::write(server.config(), config)?;
            let mut run = server.command("postgres");
            run.arg("-D").arg(dir.join("data"));
            let mut stop = server.command("pg_ctl");
            stop.args(["-s", "-m", "fast", "-w", "stop", "-D"])
                .arg(dir.join("data"));
            let mut ready = server.command("pg_isready");
            ready.args(["-q", "-h"]).arg(&dir);
            server.server = Some(crate::servers::supervisor::keep(&dir, &run, &stop, &ready)?);
            Ok(server)
        });
        match made {
            Ok(server) => Some(server),
            Err(error) => panic!("postgresql: {error}"),
        }
    }

    /// Returns the path of the configuration file.
    #[must_use]
    pub fn config(&self) -> PathBuf {
        self.dir.path().join("data/postgresql.conf")
    }

    /// Returns the command that validates a configuration, whose path replaces `{file}`.
    #[must_use]
    pub fn validate(&self) -> Vec<String> {
        let mut argv = vec![crate::servers::path_text(&self.programs.join("postgres"))];
        argv.extend(["-C", "shared_buffers", "-D"].map(str::to_owned));
        argv.push(crate::servers::path_text(&self.dir.path().join("data")));
        argv.push("--config-file={file}".to_owned());
        argv
    }

    /// Returns the command that makes the server read its configuration again.
    #[must_use]
    pub fn reload(&self) -> Vec<String> {
        let mut command = self.command("pg_ctl");
        command.args(["-s", "reload", "-D"]);
        command.arg(self.dir.path().join("data"));
        crate::servers::supervisor::command_words(&command)
    }

    /// Returns the command that restarts a [supervised](Postgres::kept) server and waits until it
    /// responds.
    #[must_use]
    pub fn restart(&self) -> Vec<String> {
        vec![crate::servers::path_text(&self.dir.path().join("restart"))]
    }

    /// Returns the environment variables with which a client connects to this server.
    #[must_use]
    pub fn environment(&self) -> [(&'static str, String); 2] {
        [
            ("PGHOST", crate::servers::path_text(self.dir.path())),
            ("PGUSER", "assay".to_owned()),
        ]
    }

    /// Returns the command that runs a program of PostgreSQL as an unprivileged user.
    fn command(&self, program: &str) -> Command {
        let path = self.programs.join(program);
        let mut command = match rustix::process::geteuid().is_root() {
            true => {
                let mut command = Command::new("setpriv");
                command.args([
                    "--reuid",
                    USER,
                    "--regid",
                    "nogroup",
                    "--clear-groups",
                    "--",
                ]);
                command.arg(path);
                command
            }
            false => Command::new(path),
        };
        command.current_dir(self.dir.path()).env("LC_ALL", "C");
        command
    }

    /// Starts the server and waits until it accepts connections.
    ///
    /// # Errors
    /// The server does not start within a minute.
    pub fn up(&mut self) -> io::Result<()> {
        let log = fs::File::options()
            .append(true)
            .create(true)
            .open(self.dir.path().join("log"))?;
        let mut command = self.command("postgres");
        command
            .arg("-D")
            .arg(self.dir.path().join("data"))
            .arg("-k")
            .arg(self.dir.path())
            // Only the socket; durability after a crash of the machine does not matter here.
            .args([
                "-c",
                match self.tls_port {
                    Some(_) => "listen_addresses=127.0.0.1",
                    None => "listen_addresses=",
                },
                "-c",
                "fsync=off",
                "-c",
                "shared_buffers=16MB",
            ])
            .stdout(log.try_clone()?)
            .stderr(log);
        self.server = Some(Running::start(command, Dies::WithAssay)?);
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let ready = self
                .command("pg_isready")
                .args(["-q", "-h"])
                .arg(self.dir.path())
                .args(["-p", &self.port().to_string()])
                .status()?;
            if ready.success() {
                return Ok(());
            }
            if Instant::now() > end {
                return Err(io::Error::other(self.log()));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Ends the server immediately, so that connections break as in a crash.
    pub fn down(&mut self) {
        if let Some(mut server) = self.server.take() {
            // Its children notice its end and end too.
            server.signal(rustix::process::Signal::QUIT);
            let _ = server.wait(Duration::from_secs(10));
            let _ = server.kill();
        }
    }

    /// Returns the URL of a database. The database `postgres` always exists.
    #[must_use]
    pub fn url(&self, database: &str) -> PathBuf {
        let dir = self.dir.path().display();
        PathBuf::from(format!("postgresql://assay@/{database}?host={dir}"))
    }

    fn port(&self) -> u16 {
        self.tls_port.unwrap_or(5432)
    }

    /// Executes SQL.
    ///
    /// # Panics
    /// The server returns an error.
    pub fn sql(&self, database: &str, sql: &str) -> String {
        let done = self
            .command("psql")
            .args([
                "-qAtX",
                "-v",
                "ON_ERROR_STOP=1",
                "-U",
                "assay",
                "-d",
                database,
                "-c",
                sql,
                "-h",
            ])
            .arg(self.dir.path())
            .args(["-p", &self.port().to_string()])
            .output()
            .unwrap_or_else(|error| panic!("psql: {error}"));
        assert!(
            done.status.success(),
            "{sql}: {}",
            String::from_utf8_lossy(&done.stderr)
        );
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    }

    /// Returns the content of the server's log.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.down();
    }
}

/// Returns the directory with the programs of the newest installed version, on Debian.
fn find_programs() -> Option<PathBuf> {
    let mut all: Vec<(u32, PathBuf)> = fs::read_dir("/usr/lib/postgresql")
        .ok()?
        .flatten()
        .filter_map(|entry| {
            let version = entry.file_name().to_str()?.parse().ok()?;
            Some((version, entry.path().join("bin")))
        })
        .filter(|(_, path)| path.join("initdb").exists())
        .collect();
    all.sort();
    all.pop().map(|(_, path)| path)
}

/// Returns the ids of the user and of the group that run the server.
fn postgres_user() -> io::Result<(u32, u32)> {
    let text = fs::read_to_string(Path::new("/etc/passwd"))?;
    let found = text.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let [name, _, user, group, ..] = fields[..] else {
            return None;
        };
        (name == USER).then(|| Some((user.parse().ok()?, group.parse().ok()?)))?
    });
    found.ok_or_else(|| io::Error::other("there is no user nobody"))
}
