//! Finds mail programs that do not meet: sockets that only one side names, mailboxes that only one side knows, and
//! mail for root that nobody gets.

use super::super::lines_of_files::{exists, read};
use super::Misuses;
use crate::collectors::services::dovecot::MAIN as DOVECOT;
use crate::collectors::services::postfix::MAIN as POSTFIX;
use crate::gather::Gather;
use assay_config::effective::files::OfHost;
use assay_config::effective::{
    Effective, Program, ScopeId, Setting, expand_macros, read_effective,
};
use assay_model::FactPlace;
use std::collections::BTreeMap;
use std::path::Path;

const ALIASES: [&str; 2] = ["/etc/aliases", "/etc/mail/aliases"];
const QUEUE: &str = "/var/spool/postfix";
const OPENDKIM: &str = "/etc/opendkim.conf";
/// Parameters of Postfix that name a transport, which is a service of master.cf.
const TRANSPORTS: [&str; 8] = [
    "content_filter",
    "local_transport",
    "virtual_transport",
    "mailbox_transport",
    "relay_transport",
    "default_transport",
    "fallback_transport",
    "error_service_name",
];

pub(super) fn collect(g: &mut Gather<'_>) {
    let mut found = Misuses::default();
    note_aliases(g, &mut found);
    found.note(g, "mail_alias");
    let postfix = read_effective(Program::Postfix, Path::new(POSTFIX), &OfHost(g.host));
    let Ok(postfix) = postfix else { return };
    let mut found = Misuses::default();
    note_transports(&postfix, &mut found);
    if let Some(said) = postfix.value(ScopeId::ROOT, "smtp_tls_security_level") {
        let level = text(&postfix, ScopeId::ROOT, "smtp_tls_security_level");
        let relay = text(&postfix, ScopeId::ROOT, "relayhost");
        let here = ["127.", "[127.", "localhost", "[localhost", "[::1]"];
        let here = here.iter().any(|begin| relay.starts_with(begin));
        let local = text(&postfix, ScopeId::ROOT, "default_transport").starts_with("error");
        found.add(
            "never_encrypts",
            level.eq_ignore_ascii_case("none") && !here && !local,
            &said.place,
        );
    }
    note_milters(g, &postfix, &mut found);
    if let Ok(dovecot) = read_effective(Program::Dovecot, Path::new(DOVECOT), &OfHost(g.host)) {
        note_login_socket(&postfix, &dovecot, &mut found);
        note_delivery_socket(&postfix, &dovecot, &mut found);
        note_mailboxes(&postfix, &dovecot, &mut found);
    }
    found.note(g, "mail_socket");
}

/// Notes whether the mail for root or postmaster is discarded (aliases(5)).
fn note_aliases(g: &mut Gather<'_>, found: &mut Misuses) {
    let mut all: BTreeMap<String, (String, FactPlace)> = BTreeMap::new();
    for path in ALIASES {
        for line in read(g, "mail_alias", path) {
            let text = line.text.trim();
            let Some((name, target)) = text.split_once(':').filter(|_| !text.starts_with('#'))
            else {
                continue;
            };
            let target = target.split(" #").next().unwrap_or_default();
            let target = target.trim().trim_matches('"').to_ascii_lowercase();
            all.insert(
                name.trim().trim_matches('"').to_ascii_lowercase(),
                (target, line.place),
            );
        }
    }
    for name in ["root", "postmaster"] {
        let Some((target, place)) = all.get(name) else {
            continue;
        };
        let mut target = target.as_str();
        for _ in 0..8 {
            match all.get(target) {
                Some((next, _)) => target = next,
                None => break,
            }
        }
        let lost = [
            "/dev/null",
            "|/bin/true",
            "| /bin/true",
            "|/dev/null",
            "devnull",
        ]
        .contains(&target);
        found.add("discarded", lost, place);
    }
}

fn text(all: &Effective, id: ScopeId, key: &str) -> String {
    let said = all.value(id, key).map(Setting::text).unwrap_or_default();
    expand_macros(all, id, &said).trim().to_owned()
}

/// Notes transports without a service in master.cf: Postfix defers all mail for them.
fn note_transports(all: &Effective, found: &mut Misuses) {
    let services: Vec<&str> = all
        .scopes()
        .filter_map(|(_, scope)| scope.head.first().map(String::as_str))
        .collect();
    // Without master.cf, nothing is known.
    if !services.contains(&"smtp") && !services.contains(&"cleanup") {
        return;
    }
    for (id, _) in all.scopes() {
        for key in TRANSPORTS {
            let Some(said) = all.value(id, key).filter(|said| said.scope == id) else {
                continue;
            };
            let value = text(all, id, key);
            let name = value.split(':').next().unwrap_or_default();
            if name.is_empty() || name.contains(['$', '/', ' ']) {
                continue;
            }
            found.add("transport_missing", !services.contains(&name), &said.place);
        }
    }
    for (id, scope) in all.scopes() {
        let [name, kind, ..] = &scope.head[..] else {
            continue;
        };
        let port = name.rsplit(':').next().unwrap_or_default();
        if kind == "inet" && ["smtps", "submissions", "465"].contains(&port) {
            let wraps = text(all, id, "smtpd_tls_wrappermode").eq_ignore_ascii_case("yes");
            found.add("port_465_without_tls", !wraps, &scope.place);
        }
    }
}

/// Returns the socket of a milter in one form: `inet:HOST:PORT` or a path.
fn socket(text: &str) -> String {
    let text = text.trim().to_ascii_lowercase();
    let host = |host: &str| match host.trim_matches(['[', ']']) {
        "" | "localhost" | "127.0.0.1" | "::1" | "0.0.0.0" | "::" => "localhost".to_owned(),
        other => other.to_owned(),
    };
    if let Some(rest) = text.strip_prefix("inet:").or(text.strip_prefix("inet6:")) {
        let (name, port) = match rest.split_once('@') {
            Some((port, name)) => (name, port),
            None => rest.rsplit_once(':').unwrap_or(("", rest)),
        };
        return format!("inet:{}:{port}", host(name));
    }
    let path = text
        .strip_prefix("unix:")
        .or(text.strip_prefix("local:"))
        .unwrap_or(&text);
    let path = path.strip_prefix(QUEUE).unwrap_or(path);
    // /var/run is a link to /run.
    let path = path
        .strip_prefix("/var/run")
        .map_or(path.to_owned(), |rest| format!("/run{rest}"));
    format!("/{}", path.trim_start_matches('/'))
}

/// Notes a milter of OpenDKIM in Postfix at another address than the one at which OpenDKIM listens.
fn note_milters(g: &mut Gather<'_>, all: &Effective, found: &mut Misuses) {
    let lines = read(g, "mail_socket", OPENDKIM);
    let listens = lines.iter().rev().find_map(|line| {
        let mut words = line.text.split_whitespace();
        let first = words.next()?;
        first
            .eq_ignore_ascii_case("socket")
            .then(|| words.next().map(str::to_owned))?
    });
    let (Some(listens), Some(said)) = (listens, all.value(ScopeId::ROOT, "smtpd_milters")) else {
        return;
    };
    let value = text(all, ScopeId::ROOT, "smtpd_milters");
    if value.contains(['$', '{']) {
        return;
    }
    let asked: Vec<String> = value
        .split([',', ' ', '\t', '\n'])
        .filter(|one| !one.is_empty())
        .map(socket)
        .collect();
    let of_dkim = |one: &String| {
        one.contains("dkim")
            || [":8891", ":8892", ":12301"]
                .iter()
                .any(|port| one.ends_with(port))
    };
    if asked.iter().any(of_dkim) {
        let met = asked.contains(&socket(&listens));
        found.add("milter_elsewhere", !met, &said.place);
    }
}

/// Returns the paths of the sockets of a service of Dovecot.
fn listeners(dovecot: &Effective, service: &str) -> Vec<String> {
    let inside = |parent: Option<ScopeId>| {
        parent.is_some_and(|id| {
            matches!(&dovecot.scope(id).head[..], [kind, name, ..] if kind == "service" && name == service)
        })
    };
    dovecot
        .scopes()
        .filter(|(_, scope)| inside(scope.parent))
        .filter_map(|(id, scope)| match &scope.head[..] {
            [kind, name, ..] if kind == "unix_listener" => {
                let path = dovecot.value(id, "path").filter(|said| said.scope == id);
                Some(path.map_or(name.clone(), |said| said.text().trim().to_owned()))
            }
            _ => None,
        })
        .collect()
}

fn absolute(path: &str) -> String {
    match path.starts_with('/') {
        true => path.to_owned(),
        false => format!("{QUEUE}/{path}"),
    }
}

/// Notes a socket for logins that Postfix asks and Dovecot does not have.
fn note_login_socket(postfix: &Effective, dovecot: &Effective, found: &mut Misuses) {
    if dovecot.problems.iter().any(|one| one.trouble.hides()) {
        return;
    }
    let listens: Vec<String> = listeners(dovecot, "auth")
        .iter()
        .map(|path| absolute(path))
        .collect();
    for (id, _) in postfix.scopes() {
        let is = |key: &str, word: &str| text(postfix, id, key).eq_ignore_ascii_case(word);
        let said = postfix
            .value(id, "smtpd_sasl_path")
            .or_else(|| postfix.value(id, "smtpd_sasl_type"));
        let Some(said) = said else { continue };
        let on = postfix.value(id, "smtpd_sasl_auth_enable");
        if on.is_none_or(|on| on.scope != id)
            || !is("smtpd_sasl_auth_enable", "yes")
            || !is("smtpd_sasl_type", "dovecot")
        {
            continue;
        }
        let path = text(postfix, id, "smtpd_sasl_path");
        if path.is_empty() || path == "smtpd" || path.starts_with("inet:") || path.contains('$') {
            continue;
        }
        let path = path.strip_prefix("unix:").unwrap_or(&path).to_owned();
        found.add(
            "login_socket_missing",
            !listens.contains(&absolute(&path)),
            &said.place,
        );
    }
}

/// Notes a socket for deliveries that Postfix asks and Dovecot does not have.
fn note_delivery_socket(postfix: &Effective, dovecot: &Effective, found: &mut Misuses) {
    if dovecot.problems.iter().any(|one| one.trouble.hides()) {
        return;
    }
    let listens: Vec<String> = listeners(dovecot, "lmtp")
        .iter()
        .map(|path| absolute(path))
        .collect();
    for key in ["mailbox_transport", "virtual_transport", "local_transport"] {
        let Some(said) = postfix.value(ScopeId::ROOT, key) else {
            continue;
        };
        let value = text(postfix, ScopeId::ROOT, key);
        if let Some(path) = value
            .strip_prefix("lmtp:unix:")
            .filter(|path| path.contains("dovecot"))
        {
            found.add(
                "delivery_socket_missing",
                !listens.contains(&absolute(path)),
                &said.place,
            );
        }
    }
}

/// Notes mail that Postfix delivers to another place than the one that Dovecot reads.
fn note_mailboxes(postfix: &Effective, dovecot: &Effective, found: &mut Misuses) {
    let own = |key: &str| text(postfix, ScopeId::ROOT, key);
    let by_others = [
        "mailbox_transport",
        "mailbox_command",
        "local_transport",
        "mailbox_command_maps",
        "virtual_mailbox_domains",
        "mailbox_transport_maps",
    ];
    if by_others.iter().any(|key| !own(key).is_empty()) || own("mydestination").is_empty() {
        return;
    }
    let of_dovecot = |key: &str| {
        dovecot
            .value(ScopeId::ROOT, key)
            .map(|said| said.text().trim().to_owned())
    };
    let Some(location) = of_dovecot("mail_location").filter(|value| !value.is_empty()) else {
        return;
    };
    let home = own("home_mailbox");
    let (place, differs) = match postfix
        .value(ScopeId::ROOT, "home_mailbox")
        .filter(|_| !home.is_empty())
    {
        Some(said) => (
            FactPlace::from(&said.place),
            home.ends_with('/') != location.starts_with("maildir:"),
        ),
        // Without the line, Postfix delivers to a file in /var/mail.
        None => {
            let said = dovecot.value(ScopeId::ROOT, "mail_location");
            let spool = own("mail_spool_directory");
            let Some(said) = said.filter(|_| spool.is_empty() || !spool.ends_with('/')) else {
                return;
            };
            let differs = location.starts_with("maildir:")
                && (location.contains('~') || location.contains("%h"));
            (FactPlace::from(&said.place), differs)
        }
    };
    found.add("delivered_elsewhere", differs, place);
}

/// Notes mail that Dovecot may lose, on a disk that loses power or on a network file system, and a login service that
/// every machine of the network may ask.
pub(super) fn note_dovecot(g: &mut Gather<'_>, all: &Effective, found: &mut Misuses) {
    for said in all
        .settings()
        .iter()
        .filter(|said| said.key == "mail_fsync")
    {
        let never = said.text().trim().eq_ignore_ascii_case("never");
        found.add("never_synced", never, &said.place);
    }
    for (id, scope) in all.scopes() {
        let of_auth = scope.parent.is_some_and(|id| {
            matches!(&all.scope(id).head[..], [kind, name, ..] if kind == "service" && ["auth", "doveadm"].contains(&name.as_str()))
        });
        if !of_auth
            || scope
                .head
                .first()
                .is_none_or(|head| head != "inet_listener")
        {
            continue;
        }
        let own = |key: &str| all.value(id, key).filter(|said| said.scope == id);
        let Some(port) = own("port").filter(|said| said.text().trim() != "0") else {
            continue;
        };
        let address = own("address").or_else(|| own("listen"));
        let local = address.is_some_and(|said| {
            let text = said.text();
            let mut all = text.split([' ', ',']).filter(|one| !one.is_empty());
            all.all(|one| one.starts_with("127.") || one == "::1" || one == "localhost")
        });
        found.add("login_port_open", !local, &port.place);
    }
    for key in ["mail_location", "mail_path"] {
        if let Some(said) = all.value(ScopeId::ROOT, key) {
            let text = said.text();
            let path = text
                .trim()
                .split_once(":/")
                .map_or(text.trim().to_owned(), |(_, path)| format!("/{path}"));
            let lost = ["/tmp/", "/run/", "/dev/shm/", "/var/run/"]
                .iter()
                .any(|dir| path.starts_with(dir));
            found.add("mail_is_temporary", lost, &said.place);
        }
    }
    note_network_mail(g, all, found);
}

/// Notes mailboxes on NFS whose index files Dovecot maps into memory.
fn note_network_mail(g: &mut Gather<'_>, all: &Effective, found: &mut Misuses) {
    let said = all
        .value(ScopeId::ROOT, "mail_location")
        .or_else(|| all.value(ScopeId::ROOT, "mail_path"));
    let Some(said) = said else { return };
    let text = said.text();
    // Indexes may be on a local disk.
    if text.contains("INDEX=") || !exists(g, "/etc/fstab") {
        return;
    }
    let path = text
        .trim()
        .split_once(":/")
        .map_or(text.trim().to_owned(), |(_, path)| format!("/{path}"));
    let path = path.split([':', '%']).next().unwrap_or_default().to_owned();
    let on_nfs = read(g, "mail_socket", "/etc/fstab").iter().any(|line| {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        matches!(words[..], [source, target, kind, ..] if !source.starts_with('#')
            && kind.starts_with("nfs") && target != "/" && Path::new(&path).starts_with(target))
    });
    if on_nfs {
        let off = all
            .value(ScopeId::ROOT, "mmap_disable")
            .is_some_and(|said| said.text().trim() == "yes");
        found.add("indexes_mapped", !off, &said.place);
    }
}

#[cfg(test)]
mod tests;
