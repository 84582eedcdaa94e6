//! Remedies of files that `--fix` does not edit. Each is applied as its page describes, on a copy of a tree on which
//! the rule has a finding. Afterwards this finding must be gone, there must be no other finding, and the installed
//! program must accept the file.
#![allow(
    clippy::disallowed_methods,
    reason = "copies trees and runs the programs' own checks"
)]

mod access;
mod daemons;
mod misuse;
mod quiet_faults;
mod servers;
mod settings;
mod system;
mod traps;
mod trust;

use assay_advice::{Catalogue, findings};
use assay_facts::{CollectOptions, collect};
use assay_host::Root;
use assay_model::finding::Certainty;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// A remedy, as (page, tree below `fires`, file, replaced text, replacement).
pub(crate) type Remedy = (
    &'static str,
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

const SSHD: &str = "etc/ssh/sshd_config";
const SSH: &str = "etc/ssh/ssh_config";
const SHOP: &str = "etc/nginx/sites-enabled/shop";
const SITE: &str = "etc/apache2/sites-enabled/shop.conf";
const HAPROXY: &str = "etc/haproxy/haproxy.cfg";
const EXPORTS: &str = "etc/exports";
const ACCESS: &str = "etc/postgresql/15/main/pg_hba.conf";
const MARIADB: &str = "etc/mysql/mariadb.conf.d/90-own.cnf";

const REMEDIES: [Remedy; 49] = [
    (
        "mariadb-tls-1-0",
        "old",
        MARIADB,
        &[("TLSv1.0,TLSv1.2", "TLSv1.2,TLSv1.3")],
    ),
    (
        "postgresql-tls-1-0",
        "old",
        "etc/postgresql/15/main/postgresql.conf",
        &[("ssl_min_protocol_version = 'TLSv1'\n", "")],
    ),
    (
        "sshd-user-environment",
        "yes",
        SSHD,
        &[("PermitUserEnvironment yes", "PermitUserEnvironment no")],
    ),
    (
        "sshd-login-grace-none",
        "workaround",
        SSHD,
        &[("LoginGraceTime 0\n", "")],
    ),
    (
        "sshd-max-auth-tries",
        "hundred",
        SSHD,
        &[("MaxAuthTries 100\n", "")],
    ),
    ("sshd-log-quiet", "quiet", SSHD, &[("LogLevel QUIET\n", "")]),
    (
        "sshd-x11-all-addresses",
        "no",
        SSHD,
        &[("X11UseLocalhost no\n", "")],
    ),
    (
        "sshd-gateway-ports",
        "yes",
        SSHD,
        &[("GatewayPorts yes", "GatewayPorts clientspecified")],
    ),
    (
        "ssh-agent-to-all",
        "all",
        SSH,
        &[("    ForwardAgent yes\n", "")],
    ),
    (
        "ssh-host-keys-unchecked",
        "no",
        SSH,
        &[(
            "StrictHostKeyChecking no",
            "StrictHostKeyChecking accept-new",
        )],
    ),
    (
        "nginx-alias-traversal",
        "static",
        SHOP,
        &[("location /static {", "location /static/ {")],
    ),
    (
        "nginx-redirect-splitting",
        "https",
        SHOP,
        &[("$uri", "$request_uri")],
    ),
    (
        "nginx-status-open",
        "open",
        SHOP,
        &[(
            "stub_status;",
            "stub_status; allow 127.0.0.1; allow ::1; deny all;",
        )],
    ),
    (
        "nginx-headers-lost",
        "hsts",
        SHOP,
        &[(
            "Cache-Control no-store;",
            "Cache-Control no-store; add_header Strict-Transport-Security \"max-age=31536000\" always;",
        )],
    ),
    (
        "nginx-root-system",
        "slash",
        SHOP,
        &[("root /;", "root /srv/files;")],
    ),
    (
        "nginx-php-unguarded",
        "plain",
        SHOP,
        &[("fastcgi_pass", "try_files $uri =404; fastcgi_pass")],
    ),
    (
        "nginx-tls-1-0",
        "server",
        SHOP,
        &[("TLSv1 TLSv1.1 TLSv1.2", "TLSv1.2 TLSv1.3")],
    ),
    (
        "nginx-autoindex",
        "on",
        SHOP,
        &[("autoindex on", "autoindex off")],
    ),
    (
        "nginx-weak-ciphers",
        "3des",
        SHOP,
        &[(
            "    ssl_ciphers ECDHE-RSA-AES128-GCM-SHA256:DES-CBC3-SHA;\n",
            "",
        )],
    ),
    (
        "apache-status-open",
        "status",
        SITE,
        &[("Require all granted", "Require local")],
    ),
    (
        "apache-listing",
        "on",
        SITE,
        &[("Options +Indexes", "Options -Indexes")],
    ),
    (
        "apache-root-granted",
        "granted",
        SITE,
        &[("Require all granted", "Require all denied")],
    ),
    (
        "web-server-tls-1-0",
        "named",
        SITE,
        &[(
            "SSLProtocol TLSv1 TLSv1.1 TLSv1.2",
            "SSLProtocol -all +TLSv1.2 +TLSv1.3",
        )],
    ),
    (
        "web-server-weak-ciphers",
        "3des",
        SITE,
        &[(
            "    SSLCipherSuite ECDHE-RSA-AES128-GCM-SHA256:DES-CBC3-SHA\n",
            "",
        )],
    ),
    (
        "haproxy-tls-1-0",
        "bind",
        HAPROXY,
        &[("ssl-min-ver TLSv1.0", "ssl-min-ver TLSv1.2")],
    ),
    (
        "haproxy-statistics-open",
        "open",
        HAPROXY,
        &[("bind :9000", "bind 127.0.0.1:9000")],
    ),
    (
        "haproxy-socket-open",
        "all",
        HAPROXY,
        &[("mode 666", "mode 660")],
    ),
    (
        "nfs-root-kept",
        "network",
        EXPORTS,
        &[("rw,no_root_squash", "rw")],
    ),
    (
        "nfs-world-writable",
        "star",
        EXPORTS,
        &[("*(rw", "192.0.2.0/24(rw")],
    ),
    (
        "nfs-blank-before-options",
        "blank",
        EXPORTS,
        &[("org (rw)", "org(rw)")],
    ),
    (
        "postgresql-trust-remote",
        "world",
        ACCESS,
        &[(
            "host all all 0.0.0.0/0 trust",
            "hostssl all all 0.0.0.0/0 scram-sha-256",
        )],
    ),
    (
        "postgresql-trust-local",
        "socket",
        ACCESS,
        &[("local all all trust", "local all all peer")],
    ),
    (
        "postgresql-cleartext-password",
        "host",
        ACCESS,
        &[(
            "host all all 192.0.2.0/24 password",
            "hostssl all all 192.0.2.0/24 scram-sha-256",
        )],
    ),
    (
        "postgresql-world-without-tls",
        "md5",
        ACCESS,
        &[("host all all 0.0.0.0/0", "hostssl all all 0.0.0.0/0")],
    ),
    (
        "postgresql-autovacuum-off",
        "off",
        "etc/postgresql/15/main/postgresql.conf",
        &[("autovacuum = off\n", "")],
    ),
    (
        "mariadb-skip-grant-tables",
        "left",
        MARIADB,
        &[("skip-grant-tables\n", "")],
    ),
    (
        "mariadb-remote-without-tls",
        "all",
        MARIADB,
        &[("0.0.0.0", "127.0.0.1")],
    ),
    (
        "postfix-cleartext-login",
        "submission",
        "etc/postfix/main.cf",
        &[(
            "compatibility_level",
            "smtpd_tls_auth_only = yes\ncompatibility_level",
        )],
    ),
    (
        "smb-guest-writable",
        "public",
        "etc/samba/smb.conf",
        &[("read only = no", "read only = yes")],
    ),
    (
        "account-twin-of-root",
        "toor",
        "etc/passwd",
        &[("toor:x:0:0::/root:/bin/bash\n", "")],
    ),
    (
        "sudo-without-password",
        "all",
        "etc/sudoers",
        &[("NOPASSWD: ALL", "NOPASSWD: /usr/bin/rsync")],
    ),
    (
        "docker-open",
        "file",
        "etc/docker/daemon.json",
        &[(", \"tcp://0.0.0.0:2375\"", "")],
    ),
    (
        "network-mount-waits",
        "nfs",
        "etc/fstab",
        &[("nfs defaults", "nfs defaults,nofail")],
    ),
    (
        "nfs-soft-writes",
        "soft",
        "etc/fstab",
        &[("nfs soft,", "nfs hard,")],
    ),
    (
        "cifs-1-mounted",
        "one",
        "etc/fstab",
        &[(",vers=1.0", ",vers=3.0")],
    ),
    (
        "fstab-password",
        "password",
        "etc/fstab",
        &[("username=me,password=hunter2", "credentials=/root/.smb")],
    ),
    (
        "nginx-workers-root",
        "root",
        "etc/nginx/nginx.conf",
        &[("user root", "user www-data")],
    ),
    (
        "postfix-xclient-open",
        "world",
        "etc/postfix/main.cf",
        &[("= 0.0.0.0/0", "= 10.0.0.2")],
    ),
    (
        "apache-insecure-renegotiation",
        "on",
        "etc/apache2/apache2.conf",
        &[("SSLInsecureRenegotiation on\n", "")],
    ),
];

/// Returns the rules that have a finding on a tree.
fn found(catalogue: &Catalogue, tree: &Path) -> BTreeSet<String> {
    let root = Root::open(tree).unwrap();
    let options = CollectOptions {
        services: true,
        accounts: true,
        ..CollectOptions::default()
    };
    let checked = findings(catalogue.all(), &collect(&root, &options));
    let violated = checked
        .findings
        .into_iter()
        .filter(|one| one.certainty == Certainty::Violated);
    violated.map(|one| one.rule).collect()
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        match path.is_dir() {
            true => copy(&path, &target),
            false => drop(std::fs::copy(&path, &target).unwrap()),
        }
    }
}

/// Returns the program's error message about its file. `None` if there is no error, if the program is not installed, or
/// if it cannot validate a file at another path.
fn refusal(tree: &Path, file: &str) -> Option<String> {
    let path = tree.join(file);
    let path = path.to_str().unwrap();
    let key = tree.join("host_key");
    let argv: Vec<&str> = match file {
        SSHD => {
            let key = key.to_str().unwrap();
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f", key])
                .status();
            if !made.is_ok_and(|status| status.success()) {
                return None;
            }
            vec!["/usr/sbin/sshd", "-t", "-f", path, "-h", key]
        }
        SSH => vec!["ssh", "-G", "-F", path, "example.org"],
        HAPROXY => vec!["/usr/sbin/haproxy", "-c", "-f", path],
        "etc/samba/smb.conf" => vec!["testparm", "-s", path],
        "etc/sudoers" => vec!["visudo", "-c", "-f", path],
        _ => return None,
    };
    let output = Command::new(argv[0]).args(&argv[1..]).output().ok()?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    (!output.status.success()).then_some(text)
}

#[test]
fn remedies_clear_their_findings_and_open_none() {
    let catalogue = Catalogue::builtin().unwrap();
    let advice = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../advice");
    let mut faults: Vec<String> = Vec::new();
    let all = REMEDIES
        .iter()
        .chain(access::REMEDIES)
        .chain(servers::REMEDIES)
        .chain(traps::REMEDIES)
        .chain(trust::REMEDIES)
        .chain(daemons::REMEDIES)
        .chain(misuse::REMEDIES)
        .chain(quiet_faults::REMEDIES)
        .chain(settings::REMEDIES)
        .chain(system::REMEDIES);
    for &(id, tree, file, replaced) in all {
        let page = catalogue.get(id).unwrap();
        let dir = tempfile::tempdir().unwrap();
        copy(
            &advice.join(&page.domain).join(id).join("fires").join(tree),
            dir.path(),
        );
        let before = found(&catalogue, dir.path());
        assert!(before.contains(id), "{id}: {before:?}");
        let path = dir.path().join(file);
        let mut text = std::fs::read_to_string(&path).unwrap();
        for (old, new) in replaced {
            assert!(text.contains(old), "{id}: {old}");
            text = text.replacen(old, new, 1);
        }
        std::fs::write(&path, text).unwrap();
        let after = found(&catalogue, dir.path());
        if after.contains(id) {
            faults.push(format!("{id}: its finding is still there"));
        }
        let came: Vec<&String> = after.difference(&before).collect();
        if !came.is_empty() {
            faults.push(format!("{id}: {came:?} came"));
        }
        faults.extend(refusal(dir.path(), file).map(|why| format!("{id}: {why}")));
    }
    assert!(faults.is_empty(), "{faults:#?}");
}
