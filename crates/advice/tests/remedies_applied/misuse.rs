//! Remedies of settings against which their own manuals warn; `main` executes them.

use crate::Remedy;

pub(crate) const REMEDIES: &[Remedy] = &[
    (
        "nginx-return-before-deny",
        "text",
        "etc/nginx/nginx.conf",
        &[("return 200 \"internal\";", "root /srv/internal;")],
    ),
    (
        "nginx-allow-without-deny",
        "admin",
        "etc/nginx/nginx.conf",
        &[(
            "allow 10.0.0.0/8;",
            "allow 10.0.0.0/8;\n            deny all;",
        )],
    ),
    (
        "nginx-origin-reflected",
        "all",
        "etc/nginx/nginx.conf",
        &[("$http_origin", "https://b.example")],
    ),
    (
        "nginx-files-below-connections",
        "below",
        "etc/nginx/nginx.conf",
        &[("512", "8192")],
    ),
    (
        "nginx-rewrite-without-scheme",
        "host",
        "etc/nginx/nginx.conf",
        &[(
            "rewrite ^ www.example.com$request_uri? permanent;",
            "return 301 https://www.example.com$request_uri;",
        )],
    ),
    (
        "nginx-if-beside-try-files",
        "header",
        "etc/nginx/nginx.conf",
        &[(
            "            if ($http_user_agent ~ MSIE) {\n                add_header X-Old yes;\n            }\n",
            "",
        )],
    ),
    (
        "apache-limit-leaves-methods",
        "password",
        "etc/apache2/apache2.conf",
        &[("  <Limit GET POST>\n", ""), ("  </Limit>\n", "")],
    ),
    (
        "apache-home-of-root",
        "dot",
        "etc/apache2/apache2.conf",
        &[("UserDir ./", "UserDir public_html\nUserDir disabled root")],
    ),
    (
        "apache-trace-on",
        "on",
        "etc/apache2/apache2.conf",
        &[("TraceEnable On", "TraceEnable Off")],
    ),
    (
        "lighttpd-listing",
        "on",
        "etc/lighttpd/lighttpd.conf",
        &[("\"enable\"", "\"disable\"")],
    ),
    (
        "postfix-sender-before-relay",
        "ok",
        "etc/postfix/main.cf",
        &[(
            "check_sender_access hash:/etc/postfix/senders, reject_unauth_destination",
            "reject_unauth_destination, check_sender_access hash:/etc/postfix/senders",
        )],
    ),
    (
        "dovecot-passwords-logged",
        "debug",
        "etc/dovecot/dovecot.conf",
        &[("auth_debug_passwords = yes\n", "")],
    ),
    (
        "dovecot-passwords-logged",
        "verbose",
        "etc/dovecot/dovecot.conf",
        &[("auth_verbose_passwords = plain\n", "")],
    ),
    (
        "dovecot-without-password",
        "static",
        "etc/dovecot/dovecot.conf",
        &[("driver = static\n  args = nopassword=y", "driver = pam")],
    ),
    (
        "mariadb-binlog-unsynced",
        "zero",
        "etc/mysql/my.cnf",
        &[("sync_binlog = 0", "sync_binlog = 1")],
    ),
    (
        "mariadb-binlogs-forever",
        "zero",
        "etc/mysql/my.cnf",
        &[("expire_logs_days = 0", "expire_logs_days = 10")],
    ),
    (
        "mariadb-old-passwords",
        "on",
        "etc/mysql/my.cnf",
        &[("old_passwords = 1\n", "")],
    ),
    (
        "mariadb-files-everywhere",
        "empty",
        "etc/mysql/my.cnf",
        &[(
            "secure_file_priv =",
            "secure_file_priv = /var/lib/mysql-files",
        )],
    ),
    (
        "mariadb-pool-above-memory",
        "pool",
        "etc/mysql/my.cnf",
        &[("64G", "4G")],
    ),
    (
        "postgresql-name-of-client",
        "host",
        "etc/postgresql/15/main/pg_hba.conf",
        &[("ident", "scram-sha-256")],
    ),
    (
        "postgresql-archive-nothing",
        "true",
        "etc/postgresql/15/main/postgresql.conf",
        &[(
            "'/bin/true'",
            "'test ! -f /srv/wal/%f && cp %p /srv/wal/%f'",
        )],
    ),
    (
        "postgresql-old-hash",
        "md5",
        "etc/postgresql/15/main/postgresql.conf",
        &[("password_encryption = md5\n", "")],
    ),
    (
        "account-line-of-nis",
        "plus",
        "etc/passwd",
        &[("+::::::\n", "")],
    ),
    (
        "account-same-number",
        "two",
        "etc/passwd",
        &[("eve:x:1000:1000", "eve:x:1001:1001")],
    ),
    (
        "mask-lets-all-write",
        "profile",
        "etc/profile",
        &[("umask 000", "umask 022")],
    ),
    (
        "fstab-same-point",
        "two",
        "etc/fstab",
        &[("UUID=3 /srv ", "UUID=3 /srv/second ")],
    ),
    (
        "fstab-option-misspelt",
        "btrfs",
        "etc/fstab",
        &[("compres=", "compress=")],
    ),
    (
        "fstab-option-misspelt",
        "ext4",
        "etc/fstab",
        &[("nofial", "nofail")],
    ),
    (
        "chrony-commands-open",
        "all",
        "etc/chrony/chrony.conf",
        &[("cmdallow all\nbindcmdaddress 0.0.0.0\n", "")],
    ),
    (
        "container-unconfined",
        "docker",
        "etc/pve/lxc/102.conf",
        &[("lxc.apparmor.profile: unconfined\n", "")],
    ),
    (
        "sysctl-fifos-unprotected",
        "configured",
        "etc/sysctl.d/99-own.conf",
        &[("fs.protected_fifos = 0\nfs.protected_regular = 0\n", "")],
    ),
    (
        "sysctl-router-takes-redirects",
        "router",
        "etc/sysctl.d/99-own.conf",
        &[("net.ipv4.conf.all.accept_redirects = 1\n", "")],
    ),
    (
        "ssh-weak-everywhere",
        "all",
        "etc/ssh/ssh_config",
        &[("    Ciphers +3des-cbc\n", "")],
    ),
];
