//! What the guest's kernel says on its console, and what that means.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

/// Bytes of the end of a console that are looked at.
const TAIL: u64 = 16 << 10;

/// The last lines of a log file, made safe for a terminal: nothing but text.
#[must_use]
pub fn tail(path: &Path, lines: usize) -> String {
    let text = end(path);
    let all: Vec<&str> = text
        .lines()
        .map(str::trim_end)
        .filter(|line| !line.is_empty())
        .collect();
    let from = all.len().saturating_sub(lines);
    all[from..]
        .iter()
        .map(|line| format!("  {line}"))
        .collect::<Vec<_>>()
        .join("\n")
}

fn end(path: &Path) -> String {
    let mut bytes = Vec::new();
    if let Ok(mut file) = File::open(path) {
        let length = file.seek(SeekFrom::End(0)).unwrap_or(0);
        let _ = file.seek(SeekFrom::Start(length.saturating_sub(TAIL)));
        let _ = file.take(TAIL).read_to_end(&mut bytes);
    }
    plain(&String::from_utf8_lossy(&bytes))
}

/// Text without control characters and without the escape sequences of terminals (ECMA-48 CSI).
fn plain(text: &str) -> String {
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

/// What happened, when the console tells of an end.
#[must_use]
pub fn verdict(path: &Path) -> Option<String> {
    judge(&end(path))
}

fn judge(text: &str) -> Option<String> {
    let line = |word: &str| {
        text.lines()
            .rfind(|line| line.contains(word))
            .map(|line| line.trim().to_owned())
    };
    if let Some(found) =
        line("Out of memory: Killed process").or_else(|| line("System is deadlocked on memory"))
    {
        return Some(format!(
            "it ran out of memory, give it more with --memory: {found}"
        ));
    }
    let panic = line("Kernel panic - not syncing")?;
    let cut = panic.find("Kernel panic").unwrap_or(0);
    Some(panic[cut..].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_and_lack_of_memory_are_told_apart() {
        let panic = "[    3.1] VFS: Cannot open root device\r\n[    3.2] Kernel panic - not syncing: VFS: Unable to mount root fs\r\n[    3.3] CPU: 0\r\n";
        assert_eq!(
            judge(panic).as_deref(),
            Some("Kernel panic - not syncing: VFS: Unable to mount root fs")
        );
        let memory = "[   61.5] Out of memory: Killed process 391 (fio) total-vm:9999kB\n";
        assert!(judge(memory).is_some_and(|found| found.contains("--memory")));
        assert_eq!(judge("[    3.1] all is well\n"), None);
    }

    #[test]
    fn a_hostile_console_cannot_command_the_terminal() {
        assert_eq!(plain("a\u{1b}[2J\u{1b}[31;1mb\u{7}\u{1b}]c\r\n"), "abc\n");
    }
}
