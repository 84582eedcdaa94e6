//! Times each PAM module in one login. The login goes through a second sshd (`sshd -i`) in its own mount namespace, in
//! which /etc/pam.d is a copy with a time stamp before each module. The server's own files and processes stay
//! unchanged.

mod stamped_stack;

use crate::pipe::{PipeOutput, ProgramLines};
use crate::ssh::{MARK, PRINT_MARK, SshTarget};
use crate::{LoginError, LoginPart};
use assay_model::Nanos;
use serde::Serialize;
use stamped_stack::{parse_stamps, stamp_file};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Directories of PAM services, in the order of precedence.
const SERVICES: [&str; 2] = ["/etc/pam.d", "/usr/lib/pam.d"];
/// Maximum size in bytes of a service file; larger files are not copied.
const LONGEST: u64 = 1 << 20;

/// Time of a module of PAM in one login.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct PamModuleTime {
    /// Position as `FILE:LINE`.
    pub place: String,
    /// Name of the module without `.so`.
    pub module: String,
    /// `auth`, `account`, `session` or `password`.
    pub kind: String,
    /// Time until the next module began, with a resolution of 10 ms.
    pub took: Nanos,
}

/// An sshd on this machine, and its configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SshServer {
    /// Path of the program.
    pub program: PathBuf,
    /// Its configuration file, unless it is the default one.
    pub config: Option<PathBuf>,
    /// Name of the PAM service.
    pub service: String,
}

/// Reason why modules cannot be timed.
#[derive(Debug, thiserror::Error)]
pub enum PamTimingError {
    /// A copy of the services cannot be made.
    #[error("cannot copy {}: {source}", path.display())]
    Copy {
        /// File or directory.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// A path contains characters that cannot be quoted in a shell command or a PAM file.
    #[error("cannot time modules of PAM: {0} contains a quote or a control character")]
    Name(String),
    /// The login failed.
    #[error(transparent)]
    Login(#[from] LoginError),
}

/// Logs in once through a second sshd and returns the time of each module, in the order in which the modules ran. `dir`
/// is an empty directory that only root can enter; all files are written there.
///
/// # Errors
/// A service cannot be copied, or the login fails or takes longer than `limit`.
pub fn time_modules(
    target: &SshTarget,
    server: &SshServer,
    dir: &Path,
    limit: Duration,
    stop: &dyn Fn() -> bool,
) -> Result<Vec<PamModuleTime>, PamTimingError> {
    let dir_text = plain_path(dir)?;
    let services = dir.join("pam.d");
    copy_services(&services, &dir_text, &server.service)?;
    let stamp = dir.join("stamp");
    // The shell reads the clock itself: another program would cost more than most modules.
    let script = format!(
        "read -r up rest < /proc/uptime\necho \"$PAM_TYPE $1 $up\" >> '{dir_text}/stamps'\n"
    );
    fs::write(&stamp, script).map_err(copy_error(&stamp))?;
    let config = match &server.config {
        Some(config) => format!("-f '{}'", plain_path(config)?),
        None => String::new(),
    };
    let program = plain_path(&server.program)?;
    let script = format!(
        "mount --bind '{dir_text}/pam.d' /etc/pam.d && exec '{program}' -i {config} -o PidFile=none"
    );
    let launcher = dir.join("serve");
    fs::write(&launcher, script).map_err(copy_error(&launcher))?;
    // ssh starts it with `exec`.
    let proxy = format!("ProxyCommand=unshare --mount -- /bin/sh '{dir_text}/serve'");
    log_in(target, &proxy, limit, stop)?;
    let stamps = dir.join("stamps");
    let text = match fs::read_to_string(&stamps) {
        Ok(text) => text,
        // A stack without modules, or `UsePAM no`.
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(copy_error(&stamps)(error)),
    };
    Ok(parse_stamps(&text))
}

/// Logs in through the second sshd and waits until a remote command answers.
fn log_in(
    target: &SshTarget,
    proxy: &str,
    limit: Duration,
    stop: &dyn Fn() -> bool,
) -> Result<(), LoginError> {
    let start = |source| LoginError::Start {
        program: "ssh",
        source,
    };
    let own = [
        "-T",
        "-o",
        "ControlMaster=no",
        "-o",
        "ControlPath=none",
        "-o",
        proxy,
    ];
    let mut lines = ProgramLines::start(target.command(&own, &[PRINT_MARK])).map_err(start)?;
    let end = Instant::now() + limit;
    let mut said = Vec::new();
    loop {
        match lines.next(end, stop).map_err(start)?.1 {
            PipeOutput::Line(_, line) if line.trim() == MARK => return Ok(()),
            PipeOutput::Line(_, line) => said.push(line),
            PipeOutput::Stopped => return Err(LoginError::Interrupted),
            PipeOutput::Late => {
                return Err(LoginError::TimedOut {
                    target: target.host().to_owned(),
                    limit: limit.into(),
                    waited: LoginPart::Session,
                    so_far: Box::default(),
                });
            }
            PipeOutput::Ended => {
                return Err(LoginError::Refused {
                    target: target.host().to_owned(),
                    why: said.last().cloned().unwrap_or_default(),
                    said,
                    so_far: Box::default(),
                });
            }
        }
    }
}

/// Copies all services, with a stamp before each module. If both directories contain a service, the file of the first
/// directory is copied.
fn copy_services(to: &Path, dir: &str, service: &str) -> Result<(), PamTimingError> {
    fs::create_dir(to).map_err(copy_error(to))?;
    for from in SERVICES.iter().rev().map(Path::new) {
        let entries = match fs::read_dir(from) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(copy_error(from)(error)),
        };
        for entry in entries {
            let path = entry.map_err(copy_error(from))?.path();
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
                continue;
            };
            let is_file =
                fs::metadata(&path).is_ok_and(|found| found.is_file() && found.len() <= LONGEST);
            if !is_file {
                continue;
            }
            let text = fs::read_to_string(&path).map_err(copy_error(&path))?;
            let stamped = stamp_file(&text, &path.display().to_string(), dir, name == service);
            let copy = to.join(name);
            fs::write(&copy, stamped).map_err(copy_error(&copy))?;
        }
    }
    Ok(())
}

fn copy_error(path: &Path) -> impl FnOnce(io::Error) -> PamTimingError {
    let path = path.to_owned();
    move |source| PamTimingError::Copy { path, source }
}

/// Returns a path as text if it contains no character that needs quoting in a shell or in a PAM file.
fn plain_path(path: &Path) -> Result<String, PamTimingError> {
    let plain = |c: char| !c.is_control() && !c.is_whitespace() && !"'\"\\[]%".contains(c);
    let text = path.to_str().filter(|text| text.chars().all(plain));
    let name = || PamTimingError::Name(path.display().to_string().escape_debug().to_string());
    text.map(str::to_owned).ok_or_else(name)
}
