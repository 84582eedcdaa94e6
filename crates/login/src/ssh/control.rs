//! The same login over a connection that is there already (`ControlMaster`), for comparison.

use super::{SAY, Target};
use crate::LoginError;
use crate::pipe::{Came, From, Lines};
use assay_model::Nanos;
use std::path::Path;
use std::time::{Duration, Instant};

/// Makes a connection whose socket lies in `dir`, and logs in over it so many times: how long each took.
/// The connection ends with this call.
///
/// # Errors
/// It does not come about, or a login fails.
pub fn logins(
    target: &Target,
    dir: &Path,
    times: u32,
    limit: Duration,
    stop: &dyn Fn() -> bool,
) -> Result<Vec<Nanos>, LoginError> {
    let start = |source| LoginError::Start {
        program: "ssh",
        source,
    };
    let path = format!("ControlPath={}", dir.join("s").display());
    let master = ["-o", "ControlMaster=yes", "-o", &path, "-T"];
    // It says the mark when it is there, and stays until its process ends.
    let remote = format!("{SAY}; exec sleep 3600");
    let mut held = Lines::start(target.command(&master, &[&remote])).map_err(start)?;
    wait(target, &mut held, limit, stop)?;
    let mut took = Vec::new();
    for _ in 0..times {
        let own = ["-o", "ControlMaster=no", "-o", &path, "-T"];
        let begin = Instant::now();
        let mut lines = Lines::start(target.command(&own, &[SAY])).map_err(start)?;
        wait(target, &mut lines, limit, stop)?;
        took.push(begin.elapsed().into());
    }
    Ok(took)
}

/// Until the mark comes.
fn wait(
    target: &Target,
    lines: &mut Lines,
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
            Came::Line(From::Out, line) if line.trim() == super::MARK => return Ok(()),
            Came::Line(_, line) => {
                said = line;
                continue;
            }
            Came::Stopped => return Err(LoginError::Interrupted),
            Came::Ended => said,
            Came::Late => format!("nothing within {}", Nanos::from(limit)),
        };
        return Err(LoginError::Refused {
            target: target.host.clone(),
            why,
            so_far: Box::default(),
        });
    }
}
