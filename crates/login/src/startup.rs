//! Which line of the shell's start-up files waits: bash runs them once more and says when each line
//! begins. Commands are not repeated in the report, because a start-up file may hold secrets; file, line
//! and the name of the command are.

use crate::LoginError;
use crate::pipe::{Came, Lines};
use crate::ssh::Target;
use assay_model::Nanos;
use serde::Serialize;
use std::time::{Duration, Instant};

/// What bash of the far end does: it reads what a login shell reads, tracing. bash takes no PS4 from
/// the environment of root, so it is set here.
const TRACE: &str = concat!(
    "exec bash --noprofile --norc -i -c '",
    "PS4=\"+assay-line \\$EPOCHREALTIME \\${BASH_SOURCE[0]}:\\$LINENO \"; set -x; ",
    "[ -r /etc/profile ] && . /etc/profile; ",
    "for f in ~/.bash_profile ~/.bash_login ~/.profile; do ",
    "if [ -r \"$f\" ]; then . \"$f\"; break; fi; done; : assay-end'"
);

/// A line of a start-up file, and how long it took until the next one began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Line {
    /// `FILE:LINE`.
    pub place: String,
    /// First word of the command.
    pub command: String,
    /// How long.
    pub took: Nanos,
}

/// Lines that are shown.
const SHOWN: usize = 3;
/// Shorter ones are not.
const LEAST: Nanos = Nanos(50_000_000);

/// The lines that took longest, on the far end, with bash; none where the start-up files are quick. One
/// that does not end within the limit is the first.
///
/// # Errors
/// ssh does not start, or the user interrupted.
pub fn slowest(
    target: &Target,
    limit: Duration,
    stop: &dyn Fn() -> bool,
) -> Result<Vec<Line>, LoginError> {
    let start = |source| LoginError::Start {
        program: "ssh",
        source,
    };
    // At a terminal: when this process ends, the far end is hung up with all that it waits for.
    let own = ["-o", "ControlMaster=no", "-o", "ControlPath=none", "-tt"];
    let mut lines = Lines::start(target.command(&own, &[TRACE])).map_err(start)?;
    let begin = Instant::now();
    let mut traced = Vec::new();
    let mut last = begin;
    loop {
        let (at, came) = lines.next(begin + limit, stop).map_err(start)?;
        match came {
            Came::Line(_, line) => {
                if let Some(entry) = read(&line) {
                    traced.push(entry);
                    last = at;
                }
            }
            Came::Ended => break,
            Came::Late => {
                // The last line is still going on.
                if let Some((when, _, _)) = traced.last().cloned() {
                    let now = when + (at - last).as_secs_f64();
                    traced.push((now, String::new(), String::new()));
                }
                break;
            }
            Came::Stopped => return Err(LoginError::Interrupted),
        }
    }
    Ok(longest(&traced))
}

/// Second, place and command of a traced line.
type Entry = (f64, String, String);

/// A line of the trace; bash repeats the first character for each level.
fn read(line: &str) -> Option<Entry> {
    let rest = line.trim_start_matches('+').strip_prefix("assay-line ")?;
    let mut words = rest.splitn(3, ' ');
    let at: f64 = words.next()?.replace(',', ".").parse().ok()?;
    let place = words.next()?;
    let command = words.next().unwrap_or_default();
    let word = command.split_whitespace().next().unwrap_or_default();
    // An assignment may hold a secret.
    let word = word.split('=').next().unwrap_or_default();
    Some((at, place.to_owned(), word.to_owned()))
}

fn longest(traced: &[Entry]) -> Vec<Line> {
    let pairs = traced.iter().zip(traced.iter().skip(1));
    let mut lines: Vec<Line> = pairs
        .map(|((at, place, command), (next, ..))| Line {
            place: place.clone(),
            command: command.clone(),
            took: Nanos::from_secs_f64((next - at).max(0.0)),
        })
        .filter(|line| line.took >= LEAST && !line.place.starts_with(':'))
        .collect();
    lines.sort_by_key(|line| std::cmp::Reverse(line.took));
    lines.truncate(SHOWN);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_that_waits_is_named_without_what_it_says() {
        // bash 5.2.
        let trace = [
            "+assay-line 1700000000.000100 :0 [ -r /etc/profile ]",
            "++assay-line 1700000000.100000 /etc/profile:4 id -u",
            "++assay-line 1700000000.110000 /home/u/.bashrc:7 export TOKEN=hunter2",
            "++assay-line 1700000000.120000 /home/u/.bashrc:12 lockfile -60 /home/u/.tool.lock",
            "something else",
            "+assay-line 1700000060.120000 :0 : assay-end",
        ];
        let entries: Vec<Entry> = trace.iter().filter_map(|line| read(line)).collect();
        assert_eq!(entries.len(), 5);
        let found = longest(&entries);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].place, "/home/u/.bashrc:12");
        assert_eq!(found[0].command, "lockfile");
        assert!((found[0].took.as_secs_f64() - 60.0).abs() < 1e-3);
        assert!(!format!("{entries:?}").contains("hunter2"));
    }
}
