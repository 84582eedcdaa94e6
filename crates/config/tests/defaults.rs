//! Tests the crate with the configuration files that Debian 12 installs.

use assay_config::{ConfError, find_includes, get, remove, set};
use assay_model::change::ConfigLanguage::{
    self, Dovecot, Ini, KeyValue, Nginx, Nsswitch, Postfix, Ssh,
};

const SSHD: &[u8] = include_bytes!("../fixtures/openssh-9.2p1-2+deb12u10-sshd_config");
const SSH: &[u8] = include_bytes!("../fixtures/openssh-9.2p1-2+deb12u10-ssh_config");
const NGINX: &[u8] = include_bytes!("../fixtures/nginx-1.22.1-9+deb12u11-nginx.conf");
const SITE: &[u8] = include_bytes!("../fixtures/nginx-1.22.1-9+deb12u11-default-site");
const AUTH: &[u8] = include_bytes!("../fixtures/dovecot-2.3.19.1-deb12u7-10-auth.conf");
const SYSTEM: &[u8] = include_bytes!("../fixtures/dovecot-2.3.19.1-deb12u7-auth-system.conf.ext");
const SQL: &[u8] = include_bytes!("../fixtures/dovecot-2.3.19.1-deb12u7-auth-sql.conf.ext");
const MASTER: &[u8] = include_bytes!("../fixtures/dovecot-2.3.19.1-deb12u7-10-master.conf");
const MAIN: &[u8] = include_bytes!("../fixtures/postfix-3.7.11-0+deb12u1-main.cf.debian");

fn section(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn value(language: ConfigLanguage, text: &[u8], names: &[&str], key: &str) -> Option<String> {
    let found = get(language, text, &section(names), key).unwrap();
    found.map(|found| found.value)
}

/// Returns the lines of `after` that `before` does not contain.
fn added(before: &[u8], after: &[u8]) -> Vec<String> {
    let before: Vec<&[u8]> = before.split(|&b| b == b'\n').collect();
    let lines = after.split(|&b| b == b'\n');
    lines
        .filter(|line| !before.contains(line))
        .map(|line| String::from_utf8_lossy(line).into_owned())
        .collect()
}

/// Sets a key that the file does not contain, and removes it again.
fn there_and_back(
    language: ConfigLanguage,
    text: &[u8],
    names: &[&str],
    key: &str,
    to: &str,
) -> Vec<u8> {
    let section = section(names);
    assert_eq!(get(language, text, &section, key).unwrap(), None);
    let new = set(language, text, &section, key, to).unwrap();
    assert_eq!(value(language, &new, names, key).as_deref(), Some(to));
    assert_eq!(remove(language, &new, &section, key).unwrap(), text);
    new
}

#[test]
fn sshd() {
    assert_eq!(value(Ssh, SSHD, &[], "usepam").as_deref(), Some("yes"));
    assert_eq!(
        value(Ssh, SSHD, &[], "Subsystem").as_deref(),
        Some("sftp /usr/lib/openssh/sftp-server")
    );
    let found = get(Ssh, SSHD, &[], "UsePAM").unwrap().unwrap();
    assert_eq!(found.rivals[0].pattern, "/etc/ssh/sshd_config.d/*.conf");
    let new = there_and_back(Ssh, SSHD, &[], "UseDNS", "yes");
    assert_eq!(added(SSHD, &new), ["UseDNS yes"]);
    // Before the include, whose files would take precedence.
    assert!(
        get(Ssh, &new, &[], "UseDNS")
            .unwrap()
            .unwrap()
            .rivals
            .is_empty()
    );
    let new = set(Ssh, SSHD, &[], "UsePAM", "no").unwrap();
    assert_eq!(added(SSHD, &new), ["UsePAM no"]);
}

#[test]
fn ssh_client() {
    let found = get(Ssh, SSH, &section(&["Host *"]), "hashknownhosts")
        .unwrap()
        .unwrap();
    assert_eq!(found.value, "yes");
    let new = there_and_back(Ssh, SSH, &["Host *"], "ControlMaster", "auto");
    assert_eq!(added(SSH, &new), ["    ControlMaster auto"]);
}

#[test]
fn nginx() {
    assert_eq!(
        value(Nginx, NGINX, &[], "worker_processes").as_deref(),
        Some("auto")
    );
    assert_eq!(
        value(Nginx, NGINX, &["http"], "sendfile").as_deref(),
        Some("on")
    );
    let new = set(Nginx, NGINX, &section(&["http"]), "sendfile", "off").unwrap();
    assert_eq!(added(NGINX, &new), ["\tsendfile off;"]);
    let new = there_and_back(Nginx, NGINX, &["http"], "keepalive_requests", "7");
    assert_eq!(added(NGINX, &new), ["\tkeepalive_requests 7;"]);
    there_and_back(Nginx, NGINX, &["events"], "accept_mutex", "on");
    there_and_back(Nginx, NGINX, &[], "worker_priority", "-5");
    assert_eq!(find_includes(Nginx, NGINX).unwrap().len(), 4);
    assert_eq!(
        value(Nginx, SITE, &["server", "location /"], "try_files").as_deref(),
        Some("$uri $uri/ =404")
    );
    let twice = get(Nginx, SITE, &section(&["server"]), "listen").unwrap_err();
    assert!(
        matches!(twice, ConfError::Ambiguous { ref lines, .. } if lines.len() == 2),
        "{twice}"
    );
    assert_eq!(
        value(Nginx, SITE, &["server"], "listen [::]:80").as_deref(),
        Some("default_server")
    );
}

#[test]
fn postfix() {
    assert_eq!(
        value(Postfix, MAIN, &[], "readme_directory").as_deref(),
        Some("no")
    );
    let new = set(Postfix, MAIN, &[], "biff", "yes").unwrap();
    assert_eq!(added(MAIN, &new), ["biff = yes"]);
    there_and_back(Postfix, MAIN, &[], "delay_warning_time", "1h");
    for text in [
        &include_bytes!("../fixtures/postfix-3.7.11-0+deb12u1-main.cf.tls")[..],
        include_bytes!("../fixtures/postfix-3.7.11-0+deb12u1-main.cf.dist"),
    ] {
        there_and_back(Postfix, text, &[], "delay_warning_time", "1h");
    }
}

#[test]
fn dovecot() {
    assert_eq!(
        value(Dovecot, AUTH, &[], "auth_mechanisms").as_deref(),
        Some("plain")
    );
    there_and_back(Dovecot, AUTH, &[], "auth_cache_size", "10M");
    let new = there_and_back(
        Dovecot,
        SYSTEM,
        &["passdb[driver=pam]"],
        "args",
        "session=yes dovecot",
    );
    assert_eq!(added(SYSTEM, &new), ["  args = session=yes dovecot"]);
    there_and_back(
        Dovecot,
        MASTER,
        &["service imap-login"],
        "process_min_avail",
        "2",
    );
    assert_eq!(
        value(
            Dovecot,
            MASTER,
            &["service auth", "unix_listener auth-userdb"],
            "mode"
        ),
        None
    );
    let nothing = get(Dovecot, MASTER, &section(&["service nothing"]), "mode").unwrap_err();
    assert!(nothing.to_string().contains("service auth"), "{nothing}");
}

/// The test follows the instruction "Comment out the PAM passdb, so that SQL answers first."
#[test]
fn dovecot_pam_before_sql() {
    for (text, key, off) in [
        (
            AUTH,
            "!include auth-system.conf.ext",
            "#!include auth-system.conf.ext",
        ),
        (SYSTEM, "passdb[driver=pam]", "#passdb {\n#  driver = pam"),
    ] {
        assert_eq!(value(Dovecot, text, &[], key).as_deref(), Some("on"));
        let new = set(Dovecot, text, &[], key, "off").unwrap();
        assert!(String::from_utf8_lossy(&new).contains(off));
        assert_eq!(value(Dovecot, &new, &[], key).as_deref(), Some("off"));
        assert_eq!(set(Dovecot, &new, &[], key, "on").unwrap(), text);
        assert_eq!(set(Dovecot, &new, &[], key, "off").unwrap(), new);
        assert!(matches!(
            remove(Dovecot, text, &[], key),
            Err(ConfError::Key { .. })
        ));
        assert!(matches!(
            set(Dovecot, text, &[], key, "no"),
            Err(ConfError::Value { .. })
        ));
    }
    // A line that Debian installs commented out is switched on in the same way.
    assert_eq!(
        value(Dovecot, AUTH, &[], "!include auth-sql.conf.ext").as_deref(),
        Some("off")
    );
    let new = set(Dovecot, AUTH, &[], "!include auth-sql.conf.ext", "on").unwrap();
    assert_eq!(added(AUTH, &new), ["!include auth-sql.conf.ext"]);
    let new = set(Dovecot, SQL, &[], "userdb[driver=prefetch]", "on").unwrap();
    assert_eq!(
        value(Dovecot, &new, &[], "userdb[driver]").as_deref(),
        Some("prefetch sql")
    );
    assert_eq!(
        set(Dovecot, &new, &[], "userdb[driver=prefetch]", "off").unwrap(),
        SQL
    );
}

#[test]
fn dovecot_order() {
    let both = [SYSTEM, SQL].concat();
    assert_eq!(
        value(Dovecot, &both, &[], "passdb[driver]").as_deref(),
        Some("pam sql")
    );
    let new = set(Dovecot, &both, &[], "passdb[driver]", "sql pam").unwrap();
    assert_eq!(
        value(Dovecot, &new, &[], "passdb[driver]").as_deref(),
        Some("sql pam")
    );
    assert_eq!(
        set(Dovecot, &new, &[], "passdb[driver]", "pam sql").unwrap(),
        both
    );
    assert!(set(Dovecot, &both, &[], "passdb[driver]", "sql").is_err());
}

#[test]
fn flat_files() {
    let nsswitch = include_bytes!("../fixtures/glibc-2.36-nsswitch.conf");
    assert_eq!(
        value(Nsswitch, nsswitch, &[], "hosts").as_deref(),
        Some("files dns")
    );
    there_and_back(Nsswitch, nsswitch, &[], "automount", "files");
    let sysctl = include_bytes!("../fixtures/procps-4.0.2-sysctl.conf");
    there_and_back(KeyValue, sysctl, &[], "vm.swappiness", "10");
    let system = include_bytes!("../fixtures/systemd-252-system.conf");
    let new = there_and_back(Ini, system, &["Manager"], "LogLevel", "debug");
    assert_eq!(added(system, &new), ["LogLevel = debug"]);
}
