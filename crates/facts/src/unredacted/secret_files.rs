//! Finds the files that contain passwords or keys: files with known names, and files that settings of other files name.

use super::file_modes::UNITS;
use super::lines_of_files::{Line, exists, files, read, read_readable};
use crate::gather::Gather;
use assay_host::FileKind;
use std::collections::BTreeSet;
use std::path::Path;

const SECRETS: [&str; 29] = [
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/krb5.keytab",
    "/etc/ipsec.secrets",
    "/etc/ppp/chap-secrets",
    "/etc/ppp/pap-secrets",
    "/etc/mysql/debian.cnf",
    "/etc/bind/rndc.key",
    "/etc/nut/upsd.users",
    "/etc/postfix/sasl_passwd",
    "/etc/munge/munge.key",
    "/etc/pam_ldap.secret",
    "/etc/libnss-ldap.secret",
    "/etc/dovecot/private/dovecot.key",
    "/var/lib/samba/private/passdb.tdb",
    "/etc/sssd/sssd.conf",
    "/etc/rndc.key",
    "/etc/krb5kdc/stash",
    "/etc/kubernetes/admin.conf",
    "/etc/rancher/k3s/k3s.yaml",
    "/etc/rsyncd.secrets",
    "/etc/pgbouncer/userlist.txt",
    "/etc/exim4/passwd.client",
    "/root/.my.cnf",
    "/etc/exim4/passwd",
    "/etc/fetchmailrc",
    "/etc/mail/secrets",
    "/etc/ssmtp/ssmtp.conf",
];
/// Directories that contain secrets, each with the file name ending of the secrets.
const SECRET_DIRS: [(&str, &str); 7] = [
    ("/etc/ssh", "_key"),
    ("/etc/wireguard", ".conf"),
    ("/etc/openvpn", ".key"),
    ("/etc/openvpn/server", ".key"),
    ("/etc/openvpn/client", ".key"),
    ("/etc/NetworkManager/system-connections", ""),
    ("/etc/dkimkeys", ".private"),
];
/// Files, or directories with files, that contain a secret only where a line sets one of the keywords. Each has the
/// ending of the names of files in a directory, and the keywords in lower case; `*` is any line. Packages install most
/// of these files readable by everybody.
const KEYED: [(&str, &str, &[&str]); 37] = [
    ("/etc/bind/named.conf", "", &["secret"]),
    ("/etc/bind/named.conf.local", "", &["secret"]),
    ("/etc/nslcd.conf", "", &["bindpw", "rootpwmodpw"]),
    ("/etc/msmtprc", "", &["password"]),
    ("/etc/zabbix/zabbix_server.conf", "", &["dbpassword"]),
    ("/etc/zabbix/zabbix_proxy.conf", "", &["dbpassword"]),
    ("/etc/network/interfaces", "", &["wpa-psk", "wireless-key"]),
    ("/etc/knot/knot.conf", "", &["secret"]),
    (
        "/etc/netplan",
        ".yaml",
        &["password", "private", "private-key"],
    ),
    (
        "/etc/systemd/network",
        ".netdev",
        &["privatekey", "presharedkey"],
    ),
    (
        "/etc/wpa_supplicant",
        ".conf",
        &["psk", "password", "wep_key0"],
    ),
    ("/etc/hostapd", ".conf", &["wpa_passphrase", "wpa_psk"]),
    (
        "/etc/network/interfaces.d",
        "",
        &["wpa-psk", "wireless-key"],
    ),
    ("/etc/sssd/conf.d", ".conf", &["ldap_default_authtok"]),
    ("/etc/bind", ".key", &["secret"]),
    (
        "/etc/powerdns/pdns.d",
        ".conf",
        &["api-key", "gmysql-password", "gpgsql-password"],
    ),
    ("/etc/mysql/conf.d", ".cnf", &["password"]),
    ("/etc/mysql/mariadb.conf.d", ".cnf", &["password"]),
    ("/etc/my.cnf.d", ".cnf", &["password"]),
    ("/etc/swanctl/conf.d", ".conf", &["secret"]),
    (
        "/etc/iscsi/iscsid.conf",
        "",
        &[
            "node.session.auth.password",
            "discovery.sendtargets.auth.password",
        ],
    ),
    ("/etc/tgt/conf.d", "", &["incominguser"]),
    ("/etc/borgmatic/config.yaml", "", &["encryption_passphrase"]),
    ("/etc/borgmatic.d", "", &["encryption_passphrase"]),
    ("/etc/restic", "", &["restic_password"]),
    ("/etc/bacula", "", &["password"]),
    ("/etc/bareos", "", &["password"]),
    ("/etc/nut/upsmon.conf", "", &["monitor"]),
    ("/etc/ddclient.conf", "", &["password"]),
    ("/etc/ldap.conf", "", &["bindpw"]),
    ("/etc/apt/auth.conf", "", &["password"]),
    ("/etc/apt/auth.conf.d", "", &["password"]),
    ("/etc/davfs2/secrets", "", &["*"]),
    ("/etc/crontab", "", &["borg_passphrase"]),
    (
        "/etc/cron.d",
        "",
        &["borg_passphrase", "restic_password", "pgpassword"],
    ),
    (
        "/etc/cron.daily",
        "",
        &["borg_passphrase", "restic_password", "pgpassword"],
    ),
    ("/etc/cron.weekly", "", &["borg_passphrase"]),
];
/// Ends of the names of variables that contain secrets.
const VARIABLES: [&str; 6] = [
    "PASSWORD",
    "PASSPHRASE",
    "SECRET",
    "SECRET_KEY",
    "API_KEY",
    "TOKEN",
];

/// Returns the paths of all files that contain passwords or keys. Some of them may not exist.
pub(super) fn list(g: &mut Gather<'_>) -> Vec<String> {
    let mut secrets: Vec<String> = SECRETS.map(str::to_owned).to_vec();
    for (dir, end) in SECRET_DIRS {
        secrets.extend(files(g, "secret_file", dir, end));
    }
    secrets.extend(named_secrets(g));
    secrets.extend(secrets_of_mail(g));
    secrets.extend(keyed_secrets(g));
    secrets.extend(secrets_of_units(g));
    secrets.sort();
    secrets.dedup();
    secrets
}

/// Returns the files with passwords and keys that fstab, crypttab, the rsync daemon and MongoDB name (mount.cifs(8),
/// crypttab(5), rsyncd.conf(5)).
fn named_secrets(g: &mut Gather<'_>) -> Vec<String> {
    let mut all = Vec::new();
    for (path, key) in [
        ("/etc/rsyncd.conf", "secretsfile"),
        ("/etc/mongod.conf", "keyfile"),
    ] {
        for line in read(g, "secret_file", path) {
            let named = line.text.split_once(['=', ':']).filter(|(name, _)| {
                let name: String = name.split_whitespace().collect();
                name.eq_ignore_ascii_case(key)
            });
            all.extend(named.map(|(_, path)| path.trim().trim_matches(['"', '\'']).to_owned()));
        }
    }
    for line in read(g, "secret_file", "/etc/fstab") {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        if let [source, _, "cifs" | "smb3", options, ..] = words[..]
            && !source.starts_with('#')
        {
            let named = options.split(',').filter_map(|option| {
                let (name, path) = option.split_once('=')?;
                ["credentials", "cred"]
                    .contains(&name)
                    .then(|| path.to_owned())
            });
            all.extend(named);
        }
        // A swap file contains the memory of all programs.
        if let [source, _, "swap", ..] = words[..] {
            all.push(source.to_owned());
        }
    }
    all.retain(|path| !path.starts_with("/dev/"));
    for line in read(g, "secret_file", "/etc/crypttab") {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        if let [name, _, key, ..] = words[..]
            && !name.starts_with('#')
            && !key.starts_with("/dev/")
        {
            // A key on another disk follows the colon.
            all.extend(key.split(':').next().map(str::to_owned));
        }
    }
    all.retain(|path| path.starts_with('/'));
    all
}

/// Returns the files with passwords and keys that mail servers and certbot name in their configuration.
fn secrets_of_mail(g: &mut Gather<'_>) -> Vec<String> {
    let mut all = Vec::new();
    let mut paths = vec![
        "/etc/postfix/main.cf".to_owned(),
        "/etc/dovecot/dovecot.conf".to_owned(),
        "/etc/opendkim.conf".to_owned(),
        "/etc/opendkim/KeyTable".to_owned(),
        "/etc/opendkim/key.table".to_owned(),
        "/etc/smtpd.conf".to_owned(),
    ];
    paths.extend(files(g, "secret_file", "/etc/dovecot/conf.d", ""));
    paths.extend(files(g, "secret_file", "/etc/letsencrypt/renewal", ".conf"));
    let names = [
        "smtp_sasl_password_maps",
        "args",
        "passwd_file_path",
        "keyfile",
        "_credentials",
        "secrets",
    ];
    for path in paths {
        let keys = path.contains("opendkim/");
        for line in read_readable(g, &path) {
            let text = line
                .text
                .split(" #")
                .next()
                .unwrap_or_default()
                .trim()
                .to_owned();
            let low = text.to_ascii_lowercase();
            if low.starts_with('#') || !(keys || names.iter().any(|name| low.contains(name))) {
                continue;
            }
            // A key of KeyTable follows two colons; a map has a type before the path.
            let words =
                text.split(|letter: char| letter.is_whitespace() || "=:,<>".contains(letter));
            let ends = [
                "passwd", "users", "password", "ini", "private", "pem", "ext", "secrets", "key",
            ];
            let secret = |word: &&str| {
                let bare = word.trim_end_matches('/');
                word.starts_with("/etc/") && ends.iter().any(|end| bare.ends_with(end) || keys)
            };
            all.extend(words.filter(secret).map(str::to_owned));
        }
    }
    all.retain(|path| path != "/etc/passwd" && !path.contains("deny"));
    // A file of a database has a password only in its line `connect`.
    let connects = |path: &String| {
        let text = g.host.read_text(Path::new(path)).unwrap_or_default();
        let mut lines = text.lines().map(str::trim_start);
        lines.any(|line| line.starts_with("connect") && line.contains("password="))
    };
    all.retain(|path| !path.ends_with(".ext") || connects(path));
    all
}

/// Returns the files of [`KEYED`] in which a line sets a secret.
fn keyed_secrets(g: &mut Gather<'_>) -> Vec<String> {
    let mut all = Vec::new();
    for (path, end, keys) in KEYED {
        if !exists(g, path) {
            continue;
        }
        let kind = g.host.stat(Path::new(path)).map(|stat| stat.kind);
        let paths = match kind {
            Ok(FileKind::Directory) => files(g, "secret_file", path, end),
            _ => vec![path.to_owned()],
        };
        for path in paths {
            let lines = read(g, "secret_file", &path);
            let sets_secret = |line: &Line| keys.iter().any(|key| is_keyed(&line.text, key));
            if lines.iter().any(sets_secret) {
                all.push(path);
            }
        }
    }
    all
}

/// Returns whether a line sets a key, which is in lower case, to a secret of its own: not to a variable, a path, or
/// nothing, with which the program asks for it. The key `*` means any line.
fn is_keyed(text: &str, key: &str) -> bool {
    let text = text.trim().trim_start_matches("- ");
    if text.is_empty() || text.starts_with(['#', ';']) {
        return false;
    }
    if key == "*" {
        return true;
    }
    let text = text.strip_prefix("export ").unwrap_or(text);
    let text = text.trim_start_matches(['"', '\'']).to_ascii_lowercase();
    let Some(rest) = text.strip_prefix(key) else {
        return false;
    };
    let separates = |letter: char| letter.is_whitespace() || "=:\"'".contains(letter);
    let value = rest.trim_start_matches(separates);
    rest.starts_with(separates)
        && !value.is_empty()
        && !value.starts_with(['$', '{', '/', '#', '@'])
}

/// Returns the files with variables of units that contain a secret (systemd.exec(5), EnvironmentFile), and the files of
/// passwords that these variables name.
fn secrets_of_units(g: &mut Gather<'_>) -> Vec<String> {
    let mut units = files(g, "secret_file", UNITS, ".service");
    for dir in files(g, "secret_file", UNITS, ".service.d") {
        units.extend(files(g, "secret_file", &dir, ".conf"));
    }
    let (mut named, mut all) = (BTreeSet::new(), Vec::new());
    for path in units {
        for line in read(g, "secret_file", &path) {
            let text = line.text.trim();
            if let Some(path) = text.strip_prefix("EnvironmentFile=") {
                named.insert(path.trim_start_matches('-').trim().to_owned());
            }
            all.extend(password_file(text));
        }
    }
    for path in named.into_iter().filter(|path| path.starts_with("/etc/")) {
        let lines = read(g, "secret_file", &path);
        let secret = |line: &Line| {
            let (name, _) = line.text.split_once('=').unwrap_or_default();
            let name = name.trim().trim_start_matches("export ");
            let of_secret = VARIABLES.iter().any(|end| name.ends_with(end));
            of_secret && is_keyed(&line.text, &name.to_ascii_lowercase())
        };
        if lines.iter().any(secret) {
            all.push(path);
        }
        all.extend(lines.iter().filter_map(|line| password_file(&line.text)));
    }
    all
}

/// Returns the path that a variable or an option of a backup program names as the file of its password.
fn password_file(text: &str) -> Option<String> {
    if text.trim_start().starts_with(['#', ';']) {
        return None;
    }
    let names = [
        "RESTIC_PASSWORD_FILE=",
        "--password-file=",
        "--password-file ",
    ];
    let rest = names
        .iter()
        .find_map(|name| text.split_once(name).map(|(_, rest)| rest))?;
    let path = rest.trim_start_matches(['"', '\'']);
    let path = path.split(['"', '\'', ' ']).next().unwrap_or_default();
    path.starts_with('/').then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    #[test]
    fn secrets_that_mail_servers_name() {
        let host = Recorded::new()
            .file(
                "/etc/postfix/main.cf",
                "smtp_sasl_password_maps = texthash:/etc/postfix/sasl/relay_passwd\n#args = /etc/old/passwd\n",
            )
            .file(
                "/etc/dovecot/conf.d/auth-passwdfile.conf.ext",
                "passdb {\n args = scheme=CRYPT username_format=%u /etc/dovecot/users\n}\n",
            )
            .file(
                "/etc/opendkim/KeyTable",
                "m._domainkey.a.example a.example:m:/etc/dkim/a.private\n",
            )
            .file(
                "/etc/letsencrypt/renewal/a.conf",
                "dns_cloudflare_credentials = /etc/letsencrypt/cloudflare.ini\n",
            );
        let mut g = Gather::new(&host);
        let mut all = secrets_of_mail(&mut g);
        all.sort();
        let expected = [
            "/etc/dkim/a.private",
            "/etc/dovecot/users",
            "/etc/letsencrypt/cloudflare.ini",
            "/etc/postfix/sasl/relay_passwd",
        ];
        assert_eq!(all, expected);
    }

    #[test]
    fn lines_with_passwords() {
        for (text, key, keyed) in [
            ("RESTIC_PASSWORD=abc", "RESTIC_PASSWORD", true),
            ("export RESTIC_PASSWORD=abc", "RESTIC_PASSWORD", true),
            ("RESTIC_PASSWORD_FILE=/root/p", "RESTIC_PASSWORD", false),
            ("RESTIC_PASSWORD=${P}", "RESTIC_PASSWORD", false),
            (
                "#node.session.auth.password = a",
                "node.session.auth.password",
                false,
            ),
            (
                "encryption_passphrase: \"a b\"",
                "encryption_passphrase",
                true,
            ),
            ("  Password = \"@PASS@\"", "Password", false),
            ("bindpw secret", "bindpw", true),
        ] {
            assert_eq!(is_keyed(text, &key.to_ascii_lowercase()), keyed, "{text}");
        }
        assert_eq!(
            password_file("ExecStart=restic --password-file /etc/restic/p backup /"),
            Some("/etc/restic/p".to_owned())
        );
    }
}
