//! Finds PAM lines that admit everyone, refer to a missing module, or use an old password hash (pam.d(5)).

use super::lines_of_files::{Line, exists, files, note, read};
use crate::gather::Gather;

const DIR: &str = "/etc/pam.d";
/// PAM services for remote logins or for changing the user, and the files that these services include.
const DOORS: [&str; 20] = [
    "common-auth",
    "system-auth",
    "password-auth",
    "sshd",
    "login",
    "remote",
    "other",
    "su",
    "su-l",
    "sudo",
    "sudo-i",
    "dovecot",
    "vsftpd",
    "proftpd",
    "samba",
    "smtp",
    "xrdp-sesman",
    "cockpit",
    "cron",
    "polkit-1",
];
/// PAM modules that never reject a wrong password.
const ASK_NOTHING: [&str; 9] = [
    "pam_env.so",
    "pam_permit.so",
    "pam_faildelay.so",
    "pam_nologin.so",
    "pam_securetty.so",
    "pam_warn.so",
    "pam_echo.so",
    "pam_group.so",
    "pam_mail.so",
];
/// Directories in which PAM modules are installed.
const MODULES: [&str; 7] = [
    "/lib/x86_64-linux-gnu/security",
    "/usr/lib/x86_64-linux-gnu/security",
    "/lib/aarch64-linux-gnu/security",
    "/usr/lib/aarch64-linux-gnu/security",
    "/lib64/security",
    "/usr/lib64/security",
    "/lib/security",
];

/// A parsed PAM line: its type, its control value, and its module.
struct Entry {
    kind: String,
    control: String,
    module: String,
    arguments: Vec<String>,
}

impl Entry {
    fn parse(text: &str) -> Option<Self> {
        let text = text.split('#').next().unwrap_or_default().trim();
        if let Some(file) = text.strip_prefix("@include") {
            return Some(Self {
                kind: "auth".to_owned(),
                control: "include".to_owned(),
                module: file.trim().to_owned(),
                arguments: Vec::new(),
            });
        }
        let (kind, rest) = text.split_once(char::is_whitespace)?;
        let rest = rest.trim_start();
        let (control, rest) = match rest.strip_prefix('[') {
            Some(inner) => inner.split_once(']')?,
            None => rest.split_once(char::is_whitespace)?,
        };
        let mut words = rest.split_whitespace();
        let module = words.next()?.rsplit('/').next().unwrap_or_default();
        Some(Self {
            kind: kind.to_lowercase(),
            control: control.to_lowercase(),
            module: module.to_owned(),
            arguments: words.map(str::to_owned).collect(),
        })
    }

    /// Returns whether a failure of the module rejects the login, immediately or at the end of the stack.
    fn binds(&self) -> bool {
        let words = ["required", "requisite", "include", "substack"];
        words.contains(&self.control.as_str())
            || self.control.contains("=bad")
            || self.control.contains("=die")
    }

    fn ends_with_success(&self) -> bool {
        self.control == "sufficient" || self.control.contains("success=done")
    }
}

pub(super) fn collect(g: &mut Gather<'_>) {
    let modules: Vec<&str> = MODULES
        .into_iter()
        .filter(|dir| exists(g, &format!("{dir}/pam_unix.so")))
        .collect();
    let mut number = 0;
    for path in files(g, "pam.line", DIR, "") {
        let name = path.rsplit('/').next().unwrap_or_default().to_owned();
        if name.contains(['.', '~']) {
            continue;
        }
        let lines = read(g, "pam.line", &path);
        let entries: Vec<(&Line, Entry)> = lines
            .iter()
            .filter_map(|line| Some((line, Entry::parse(&line.text)?)))
            .collect();
        for (at, (line, entry)) in entries.iter().enumerate() {
            number += 1;
            let which = number.to_string();
            let admits = DOORS.contains(&name.as_str()) && admits_everybody(&entries, at);
            let mut properties = vec![("admits", admits.into())];
            // A hyphen at the start of a line skips a missing module.
            let counts =
                entry.binds() && entry.module.ends_with(".so") && !entry.kind.starts_with('-');
            if counts && !modules.is_empty() {
                let absolute = line.text.contains(&format!("/{}", entry.module));
                let there = modules
                    .iter()
                    .any(|dir| exists(g, &format!("{dir}/{}", entry.module)));
                properties.push(("missing", (!there && !absolute).into()));
            }
            if entry.module == "pam_wheel.so" && entry.kind == "auth" {
                let trusts = entry.arguments.iter().any(|one| one == "trust");
                let trusted = trusts && entry.ends_with_success() && DOORS.contains(&name.as_str());
                properties.push(("trusts_group", trusted.into()));
            }
            if entry.module == "pam_unix.so" && entry.kind == "password" {
                let old = entry
                    .arguments
                    .iter()
                    .any(|one| one == "md5" || one == "bigcrypt");
                properties.push(("old_hash", old.into()));
            }
            note(g, "pam.line", &which, &line.place, &properties);
        }
    }
}

/// Returns whether this line of pam_permit admits a user with a wrong password.
fn admits_everybody(entries: &[(&Line, Entry)], at: usize) -> bool {
    let of_auth = |entry: &Entry| entry.kind.trim_start_matches('-') == "auth";
    let (_, this) = &entries[at];
    if !of_auth(this) || this.module != "pam_permit.so" {
        return false;
    }
    let refuses = |entries: &[(&Line, Entry)]| {
        entries.iter().any(|(_, one)| {
            of_auth(one) && one.binds() && !ASK_NOTHING.contains(&one.module.as_str())
        })
    };
    match this.ends_with_success() {
        true => !refuses(&entries[..at]),
        false => this.binds() && !refuses(entries),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    #[test]
    fn stacks_and_their_near_misses() {
        for (text, admits) in [
            (
                "auth sufficient pam_permit.so\nauth required pam_unix.so\n",
                true,
            ),
            (
                "auth [success=1 default=ignore] pam_unix.so\nauth required pam_permit.so\n",
                true,
            ),
            (
                "auth [success=1 default=ignore] pam_unix.so nullok\nauth requisite pam_deny.so\n\
                 auth required pam_permit.so\n",
                false,
            ),
            (
                "auth required pam_unix.so\nauth sufficient pam_permit.so\n",
                false,
            ),
            ("@include common-auth\nauth required pam_permit.so\n", false),
            ("account required pam_permit.so\n", false),
            ("# auth sufficient pam_permit.so\n", false),
        ] {
            let host = Recorded::new().file("/etc/pam.d/sshd", text);
            let mut g = Gather::new(&host);
            collect(&mut g);
            let found = g.facts.map.iter().any(|(key, fact)| {
                key.ends_with(".admits") && fact.value == assay_model::FactValue::Known(true.into())
            });
            assert_eq!(found, admits, "{text}");
        }
    }
}
