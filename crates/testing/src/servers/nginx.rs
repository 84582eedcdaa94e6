//! A private web server with nginx.

use crate::servers::{find_program, open_dir, path_text, start, start_listening};
use assay_host::process::Running;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// nginx with its own configuration: one worker, `sendfile on`, no access log.
#[derive(Debug)]
pub struct Nginx {
    program: PathBuf,
    _master: Running,
    port: u16,
    dir: tempfile::TempDir,
}

impl Nginx {
    /// Starts nginx. `server` is inserted unchanged into the `server` block of the configuration.
    ///
    /// # Errors
    /// nginx is not installed or does not start.
    pub fn start(server: &str) -> io::Result<Self> {
        let program = find_program("nginx")?;
        let dir = open_dir()?;
        fs::create_dir(dir.path().join("www"))?;
        let config = dir.path().join("nginx.conf");
        let log = dir.path().join("error.log");
        let (master, port) = start_listening(&log, |port| {
            fs::write(&config, configuration_text(dir.path(), port, server))?;
            let mut command = Command::new(&program);
            command.arg("-c").arg(&config).arg("-e").arg(&log);
            command.args(["-g", "daemon off;"]);
            start(command)
        })?;
        Ok(Self {
            program,
            _master: master,
            port,
            dir,
        })
    }

    /// Like [`Nginx::start`], with a file `small` of 1,000 bytes and a file `large` of 3,000,000 bytes. Returns `None`
    /// and reports the reason if nginx is missing.
    ///
    /// # Panics
    /// nginx is installed and does not start.
    #[must_use]
    pub fn with_files(server: &str) -> Option<Self> {
        if let Some(lacking) = crate::servers::find_missing(&["nginx"], false) {
            crate::skipped("nginx", format_args!("lacks {lacking}"));
            return None;
        }
        let started = Self::start(server).and_then(|nginx| {
            nginx.file("small", 1_000)?;
            nginx.file("large", 3_000_000)?;
            Ok(nginx)
        });
        match started {
            Ok(nginx) => Some(nginx),
            Err(error) => panic!("nginx: {error}"),
        }
    }

    /// Creates a file of `bytes` bytes that nginx serves.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn file(&self, name: &str, bytes: usize) -> io::Result<()> {
        fs::write(self.dir.path().join("www").join(name), vec![b'x'; bytes])
    }

    /// Returns the URL of a path that begins with `/`.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Returns the port on 127.0.0.1 at which nginx listens.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the path of the configuration file.
    #[must_use]
    pub fn config(&self) -> PathBuf {
        self.dir.path().join("nginx.conf")
    }

    /// Returns the command that validates a configuration, whose path replaces `{file}`.
    #[must_use]
    pub fn validate(&self) -> Vec<String> {
        let log = path_text(&self.dir.path().join("error.log"));
        ["-t", "-q", "-e", &log, "-c", "{file}"].iter().fold(
            vec![path_text(&self.program)],
            |mut argv, part| {
                argv.push((*part).to_owned());
                argv
            },
        )
    }

    /// Returns the command that makes nginx read its configuration again.
    #[must_use]
    pub fn reload(&self) -> Vec<String> {
        let log = path_text(&self.dir.path().join("error.log"));
        let config = path_text(&self.config());
        [
            &path_text(&self.program),
            "-e",
            &log,
            "-c",
            &config,
            "-s",
            "reload",
        ]
        .map(ToString::to_string)
        .to_vec()
    }
}

fn configuration_text(dir: &Path, port: u16, server: &str) -> String {
    let dir = dir.display();
    // Only root may set the user, and only then it matters.
    let user = match rustix::process::geteuid().is_root() {
        true => "user nobody nogroup;\n",
        false => "",
    };
    format!(
        "{user}worker_processes 1;
pid {dir}/nginx.pid;
error_log {dir}/error.log;

events {{
    worker_connections 1024;
}}

http {{
    sendfile on;
    access_log off;
    keepalive_requests 100000;
    client_body_temp_path {dir}/body;
    proxy_temp_path {dir}/proxy;
    fastcgi_temp_path {dir}/fastcgi;
    uwsgi_temp_path {dir}/uwsgi;
    scgi_temp_path {dir}/scgi;

    server {{
        listen 127.0.0.1:{port};
        root {dir}/www;
        {server}
    }}
}}
"
    )
}
