//! Collects settings of programs with one `name value` pair per line. If several lines set the same name, the last one
//! applies. The advice page that uses a setting explains it.

use super::cleaned_words::{JOURNALD, JOURNALD_RUN, JOURNALD_VENDOR, MDADM, PHP};
use super::lines::{Line, files, note, read};
use crate::gather::{Gather, lossy};
use assay_model::{FactKind, FactPlace};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

/// A program with its configuration files in reading order, and the settings that a check uses.
struct KeyValues {
    kind: &'static str,
    files: &'static [&'static str],
    keys: &'static [&'static str],
}

const PROGRAMS: [KeyValues; 11] = [
    KeyValues {
        kind: "vsftpd",
        files: &["/etc/vsftpd.conf"],
        keys: &[
            "anonymous_enable",
            "anon_upload_enable",
            "anon_mkdir_write_enable",
            "anon_other_write_enable",
            "write_enable",
            "local_enable",
            "ssl_enable",
            "ssl_sslv2",
            "ssl_sslv3",
            "force_local_logins_ssl",
        ],
    },
    KeyValues {
        kind: "login_defs",
        files: &["/etc/login.defs"],
        keys: &["encrypt_method"],
    },
    KeyValues {
        kind: "apcupsd",
        files: &["/etc/apcupsd/apcupsd.conf"],
        keys: &["batterylevel", "minutes", "timeout"],
    },
    KeyValues {
        kind: "libvirtd",
        files: &["/etc/libvirt/libvirtd.conf"],
        keys: &[
            "listen_tcp",
            "listen_addr",
            "auth_tcp",
            "unix_sock_rw_perms",
            "auth_unix_rw",
        ],
    },
    KeyValues {
        kind: "libvirt_qemu",
        files: &["/etc/libvirt/qemu.conf"],
        keys: &[
            "vnc_listen",
            "vnc_password",
            "vnc_sasl",
            "vnc_tls_x509_verify",
            "security_driver",
        ],
    },
    KeyValues {
        kind: "tftpd",
        files: &["/etc/default/tftpd-hpa"],
        keys: &["tftp_options"],
    },
    KeyValues {
        kind: "etcd",
        files: &["/etc/default/etcd"],
        keys: &["etcd_listen_client_urls"],
    },
    KeyValues {
        kind: "exim",
        files: &["/etc/exim4/update-exim4.conf.conf"],
        keys: &["dc_relay_nets"],
    },
    KeyValues {
        kind: "openssl_cnf",
        files: &["/etc/ssl/openssl.cnf"],
        keys: &["minprotocol", "cipherstring"],
    },
    KeyValues {
        kind: "mdadm_check",
        files: &["/etc/default/mdadm"],
        keys: &["autocheck"],
    },
    KeyValues {
        kind: "redis_durability",
        files: &["/etc/redis/redis.conf", "/etc/valkey/valkey.conf"],
        keys: &[
            "stop-writes-on-bgsave-error",
            "appendonly",
            "appendfsync",
            "save",
        ],
    },
];

pub(super) fn collect(g: &mut Gather<'_>) {
    for program in &PROGRAMS {
        for path in program.files {
            if g.host.exists(Path::new(path)).unwrap_or(true) {
                let lines = read(g, program.kind, path, &['#', ';']);
                // Several files belong to several servers, such as Redis and Valkey.
                let server = Path::new(path).file_stem().and_then(OsStr::to_str);
                let server = server.filter(|_| program.files.len() > 1);
                let subject = (program.kind, server.unwrap_or("settings"));
                note_last(g, subject, &lines, program.keys);
            }
        }
    }
    note_journald(g);
    note_mdadm(g);
    note_php(g);
    php_pools(g);
    note_arrays(g);
    note_smartd(g);
}

/// Notes the last value of each setting of `keys` in a file, in lower case.
fn note_last(g: &mut Gather<'_>, subject: (&str, &str), lines: &[Line], keys: &[&str]) {
    for key in keys {
        let mut of_key = lines.iter().rev();
        if let Some(line) = of_key.find(|line| name_of(&line.text) == *key) {
            let name = key.replace(['.', '-'], "_");
            note(g, subject, &name, value_of(&line.text), &line.place);
        }
    }
}

fn ends_name(letter: char) -> bool {
    letter.is_whitespace() || letter == '='
}

fn name_of(text: &str) -> String {
    let text = text.strip_prefix("export ").unwrap_or(text).trim_start();
    let end = text.find(ends_name).unwrap_or(text.len());
    text[..end].to_lowercase()
}

/// Returns the value without quotation marks and without a trailing comment.
fn value_of(text: &str) -> String {
    let text = text.strip_prefix("export ").unwrap_or(text).trim_start();
    let rest = text.find(ends_name).map_or("", |end| &text[end..]);
    let rest = rest.trim_start().trim_start_matches('=').trim();
    let rest = rest.split(" #").next().unwrap_or_default();
    let rest = rest.split("\t#").next().unwrap_or_default().trim();
    rest.trim_matches(['"', '\'']).to_lowercase()
}

/// Notes the settings of journald. Drop-ins are read after the main file, in the order of their names.
fn note_journald(g: &mut Gather<'_>) {
    let mut all = vec!["/etc/systemd/journald.conf".to_owned()];
    // A drop-in replaces one of the same name in a directory of lower priority.
    let mut drop_ins: BTreeMap<String, String> = BTreeMap::new();
    for dir in [JOURNALD_VENDOR, JOURNALD_RUN, JOURNALD] {
        for path in files(g, "journald", dir, &[".conf"]) {
            let name = path.rsplit('/').next().unwrap_or_default().to_owned();
            drop_ins.insert(name, path);
        }
    }
    all.extend(drop_ins.into_values());
    let mut lines = Vec::new();
    for path in all {
        lines.extend(read(g, "journald", &path, &['#', ';']));
    }
    let keys = ["storage", "forwardtosyslog", "maxlevelstore"];
    note_last(g, ("journald", "settings"), &lines, &keys);
}

/// Notes the settings of mdadm's monitor. Files of mdadm.conf.d are read after the main file (mdadm.conf(5)).
fn note_mdadm(g: &mut Gather<'_>) {
    let mut lines = read(g, "mdadm", "/etc/mdadm/mdadm.conf", &['#', ';']);
    for path in files(g, "mdadm", MDADM, &[".conf"]) {
        lines.extend(read(g, "mdadm", &path, &['#', ';']));
    }
    note_last(g, ("mdadm", "settings"), &lines, &["mailaddr", "program"]);
}

/// Notes the settings of each installed PHP version.
fn note_php(g: &mut Gather<'_>) {
    for version in php_versions(g, "php") {
        for part in ["fpm", "apache2"] {
            let path = format!("{PHP}/{version}/{part}/php.ini");
            let lines = read(g, "php", &path, &[';', '#']);
            let which = format!("{}-{part}", version.replace('.', "-"));
            let keys = ["allow_url_include", "display_errors"];
            note_last(g, ("php", &which), &lines, &keys);
        }
    }
}

/// Notes the settings of each pool of PHP-FPM, which has a file of its own.
fn php_pools(g: &mut Gather<'_>) {
    let mut number = 0;
    for version in php_versions(g, "php_pool") {
        let pools = format!("{PHP}/{version}/fpm/pool.d");
        for path in files(g, "php_pool", &pools, &[".conf"]) {
            number += 1;
            let lines = read(g, "php_pool", &path, &[';', '#']);
            let which = number.to_string();
            let keys = [
                "listen",
                "listen.allowed_clients",
                "security.limit_extensions",
                "user",
            ];
            note_last(g, ("php_pool", &which), &lines, &keys);
            let Some(line) = lines.iter().rfind(|line| name_of(&line.text) == "listen") else {
                continue;
            };
            let address = value_of(&line.text);
            // A number alone is a port on all addresses; a name with a slash is a socket.
            let open = !address.contains('/') && !super::lines::is_loopback(&address);
            note(g, ("php_pool", &which), "all_addresses", open, &line.place);
        }
    }
}

/// Returns the installed PHP versions. If they cannot be listed, notes `key` as unknown.
fn php_versions(g: &mut Gather<'_>, key: &str) -> Vec<String> {
    let names = g.list(key, PHP);
    names.iter().take(20).map(|name| lossy(name)).collect()
}

/// Notes whether the machine has an md array. Such an array should be monitored and checked by `mdadm`.
fn note_arrays(g: &mut Gather<'_>) {
    let Some(text) = g.read("mdadm", "/proc/mdstat") else {
        return;
    };
    let any = text
        .lines()
        .any(|line| line.starts_with("md") && line.contains(" : active") && line.contains(" raid"));
    if any {
        let place = FactPlace::from("/proc/mdstat");
        let config = Path::new("/etc/mdadm/mdadm.conf");
        if g.host.exists(config).unwrap_or(false) {
            note(g, ("mdadm", "settings"), "arrays", true, &place);
        }
        if g.host
            .exists(Path::new("/etc/default/mdadm"))
            .unwrap_or(false)
        {
            note(g, ("mdadm_check", "settings"), "arrays", true, &place);
        }
    }
}

/// Notes whether smartd sends its warnings to an address.
fn note_smartd(g: &mut Gather<'_>) {
    let lines = read(g, "smartd", "/etc/smartd.conf", &['#']);
    let watches = |line: &&Line| line.first() == "devicescan" || line.text.starts_with('/');
    // smartd.conf(5): with <nomailer>, only a program given by `-M exec` is started. Words are in lower case.
    let warns = |line: &Line| {
        let words: Vec<&str> = line.rest().collect();
        let after: Vec<&str> = words
            .windows(2)
            .filter(|pair| pair[0] == "-m")
            .map(|pair| pair[1])
            .collect();
        !after.is_empty() && (after.contains(&"exec") || !after.contains(&"<nomailer>"))
    };
    let Some(first) = lines.iter().find(watches) else {
        return;
    };
    let by_default = lines
        .iter()
        .any(|line| line.first() == "default" && warns(line));
    let warned = by_default || lines.iter().filter(watches).any(warns);
    g.facts.known(
        "smartd.settings.warns",
        warned,
        FactKind::Configured,
        first.place.clone(),
    );
    g.about(["smartd", "settings"]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    #[test]
    fn names_and_values() {
        for (text, name, value) in [
            ("write_enable=YES", "write_enable", "yes"),
            ("ENCRYPT_METHOD  MD5", "encrypt_method", "md5"),
            ("auth_tcp = \"none\"", "auth_tcp", "none"),
            (
                "security.limit_extensions =",
                "security.limit_extensions",
                "",
            ),
            (
                "TFTP_OPTIONS=\"--secure --create\"",
                "tftp_options",
                "--secure --create",
            ),
            ("AUTOCHECK=false  # later", "autocheck", "false"),
        ] {
            assert_eq!(
                (name_of(text).as_str(), value_of(text).as_str()),
                (name, value)
            );
        }
    }

    #[test]
    fn two_servers_keep_their_own_settings() {
        let host = Recorded::new()
            .file("/etc/redis/redis.conf", "stop-writes-on-bgsave-error no\n")
            .file(
                "/etc/valkey/valkey.conf",
                "stop-writes-on-bgsave-error yes\n",
            );
        let mut g = Gather::new(&host);
        collect(&mut g);
        for (server, value) in [("redis", "no"), ("valkey", "yes")] {
            let key = format!("redis_durability.{server}.stop_writes_on_bgsave_error");
            assert_eq!(g.facts.str(&key), Some(value));
        }
    }

    #[test]
    fn the_last_line_counts() {
        let host = Recorded::new().file(
            "/etc/vsftpd.conf",
            "# anonymous_enable=NO\nanonymous_enable=NO\nwrite_enable=YES\nanonymous_enable=YES\n",
        );
        let mut g = Gather::new(&host);
        collect(&mut g);
        let fact = &g.facts.map["vsftpd.settings.anonymous_enable"];
        assert_eq!(fact.place.line(), Some(4));
        assert_eq!(g.facts.str("vsftpd.settings.anonymous_enable"), Some("yes"));
    }
}
