//! For tests only: real services on which a piece of advice can be tried.
//!
//! Every rig lives in a temporary directory with its own configuration and a free port, touches
//! nothing of the machine's own service, and is gone when it is dropped; its processes die with
//! the thread that started it, so a rig belongs into the test that uses it. `start` returns an
//! error that says what is missing; [`lacks`] tells it beforehand, for a test to be skipped.
//!
//! - [`busybox`]: a root directory with a shell and nothing else.
//! - [`shells`]: each shell with each awk that another machine may have.
//! - [`nginx::Nginx`]: a web server with a small file to fetch.
//! - [`apache::Apache`]: Apache with an MPM that can be changed.
//! - [`http2::Server`]: nginx, h2o or Apache with HTTP/2.
//! - [`dovecot::Dovecot`]: IMAP with two passdbs, PAM before SQL. The user is in SQL alone, so
//!   every login first fails in PAM, which takes its time (pam_unix asks for 2 s).
//! - [`postfix::Postfix`]: a queue of its own that empties into a sink.
//! - [`postgres::Postgres`], [`mariadb::MariaDb`]: databases that listen on a socket alone.
//! - [`sshd::Sshd`]: OpenSSH in a network namespace whose only resolver, [`dns::SlowDns`], takes
//!   a configured time, so that `UseDNS` costs something.
//!
//! Each gives the file to change, the argument vectors that check it and make the service read it,
//! and what a load needs.
#![allow(
    clippy::disallowed_methods,
    reason = "a rig starts processes and owns its files"
)]

pub mod apache;
pub mod busybox;
pub mod dns;
pub mod dovecot;
pub mod http2;
pub mod mariadb;
pub mod nginx;
pub mod postfix;
pub mod postgres;
pub mod shells;
pub mod sshd;
mod supervisor;

use assay_host::process::{Dies, Running};
use std::ffi::OsStr;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Returns the missing requirements of a rig: programs, and root if required. `None` if there are
/// none.
#[must_use]
pub fn find_missing(programs: &[&str], root: bool) -> Option<String> {
    if root && !rustix::process::geteuid().is_root() {
        return Some("root".to_owned());
    }
    let missing = programs.iter().find(|program| find(program).is_none());
    missing.map(|program| (*program).to_owned())
}

/// Whether a test must be skipped because [programs or root](find_missing) are missing; reports
/// what is missing.
#[must_use]
pub fn skip(programs: &[&str], root: bool) -> bool {
    let missing = find_missing(programs, root);
    if let Some(missing) = &missing {
        crate::skipped(missing, format_args!("{missing} is missing"));
    }
    missing.is_some()
}

/// Finds a program on PATH or in the directories of the administrator.
#[must_use]
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path)
        .chain(usual)
        .map(|dir| dir.join(program))
        .find(|path| path.is_file())
}

fn find_program(program: &str) -> io::Result<PathBuf> {
    find(program).ok_or_else(|| io::Error::other(format!("{program} is not installed")))
}

/// Starts a service. Its master process is terminated gracefully, so that its workers end too.
fn start(mut command: Command) -> io::Result<Running> {
    command.stdout(Stdio::null()).stderr(Stdio::null());
    Running::start(command, Dies::Asked)
}

fn is_running(service: &Running) -> bool {
    matches!(service.wait(Duration::ZERO), Ok(false))
}

/// Creates a directory that unprivileged processes of a service can enter.
fn open_dir() -> io::Result<tempfile::TempDir> {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::Builder::new().prefix("assay-rig-").tempdir()?;
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755))?;
    Ok(dir)
}

/// Returns a port of the loopback interface that is currently free.
fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
        .local_addr()?
        .port())
}

/// Starts a service and waits until it listens. Retries if another process takes the port first.
fn start_listening(
    log: &Path,
    mut start: impl FnMut(u16) -> io::Result<Running>,
) -> io::Result<(Running, u16)> {
    for _ in 0..5 {
        let port = free_port()?;
        let service = start(port)?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let end = Instant::now() + Duration::from_secs(10);
        while Instant::now() < end && is_running(&service) {
            if TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok() {
                return Ok((service, port));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    let log = std::fs::read_to_string(log).unwrap_or_default();
    Err(io::Error::other(format!(
        "the service does not start:\n{log}"
    )))
}

/// Runs a command to its end.
fn check(argv: &[impl AsRef<OsStr>]) -> io::Result<()> {
    let output = Command::new(&argv[0])
        .args(&argv[1..])
        .stdin(Stdio::null())
        .output()?;
    if output.status.success() {
        return Ok(());
    }
    let name = argv[0].as_ref().to_string_lossy();
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!(
        "{name}: {}: {stderr}",
        output.status
    )))
}

fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
