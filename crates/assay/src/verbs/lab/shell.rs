//! A shell in a guest: our terminal passes every key on, the guest's pseudo-terminal does the rest.

use crate::status::Status;
use assay_lab::Guest;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use std::ffi::OsStr;
use std::io::{IsTerminal as _, Read};

/// Our standard input, unbuffered.
pub(super) fn standard_input() -> Box<dyn Read + Send> {
    Box::new(std::io::stdin())
}

/// The terminal as it was, restored on drop.
struct Raw(Termios);

impl Raw {
    /// Keys go to the guest as they are, Ctrl-C too.
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

/// Runs a login shell until it ends; its exit status is ours.
pub(super) fn open(guest: &Guest) -> anyhow::Result<Status> {
    let terminal = std::io::stdin().is_terminal();
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok();
    let size = size.map_or(String::new(), |size| {
        format!("stty rows {} cols {}; ", size.ws_row, size.ws_col)
    });
    let name = std::env::var("TERM").unwrap_or_else(|_| "dumb".to_owned());
    let term = format!("TERM={name}");
    let command = format!("{size}exec bash -l");
    // script(1) makes the pseudo-terminal.
    let argv = ["env", &term, "script", "-qec", &command, "/dev/null"].map(OsStr::new);
    let raw = terminal.then(Raw::enter).transpose()?;
    let ended = guest.stream(&argv, None, Some(standard_input()), &mut |output| {
        // A terminal that went away ends the shell with our process.
        let _ = super::session::pass_on(output);
    });
    drop(raw);
    exit(ended?)
}

/// Ends with the status of a command in the guest. Nothing is left to be dropped.
pub(super) fn exit(status: i32) -> anyhow::Result<Status> {
    match status {
        0 => Ok(Status::Ok),
        other => std::process::exit(other),
    }
}
