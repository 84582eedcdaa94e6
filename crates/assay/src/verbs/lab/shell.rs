//! Runs a login shell in a guest. The local terminal is in raw mode and passes all keys to the pseudo-terminal in the
//! guest.

use crate::status::Status;
use assay_lab::Guest;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use std::ffi::OsStr;
use std::io::{IsTerminal as _, Read};

/// Returns standard input without a buffer, so that each key is available at once.
pub(super) fn standard_input() -> Box<dyn Read + Send> {
    Box::new(std::io::stdin())
}

/// Terminal settings from before raw mode. Dropping the value restores them.
struct Raw(Termios);

impl Raw {
    /// Puts the terminal into raw mode: all keys, including Ctrl-C, are sent to the guest.
    fn enter() -> anyhow::Result<Self> {
        let before = tcgetattr(std::io::stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(std::io::stdin(), OptionalActions::Now, &raw)?;
        Ok(Self(before))
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &self.0);
    }
}

/// Runs a login shell in the guest. The exit status is that of the shell.
pub(super) fn open(guest: &Guest) -> anyhow::Result<Status> {
    let terminal = std::io::stdin().is_terminal();
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok();
    let size = size.map_or(String::new(), |size| {
        format!("stty rows {} cols {}; ", size.ws_row, size.ws_col)
    });
    let name = std::env::var("TERM").unwrap_or_else(|_| "dumb".to_owned());
    let term = format!("TERM={name}");
    let command = format!("{size}exec bash -l");
    // script(1) creates the pseudo-terminal.
    let argv = ["env", &term, "script", "-qec", &command, "/dev/null"].map(OsStr::new);
    let raw = terminal.then(Raw::enter).transpose()?;
    let ended = guest.stream(&argv, None, Some(standard_input()), &mut |output| {
        // If the terminal disappears, this process ends, and the shell with it.
        let _ = super::session::pass_on(output);
    });
    drop(raw);
    exit(ended?)
}

/// Exits with the status of a command in the guest. Ends the process without running destructors, so the caller must
/// have released its resources.
pub(super) fn exit(status: i32) -> anyhow::Result<Status> {
    match status {
        0 => Ok(Status::Ok),
        other => std::process::exit(other),
    }
}
