//! Text of the service and the timer.

use assay_model::Nanos;
use std::ffi::OsString;
use std::path::Path;

/// First line of files of assay.
const FIRST: &str = "# Written by `assay watch install`; `assay watch remove` takes it away.\n";

/// Name of the units.
pub(super) const NAME: &str = "assay-watch";

/// Returns the service; `None` if a word is not UTF-8, which unit files require.
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
        text.push_str(&format!("Environment={}\n", quoted(&word, false)));
    }
    let mut line = quoted(program.to_str()?, true);
    for word in words {
        line.push(' ');
        line.push_str(&quoted(word.to_str()?, true));
    }
    // Alarms or unreachable machines are not a failure of the service, because they are reported.
    text.push_str(&format!(
        "ExecStart={line}\nSuccessExitStatus=1 3\nNice=10\nIOSchedulingClass=idle\n"
    ));
    Some(text)
}

/// Returns the timer.
pub(super) fn timer(every: Nanos) -> String {
    let seconds = (every.0 / 1_000_000_000).max(60);
    format!(
        "{FIRST}[Unit]\nDescription=assay watch, every \
         {every}\n\n[Timer]\nOnBootSec=5min\nOnUnitActiveSec={seconds}\nRandomizedDelaySec={}\n\n[Install]\nWantedBy=timers.target\n",
        seconds / 20
    )
}

/// Quotes a word for systemd (systemd.service(5), "Command lines"; systemd.unit(5), "Specifiers"):
/// escapes quotation marks, backslashes and specifiers, and on a command line also variables.
pub(in crate::verbs) fn quoted(word: &str, command_line: bool) -> String {
    let mut text = String::from("\"");
    for c in word.chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            '%' => text.push_str("%%"),
            '$' if command_line => text.push_str("$$"),
            '\n' => text.push_str("\\n"),
            '\t' => text.push_str("\\t"),
            c if c.is_control() => text.push_str(&format!("\\x{:02x}", u32::from(c) & 0xff)),
            c => text.push(c),
        }
    }
    text.push('"');
    text
}

/// Whether assay wrote the file.
pub(super) fn is_ours(text: &str) -> bool {
    text.starts_with(FIRST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_mean_themselves() {
        assert_eq!(quoted("a b", true), "\"a b\"");
        assert_eq!(quoted("50% of $HOME", true), "\"50%% of $$HOME\"");
        assert_eq!(quoted("A=$x", false), "\"A=$x\"");
        assert_eq!(quoted("a\"\\\nb", true), "\"a\\\"\\\\\\nb\"");
    }
}
