//! Finds slow lines in the shell's start-up files: bash runs the files again and prints when each line starts.
//! The report contains file, line and name of the command, but not the whole command, which may contain
//! secrets.

use crate::pipe::{PipeOutput, ProgramLines};
use crate::ssh::SshTarget;
use crate::{LoginError, LoginPart};
use assay_model::Nanos;
use serde::Serialize;
use std::time::{Duration, Instant};

/// Builds a shell command that traces start-up files in bash. The command sets PS4 itself, because bash ignores PS4
/// from root's environment.
macro_rules! trace {
    ($files:expr, $flags:expr) => {
        concat!(
            "exec /bin/sh -c 'case \"$SHELL\" in *bash|*/sh|*dash|*/ash|*ksh) ;; *) exit ;; esac; ",
            "exec bash --noprofile --norc ", $flags, " -c \"",
            "PS4='\"'\"'+assay-line \\$EPOCHREALTIME \\${BASH_SOURCE[0]}:\\$LINENO '\"'\"'; set -x; ",
            $files, " : assay-end\"'"
        )
    };
}

/// Traces the files that a login shell reads.
const OF_PERSON: &str = trace!(
    concat!(
        "[ -r /etc/profile ] && . /etc/profile; ",
        "for f in ~/.bash_profile ~/.bash_login ~/.profile; do ",
        "if [ -r \\$f ]; then . \\$f; break; fi; done;"
    ),
    "-i"
);
/// Traces the files that bash reads when sshd starts it for a command (`SSH_SOURCE_BASHRC`, enabled by distributions).
const OF_COMMAND: &str = trace!(
    concat!(
        "case \\$SHELL in *bash) ;; *) exit ;; esac; ",
        "for f in /etc/bash.bashrc ~/.bashrc; do if [ -r \\$f ]; then . \\$f; fi; done;"
    ),
    ""
);

/// A line of a start-up file, and the time until the next line started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[schemars(rename = "Line")]
pub struct StartupLine {
    /// Position as `FILE:LINE`.
    pub place: String,
    /// First word of the command.
    pub command: String,
    /// Total time of all executions of the line.
    pub took: Nanos,
    /// Part of a login that waits for the line.
    pub part: LoginPart,
}

/// Maximum number of reported lines.
const SHOWN: usize = 5;
/// Minimum duration of a reported line.
const SHORTEST: Nanos = Nanos(50_000_000);

/// Returns the slowest start-up lines of a part on the server. Requires bash. Returns nothing if the start-up
/// files are fast or the user's shell reads other files. A line that exceeds the time limit comes first.
///
/// # Errors
/// ssh does not start, or the user interrupted.
pub fn find_slowest_lines(
    target: &SshTarget,
    part: &LoginPart,
    limit: Duration,
    stop: &dyn Fn() -> bool,
) -> Result<Vec<StartupLine>, LoginError> {
    let start = |source| LoginError::Start {
        program: "ssh",
        source,
    };
    let trace = match part {
        LoginPart::Prompt => OF_PERSON,
        _ => OF_COMMAND,
    };
    // With a terminal, the remote side receives a hang-up when this process ends.
    let own = ["-o", "ControlMaster=no", "-o", "ControlPath=none", "-tt"];
    let mut lines = ProgramLines::start(target.command(&own, &[trace])).map_err(start)?;
    let begin = Instant::now();
    let mut traced = Vec::new();
    let mut last = begin;
    loop {
        let (at, came) = lines.next(begin + limit, stop).map_err(start)?;
        match came {
            PipeOutput::Line(_, line) => {
                if let Some(entry) = read(&line) {
                    traced.push(entry);
                    last = at;
                }
            }
            PipeOutput::Ended => break,
            PipeOutput::Late => {
                // The last line is still running.
                if let Some((when, _, _)) = traced.last().cloned() {
                    let now = when + (at - last).as_secs_f64();
                    traced.push((now, String::new(), String::new()));
                }
                break;
            }
            PipeOutput::Stopped => return Err(LoginError::Interrupted),
        }
    }
    Ok(longest_lines(&traced, part))
}

/// A traced line: time in seconds, position, and command.
type Entry = (f64, String, String);

/// Parses a line of the trace. For each nesting level, bash repeats the first character of the prefix (`+`).
fn read(line: &str) -> Option<Entry> {
    let rest = line.trim_start_matches('+').strip_prefix("assay-line ")?;
    let mut words = rest.splitn(3, ' ');
    let at: f64 = words.next()?.replace(',', ".").parse().ok()?;
    let place = words.next()?;
    let command = words.next().unwrap_or_default();
    let word = command.split_whitespace().next().unwrap_or_default();
    // An assignment may contain a secret.
    let word = word.split('=').next().unwrap_or_default();
    Some((at, place.to_owned(), word.to_owned()))
}

/// Returns the slowest lines. If a loop executes a line several times, the times are added up.
fn longest_lines(traced: &[Entry], part: &LoginPart) -> Vec<StartupLine> {
    let mut lines: Vec<StartupLine> = Vec::new();
    for ((at, place, command), (next, ..)) in traced.iter().zip(traced.iter().skip(1)) {
        if place.starts_with(':') {
            continue;
        }
        let took = Nanos::from_secs_f64((next - at).max(0.0));
        match lines
            .iter_mut()
            .find(|line| line.place == *place && line.command == *command)
        {
            Some(line) => line.took.0 += took.0,
            None => lines.push(StartupLine {
                place: place.clone(),
                command: command.clone(),
                took,
                part: part.clone(),
            }),
        }
    }
    lines.retain(|line| line.took >= SHORTEST);
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
        let found = longest_lines(&entries, &LoginPart::Prompt);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].place, "/home/u/.bashrc:12");
        assert_eq!(found[0].command, "lockfile");
        assert!((found[0].took.as_secs_f64() - 60.0).abs() < 1e-3);
        assert!(!format!("{entries:?}").contains("hunter2"));
    }

    #[test]
    fn a_line_that_runs_in_a_loop_is_one_line() {
        let entry =
            |at: f64, place: &str, command: &str| (at, place.to_owned(), command.to_owned());
        let mut all: Vec<Entry> = (0..20)
            .flat_map(|turn| {
                let at = f64::from(turn) * 0.04;
                [
                    entry(at, "/h/.bashrc:3", "test"),
                    entry(at + 0.001, "/h/.bashrc:4", "git"),
                ]
            })
            .collect();
        all.push(entry(0.8, ":0", ":"));
        let found = longest_lines(&all, &LoginPart::Session);
        assert_eq!(found.len(), 1);
        assert_eq!(
            (&found[0].place[..], &found[0].part),
            ("/h/.bashrc:4", &LoginPart::Session)
        );
        assert!(found[0].took >= Nanos(700_000_000));
    }
}
