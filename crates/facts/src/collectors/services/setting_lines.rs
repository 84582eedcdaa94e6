//! Collects whether PAM opens systemd sessions, and whether it requires a second factor.

use crate::gather::Gather;
use assay_model::{FactKind, FactPlace, Span};

pub(crate) const SESSION: &str = "/etc/pam.d/common-session";
/// PAM file for logins over SSH.
pub(crate) const PAM_SSHD: &str = "/etc/pam.d/sshd";

/// Modules that require a second factor.
pub(crate) const SECOND: [&str; 7] = [
    "pam_google_authenticator.so",
    "pam_oath.so",
    "pam_duo.so",
    "pam_u2f.so",
    "pam_yubico.so",
    "pam_otpw.so",
    "pam_radius_auth.so",
];

pub(crate) fn collect(g: &mut Gather<'_>) {
    note_session(g);
    second_factor(g);
}

/// Returns the place of a line without its indentation.
pub(crate) fn place(path: &str, number: usize, line: &str) -> FactPlace {
    let column = line.len() - line.trim_start().len() + 1;
    FactPlace::File {
        path: path.to_owned(),
        line: Some(number + 1),
        span: Some(Span {
            column,
            length: line.trim().len(),
        }),
    }
}

/// Notes whether pam_systemd opens a session. If its line is commented out, notes the place of that line.
fn note_session(g: &mut Gather<'_>) {
    let Some(text) = g.read("pam.session", SESSION) else {
        return;
    };
    let mut state = ("absent", FactPlace::from(SESSION));
    for (number, line) in text.lines().enumerate() {
        let bare = line.trim_start().trim_start_matches(['#', ' ']);
        let ours = bare.starts_with("session") || bare.starts_with("-session");
        if !ours || !line.contains("pam_systemd.so") {
            continue;
        }
        let off = line.trim_start().starts_with('#');
        if state.0 != "on" {
            state = (if off { "off" } else { "on" }, place(SESSION, number, line));
        }
    }
    let (value, place) = state;
    g.facts
        .known("pam.session.systemd", value, FactKind::Configured, place);
}

/// Notes whether PAM requires a second factor for keyboard-interactive authentication.
fn second_factor(g: &mut Gather<'_>) {
    let Some(text) = g.read("pam.sshd", PAM_SSHD) else {
        return;
    };
    for (number, line) in text.lines().enumerate() {
        if let Some(module) = find_second_factor(line) {
            let at = place(PAM_SSHD, number, line);
            g.facts
                .known("pam.sshd.second_factor", module, FactKind::Configured, at);
            return;
        }
    }
}

/// Returns the module of an `auth` line that requires a second factor.
fn find_second_factor(line: &str) -> Option<&'static str> {
    let mut words = line.split_whitespace();
    if !matches!(words.next(), Some("auth" | "-auth")) {
        return None;
    }
    words.find_map(|word| {
        let name = word.rsplit('/').next().unwrap_or_default();
        SECOND.into_iter().find(|known| *known == name)
    })
}

/// Redacts a line of sshd's PAM file: keeps only the module of a line that requires a second factor.
pub(crate) fn redact_pam_sshd(line: &str) -> String {
    find_second_factor(line).map_or_else(String::new, |module| format!("auth required {module}"))
}

/// Redacts a line of the PAM session file: keeps only the line of pam_systemd.
pub(crate) fn redact_session(line: &str) -> String {
    let known = |word: &str| {
        let word = word.trim_start_matches(['#', '-']);
        matches!(
            word,
            "" | "session" | "optional" | "required" | "pam_systemd.so"
        )
    };
    let ours = line.contains("pam_systemd.so") && line.split_whitespace().all(known);
    if ours { line } else { "" }.to_owned()
}
