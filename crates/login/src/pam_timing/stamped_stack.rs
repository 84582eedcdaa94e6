//! Inserts time stamps into the files of PAM services, and computes the time of each module from the stamps. Performs
//! no I/O.

use super::PamModuleTime;
use assay_model::Nanos;

/// Name of the stamp behind the last module of a type.
const END: &str = "end";
/// Types of PAM modules.
const KINDS: [&str; 4] = ["auth", "account", "password", "session"];

/// A module line of a service.
struct ModuleLine<'a> {
    /// Type of the module, without a leading `-` (which marks a module that may be missing).
    kind: &'a str,
    control: &'a str,
    rest: &'a str,
}

impl<'a> ModuleLine<'a> {
    /// Parses a line; `None` for a comment, and for a line that includes another file.
    fn parse(line: &'a str) -> Option<Self> {
        let line = line.trim();
        if line.starts_with(['#', '@']) {
            return None;
        }
        let (kind, rest) = line.split_once(char::is_whitespace)?;
        let kind = kind.trim_start_matches('-');
        let rest = rest.trim_start();
        let (control, rest) = match rest.starts_with('[') {
            true => rest.split_at(rest.find(']')? + 1),
            false => rest.split_once(char::is_whitespace)?,
        };
        let is_file = matches!(control, "include" | "substack");
        let is_known = KINDS.iter().any(|known| kind.eq_ignore_ascii_case(known));
        (is_known && !is_file).then_some(Self {
            kind,
            control,
            rest: rest.trim_start(),
        })
    }

    fn module(&self) -> &'a str {
        let word = self.rest.split_whitespace().next().unwrap_or("?");
        let name = word.rsplit('/').next().unwrap_or(word);
        name.trim_end_matches(".so")
    }

    /// Returns the control field with doubled jump distances, because a stamp stands before each module.
    fn double_jumps(&self) -> String {
        let Some(inner) = self.control.strip_prefix('[') else {
            return self.control.to_owned();
        };
        let words = inner.trim_end_matches(']').split_whitespace();
        let words = words.map(|word| match word.split_once('=') {
            Some((value, action)) => match action.parse::<u32>() {
                Ok(jump) => format!("{value}={}", jump.saturating_mul(2)),
                Err(_) => word.to_owned(),
            },
            None => word.to_owned(),
        });
        format!("[{}]", words.collect::<Vec<_>>().join(" "))
    }
}

/// Returns the text of a service file with a stamp before each module; if `is_service`, also one behind the last module
/// of each type. PAM ignores the result of a stamp, so the result of the stack stays the same.
pub(super) fn stamp_file(text: &str, path: &str, dir: &str, is_service: bool) -> String {
    let stamp = |kind: &str, place: &str| {
        format!("{kind} [default=ignore] pam_exec.so quiet /bin/sh {dir}/stamp {place}\n")
    };
    let mut out = String::new();
    let mut lines = (1..).zip(text.lines());
    while let Some((number, line)) = lines.next() {
        let mut whole = line.to_owned();
        while whole.ends_with('\\') {
            whole.pop();
            let Some((_, next)) = lines.next() else { break };
            whole.push_str(next);
        }
        match ModuleLine::parse(&whole) {
            Some(parsed) => {
                let place = format!("{path}:{number}:{}", parsed.module());
                // Words of the place stand in a line of PAM.
                let place = place.replace(|c: char| c.is_whitespace() || "[]'\\".contains(c), "?");
                out += &stamp(parsed.kind, &place);
                let optional = if whole.trim_start().starts_with('-') {
                    "-"
                } else {
                    ""
                };
                out += &format!(
                    "{optional}{} {} {}\n",
                    parsed.kind,
                    parsed.double_jumps(),
                    parsed.rest
                );
            }
            None => {
                out += &whole;
                out.push('\n');
            }
        }
    }
    if is_service {
        for kind in KINDS {
            out += &stamp(kind, END);
        }
    }
    out
}

/// Parses the lines `TYPE FILE:LINE:MODULE SECONDS` that the stamps wrote. The time of a module ends at the next stamp.
/// Leaves out the modules that close a session, because no user waits for them.
pub(super) fn parse_stamps(text: &str) -> Vec<PamModuleTime> {
    let stamps: Vec<(&str, &str, f64)> = text
        .lines()
        .filter_map(|line| {
            let mut words = line.split(' ');
            Some((words.next()?, words.next()?, words.next()?.parse().ok()?))
        })
        .filter(|(kind, ..)| *kind != "close_session")
        .collect();
    let mut found = Vec::new();
    for (one, next) in stamps.iter().zip(stamps.iter().skip(1)) {
        let (kind, place, at) = *one;
        let Some((place, module)) = place.rsplit_once(':') else {
            continue;
        };
        found.push(PamModuleTime {
            place: place.to_owned(),
            module: module.to_owned(),
            kind: match kind {
                "open_session" => "session",
                other => other,
            }
            .to_owned(),
            // The clock has steps of 10 ms.
            took: Nanos(((next.2 - at).max(0.0) * 100.0).round() as u64 * 10_000_000),
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_module_gets_a_stamp_and_jumps_reach_as_far() {
        let text = "# comment\n@include common-auth\nauth [success=2 default=ignore] pam_unix.so nullok\n\
                    account include other\n-session optional pam_systemd.so\nsession required \\\n  /x/pam_limits.so\n";
        let stamped = stamp_file(text, "/etc/pam.d/sshd", "/t", false);
        let lines: Vec<&str> = stamped.lines().collect();
        assert_eq!(lines.len(), 9, "{stamped}");
        assert_eq!(lines[1], "@include common-auth");
        assert!(lines[2].starts_with("auth [default=ignore] pam_exec.so"));
        assert!(lines[2].ends_with("/etc/pam.d/sshd:3:pam_unix"));
        assert_eq!(
            lines[3],
            "auth [success=4 default=ignore] pam_unix.so nullok"
        );
        assert_eq!(lines[4], "account include other");
        assert_eq!(lines[6], "-session optional pam_systemd.so");
        assert!(lines[7].ends_with("/etc/pam.d/sshd:6:pam_limits"));
        assert!(stamp_file("", "x", "/t", true).lines().count() == 4);
    }

    #[test]
    fn a_module_lasts_until_the_next_stamp() {
        let text = "account /etc/pam.d/sshd:2:pam_nologin 10.00\naccount end 10.01\n\
                    open_session /etc/pam.d/sshd:5:pam_exec 10.02\nopen_session end 12.02\n\
                    close_session /etc/pam.d/sshd:5:pam_exec 13.00\ndamaged\n";
        let found = parse_stamps(text);
        let all: Vec<_> = found
            .iter()
            .map(|one| {
                (
                    &one.place[..],
                    &one.module[..],
                    &one.kind[..],
                    one.took.0 / 1_000_000,
                )
            })
            .collect();
        assert_eq!(
            all,
            [
                ("/etc/pam.d/sshd:2", "pam_nologin", "account", 10),
                ("/etc/pam.d/sshd:5", "pam_exec", "session", 2000)
            ]
        );
    }
}
