//! Redacts the configuration files of small servers: keeps only words of one list, and the punctuation between words.
//! Every other word becomes `x`. Names, addresses, passwords and numbers therefore do not leave the machine, but the
//! structure of the file remains.

use std::collections::HashSet;
use std::sync::LazyLock;

/// Configuration files that may be read, because [`redact`] is applied to each line.
pub(crate) const FILES: &[&str] = &[
    "/etc/apcupsd/apcupsd.conf",
    "/etc/apt/apt.conf",
    "/etc/apt/sources.list",
    "/etc/cups/cupsd.conf",
    "/etc/default/etcd",
    "/etc/default/mdadm",
    "/etc/default/tftpd-hpa",
    "/etc/elasticsearch/elasticsearch.yml",
    "/etc/exim4/update-exim4.conf.conf",
    "/etc/hosts.equiv",
    "/etc/inetd.conf",
    "/etc/libvirt/libvirtd.conf",
    "/etc/libvirt/qemu.conf",
    "/etc/login.defs",
    "/etc/mdadm/mdadm.conf",
    "/etc/memcached.conf",
    "/etc/mongod.conf",
    "/etc/mosquitto/mosquitto.conf",
    "/etc/named.conf",
    "/etc/proftpd/proftpd.conf",
    "/etc/redis/redis.conf",
    "/etc/rsyncd.conf",
    "/etc/smartd.conf",
    "/etc/snmp/snmpd.conf",
    "/etc/squid/squid.conf",
    "/etc/ssl/openssl.cnf",
    "/etc/systemd/journald.conf",
    "/etc/unbound/unbound.conf",
    "/etc/valkey/valkey.conf",
    "/etc/vsftpd.conf",
    "/var/lib/kubelet/config.yaml",
];

/// Directories from which configuration files may be read. The constants `*_FILES` contain name patterns for
/// directories of which only some files are read.
pub(crate) const BIND: &str = "/etc/bind";
pub(crate) const BIND_FILES: &[&str] = &["named.conf*"];
pub(crate) const UNBOUND: &str = "/etc/unbound/unbound.conf.d";
pub(crate) const MOSQUITTO: &str = "/etc/mosquitto/conf.d";
pub(crate) const PROFTPD: &str = "/etc/proftpd/conf.d";
pub(crate) const SQUID: &str = "/etc/squid/conf.d";
pub(crate) const HOSTAPD: &str = "/etc/hostapd";
pub(crate) const JOURNALD: &str = "/etc/systemd/journald.conf.d";
pub(crate) const MDADM: &str = "/etc/mdadm/mdadm.conf.d";
/// Directories of drop-ins that packages and programs write.
pub(crate) const JOURNALD_VENDOR: &str = "/usr/lib/systemd/journald.conf.d";
pub(crate) const JOURNALD_RUN: &str = "/run/systemd/journald.conf.d";
pub(crate) const XINETD: &str = "/etc/xinetd.d";
pub(crate) const APT: &str = "/etc/apt/apt.conf.d";
pub(crate) const SOURCES: &str = "/etc/apt/sources.list.d";
pub(crate) const SOURCES_FILES: &[&str] = &["*.list", "*.sources"];
pub(crate) const PHP: &str = "/etc/php";
pub(crate) const PHP_FILES: &[&str] =
    &["*/fpm/php.ini", "*/apache2/php.ini", "*/fpm/pool.d/*.conf"];

const DIRS: [&str; 14] = [
    BIND,
    UNBOUND,
    MOSQUITTO,
    PROFTPD,
    SQUID,
    HOSTAPD,
    JOURNALD,
    JOURNALD_VENDOR,
    JOURNALD_RUN,
    MDADM,
    XINETD,
    APT,
    SOURCES,
    PHP,
];

/// Prefixes that are kept if a word begins with them; the rest of the word becomes `x`. The longest matching prefix
/// applies.
pub(crate) const BEGINNINGS: [&str; 15] = [
    "/",
    "-l",
    "-l127.",
    "127.",
    "localhost:",
    "udp:127.",
    "tcp:127.",
    "http://",
    "http://127.",
    "http://localhost:",
    "https://",
    "file:",
    "copy:",
    "cdrom:",
    "tcp://",
];

/// Words that are kept, independent of case.
pub(crate) const WORDS: &str = "\
    -1 -l -m -s -u -v -::1 0 0.0.0.0 0.0.0.0/0 0/0 0777 1 10255 11211 127.0.0.1 127.0.0.0/8 127.0.0.1:631 \
    127.0.0.1:3128 2 3 * + :: ::/0 ::1 ::1/128 :631 *:631 0.0.0.0:631 localhost localhost:631 _local_ any all \
    none default @include @local @seclevel @system default@seclevel all@seclevel yes no true false on off enable \
    enabled disable disabled allow deny allow_snoop allow_setrd accel access-control acl acl_file \
    acquire::allowinsecurerepositories acquire::https::verify-host acquire::https::verify-peer acquire \
    allowinsecurerepositories https verify-host verify-peer address agentaddress agentaddresses allow-query \
    allow-query-cache allow-recursion allow-transfer allow-update allow_anonymous allow_url_include allowall \
    anon_mkdir_write_enable anon_other_write_enable anon_upload_enable anonymous anonymous_enable ap_pin \
    ap_setup_locked append appenddirname appendfsync appendonly apt apt::get::allowunauthenticated \
    apt::periodic::unattended-upgrade get allowunauthenticated periodic unattended-upgrade auth_algs auth_tcp \
    auth_unix_rw authentication authorization alwaysallow webhook mode autocheck authtype basic batterylevel \
    bind bind_address bindip bindipall bss cipherstring community config_methods push_button label keypad \
    display connect control-enable control-interface control-use-cert control_sock daily dc_relay_nets deb \
    deb-src types uris suites components trusted main contrib non-free non-free-firmware universe multiverse \
    restricted signed-by arch bullseye bullseye-security bullseye-updates bullseye/updates bookworm \
    bookworm-security bookworm-updates trixie trixie-security trixie-updates buster buster/updates sid unstable \
    testing stable stable-security stable-security/updates stable/updates \
    jammy jammy-security jammy-updates noble noble-security noble-updates denyall devicescan \
    defaultauthtype display_errors dnssec-validation auto encrypt_method des md5 sha256 sha512 yescrypt bcrypt \
    end everysec always exec execinc exim satellite smarthost internet local etcd_listen_client_urls fasteracl \
    forcelocallogins force_local_logins_ssl force_local_data_ssl forwardtosyslog hosts http_access http_port \
    https_port ieee80211w ieee8021x include include-dir include_dir includedir intercept interface \
    interface-automatic journal key_mgmt keyfile limit listen listen-on listen-on-v6 listen.allowed_clients \
    listen_addr listen_tcp listen_tls listener local_enable location login shell telnet mailaddr program \
    protected-mode server servers memcached minprotocol minutes net network network.host host http http.host \
    no_tls nopass order options zone view type master primary secondary slave hint forward static owe padding \
    password_file per_listener_settings port tls-port proftpd public private rdp read only readonly readonlyport \
    recursion remote-control request require require_certificate require_pass requirepass rocommunity \
    rwcommunity rocommunity6 rwcommunity6 root rootlogin rsn_pairwise rw safe_ports ssl_ports save sasl secure \
    security security.limit_extensions security_driver service service_mgmt setup ssl_enable ssl_sslv2 ssl_sslv3 \
    ssl_tlsv1 sslv2 sslv3 ssid stor storage volatile persistent stop-writes-on-bgsave-error systemonly \
    tftp_options --create --secure -c timeout tkip ccmp gcmp-256 gcmp tls_psk tlsv1 tlsv1.0 tlsv1.1 tlsv1.2 \
    tlsv1.3 tproxy unix_sock_rw_perms unix_sock_auth user users allow_url_fopen auth val-permissive-mode vhost \
    vnc_listen vnc_password vnc_sasl vnc_tls vnc_tls_x509_verify wep_key0 wep_default_key wpa wpa_key_mgmt \
    wpa_pairwise wpa-psk wpa-eap wpa-psk-sha256 sae wps_state write write_enable /admin /admin/conf /admin/log / \
    /location /limit /anonymous directory /directory xpack.security.enabled xpack apparmor selinux socket \
    socket_type wait stream tcp /usr/sbin/in.telnetd in.telnetd in.rshd in.rlogind in.rexecd /usr/sbin/in.rshd \
    /usr/sbin/in.rlogind /usr/sbin/in.rexecd /usr/sbin/tcpd nowait write_only use_sslv3 aclfile allowed_clients \
    /etc/squid/conf.d/*.conf port1 net.bindip net.bindipall security.authorization security.keyfile \
    storage.journal.enabled maxlevelstore emerg alert crit err nomailer transitiontoauth policy /policy \
    defaultpolicy cups-add-modify-printer";

/// Returns whether a path is one of `FILES` or lies in a directory whose files may be read.
pub(crate) fn is_file(path: &str) -> bool {
    let in_dir = |dir: &&str| {
        let rest = path.strip_prefix(*dir);
        rest.is_some_and(|rest| rest.starts_with('/'))
    };
    FILES.contains(&path) || DIRS.iter().any(in_dir)
}

/// Returns whether the names in a directory may be listed.
pub(crate) fn may_be_listed(dir: &str) -> bool {
    let dir = dir.trim_end_matches('/');
    DIRS.contains(&dir) || (dir.starts_with(PHP) && dir.len() < 60)
}

/// Returns whether a character separates words.
fn is_separator(letter: char) -> bool {
    letter.is_ascii_whitespace()
        || matches!(
            letter,
            '=' | ';'
                | '{'
                | '}'
                | '"'
                | '\''
                | ','
                | '['
                | ']'
                | '<'
                | '>'
                | '!'
                | '#'
                | '('
                | ')'
                | '|'
        )
}

/// Redacts a line: replaces every word that is not in the list by `x`.
pub(crate) fn redact(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while !rest.is_empty() {
        let end = rest.find(is_separator).unwrap_or(rest.len());
        if end > 0 {
            out.push_str(&keep_word(&rest[..end]));
        }
        let after = rest[end..].find(|letter| !is_separator(letter));
        let next = after.map_or(rest.len(), |after| end + after);
        out.push_str(&rest[end..next]);
        rest = &rest[next..];
    }
    out
}

fn keep_word(word: &str) -> String {
    static KNOWN: LazyLock<HashSet<&str>> =
        LazyLock::new(|| WORDS.split_ascii_whitespace().collect());
    let low = word.to_ascii_lowercase();
    let known = |word: &str| KNOWN.contains(word);
    if known(&low) || (low.ends_with(':') && known(low.trim_end_matches(':'))) {
        return word.to_owned();
    }
    let begins = BEGINNINGS
        .into_iter()
        .filter(|begin| low.starts_with(begin))
        .max_by_key(|begin| begin.len());
    begins.map_or_else(|| "x".to_owned(), |begin| format!("{begin}x"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_words_stay() {
        for (line, kept) in [
            ("requirepass hunter2", "requirepass x"),
            ("bind 127.0.0.1 10.1.2.3", "bind 127.0.0.1 x"),
            (
                "  network.host: 0.0.0.0 # box1",
                "  network.host: 0.0.0.0 # x",
            ),
            (
                "deb [trusted=yes] http://u:p@h/ x main",
                "deb [trusted=yes] http://x x main",
            ),
            ("wpa_passphrase=12345678", "x=x"),
            ("listen = /run/php/own.sock", "listen = /x"),
            (
                "urls=\"http://127.0.0.1:2379,http://10.0.0.1:1\"",
                "x=\"http://127.x,http://x\"",
            ),
        ] {
            assert_eq!(redact(line), kept);
            assert_eq!(redact(kept), kept);
        }
    }
}
