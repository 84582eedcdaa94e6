//! Reads the guest's console output, and finds the reason why the guest ended.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

/// Number of bytes at the end of the console output that are examined.
const TAIL: u64 = 16 << 10;
const PANIC: &str = "Kernel panic - not syncing";
const NO_MEMORY: &str = "it ran out of memory, give it more with --memory";

/// Returns the last lines of a log file as plain text that is safe for terminals.
#[must_use]
pub fn read_tail(path: &Path, lines: usize) -> String {
    last_lines(&read_end(path, 0), lines)
}

fn last_lines(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text
        .lines()
        .map(str::trim_end)
        .filter(|line| !line.is_empty())
        .collect();
    let mut from = all.len().saturating_sub(lines);
    // A panic is followed by registers; the lines before it are more informative.
    if let Some(panic) = all.iter().rposition(|line| line.contains(PANIC)) {
        from = from.min(panic.saturating_sub(lines / 2));
    }
    all[from..]
        .iter()
        .take(lines)
        .map(|line| format!("  {line}"))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Reads the end of a file; skips the first `from` bytes.
fn read_end(path: &Path, from: u64) -> String {
    let mut bytes = Vec::new();
    if let Ok(mut file) = File::open(path) {
        let length = file.seek(SeekFrom::End(0)).unwrap_or(0);
        let _ = file.seek(SeekFrom::Start(length.saturating_sub(TAIL).max(from)));
        let _ = file.take(TAIL).read_to_end(&mut bytes);
    }
    strip_escapes(&String::from_utf8_lossy(&bytes))
}

/// Removes control characters and terminal escape sequences (ECMA-48 CSI).
fn strip_escapes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(one) = rest.next() {
        match one {
            '\u{1b}' => {
                if rest.next() == Some('[') {
                    // Parameters, then one final byte from @ to ~.
                    for next in rest.by_ref() {
                        if ('@'..='~').contains(&next) {
                            break;
                        }
                    }
                }
            }
            '\n' | '\t' => out.push(one),
            one if one.is_control() => {}
            one => out.push(one),
        }
    }
    out
}

/// Returns why the guest's kernel ended, if the console output shows the reason.
#[must_use]
pub fn find_panic(path: &Path) -> Option<String> {
    judge_panic(&read_end(path, 0))
}

/// Returns the message about a process that the guest's kernel killed for lack of memory. Skips the first `from` bytes
/// of the output.
#[must_use]
pub fn find_oom_kill(path: &Path, from: u64) -> Option<String> {
    judge_killed(&read_end(path, from))
}

/// Returns the last line that contains this word.
fn last_line_with<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    text.lines()
        .rfind(|line| line.contains(word))
        .map(str::trim)
}

fn judge_killed(text: &str) -> Option<String> {
    let found = last_line_with(text, "Out of memory: Killed process")?;
    Some(format!("{NO_MEMORY}: {found}"))
}

fn judge_panic(text: &str) -> Option<String> {
    let panic = last_line_with(text, PANIC)?;
    let said = &panic[panic.find(PANIC).unwrap_or(0)..];
    // A command that was killed long ago does not explain a panic; the death of init may.
    let killed = last_line_with(text, "Out of memory: Killed process").is_some();
    let memory = said.contains("memory") || (killed && said.contains("kill init"));
    Some(match memory {
        true => format!("{NO_MEMORY}: {said}"),
        false => said.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Console output of Linux 6.1 in guests: after `tail /dev/zero`, and later after a sysrq panic.
    const KILLED: &str = "[  151.517639] Out of memory: Killed process 371 (tail) total-vm:389952kB, anon-rss:387572kB\n";
    const CRASH: &str = "[  168.818089] sysrq: Trigger a crash\n[  168.818089] Kernel panic - not syncing: sysrq triggered crash\n[  168.818089] CPU: 1 PID: 393 Comm: sh\n";

    #[test]
    fn a_panic_and_lack_of_memory_are_told_apart() {
        let panic = "[    3.1] VFS: Cannot open root device\r\n[    3.2] Kernel panic - not syncing: VFS: Unable to mount root fs\r\n[    3.3] CPU: 0\r\n";
        assert_eq!(
            judge_panic(panic).as_deref(),
            Some("Kernel panic - not syncing: VFS: Unable to mount root fs")
        );
        assert!(judge_killed(KILLED).is_some_and(|found| found.contains("--memory")));
        assert_eq!(judge_panic(KILLED), None, "the guest lives on");
        assert_eq!(judge_killed("[    3.1] all is well\n"), None);
    }

    #[test]
    fn a_panic_is_not_put_down_to_memory_that_lacked_before() {
        let both = format!("{KILLED}{CRASH}");
        let crash = "Kernel panic - not syncing: sysrq triggered crash";
        assert_eq!(judge_panic(&both).as_deref(), Some(crash));
        // Written according to mm/oom_kill.c and kernel/exit.c, not recorded.
        let deadlock = "Kernel panic - not syncing: System is deadlocked on memory";
        let init = format!("{KILLED}Kernel panic - not syncing: Attempted to kill init!");
        for text in [deadlock, &init] {
            assert!(judge_panic(text).is_some_and(|found| found.contains("--memory")));
        }
    }

    #[test]
    fn only_what_was_said_since_counts() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("console.log");
        std::fs::write(&path, KILLED).unwrap();
        assert!(find_oom_kill(&path, 0).is_some());
        assert_eq!(find_oom_kill(&path, KILLED.len() as u64), None);
    }

    #[test]
    fn the_lines_about_a_panic_are_those_that_led_to_it() {
        let registers: String = (0..60).map(|at| format!("R{at:02}: 0\n")).collect();
        let shown = last_lines(&format!("boot\n{CRASH}{registers}"), 12);
        assert!(
            shown.contains("Trigger a crash") && shown.contains("Comm: sh"),
            "{shown}"
        );
        assert_eq!(shown.lines().count(), 12);
        assert!(last_lines(&registers, 12).ends_with("R59: 0"));
    }

    #[test]
    fn a_hostile_console_cannot_command_the_terminal() {
        assert_eq!(
            strip_escapes("a\u{1b}[2J\u{1b}[31;1mb\u{7}\u{1b}]c\r\n"),
            "abc\n"
        );
    }
}
