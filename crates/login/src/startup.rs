//! Finds slow lines in the shell's start-up files, and in what the shell runs at each prompt: bash runs both again in a
//! session of assay's own, and prints when each line starts. The report contains file, line and name of the command,
//! but not the whole command, which may contain secrets. `traced_lines` parses the trace.

mod traced_lines;

use crate::pipe::{PipeOutput, ProgramLines};
use crate::ssh::SshTarget;
use crate::{LoginError, LoginPart};
use assay_model::Nanos;
use serde::Serialize;
use std::time::{Duration, Instant};
use traced_lines::{TracedLine, find_longest_lines};

/// Builds a shell command that traces start-up files in bash. The command sets PS4 itself, because bash ignores PS4
/// from root's environment.
macro_rules! trace {
    ($shells:expr, $flags:expr, $before:expr, $files:expr) => {
        trace!("", $shells, $flags, $before, $files)
    };
    ($zsh:expr, $shells:expr, $flags:expr, $before:expr, $files:expr) => {
        concat!(
            "exec /bin/sh -c 'case \"$SHELL\" in ",
            $zsh,
            $shells,
            ") ;; *) exit ;; esac; exec bash --noprofile --norc ",
            $flags,
            " -c \"PS4='\"'\"'+assay-line \\$EPOCHREALTIME \\${BASH_SOURCE[0]}:\\$LINENO '\"'\"'; set -x; ",
            $before,
            $files,
            " : assay-end\"'"
        )
    };
}

/// Reads the files that a login shell reads.
macro_rules! login_files {
    () => {
        concat!(
            "[ -r /etc/profile ] && . /etc/profile; ",
            "for f in ~/.bash_profile ~/.bash_login ~/.profile; do ",
            "if [ -r \\$f ]; then . \\$f; break; fi; done;"
        )
    };
}

/// Runs what bash runs before each prompt, each part behind a marker. PS1 is expanded by bash 4.4 and newer.
macro_rules! prompt {
    () => {
        concat!(
            " assay_p() { : assay-prompt-command; ",
            "for assay_c in \\\"\\${PROMPT_COMMAND[@]}\\\"; do eval \\\"\\$assay_c\\\"; done; ",
            ": assay-prompt-string; eval '\"'\"': \\\"\\${PS1@P}\\\"'\"'\"'; }; assay_p;"
        )
    };
}

/// Traces zsh, which reads its files by itself, and runs what zsh runs before each prompt.
macro_rules! zsh {
    () => {
        concat!(
            "*zsh) export PS4=\"+assay-line %D{%s.%6.} %x:%I \"; exec zsh -l -i -x -c \"",
            ": assay-prompt-command; for f in precmd \\$precmd_functions; do ",
            "typeset -f \\$f >/dev/null && \\$f; done; ",
            ": assay-prompt-string; print -rP -- \\\"\\$PS1\\$RPS1\\\" >/dev/null; : assay-end\" ;; "
        )
    };
}

/// Traces the files that a login shell reads, and its prompt.
const OF_PERSON: &str = trace!(
    zsh!(),
    "*bash|*/sh|*dash|*/ash|*ksh",
    "-i",
    "",
    concat!(login_files!(), prompt!())
);
/// Traces the files that bash reads when sshd starts it for a command (`SSH_SOURCE_BASHRC`, enabled by distributions).
const OF_COMMAND: &str = trace!(
    "*bash",
    "", "", "for f in /etc/bash.bashrc ~/.bashrc; do if [ -r \\$f ]; then . \\$f; fi; done;"
);
/// Traces the files that a login shell reads at its end.
const OF_LOGOUT: &str = trace!(
    "*bash",
    "-i",
    concat!(login_files!(), " : assay-logout; "),
    "for f in ~/.bash_logout /etc/bash.bash_logout; do if [ -r \\$f ]; then . \\$f; fi; done;"
);

/// What makes the shell run a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LineTrigger {
    /// A file that the shell reads when it starts.
    #[default]
    StartUpFile,
    /// `PROMPT_COMMAND` of bash or `precmd` of zsh, before each prompt.
    PromptCommand,
    /// A substitution in `PS1`, at each prompt.
    PromptString,
    /// `trap … DEBUG`, before each command.
    DebugTrap,
    /// A start-up file that replaces the shell by another program, or starts one that does not end.
    ReplacedShell,
    /// A file that a login shell reads when it ends.
    LogoutFile,
}

/// A line that the shell runs, and the time until the next line started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[schemars(rename = "Line")]
pub struct StartupLine {
    /// Position as `FILE:LINE`; `FILE` for many short lines of a file together.
    pub place: String,
    /// First word of the command; empty for many short lines of a file together.
    pub command: String,
    /// Total time of all executions of the line.
    pub took: Nanos,
    /// Part of a login that waits for the line.
    pub part: LoginPart,
    /// What makes the shell run the line.
    pub trigger: LineTrigger,
}

/// Time without a new line after which a program that took the place of the shell is no longer waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// Returns the slowest lines of a part on the server. Requires bash. Returns nothing if the lines are fast or the
/// user's shell reads other files. A line that exceeds the time limit comes first.
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
        LoginPart::Logout => OF_LOGOUT,
        _ => OF_COMMAND,
    };
    // With a terminal, the remote side receives a hang-up when this process ends.
    let own = ["-o", "ControlMaster=no", "-o", "ControlPath=none", "-tt"];
    let mut lines = ProgramLines::start(target.command(&own, &[trace])).map_err(start)?;
    let begin = Instant::now();
    let mut traced: Vec<TracedLine> = Vec::new();
    let mut last = begin;
    loop {
        let is_replaced = traced.last().is_some_and(TracedLine::replaces_shell);
        let end = match is_replaced {
            true => (last + PATIENCE).min(begin + limit),
            false => begin + limit,
        };
        let (at, came) = lines.next(end, stop).map_err(start)?;
        match came {
            PipeOutput::Line(_, line) => {
                if let Some(line) = TracedLine::parse(&line) {
                    traced.push(line);
                    last = at;
                }
            }
            PipeOutput::Ended => break,
            PipeOutput::Late => {
                // The last line is still running. What takes the place of the shell does not end by itself.
                let took = if is_replaced { limit } else { at - last };
                if let Some(at) = traced.last().map(|line| line.at) {
                    traced.push(TracedLine::end(at + took.as_secs_f64()));
                }
                break;
            }
            PipeOutput::Stopped => return Err(LoginError::Interrupted),
        }
    }
    Ok(find_longest_lines(&traced, part))
}
