//! Logs in over an existing connection (OpenSSH `ControlMaster`), for comparison with new connections.

use super::{PRINT_MARK, SshTarget};
use crate::LoginError;
use crate::pipe::{From, PipeOutput, ProgramLines};
use assay_model::Nanos;
use std::path::Path;
use std::time::{Duration, Instant};

/// Opens a connection with its socket in `dir`, and measures several logins over it. Closes the connection
/// before it returns.
///
/// # Errors
/// The connection or a login fails.
pub fn time_logins(
    target: &SshTarget,
    dir: &Path,
    times: u32,
    limit: Duration,
    stop: &dyn Fn() -> bool,
) -> Result<Vec<Nanos>, LoginError> {
    let start = |source| LoginError::Start {
        program: "ssh",
        source,
    };
    let socket = dir.join("s");
    let path = format!("ControlPath={}", socket.display());
    // No remote command runs, so nothing remains there when this process ends.
    let master = ["-N", "-T", "-o", "ControlMaster=yes", "-o", &path];
    let mut held = ProgramLines::start(target.command(&master, &[])).map_err(start)?;
    until_there(target, &mut held, &socket, limit, stop)?;
    let mut took = Vec::new();
    for _ in 0..times {
        let own = ["-o", "ControlMaster=no", "-o", &path, "-T"];
        let begin = Instant::now();
        let mut lines = ProgramLines::start(target.command(&own, &[PRINT_MARK])).map_err(start)?;
        wait(target, &mut lines, limit, stop)?;
        took.push(begin.elapsed().into());
    }
    Ok(took)
}

/// Waits for the socket, which ssh creates after its login.
fn until_there(
    target: &SshTarget,
    held: &mut ProgramLines,
    socket: &Path,
    limit: Duration,
    stop: &dyn Fn() -> bool,
) -> Result<(), LoginError> {
    const LOOK: Duration = Duration::from_millis(20);
    let end = Instant::now() + limit;
    let mut said = format!("no connection within {}", Nanos::from(limit));
    while Instant::now() < end {
        if socket.exists() {
            return Ok(());
        }
        let next = held.next(Instant::now() + LOOK, stop);
        let (_, came) = next.map_err(|source| LoginError::Start {
            program: "ssh",
            source,
        })?;
        match came {
            PipeOutput::Line(_, line) => said = line,
            PipeOutput::Stopped => return Err(LoginError::Interrupted),
            PipeOutput::Ended => break,
            PipeOutput::Late => {}
        }
    }
    Err(LoginError::Refused {
        target: target.host.clone(),
        said: vec![said.clone()],
        why: said,
        so_far: Box::default(),
    })
}

/// Waits until the remote command prints [`MARK`](super::MARK).
fn wait(
    target: &SshTarget,
    lines: &mut ProgramLines,
    limit: Duration,
    stop: &dyn Fn() -> bool,
) -> Result<(), LoginError> {
    let deadline = Instant::now() + limit;
    let mut said = String::new();
    loop {
        let (_, came) = lines
            .next(deadline, stop)
            .map_err(|source| LoginError::Start {
                program: "ssh",
                source,
            })?;
        let why = match came {
            PipeOutput::Line(From::Out, line) if line.trim() == super::MARK => return Ok(()),
            PipeOutput::Line(_, line) => {
                said = line;
                continue;
            }
            PipeOutput::Stopped => return Err(LoginError::Interrupted),
            PipeOutput::Ended => said,
            PipeOutput::Late => format!("nothing within {}", Nanos::from(limit)),
        };
        return Err(LoginError::Refused {
            target: target.host.clone(),
            said: vec![why.clone()],
            why,
            so_far: Box::default(),
        });
    }
}
