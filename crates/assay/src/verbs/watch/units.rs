//! Generates the text of the systemd service and timer of `assay fleet watch`.

use super::super::systemd_units::quote_for_systemd;
use assay_model::Nanos;
use std::ffi::OsString;
use std::path::Path;

/// First line of every unit. It marks files that assay wrote.
pub(super) const FIRST: &str =
    "# Written by `assay watch install`; `assay watch remove` takes it away.\n";

/// Name of the service and the timer.
pub(super) const NAME: &str = "assay-watch";

/// Returns the text of the service. `None` if an argument is not UTF-8, which unit files require.
pub(super) fn service(
    program: &Path,
    words: &[OsString],
    variables: &[(&str, OsString)],
) -> Option<String> {
    let mut text = format!(
        "{FIRST}[Unit]\nDescription=What is new and wrong on machines (assay watch)\n\n[Service]\nType=oneshot\n"
    );
    for (name, value) in variables {
        let word = format!("{name}={}", value.to_str()?);
        text.push_str(&format!(
            "Environment={}\n",
            quote_for_systemd(&word, false)
        ));
    }
    let mut line = quote_for_systemd(program.to_str()?, true);
    for word in words {
        line.push(' ');
        line.push_str(&quote_for_systemd(word.to_str()?, true));
    }
    // Alarms or unreachable machines are not a failure of the service, because they are reported.
    text.push_str(&format!(
        "ExecStart={line}\nSuccessExitStatus=1 3\nNice=10\nIOSchedulingClass=idle\n"
    ));
    Some(text)
}

/// Returns the text of the timer.
pub(super) fn timer(every: Nanos) -> String {
    let seconds = (every.0 / 1_000_000_000).max(60);
    format!(
        "{FIRST}[Unit]\nDescription=assay watch, every \
         {every}\n\n[Timer]\nOnBootSec=5min\nOnUnitActiveSec={seconds}\nRandomizedDelaySec={}\n\n[Install]\nWantedBy=timers.target\n",
        seconds / 20
    )
}
