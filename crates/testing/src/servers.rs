//! Real services for tests of advice.
//!
//! Every service runs in a temporary directory with its own configuration and a free port, and does not touch the
//! machine's own service. Dropping the value ends and removes the service. Its processes end with the thread that
//! started them, so a service must be created in the test that uses it. `start` returns an error that contains what is
//! missing; [`find_missing`] reports this in advance, so that a test can be skipped.
//!
//! - [`busybox`]: a root directory with only a shell.
//! - [`shells`]: each shell with each awk that another machine may have.
//! - [`nginx::Nginx`]: a web server with a small file.
//! - [`apache::Apache`]: Apache with an MPM that can be changed.
//! - [`http2::Server`]: nginx, h2o or Apache with HTTP/2.
//! - [`dovecot::Dovecot`]: IMAP with two password databases, PAM before SQL. The user is only in SQL, so every login
//!   first fails in PAM, which takes time (pam_unix delays by 2 s).
//! - [`postfix::Postfix`]: a private queue that is delivered to a sink.
//! - [`postgres::Postgres`], [`mariadb::MariaDb`]: databases that listen only on a socket.
//! - [`sshd::Sshd`]: OpenSSH in a network namespace whose only resolver, [`dns::SlowDns`], has a configured delay, so
//!   that `UseDNS` costs time.
//!
//! Each service returns the file to change, the commands that validate the file and make the service read it, and what
//! a load needs.
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

/// Copies a program or library that tests execute.
///
/// `cp` is another process: if this process had the copy open for writing, a process that another thread starts at the
/// same moment would inherit the open file, and until its own exec the kernel refuses to execute the copy (ETXTBSY).
///
/// # Errors
/// The file cannot be copied.
pub fn copy_executable(from: &Path, to: &Path) -> io::Result<()> {
    let copied = Command::new("cp").arg("--").args([from, to]).status()?;
    match copied.success() {
        true => Ok(()),
        false => Err(io::Error::other(format!(
            "cp: {} cannot be copied",
            from.display()
        ))),
    }
}

/// Returns the missing requirements of a service, which are programs, and root if `root` is true; `None` if nothing is
/// missing.
#[must_use]
pub fn find_missing(programs: &[&str], root: bool) -> Option<String> {
    if root && !rustix::process::geteuid().is_root() {
        return Some("root".to_owned());
    }
    let missing = programs.iter().find(|program| find(program).is_none());
    missing.map(|program| (*program).to_owned())
}

/// Returns whether a test must be skipped because [programs or root](find_missing) are missing. Reports what is
/// missing.
#[must_use]
pub fn skip(programs: &[&str], root: bool) -> bool {
    let missing = find_missing(programs, root);
    if let Some(missing) = &missing {
        crate::skipped(missing, format_args!("{missing} is missing"));
    }
    missing.is_some()
}

/// Finds a program on PATH or in the directories for administrators' programs (`/usr/sbin`, …).
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

/// Starts a service. At the end, its master process is terminated gracefully, so that the workers end too.
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

/// Starts a service and waits until it listens. Tries again if another process takes the port first.
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

/// Runs a command until it ends.
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
