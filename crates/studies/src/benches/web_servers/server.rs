//! Starts and stops a web server.

use super::configuration::{Configured, Program, Site, Wanted, server_user, write_configuration};
use super::served_directory::Ground;
use crate::{BenchContext, StudyError};
use assay_host::process::{Dies, ProgramEnd, Running};
use rustix::fs::OFlags;
use rustix::process::Signal;
use std::fs;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Time limit until a server listens. Varnish takes long, because it first runs a C compiler.
const START: Duration = Duration::from_secs(60);
/// Interval at which the port is checked.
const LOOK: Duration = Duration::from_millis(20);
/// Number of attempts to find a free port, because another process may take a free port first.
const PORTS: u32 = 5;
/// Maximum number of characters of a server's output that are shown.
const TOLD: usize = 400;

/// A web server that listens on its port.
pub(super) struct Server {
    name: String,
    running: Running,
    port: u16,
    /// Log files that may contain the reason why the server ended.
    logs: [PathBuf; 2],
    ended: Option<ProgramEnd>,
}

impl Server {
    /// Starts the server and waits until it listens. `behind` is the port of the server behind this one.
    ///
    /// # Errors
    /// The server does not start. The error contains the last output of the server.
    pub fn start(
        place: &BenchContext<'_>,
        ground: &Ground,
        name: &str,
        wanted: &Wanted,
        program: &Program,
        behind: Option<u16>,
    ) -> Result<Self, StudyError> {
        let mut tries = 0;
        loop {
            tries += 1;
            let port = port(name, wanted.port)?;
            match Self::start_on(place, ground, name, wanted, program, behind, port) {
                // The port was taken in between; try another one.
                Err(_)
                    if wanted.port.is_none()
                        && tries < PORTS
                        && !place.env.cancel.is_cancelled()
                        && TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_err() => {}
                ended => return ended,
            }
        }
    }

    fn start_on(
        place: &BenchContext<'_>,
        ground: &Ground,
        name: &str,
        wanted: &Wanted,
        program: &Program,
        behind: Option<u16>,
        port: u16,
    ) -> Result<Self, StudyError> {
        let [given, own] = ground.rooms(name)?;
        let www = ground.www();
        let site = Site {
            www: &www,
            given: &given.shown,
            own: &own.shown,
            port,
            behind,
        };
        let Configured {
            file,
            text,
            arguments,
        } = write_configuration(wanted, program, &site);
        let written = given.held.join(file);
        fs::write(&written, text).map_err(StudyError::io(&written))?;
        let log = given.held.join("output");
        let output = fs::File::create(&log).map_err(StudyError::io(&log))?;
        let again = output.try_clone().map_err(StudyError::io(&log))?;
        let mut command = Command::new(&program.path);
        command
            .args(arguments)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", &own.shown)
            .env("TMPDIR", &own.shown)
            .env("LC_ALL", "C")
            .current_dir("/")
            .stdout(Stdio::from(output))
            .stderr(Stdio::from(again));
        if let Some(user) = server_user() {
            // Also clears the supplementary groups.
            command.uid(user).gid(user);
        }
        // The master is terminated gently, so that it ends its workers, even if assay is killed.
        let running = Running::start(command, Dies::Asked)
            .map_err(|error| StudyError::measure(program.path.display().to_string(), error))?;
        let mut server = Self {
            name: name.to_owned(),
            running,
            port,
            logs: [own.held.join("error.log"), log],
            ended: None,
        };
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let end = Instant::now() + START;
        loop {
            place.go_on()?;
            server.is_alive()?;
            if TcpStream::connect_timeout(&address, LOOK).is_ok() {
                server.is_alive()?;
                return Ok(server);
            }
            if Instant::now() >= end {
                let why = format!(
                    "it did not listen on {address} within {START:?}{}",
                    server.told()
                );
                return Err(StudyError::measure(name, why));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Returns the URL of the server.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    /// Returns the port of the server on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Sends SIGTERM to the server and does not wait.
    pub fn ask_to_end(&self) {
        self.running.signal(Signal::TERM);
    }

    /// Checks that the server is still running.
    ///
    /// # Errors
    /// The server has ended. The error contains its exit status and its last output.
    pub fn is_alive(&mut self) -> Result<(), StudyError> {
        if self.ended.is_none() {
            let ended = self.running.ended();
            self.ended = ended.map_err(|error| StudyError::measure(&self.name, error))?;
        }
        match &self.ended {
            None => Ok(()),
            Some(ended) => {
                let why = format!("the server has ended ({ended}){}", self.told());
                Err(StudyError::measure(&self.name, why))
            }
        }
    }

    /// Returns the last output of the server in one line.
    fn told(&self) -> String {
        let mut texts = self.logs.iter().filter_map(|file| {
            let bytes = end_of(file).ok()?;
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let words: Vec<&str> = text.split_whitespace().collect();
            (!words.is_empty()).then(|| words.join(" "))
        });
        let Some(text) = texts.next() else {
            return ", and wrote nothing".to_owned();
        };
        let text = text
            .escape_debug()
            .to_string()
            .replace("\\\"", "\"")
            .replace("\\'", "'");
        let skip = text.chars().count().saturating_sub(TOLD);
        let cut = if skip > 0 { "…" } else { "" };
        let text: String = text.chars().skip(skip).collect();
        format!(", and wrote: {cut}{text}")
    }
}

/// Reads the end of a file that another user writes, without following links or waiting for pipes.
fn end_of(file: &Path) -> io::Result<Vec<u8>> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut file = fs::File::options()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(file)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    file.seek(SeekFrom::Start(found.len().saturating_sub(4 * TOLD as u64)))?;
    let mut bytes = Vec::new();
    file.take(4 * TOLD as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns the requested port; without a request, a free port.
fn port(name: &str, asked: Option<u16>) -> Result<u16, StudyError> {
    let address = (Ipv4Addr::LOCALHOST, asked.unwrap_or(0));
    let bound = TcpListener::bind(address).and_then(|listener| listener.local_addr());
    bound.map(|address| address.port()).map_err(|error| {
        let why = match (error.kind(), asked) {
            (io::ErrorKind::AddrInUse, Some(port)) => {
                format!("port {port} of 127.0.0.1 is taken: leave port out, and a free one is used")
            }
            _ => format!("no port of 127.0.0.1 can be used: {error}"),
        };
        StudyError::measure(name, why)
    })
}
