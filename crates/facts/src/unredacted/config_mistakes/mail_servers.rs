//! Finds open relays and passwords without TLS in Cyrus, OpenSMTPD and fetchmail, and open interfaces of Mailman.

use super::super::lines_of_files::{Line, is_loopback, read};
use super::Misuses;
use crate::gather::Gather;

const CYRUS: &str = "/etc/imapd.conf";
const OPENSMTPD: [&str; 3] = [
    "/etc/smtpd.conf",
    "/etc/opensmtpd/smtpd.conf",
    "/etc/mail/smtpd.conf",
];
const FETCHMAIL: &str = "/etc/fetchmailrc";
const MAILMAN: &str = "/etc/mailman3/mailman.cfg";
/// Settings of Mailman's pages and of other programs that use Django.
const DJANGO: [&str; 4] = [
    "/etc/mailman3/mailman-web.py",
    "/etc/mailman3/settings.py",
    "/etc/mailman3/settings_local.py",
    "/etc/graphite/local_settings.py",
];

pub(super) fn collect(g: &mut Gather<'_>) {
    note_cyrus(g);
    note_opensmtpd(g);
    note_fetchmail(g);
    note_mailman(g);
    note_opendmarc(g);
}

/// Returns whether a switch of imapd.conf(5) is on.
fn is_on(value: &str) -> bool {
    ["yes", "on", "t", "true", "1"].contains(&value.trim().to_ascii_lowercase().as_str())
}

fn note_cyrus(g: &mut Gather<'_>) {
    let mut found = Misuses::default();
    for line in read(g, "cyrus", CYRUS) {
        let text = line.text.trim();
        let Some((name, value)) = text.split_once(':').filter(|_| !text.starts_with('#')) else {
            continue;
        };
        match name.trim().to_ascii_lowercase().as_str() {
            "allowplaintext" => found.add("password_in_cleartext", is_on(value), line.place),
            "sasl_pwcheck_method" => {
                let any = value
                    .split_whitespace()
                    .any(|word| word.eq_ignore_ascii_case("alwaystrue"));
                found.add("without_password", any, line.place);
            }
            "allowanonymouslogin" => found.add("anonymous_login", is_on(value), line.place),
            _ => {}
        }
    }
    found.note(g, "cyrus");
}

/// Notes rules of OpenSMTPD that relay for everybody, and passwords that it sends without TLS (smtpd.conf(5)).
fn note_opensmtpd(g: &mut Gather<'_>) {
    let mut found = Misuses::default();
    let mut lines = Vec::new();
    for path in OPENSMTPD {
        lines.extend(read(g, "opensmtpd", path));
    }
    let split = |line: &Line| -> Vec<String> {
        let text = line.text.split('#').next().unwrap_or_default();
        let words = text.split_whitespace();
        words
            .map(|word| word.trim_matches('"').to_owned())
            .collect()
    };
    let mut relays = Vec::new();
    let mut limited = false;
    for line in &lines {
        let words = split(line);
        if let [first, name, rest @ ..] = &words[..]
            && first == "action"
            && rest.iter().any(|word| word == "relay")
        {
            relays.push(name.clone());
            let host = rest
                .windows(2)
                .find(|pair| pair[0] == "host")
                .map(|pair| pair[1].as_str());
            if let Some(host) = host.filter(|_| rest.iter().any(|word| word == "auth")) {
                let plain = ["smtp://", "smtp+notls://"]
                    .iter()
                    .any(|start| host.starts_with(start));
                let here = host.split('@').next_back().is_some_and(is_loopback);
                found.add("password_in_cleartext", plain && !here, &line.place);
            }
        }
    }
    for line in &lines {
        let words = split(line);
        if words.first().is_none_or(|first| first != "match") {
            continue;
        }
        let has = |pair: [&str; 2]| words.windows(2).any(|two| two == pair);
        let refuses = words.iter().any(|word| word == "reject");
        // The first rule that matches decides.
        limited |= refuses && has(["from", "any"]) && has(["for", "any"]);
        let action = words
            .windows(2)
            .find(|pair| pair[0] == "action")
            .map(|pair| &pair[1]);
        let Some(action) = action.filter(|action| relays.contains(action)) else {
            continue;
        };
        let known = ["auth", "mail-from", "rcpt-to", "tls"];
        let asks = words
            .iter()
            .any(|word| known.contains(&word.trim_start_matches('!')));
        let open =
            has(["from", "any"]) && has(["for", "any"]) && !asks && !limited && !action.is_empty();
        found.add("relays_for_everybody", open, &line.place);
    }
    found.note(g, "opensmtpd");
}

/// Notes servers from which fetchmail fetches with a password and without TLS: an empty `sslproto` switches STARTTLS
/// off (fetchmail(1)).
fn note_fetchmail(g: &mut Gather<'_>) {
    let mut found = Misuses::default();
    let mut server: Option<(Line, bool, bool, bool)> = None;
    let mut servers = Vec::new();
    let mut default_off = false;
    for line in read(g, "fetchmail", FETCHMAIL) {
        let text = line.text.split('#').next().unwrap_or_default().to_owned();
        let words: Vec<&str> = text.split_whitespace().collect();
        let first = words.first().copied().unwrap_or_default();
        if ["poll", "skip", "server", "defaults"].contains(&first) {
            servers.extend(server.take());
            let here = words.get(1).is_some_and(|name| is_loopback(name));
            if first != "skip" {
                let start = Line {
                    text: first.to_owned(),
                    place: line.place.clone(),
                };
                server = Some((start, here, false, false));
            }
        }
        let Some((_, here, tls, off)) = &mut server else {
            continue;
        };
        *here |= words.contains(&"plugin");
        *tls |= words.contains(&"ssl");
        let mut pairs = words.windows(2);
        *off |= pairs.any(|pair| pair[0] == "sslproto" && ["''", "\"\""].contains(&pair[1]));
    }
    servers.extend(server);
    for (start, here, tls, off) in servers {
        if start.text == "defaults" {
            default_off = off && !tls;
            continue;
        }
        found.add(
            "password_in_cleartext",
            (off || default_off) && !tls && !here,
            start.place,
        );
    }
    found.note(g, "fetchmail");
}

/// Notes settings with which OpenDMARC rejects the mail of users who have logged in (opendmarc.conf(5)).
fn note_opendmarc(g: &mut Gather<'_>) {
    let mut found = Misuses::default();
    let (mut rejects, mut spares, mut networks) = (None, false, false);
    for line in read(g, "opendmarc", "/etc/opendmarc.conf") {
        let mut words = line.text.split_whitespace();
        let (Some(name), Some(value)) = (words.next(), words.next()) else {
            continue;
        };
        let on = ["true", "yes", "1"].contains(&value.to_ascii_lowercase().as_str());
        match name.to_ascii_lowercase().as_str() {
            "rejectfailures" => rejects = Some((on, line.place)),
            "ignoreauthenticatedclients" => spares = on,
            "ignorehosts" => networks = true,
            _ => {}
        }
    }
    if let Some((on, place)) = rejects {
        found.add("rejects_own_users", on && !spares && !networks, place);
    }
    found.note(g, "opendmarc");
}

fn note_mailman(g: &mut Gather<'_>) {
    let mut found = Misuses::default();
    let mut section = String::new();
    for line in read(g, "mailman", MAILMAN) {
        let text = line.text.trim();
        if text.starts_with('[') {
            section = text.trim_matches(['[', ']']).to_owned();
        }
        if let Some((name, value)) = text.split_once([':', '='])
            && section == "webservice"
            && name.trim() == "hostname"
        {
            let open = !is_loopback(value.trim());
            found.add("interface_open", open, line.place);
        }
    }
    for path in DJANGO {
        for line in read(g, "mailman", path) {
            let Some((name, value)) = line.text.split_once('=') else {
                continue;
            };
            match name.trim_end() {
                "DEBUG" => found.add("shows_errors", value.trim() == "True", line.place),
                "SECRET_KEY" => {
                    let low = value.to_ascii_lowercase().replace(['-', '_'], "");
                    let known = ["changethis", "changeme", "unsafedefault", "yoursecret"];
                    let known = known.iter().any(|word| low.contains(word));
                    found.add("known_secret", known, line.place);
                }
                _ => {}
            }
        }
    }
    found.note(g, "mailman");
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    #[test]
    fn lines_and_their_near_misses() {
        let smtpd = |last: &str| {
            format!(
                "action \"local\" mbox\naction \"out\" relay\nmatch from any for domain a action \"local\"\n{last}\n"
            )
        };
        for (path, text, expected) in [
            (
                "/etc/opendmarc.conf",
                "RejectFailures true\n".to_owned(),
                "rejects_own_users=true",
            ),
            (
                "/etc/opendmarc.conf",
                "RejectFailures true\nIgnoreAuthenticatedClients true\n".to_owned(),
                "rejects_own_users=false",
            ),
            (
                CYRUS,
                "allowplaintext: yes\n".to_owned(),
                "password_in_cleartext=true",
            ),
            (
                CYRUS,
                "allowplaintext: no\n".to_owned(),
                "password_in_cleartext=false",
            ),
            (CYRUS, "#allowplaintext: yes\n".to_owned(), ""),
            (
                CYRUS,
                "sasl_pwcheck_method: alwaystrue\n".to_owned(),
                "without_password=true",
            ),
            (
                CYRUS,
                "allowanonymouslogin: 1\n".to_owned(),
                "anonymous_login=true",
            ),
            (
                OPENSMTPD[0],
                smtpd("match from any for any action \"out\""),
                "relays_for_everybody=true",
            ),
            (
                OPENSMTPD[0],
                smtpd("match auth from any for any action \"out\""),
                "relays_for_everybody=false",
            ),
            (
                OPENSMTPD[0],
                smtpd("match from local for any action \"out\""),
                "relays_for_everybody=false",
            ),
            (
                OPENSMTPD[0],
                "action \"o\" relay host smtp+notls://l@a.example auth <s>\n".to_owned(),
                "password_in_cleartext=true",
            ),
            (
                OPENSMTPD[0],
                "action \"o\" relay host smtp+tls://l@a.example auth <s>\n".to_owned(),
                "password_in_cleartext=false",
            ),
            (
                FETCHMAIL,
                "poll a.example protocol IMAP\n user u password p sslproto ''\n".to_owned(),
                "password_in_cleartext=true",
            ),
            (
                FETCHMAIL,
                "poll a.example protocol IMAP\n user u password p ssl\n".to_owned(),
                "password_in_cleartext=false",
            ),
            (
                FETCHMAIL,
                "poll localhost protocol IMAP\n user u password p sslproto ''\n".to_owned(),
                "password_in_cleartext=false",
            ),
            (
                MAILMAN,
                "[webservice]\nhostname: 0.0.0.0\n".to_owned(),
                "interface_open=true",
            ),
            (
                MAILMAN,
                "[webservice]\nhostname: localhost\n".to_owned(),
                "interface_open=false",
            ),
            (MAILMAN, "[mta]\nhostname: 0.0.0.0\n".to_owned(), ""),
            (DJANGO[0], "DEBUG = True\n".to_owned(), "shows_errors=true"),
            (
                DJANGO[0],
                "SECRET_KEY = 'change-this-on-your-production-server'\n".to_owned(),
                "known_secret=true",
            ),
            (
                DJANGO[0],
                "SECRET_KEY = 'u7Yx0vQ2pZ6m'\nDEBUG = False\n".to_owned(),
                "known_secret=false shows_errors=false",
            ),
        ] {
            assert_eq!(
                found(&[(path, &text)], collect).join(" "),
                expected,
                "{text}"
            );
        }
    }
}
