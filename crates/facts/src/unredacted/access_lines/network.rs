//! Servers of the network: Exim's own configuration, PowerDNS Recursor, ntpd, rspamd, RabbitMQ, etcd, the kubelet,
//! WebDAV of Apache, the status page of lighttpd, clients of OpenVPN, and access points of NetworkManager.

use super::super::lines_of_files::{Line, files, is_loopback, read};
use super::{Lines, bare, holds_world, words};
use crate::collectors::daemons::lines::at_line;
use crate::collectors::daemons::nested::read_yaml;
use crate::gather::Gather;
use assay_model::FactPlace;

const EXIM: [&str; 4] = [
    "/etc/exim4/exim4.conf",
    "/etc/exim/exim.conf",
    "/etc/exim.conf",
    "/usr/exim/configure",
];
const RECURSOR: [&str; 2] = [
    "/etc/powerdns/recursor.conf",
    "/etc/pdns-recursor/recursor.conf",
];
const NTP: [&str; 2] = ["/etc/ntpsec/ntp.conf", "/etc/ntp.conf"];
const RSPAMD: [&str; 2] = [
    "/etc/rspamd/local.d/worker-controller.inc",
    "/etc/rspamd/override.d/worker-controller.inc",
];
const RABBITMQ: &str = "/etc/rabbitmq/rabbitmq.conf";
const RABBITMQ_MORE: &str = "/etc/rabbitmq/conf.d";
const ETCD: [&str; 3] = [
    "/etc/etcd/etcd.conf.yml",
    "/etc/etcd.conf.yml",
    "/etc/etcd/etcd.conf",
];
const KUBELET: [&str; 3] = [
    "/etc/default/kubelet",
    "/etc/sysconfig/kubelet",
    "/var/lib/kubelet/kubeadm-flags.env",
];
const APACHE: [&str; 4] = [
    "/etc/apache2/sites-enabled",
    "/etc/apache2/conf-enabled",
    "/etc/apache2/mods-enabled",
    "/etc/httpd/conf.d",
];
const LIGHTTPD: &str = "/etc/lighttpd/lighttpd.conf";
const OPENVPN: [&str; 3] = ["/etc/openvpn", "/etc/openvpn/client", "/etc/openvpn/server"];
const HOTSPOTS: &str = "/etc/NetworkManager/system-connections";

pub(super) fn collect(g: &mut Gather<'_>) {
    note_exim(g);
    note_recursor(g);
    note_ntp(g);
    note_rspamd(g);
    note_rabbitmq(g);
    note_etcd(g);
    note_kubelet(g);
    note_webdav(g);
    note_lighttpd(g);
    note_openvpn(g);
    note_hotspots(g);
}

/// Returns the last line that sets a key, with its other words.
fn last<'a>(lines: &'a [Line], key: &str) -> Option<(Vec<String>, &'a FactPlace)> {
    lines.iter().rev().find_map(|line| {
        let mut words = words(line);
        let found = words
            .first()
            .is_some_and(|first| first.trim_end_matches(':') == key);
        found.then(|| (words.split_off(1), &line.place))
    })
}

/// Notes the hosts that may relay in a configuration without Debian's macros, as `dc_relay_nets`.
fn note_exim(g: &mut Gather<'_>) {
    let mut found = Lines::of("exim_list", "dc_relay_nets");
    for path in EXIM {
        for line in read(g, "exim_list", path) {
            let words = words(&line);
            let [key, name, hosts @ ..] = &words[..] else {
                continue;
            };
            if key != "hostlist" || name != "relay_from_hosts" {
                continue;
            }
            let all = hosts
                .iter()
                .any(|host| host == "*" || host.ends_with("0.0.0.0/0") || host == "::::/0");
            found.add(g, if all { "*" } else { "named" }, &line.place);
        }
    }
}

fn note_recursor(g: &mut Gather<'_>) {
    let mut found = Lines::of("pdns_recursor", "open");
    for path in RECURSOR {
        let mut lines = read(g, "pdns_recursor", path);
        let more = path.replace("recursor.conf", "recursor.d");
        for one in files(g, "pdns_recursor", &more, ".conf") {
            lines.extend(read(g, "pdns_recursor", &one));
        }
        let local = last(&lines, "local-address");
        let beyond = local.is_some_and(|(words, _)| !words.iter().all(|one| is_loopback(one)));
        if let Some((words, place)) = last(&lines, "allow-from") {
            let open = beyond && words.iter().any(|one| holds_world(one));
            found.add(g, open, place);
        }
        note_recursor_yaml(g, path, &mut found);
    }
}

/// Notes the list of clients in the YAML files of version 5 (PowerDNS Recursor, incoming.allow_from).
fn note_recursor_yaml(g: &mut Gather<'_>, conf: &str, found: &mut Lines) {
    let main = conf.replace(".conf", ".yml");
    let mut all = vec![main.clone()];
    let more = conf.replace("recursor.conf", "recursor.d");
    all.extend(files(g, "pdns_recursor", &more, ".yml"));
    let mut said = Vec::new();
    for path in all {
        let text = g.read("pdns_recursor", &path).unwrap_or_default();
        said.extend(read_yaml(&text).into_iter().map(|one| (path.clone(), one)));
    }
    let beyond = said
        .iter()
        .any(|(_, one)| one.path == "incoming.listen" && !is_loopback(&one.value));
    let mut lists = said
        .iter()
        .filter(|(_, one)| one.path == "incoming.allow_from")
        .peekable();
    if let Some((path, first)) = lists.peek().copied() {
        let place = at_line(path, first.line);
        let open = beyond && lists.any(|(_, one)| holds_world(&one.value));
        found.add(g, open, &place);
    }
}

/// Notes whether ntpd answers queries about its state to everybody, which amplify attacks (ntp.conf(5), restrict).
fn note_ntp(g: &mut Gather<'_>) {
    let mut found = Lines::of("ntpd", "answers_queries");
    for path in NTP {
        let lines = read(g, "ntpd", path);
        let default = lines.iter().filter_map(|line| {
            let words = words(line);
            let general = ["default", "-4", "-6"];
            let restricts = words.first().is_some_and(|word| word == "restrict");
            let all = words
                .get(1)
                .is_some_and(|word| general.contains(&word.as_str()));
            (restricts && all).then_some((words, &line.place))
        });
        let default: Vec<(Vec<String>, &FactPlace)> = default.collect();
        let quiet = |words: &[String]| {
            words
                .iter()
                .any(|word| word == "noquery" || word == "ignore")
        };
        // The flags of several lines for the same addresses add up.
        let family = |words: &[String]| words.get(1).cloned().unwrap_or_default();
        let added = |words: &[String]| {
            let mut others = default.iter();
            others.any(|(other, _)| {
                let same = family(other) == family(words) || family(other) == "default";
                same && quiet(other)
            })
        };
        let open = default.iter().find(|(words, _)| !added(words));
        let source = lines.iter().find(|line| {
            let words = words(line);
            words
                .first()
                .is_some_and(|word| ["server", "pool"].contains(&word.as_str()))
        });
        match (open, default.first(), source) {
            (Some((_, place)), ..) => found.add(g, true, place),
            (None, Some((_, place)), _) => found.add(g, false, place),
            (None, None, Some(line)) => found.add(g, true, &line.place),
            (None, None, None) => {}
        }
    }
}

/// Notes whether the controller of rspamd takes commands without a password from everybody.
fn note_rspamd(g: &mut Gather<'_>) {
    let mut lines = Vec::new();
    for path in RSPAMD {
        lines.extend(read(g, "rspamd_controller", path));
    }
    let beyond = lines.iter().any(|line| {
        let words = words(line);
        words.first().is_some_and(|word| word == "bind_socket")
            && words[1..].iter().any(|one| !is_loopback(one))
    });
    let mut found = Lines::of("rspamd_controller", "open");
    if let Some((words, place)) = last(&lines, "secure_ip") {
        found.add(g, beyond && words.iter().any(|one| holds_world(one)), place);
    }
}

/// Notes whether the account guest, whose password is guest, may log in from other machines.
fn note_rabbitmq(g: &mut Gather<'_>) {
    let mut found = Lines::of("rabbitmq", "guest_from_everywhere");
    let mut lines = read(g, "rabbitmq", RABBITMQ);
    for path in files(g, "rabbitmq", RABBITMQ_MORE, ".conf") {
        lines.extend(read(g, "rabbitmq", &path));
    }
    for key in ["loopback_users", "loopback_users.guest"] {
        if let Some((words, place)) = last(&lines, key) {
            let off = words
                .first()
                .is_some_and(|word| ["none", "false"].contains(&word.as_str()));
            found.add(g, off, place);
        }
    }
}

fn note_etcd(g: &mut Gather<'_>) {
    let mut found = Lines::of("etcd_file", "open");
    for path in ETCD {
        let lines = read(g, "etcd_file", path);
        for key in ["listen-client-urls", "etcd_listen_client_urls"] {
            if let Some((urls, place)) = last(&lines, key) {
                let mut plain = urls
                    .iter()
                    .flat_map(|word| word.split(','))
                    .filter_map(|url| url.strip_prefix("http://"));
                found.add(g, plain.any(|address| !is_loopback(address)), place);
            }
        }
    }
}

/// Notes arguments of the kubelet, which take precedence over its file.
fn note_kubelet(g: &mut Gather<'_>) {
    let mut all = KUBELET.map(str::to_owned).to_vec();
    all.extend(files(
        g,
        "kubelet_args",
        "/etc/systemd/system/kubelet.service.d",
        ".conf",
    ));
    let mut found = Lines::of("kubelet_args", "open");
    for path in all {
        for line in read(g, "kubelet_args", &path) {
            let Some(text) = bare(&line) else { continue };
            if text.contains("--authorization-mode=") {
                let open = text.contains("--authorization-mode=AlwaysAllow")
                    && text.contains("--anonymous-auth=true");
                found.add(g, open, &line.place);
            }
        }
    }
}

/// Notes sections of Apache in which everybody may write by WebDAV.
fn note_webdav(g: &mut Gather<'_>) {
    let mut found = Lines::of("apache_dav", "open");
    for dir in APACHE {
        for path in files(g, "apache_dav", dir, ".conf") {
            let mut switched: Option<FactPlace> = None;
            let mut guarded = false;
            for line in read(g, "apache_dav", &path) {
                let Some(text) = bare(&line) else { continue };
                let text = text.to_ascii_lowercase();
                let ends = ["</directory", "</location"]
                    .iter()
                    .any(|end| text.starts_with(end));
                let starts = ["<directory", "<location"]
                    .iter()
                    .any(|start| text.starts_with(start));
                if starts || ends {
                    if let Some(place) = switched.take() {
                        found.add(g, !guarded, &place);
                    }
                    guarded = false;
                } else if text.split_whitespace().eq(["dav", "on"]) {
                    switched = Some(line.place);
                } else {
                    let requires = text.starts_with("require ") && !text.contains("all granted");
                    let old = text.starts_with("deny ") || text.starts_with("allow from ");
                    guarded |= requires || old || text.starts_with("authtype");
                }
            }
        }
    }
}

/// Notes status pages of lighttpd, which show all clients and their requests.
fn note_lighttpd(g: &mut Gather<'_>) {
    let mut all = vec![LIGHTTPD.to_owned()];
    all.extend(files(
        g,
        "lighttpd_status",
        "/etc/lighttpd/conf-enabled",
        ".conf",
    ));
    let mut found = Lines::of("lighttpd_status", "open");
    for path in all {
        // Of each open block, whether its condition names addresses of clients.
        let mut blocks: Vec<bool> = Vec::new();
        for line in read(g, "lighttpd_status", &path) {
            let Some(text) = bare(&line) else { continue };
            if text.starts_with("status.status-url") {
                let open = !blocks.contains(&true) && !text.ends_with("\"\"");
                found.add(g, open, &line.place);
            }
            for letter in text.chars() {
                match letter {
                    '{' => blocks.push(text.contains("remoteip") || text.contains("remote-ip")),
                    '}' => drop(blocks.pop()),
                    _ => {}
                }
            }
        }
    }
}

/// Notes clients of OpenVPN that accept any certificate of the authority as the server's, and old TLS versions.
fn note_openvpn(g: &mut Gather<'_>) {
    const CHECKS: [&str; 8] = [
        "remote-cert-tls",
        "remote-cert-eku",
        "remote-cert-ku",
        "ns-cert-type",
        "verify-x509-name",
        "tls-remote",
        "tls-verify",
        "peer-fingerprint",
    ];
    let mut found = Lines::of("openvpn_client", "unverified");
    let mut versions = Lines::of("openvpn_tls", "old");
    for dir in OPENVPN {
        for path in files(g, "openvpn_client", dir, ".conf") {
            let lines = read(g, "openvpn_client", &path);
            let has = |keys: &[&str]| {
                lines.iter().any(|line| {
                    words(line)
                        .first()
                        .is_some_and(|first| keys.contains(&first.as_str()))
                })
            };
            let checks = has(&CHECKS);
            if let Some((words, place)) = last(&lines, "tls-version-min") {
                let old = words
                    .first()
                    .is_some_and(|version| ["1.0", "1.1"].contains(&version.as_str()));
                versions.add(g, old, place);
            }
            let certificates = has(&["ca", "<ca>", "capath", "pkcs12", "<pkcs12>"]);
            if let (true, true, Some((_, place))) = (
                has(&["client", "tls-client"]),
                certificates,
                last(&lines, "remote"),
            ) {
                found.add(g, !checks, place);
            }
        }
    }
}

/// Notes access points that NetworkManager opens.
fn note_hotspots(g: &mut Gather<'_>) {
    let mut found = Lines::of("hotspot", "encrypted");
    for path in files(g, "hotspot", HOTSPOTS, ".nmconnection") {
        let lines = read(g, "hotspot", &path);
        let secured = lines
            .iter()
            .any(|line| bare(line) == Some("[wifi-security]"));
        if let Some((words, place)) = last(&lines, "mode")
            && words.first().is_some_and(|mode| mode == "ap")
        {
            found.add(g, secured, place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::holds;

    #[test]
    fn servers_and_their_near_misses() {
        let recursor = "/etc/powerdns/recursor.conf";
        let ntp = "/etc/ntpsec/ntp.conf";
        let rspamd = "/etc/rspamd/local.d/worker-controller.inc";
        let rabbit = "/etc/rabbitmq/rabbitmq.conf";
        let etcd = "/etc/etcd/etcd.conf.yml";
        let kubelet = "/etc/default/kubelet";
        let dav = "/etc/apache2/sites-enabled/a.conf";
        let light = "/etc/lighttpd/lighttpd.conf";
        let vpn = "/etc/openvpn/client/a.conf";
        for (path, text, expected) in [
            (
                recursor,
                "local-address=0.0.0.0\nallow-from=127.0.0.0/8, ::/0\n",
                "pdns_recursor.1.open 2",
            ),
            (recursor, "allow-from=0.0.0.0/0\n", ""),
            (
                recursor,
                "local-address=0.0.0.0\nallow-from=10.0.0.0/8\n",
                "",
            ),
            (
                ntp,
                "server a\nrestrict default nomodify\n",
                "ntpd.1.answers_queries 2",
            ),
            (ntp, "server a\n", "ntpd.1.answers_queries 1"),
            (
                ntp,
                "pool a\nrestrict default kod nomodify noquery limited\n",
                "",
            ),
            (
                ntp,
                "pool a\nrestrict default kod nomodify\nrestrict default noquery limited\n",
                "",
            ),
            (
                ntp,
                "server a\nrestrict -4 default noquery\nrestrict -6 default noquery\n",
                "",
            ),
            (
                rspamd,
                "bind_socket = \"*:11334\";\nsecure_ip = \"0.0.0.0/0\";\n",
                "rspamd_controller.1.open 2",
            ),
            (
                rspamd,
                "bind_socket = \"*:11334\";\nsecure_ip = \"10.0.0.1\";\n",
                "",
            ),
            (
                rabbit,
                "loopback_users = none\n",
                "rabbitmq.1.guest_from_everywhere 1",
            ),
            (rabbit, "loopback_users.guest = true\n", ""),
            (
                etcd,
                "listen-client-urls: http://127.0.0.1:2379,http://0.0.0.0:2379\n",
                "etcd_file.1.open 1",
            ),
            (etcd, "listen-client-urls: https://0.0.0.0:2379\n", ""),
            (
                kubelet,
                "KUBELET_EXTRA_ARGS=\"--anonymous-auth=true --authorization-mode=AlwaysAllow\"\n",
                "kubelet_args.1.open 1",
            ),
            (
                kubelet,
                "KUBELET_EXTRA_ARGS=\"--authorization-mode=Webhook\"\n",
                "",
            ),
            (
                dav,
                "<Directory /srv>\n Dav On\n Require all granted\n</Directory>\n",
                "apache_dav.1.open 2",
            ),
            (
                dav,
                "<Location /d>\n Dav On\n AuthType Basic\n Require valid-user\n</Location>\n",
                "",
            ),
            (
                light,
                "status.status-url = \"/s\"\n",
                "lighttpd_status.1.open 1",
            ),
            (
                light,
                "$HTTP[\"remoteip\"] == \"127.0.0.1\" {\n status.status-url = \"/s\"\n}\n",
                "",
            ),
            (
                vpn,
                "client\nremote a 1194\nca ca.crt\n",
                "openvpn_client.1.unverified 2",
            ),
            (
                vpn,
                "client\nremote a 1194\nca ca.crt\nremote-cert-tls server\n",
                "",
            ),
            (vpn, "remote a 1194\nsecret static.key\n", ""),
            (vpn, "tls-version-min 1.0\n", "openvpn_tls.1.old 1"),
            (vpn, "tls-version-min 1.2\n", ""),
        ] {
            assert_eq!(holds(&[(path, text)]).join(" "), expected, "{text}");
        }
    }
}
