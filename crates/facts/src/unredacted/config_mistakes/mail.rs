//! Finds mistakes in Postfix and Dovecot: logins without a name or a password, networks and senders that are trusted by
//! mistake, and passwords that are logged.

use super::{Misuses, mail_together};
use crate::collectors::daemons::lines::is_world;
use crate::collectors::services::dovecot::MAIN as DOVECOT;
use crate::collectors::services::postfix::MAIN;
use crate::collectors::services::postfix_relay;
use crate::gather::Gather;
use assay_config::effective::files::OfHost;
use assay_config::effective::{
    Effective, Program, ScopeId, Setting, expand_macros, read_effective,
};
use assay_model::FactPlace;
use std::collections::BTreeSet;
use std::path::Path;

pub(super) fn collect(g: &mut Gather<'_>) {
    if let Ok(all) = read_effective(Program::Postfix, Path::new(MAIN), &OfHost(g.host)) {
        let mut found = Misuses::default();
        note_postfix(g, &all, &mut found);
        found.note(g, "postfix.misuse");
        postfix_relay::judge_with_files(g, &all);
    }
    if let Ok(all) = read_effective(Program::Dovecot, Path::new(DOVECOT), &OfHost(g.host)) {
        let mut found = Misuses::default();
        note_dovecot(&all, &mut found);
        mail_together::note_dovecot(g, &all, &mut found);
        found.note(g, "dovecot.misuse");
    }
}

fn note_postfix(g: &mut Gather<'_>, all: &Effective, found: &mut Misuses) {
    let root = |key: &str| all.value(ScopeId::ROOT, key);
    let text = |said: &Setting| expand_macros(all, ScopeId::ROOT, &said.text());
    let mut seen = BTreeSet::new();
    for (id, _) in all.scopes() {
        let on = all.value(id, "smtpd_sasl_auth_enable");
        let said = all.value(id, "smtpd_sasl_security_options");
        let (Some(on), Some(said)) = (on, said) else {
            continue;
        };
        let place = FactPlace::from(&said.place);
        if !on.text().trim().eq_ignore_ascii_case("yes") || !seen.insert(place.to_string()) {
            continue;
        }
        let value = expand_macros(all, id, &said.text());
        let anonymous = !value.contains("noanonymous") && !value.contains('$');
        found.add("anonymous_login", anonymous, place);
    }
    let local = root("inet_interfaces").is_some_and(|said| {
        let text = text(said);
        let mut words = text.split([',', ' ']).filter(|word| !word.is_empty());
        words.all(|word| word == "loopback-only" || word == "localhost" || word.starts_with("127."))
    });
    if let Some(said) = root("local_recipient_maps") {
        let delivers = root("mydestination").is_none_or(|one| !text(one).trim().is_empty());
        let empty = text(said).trim().is_empty();
        // With luser_relay somebody gets the mail, and postconf(5) asks for an empty list.
        let catches = root("luser_relay").is_some_and(|one| !text(one).trim().is_empty());
        found.add(
            "unknown_recipients",
            empty && delivers && !local && !catches,
            &said.place,
        );
    }
    note_client_login(all, found);
    note_domain_classes(all, found);
    if let Some(said) = root("relay_domains") {
        // A table of the type static holds every key.
        let text = text(said);
        let mut words = text.split([',', ' ', '\t', '\n']);
        let all = words.any(|word| word.starts_with("static:"));
        found.add("relays_all_domains", all && !local, &said.place);
    }
    if let Some(said) = root("mynetworks_style") {
        let class = text(said).trim() == "class" && root("mynetworks").is_none();
        found.add("trusts_class", class && !local, &said.place);
    }
    for (id, _) in all.scopes() {
        let said = all.value(id, "smtpd_authorized_xclient_hosts");
        if let Some(said) = said.filter(|said| said.scope == id) {
            let text = expand_macros(all, id, &said.text());
            let mut words = text.split([',', ' ', '\t']).filter(|word| !word.is_empty());
            let open =
                words.any(|word| word == "static:all" || is_world(&word.replace(['[', ']'], "")));
            found.add("xclient_open", open && !local, &said.place);
        }
    }
    note_senders(g, all, found);
}

/// Parameters that name a server for mail to other domains.
const NEXT_HOPS: [&str; 5] = [
    "relayhost",
    "sender_dependent_relayhost_maps",
    "transport_maps",
    "sender_dependent_default_transport_maps",
    "smtp_fallback_relay",
];

/// Notes passwords for another server that Postfix also sends without TLS: the level permits it, and the options do
/// not exclude mechanisms that send the password itself (postconf(5), smtp_sasl_security_options).
fn note_client_login(all: &Effective, found: &mut Misuses) {
    let root = |key: &str| all.value(ScopeId::ROOT, key);
    let text = |key: &str| {
        root(key).map(|said| {
            expand_macros(all, ScopeId::ROOT, &said.text())
                .trim()
                .to_ascii_lowercase()
        })
    };
    let (Some(on), Some(options)) = (
        root("smtp_sasl_auth_enable"),
        text("smtp_sasl_security_options"),
    ) else {
        return;
    };
    let is = |key: &str, value: &str| text(key).as_deref() == Some(value);
    if !is("smtp_sasl_auth_enable", "yes") {
        return;
    }
    let level = text("smtp_tls_security_level").unwrap_or_default();
    let encrypted = match level.as_str() {
        "" => is("smtp_enforce_tls", "yes"),
        // Without TLSA records, dane is as opportunistic as may.
        level => !["none", "may", "dane"].contains(&level),
    } || is("smtp_tls_wrappermode", "yes");
    // A service of master.cf may require TLS for itself.
    let of_service =
        |said: &Setting| said.scope != ScopeId::ROOT && said.key == "smtp_tls_security_level";
    if all.settings().iter().any(of_service) {
        return;
    }
    let policies = text("smtp_tls_policy_maps").is_some_and(|maps| !maps.is_empty());
    let relay = text("relayhost").unwrap_or_default();
    let here = ["127.", "[127.", "[::1]", "localhost", "[localhost"]
        .iter()
        .any(|begin| relay.starts_with(begin));
    // Without a next hop, Postfix logs in to nobody.
    let has_next_hop = NEXT_HOPS
        .iter()
        .any(|key| text(key).is_some_and(|value| !value.is_empty()));
    let plain = has_next_hop && !options.contains("noplaintext") && !options.contains('$');
    let place = root("smtp_tls_security_level").map_or(&on.place, |said| &said.place);
    found.add(
        "password_in_cleartext",
        plain && !encrypted && !policies && !here,
        place,
    );
}

/// Notes domains that are local and virtual at once (ADDRESS_CLASS_README): Postfix warns and delivers to the first.
fn note_domain_classes(all: &Effective, found: &mut Misuses) {
    let domains = |key: &str, default: &str| -> Vec<String> {
        let said = all
            .value(ScopeId::ROOT, key)
            .map_or(default.to_owned(), |said| said.text());
        let text = expand_macros(all, ScopeId::ROOT, &said).to_ascii_lowercase();
        let words = text.split([',', ' ', '\t', '\n']);
        words
            .filter(|word| word.contains('.') && !word.contains(['/', ':', '$']))
            .map(str::to_owned)
            .collect()
    };
    let local = domains(
        "mydestination",
        "$myhostname, localhost.$mydomain, localhost",
    );
    for key in ["virtual_mailbox_domains", "virtual_alias_domains"] {
        if let Some(said) = all.value(ScopeId::ROOT, key) {
            let both = domains(key, "").iter().any(|domain| local.contains(domain));
            found.add("domain_of_two_classes", both, &said.place);
        }
    }
}

/// Notes sender tables that permit mail before `reject_unauth_destination` applies. This is a mistake, because anyone
/// can forge a sender address.
fn note_senders(g: &mut Gather<'_>, all: &Effective, found: &mut Misuses) {
    for key in ["smtpd_relay_restrictions", "smtpd_recipient_restrictions"] {
        let Some(said) = all.value(ScopeId::ROOT, key) else {
            continue;
        };
        // Since Postfix 2.10 the relay restrictions decide, wherever they are not empty.
        if key == "smtpd_recipient_restrictions" {
            let relay = all.value(ScopeId::ROOT, "smtpd_relay_restrictions");
            if relay.is_none_or(|relay| !relay.text().trim().is_empty()) {
                continue;
            }
        }
        let list = expand_macros(all, ScopeId::ROOT, &said.text());
        let words: Vec<&str> = list
            .split([',', ' ', '\t', '\n'])
            .filter(|word| !word.is_empty())
            .collect();
        let guard = words.iter().position(|word| {
            [
                "reject_unauth_destination",
                "defer_unauth_destination",
                "reject",
            ]
            .contains(word)
        });
        for (at, pair) in words.windows(2).enumerate() {
            let [check, table] = pair else { continue };
            if !["check_sender_access", "check_helo_access"].contains(check) {
                continue;
            }
            let Some(file) = table.split_once(":/").map(|(_, path)| format!("/{path}")) else {
                continue;
            };
            let permits = g
                .read("postfix.table", &file)
                .is_some_and(|text| text.lines().any(is_permit));
            let before = guard.is_none_or(|guard| at < guard);
            found.add("sender_before_relay", permits && before, &said.place);
        }
    }
}

/// Returns whether a line of an access table permits mail (access(5)).
fn is_permit(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let key = words.next().unwrap_or("#");
    let action = words.next().unwrap_or_default().to_ascii_lowercase();
    let number = !action.is_empty() && action.bytes().all(|byte| byte.is_ascii_digit());
    !key.starts_with('#')
        && (action == "ok" || action == "permit" || (number && !action.starts_with(['4', '5'])))
}

fn note_dovecot(all: &Effective, found: &mut Misuses) {
    let root = |key: &str| all.value(ScopeId::ROOT, key);
    let low = |said: &Setting| said.text().trim().to_ascii_lowercase();
    for key in ["auth_debug_passwords", "auth_verbose_passwords"] {
        if let Some(said) = root(key) {
            let value = low(said);
            let plain = matches!(value.split(':').next(), Some("yes" | "plain"));
            found.add("passwords_logged", plain, &said.place);
        }
    }
    if let Some(said) = root("login_trusted_networks") {
        let mut nets = said.text();
        nets.make_ascii_lowercase();
        let mut nets = nets.split([' ', ',']);
        let world = nets.any(|net| net == "::" || net.ends_with("/0"));
        found.add("trusts_everybody", world, &said.place);
    }
    if let Some(said) = root("auth_mechanisms") {
        let anonymous = low(said).split_whitespace().any(|word| word == "anonymous");
        found.add("anonymous_login", anonymous, &said.place);
    }
    note_sockets(all, found);
    note_gone_settings(all, found);
    for (id, scope) in all.scopes() {
        if scope.head.first().is_none_or(|head| head != "passdb") {
            continue;
        }
        let own = |key: &str| all.value(id, key).filter(|said| said.scope == id);
        let is_static = own("driver").is_some_and(|said| low(said) == "static");
        if let Some(said) = own("args").filter(|_| is_static) {
            let value = low(said);
            // A proxy leaves the password to the server behind it.
            let open = value.contains("nopassword")
                && !value.contains("proxy")
                && !value.contains("allow_nets");
            found.add("without_password", open, &said.place);
        }
        // 2.4 names the driver in the head, and the fields in a block of their own.
        let of_static = is_static || scope.head.get(1).is_some_and(|name| name == "static");
        let fields = all.scopes().find(|(_, inner)| {
            inner.parent == Some(id) && inner.head.first().is_some_and(|head| head == "fields")
        });
        if let Some((fields, _)) = fields.filter(|_| of_static) {
            let field = |key: &str| all.value(fields, key).filter(|said| said.scope == fields);
            if let Some(said) = field("nopassword") {
                let value = low(said);
                let open = value != "no"
                    && ["proxy", "proxy_maybe", "allow_nets"]
                        .iter()
                        .all(|key| field(key).is_none());
                found.add("without_password", open, &said.place);
            }
        }
    }
}

/// Notes sockets through which every account of the machine logs in as any user or administrates Dovecot: auth-master
/// asks for no password (Dovecot's manual, "Auth sockets"), and doveadm-server executes commands.
fn note_sockets(all: &Effective, found: &mut Misuses) {
    for (id, scope) in all.scopes() {
        let [kind, name, ..] = &scope.head[..] else {
            continue;
        };
        let file = name.rsplit('/').next().unwrap_or_default();
        if kind != "unix_listener" || !["auth-master", "doveadm-server"].contains(&file) {
            continue;
        }
        if let Some(said) = all.value(id, "mode").filter(|said| said.scope == id) {
            let open = said.text().trim().ends_with(['2', '3', '6', '7']);
            found.add("master_socket_open", open, &said.place);
        }
    }
}

/// Settings of 2.3 that a configuration of 2.4 must not contain (upgrade guide): Dovecot does not start.
const GONE: [&str; 8] = [
    "ssl_cert",
    "ssl_key",
    "ssl_ca",
    "ssl_dh",
    "ssl_alt_cert",
    "ssl_alt_key",
    "mail_location",
    "disable_plaintext_auth",
];

fn note_gone_settings(all: &Effective, found: &mut Misuses) {
    if all.value(ScopeId::ROOT, "dovecot_config_version").is_none() {
        return;
    }
    for said in all.settings() {
        let gone = GONE.contains(&said.key.as_str());
        if gone || said.key.starts_with("ssl_server_") || said.key == "mail_driver" {
            found.add("setting_gone", gone, &said.place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    #[test]
    fn postfix_and_its_near_misses() {
        let table = ("/etc/postfix/ok", "# partners\npartner.example OK\n");
        for (text, expected) in [
            (
                "smtpd_sasl_auth_enable = yes\nsmtpd_sasl_security_options =\n",
                "anonymous_login=true",
            ),
            (
                "smtpd_sasl_auth_enable = yes\nsmtpd_sasl_security_options = noanonymous\n",
                "anonymous_login=false",
            ),
            (
                "smtpd_sasl_auth_enable = no\nsmtpd_sasl_security_options =\n",
                "",
            ),
            ("local_recipient_maps =\n", "unknown_recipients=true"),
            (
                "local_recipient_maps =\nluser_relay = all@example.org\n",
                "unknown_recipients=false",
            ),
            (
                "relayhost = [a.example]:587\nsmtp_sasl_auth_enable = yes\n\
                 smtp_sasl_security_options = noanonymous\nsmtp_tls_security_level = may\n",
                "password_in_cleartext=true",
            ),
            (
                "smtp_sasl_auth_enable = yes\nsmtp_sasl_security_options = noanonymous\n\
                 smtp_tls_security_level = encrypt\n",
                "password_in_cleartext=false",
            ),
            (
                "relayhost = a.example\nsmtp_sasl_auth_enable = yes\nsmtp_sasl_security_options = noanonymous\n\
                 smtp_tls_security_level = dane\n",
                "password_in_cleartext=true",
            ),
            (
                "relayhost =\nsmtp_sasl_auth_enable = yes\nsmtp_sasl_security_options = noanonymous\n",
                "password_in_cleartext=false",
            ),
            (
                "smtp_sasl_auth_enable = yes\nsmtp_sasl_security_options = noanonymous\n\
                 smtp_tls_security_level = dane-only\n",
                "password_in_cleartext=false",
            ),
            ("smtp_sasl_auth_enable = yes\n", ""),
            (
                "mydomain = example.org\nmydestination = $mydomain\nvirtual_mailbox_domains = example.net $mydomain\n",
                "domain_of_two_classes=true",
            ),
            (
                "mydomain = example.org\nmydestination = $mydomain\nvirtual_mailbox_domains = example.net\n",
                "domain_of_two_classes=false",
            ),
            (
                "local_recipient_maps =\nmydestination =\n",
                "unknown_recipients=false",
            ),
            (
                "local_recipient_maps =\ninet_interfaces = loopback-only\n",
                "unknown_recipients=false",
            ),
            ("relay_domains = static:ok\n", "relays_all_domains=true"),
            ("relay_domains = example.org\n", "relays_all_domains=false"),
            ("mynetworks_style = class\n", "trusts_class=true"),
            (
                "mynetworks_style = class\nmynetworks = 127.0.0.0/8\n",
                "trusts_class=false",
            ),
            (
                "smtpd_relay_restrictions = check_sender_access hash:/etc/postfix/ok, reject_unauth_destination\n",
                "sender_before_relay=true",
            ),
            (
                "smtpd_relay_restrictions = reject_unauth_destination, check_sender_access hash:/etc/postfix/ok\n",
                "sender_before_relay=false",
            ),
            (
                "smtpd_recipient_restrictions = check_sender_access hash:/etc/postfix/ok\n",
                "",
            ),
            (
                "smtpd_authorized_xclient_hosts = 10.0.0.2, [::]/0\n",
                "xclient_open=true",
            ),
            (
                "proxies = 0.0.0.0/0\nsmtpd_authorized_xclient_hosts = $proxies\n",
                "xclient_open=true",
            ),
            (
                "smtpd_authorized_xclient_hosts = !10.0.0.0/8, 10.0.0.2\n",
                "xclient_open=false",
            ),
        ] {
            assert_eq!(
                found(&[(MAIN, text), table], collect).join(" "),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn dovecot_and_its_near_misses() {
        for (text, expected) in [
            ("auth_debug_passwords = yes\n", "passwords_logged=true"),
            ("auth_verbose_passwords = sha1\n", "passwords_logged=false"),
            (
                "auth_verbose_passwords = plain:3\n",
                "passwords_logged=true",
            ),
            (
                "login_trusted_networks = 0.0.0.0/0\n",
                "trusts_everybody=true",
            ),
            (
                "login_trusted_networks = 10.0.0.0/8\n",
                "trusts_everybody=false",
            ),
            (
                "auth_mechanisms = plain anonymous\n",
                "anonymous_login=true",
            ),
            (
                "passdb {\n driver = static\n args = nopassword=y\n}\n",
                "without_password=true",
            ),
            (
                "passdb {\n driver = static\n args = proxy=y host=a nopassword=y\n}\n",
                "without_password=false",
            ),
            ("passdb {\n driver = pam\n args = nopassword=y\n}\n", ""),
            (
                "service auth {\n unix_listener auth-master {\n  mode = 0666\n }\n}\n",
                "master_socket_open=true",
            ),
            (
                "service auth {\n unix_listener auth-master {\n  mode = 0660\n }\n}\n",
                "master_socket_open=false",
            ),
            (
                "service auth {\n unix_listener auth-client {\n  mode = 0666\n }\n}\n",
                "",
            ),
            (
                "dovecot_config_version = 2.4.1\nssl_cert = </a\n",
                "setting_gone=true",
            ),
            (
                "dovecot_config_version = 2.4.1\nssl_server_cert_file = /a\n",
                "setting_gone=false",
            ),
            ("ssl_cert = </a\n", ""),
        ] {
            assert_eq!(
                found(&[(DOVECOT, text)], collect).join(" "),
                expected,
                "{text}"
            );
        }
    }
}
