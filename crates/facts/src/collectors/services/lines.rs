//! Files of one setting a line, of which a check asks for a few: PAM's sessions, Samba, OpenVPN.

use crate::gather::{Gather, lossy};
use assay_model::{FactKind, Place, Span};

pub(crate) const SESSION: &str = "/etc/pam.d/common-session";
/// What PAM asks of who logs in over SSH.
pub(crate) const PAM_SSHD: &str = "/etc/pam.d/sshd";

/// Modules that ask for a second factor.
pub(crate) const SECOND: [&str; 7] = [
    "pam_google_authenticator.so",
    "pam_oath.so",
    "pam_duo.so",
    "pam_u2f.so",
    "pam_yubico.so",
    "pam_otpw.so",
    "pam_radius_auth.so",
];

pub(crate) const SAMBA: &str = "/etc/samba/smb.conf";
pub(crate) const VPN: &str = "/etc/openvpn/";

/// Settings of smb.conf, without blanks and in lower case (smb.conf(5)).
pub(crate) const SMB: [(&str, &str); 7] = [
    ("serversigning", "server_signing"),
    ("clientsigning", "client_signing"),
    ("serverminprotocol", "server_min_protocol"),
    ("minprotocol", "server_min_protocol"),
    ("clientschannel", "client_schannel"),
    ("serverschannel", "server_schannel"),
    ("serverschannelrequireseal", "server_schannel_require_seal"),
];

/// Options of OpenVPN.
pub(crate) const VPN_KEYS: [&str; 7] = [
    "cipher",
    "data-ciphers",
    "ncp-ciphers",
    "auth",
    "comp-lzo",
    "compress",
    "tls-version-min",
];

pub(crate) fn collect(g: &mut Gather<'_>) {
    session(g);
    second_factor(g);
    samba(g);
    for dir in [VPN, "/etc/openvpn/server", "/etc/openvpn/client"] {
        vpn(g, dir.trim_end_matches('/'));
    }
}

/// The whole of a line.
pub(crate) fn place(path: &str, number: usize, line: &str) -> Place {
    let column = line.len() - line.trim_start().len() + 1;
    Place::File {
        path: path.to_owned(),
        line: Some(number + 1),
        span: Some(Span {
            column,
            length: line.trim().len(),
        }),
    }
}

/// Whether pam_systemd opens a session, and where a line that did was commented out.
fn session(g: &mut Gather<'_>) {
    let Some(text) = g.read("pam.session", SESSION) else {
        return;
    };
    let mut state = ("absent", Place::from(SESSION));
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

/// Whether PAM asks for a second factor; it asks by keyboard-interactive authentication.
fn second_factor(g: &mut Gather<'_>) {
    let Some(text) = g.read("pam.sshd", PAM_SSHD) else {
        return;
    };
    for (number, line) in text.lines().enumerate() {
        if let Some(module) = second(line) {
            let at = place(PAM_SSHD, number, line);
            g.facts
                .known("pam.sshd.second_factor", module, FactKind::Configured, at);
            return;
        }
    }
}

/// The module of a line of `auth` that asks for a second factor.
fn second(line: &str) -> Option<&'static str> {
    let mut words = line.split_whitespace();
    if !matches!(words.next(), Some("auth" | "-auth")) {
        return None;
    }
    words.find_map(|word| {
        let name = word.rsplit('/').next().unwrap_or_default();
        SECOND.into_iter().find(|known| *known == name)
    })
}

/// What a capture keeps of it.
pub(crate) fn redact_pam_sshd(line: &str) -> String {
    second(line).map_or_else(String::new, |module| format!("auth required {module}"))
}

/// The last line of `[global]` counts (smb.conf(5)); included files are not followed, and say so.
fn samba(g: &mut Gather<'_>) {
    let Some(text) = g.read("samba", SAMBA) else {
        return;
    };
    let mut global = true;
    for (number, line) in text.lines().enumerate() {
        let bare = line.trim();
        if bare.starts_with('[') {
            global = bare.eq_ignore_ascii_case("[global]");
        }
        let Some((name, value)) = bare.split_once('=').filter(|_| global) else {
            continue;
        };
        if name.trim() == "include" {
            let why = "an included file is not read here";
            let at = place(SAMBA, number, line);
            g.facts.unknown("samba", why, FactKind::Configured, at);
        }
        if let Some(key) = smb_key(name) {
            g.facts.known(
                format!("samba.{key}"),
                value.trim().to_ascii_lowercase(),
                FactKind::Configured,
                place(SAMBA, number, line),
            );
        }
    }
}

fn smb_key(name: &str) -> Option<&'static str> {
    let name: String = name.split_whitespace().collect();
    let name = name.to_ascii_lowercase();
    SMB.iter()
        .find(|(known, _)| *known == name)
        .map(|(_, key)| *key)
}

fn vpn(g: &mut Gather<'_>, dir: &str) {
    let mut files: Vec<String> = g
        .list("openvpn", dir)
        .iter()
        .map(|name| lossy(name))
        .collect();
    files.retain(|name| name.ends_with(".conf") || name.ends_with(".ovpn"));
    for (number, name) in files.into_iter().enumerate() {
        let path = format!("{dir}/{name}");
        let which = format!("{}-{number}", dir.rsplit('/').next().unwrap_or_default());
        let key = format!("openvpn.{which}");
        if let Some(text) = g.read(&key, &path) {
            for (number, line) in text.lines().enumerate() {
                let mut words = line.split_whitespace();
                let Some(option) = words.next().filter(|word| VPN_KEYS.contains(word)) else {
                    continue;
                };
                g.facts.known(
                    format!("{key}.{option}"),
                    words.next().unwrap_or("on").to_ascii_uppercase(),
                    FactKind::Configured,
                    place(&path, number, line),
                );
            }
        }
        g.about(["openvpn", &which]);
    }
}

/// What a capture keeps of the sessions: the line that is asked for.
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

pub(crate) fn redact_samba(line: &str) -> String {
    let bare = line.trim();
    if bare.starts_with('[') {
        let global = bare.eq_ignore_ascii_case("[global]");
        return if global { "[global]" } else { "[left-out]" }.to_owned();
    }
    let Some((name, value)) = line.split_once('=') else {
        return String::new();
    };
    let value = value.trim();
    let word = value.len() <= 12
        && value
            .bytes()
            .all(|byte| byte.is_ascii_alphabetic() || b"_ 123".contains(&byte))
        && SMB_VALUES
            .iter()
            .any(|known| value.eq_ignore_ascii_case(known));
    match (smb_key(name), name.trim()) {
        (Some(_), _) if word => line.to_owned(),
        (_, "include") => "include = (left-out)".to_owned(),
        _ => String::new(),
    }
}

/// Values of the settings above.
pub(crate) const SMB_VALUES: [&str; 24] = [
    "yes",
    "no",
    "true",
    "false",
    "auto",
    "default",
    "mandatory",
    "disabled",
    "0",
    "1",
    "required",
    "desired",
    "if_required",
    "off",
    "on",
    "core",
    "lanman1",
    "nt1",
    "smb2",
    "smb2_02",
    "smb2_10",
    "smb3",
    "smb3_00",
    "smb3_11",
];

pub(crate) fn redact_vpn(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    let Some((option, rest)) = words.split_first() else {
        return String::new();
    };
    let capital = |word: &str| {
        let byte = |byte: u8| byte.is_ascii_digit() || b"-.:".contains(&byte);
        word.len() <= 80
            && (word.bytes().all(|b| byte(b) || b.is_ascii_uppercase())
                || [
                    "no", "yes", "adaptive", "lzo", "lz4", "lz4-v2", "stub", "stub-v2", "migrate",
                ]
                .contains(&word))
    };
    match VPN_KEYS.contains(option) && rest.iter().all(|word| capital(word)) {
        true => words.join(" "),
        false => String::new(),
    }
}
