"""Planted rows from the lists of the field: ssh-audit, gixy, nginx's pitfalls, the manuals of Apache, Postfix, Dovecot,
Samba, MySQL, PostgreSQL and Proxmox VE, CIS Debian 12 and Lynis. See `run_planted`."""

SSHD = "etc/ssh/sshd_config"
NGX = "etc/nginx/nginx.conf"
APACHE = "etc/apache2/apache2.conf"
MAIN = "etc/postfix/main.cf"
MASTER = {"etc/postfix/master.cf": "smtp inet n - y - - smtpd\n"}
DOVECOT = "etc/dovecot/dovecot.conf"
SMB = "etc/samba/smb.conf"
MY = "etc/mysql/my.cnf"
PG = "etc/postgresql/15/main/postgresql.conf"
HBA = "etc/postgresql/15/main/pg_hba.conf"
PASSWD = "root:x:0:0::/root:/bin/bash\n"
SHADOW = "root:*:19000:0:99999:7:::\n"
LISTEN = "inet_interfaces = all\nmynetworks = 127.0.0.0/8\n"


def site(text, http="", main=""):
    return {NGX: f"{main}events {{ worker_connections 768; }}\nhttp {{\n{http}  server {{\n    listen 80;\n"
                 f"    server_name a.example;\n    root /srv/www;\n{text}  }}\n}}\n"}


def mail(text):
    return {MAIN: LISTEN + text, **MASTER}


def share(text, world=""):
    return {SMB: f"[global]\n   server role = standalone server\n{world}[data]\n   path = /srv/data\n{text}"}


def accounts(passwd):
    return {"etc/passwd": PASSWD + passwd, "etc/shadow": SHADOW}


ROWS = [
    ("audit-ssh-rsa", r"sshd-weak|sha1", {SSHD: "HostKeyAlgorithms ssh-rsa\n"},
     {SSHD: "HostKeyAlgorithms rsa-sha2-512,rsa-sha2-256\n"}),
    ("audit-gex-sha1", r"sshd-weak|sha1",
     {SSHD: "KexAlgorithms diffie-hellman-group-exchange-sha1,diffie-hellman-group-exchange-sha256\n"},
     {SSHD: "KexAlgorithms diffie-hellman-group-exchange-sha256\n"}),
    ("audit-root-in-match", r"root",
     {SSHD: "PermitRootLogin no\nMatch Address 0.0.0.0/0\n    PermitRootLogin yes\n    PasswordAuthentication yes\n"},
     {SSHD: "PermitRootLogin no\nMatch Address 192.168.1.0/24\n    PermitRootLogin prohibit-password\n"}),
    ("audit-client-3des", r"weak|cipher", {"etc/ssh/ssh_config": "Host *\n    Ciphers +3des-cbc\n"},
     {"etc/ssh/ssh_config": "Host *\n    Ciphers -3des-cbc\n"}),

    ("gixy-return-bypasses-deny", r"return|deny|bypass",
     site("    location /admin { allow 10.0.0.0/8; deny all; return 200 secret; }\n"),
     site("    location /admin { allow 10.0.0.0/8; deny all; proxy_pass http://127.0.0.1:8080; }\n")),
    ("gixy-allow-without-deny", r"allow|deny",
     site("    location /admin { allow 10.0.0.0/8; proxy_pass http://127.0.0.1:8080; }\n"),
     site("    location /admin { allow 10.0.0.0/8; deny all; proxy_pass http://127.0.0.1:8080; }\n")),
    ("gixy-origins", r"origin|cors",
     site("    add_header Access-Control-Allow-Origin $http_origin;\n"
          "    add_header Access-Control-Allow-Credentials true;\n"),
     site("    add_header Access-Control-Allow-Origin https://b.example;\n"
          "    add_header Access-Control-Allow-Credentials true;\n")),
    ("gixy-error-log-off", r"log", site("    error_log off;\n"), site("    error_log /dev/null crit;\n")),
    ("gixy-nofile-below-connections", r"file|worker",
     {NGX: "worker_rlimit_nofile 512;\nevents { worker_connections 4096; }\nhttp { }\n"},
     {NGX: "worker_rlimit_nofile 16384;\nevents { worker_connections 4096; }\nhttp { }\n"}),
    ("gixy-splitting-document-uri", r"split", site("    location / { return 302 https://b.example$document_uri; }\n"),
     site("    location / { return 302 https://b.example$request_uri; }\n")),
    ("pitfall-rewrite-without-scheme", r"rewrite|redirect",
     site("    location /old { rewrite ^ www.example.com/new permanent; }\n"),
     site("    location /old { rewrite ^ https://www.example.com/new permanent; }\n")),
    ("pitfall-root-of-root", r"root", site("    location /s/ { root /root; }\n"),
     site("    location /s/ { root /srv/s; }\n")),
    ("apache-limit", r"limit|method",
     {APACHE: "<Directory /srv/a>\n <Limit GET POST>\n  Require valid-user\n </Limit>\n</Directory>\n"},
     {APACHE: "<Directory /srv/a>\n Require valid-user\n</Directory>\n"}),
    ("apache-userdir-dot", r"userdir|home", {APACHE: "UserDir ./\n"},
     {APACHE: "UserDir public_html\nUserDir disabled root\n"}),

    ("postfix-sasl-anonymous", r"anonym|sasl",
     mail("smtpd_sasl_auth_enable = yes\nsmtpd_tls_auth_only = yes\nsmtpd_tls_security_level = may\n"
          "smtpd_sasl_security_options =\n"),
     mail("smtpd_sasl_auth_enable = yes\nsmtpd_tls_auth_only = yes\nsmtpd_tls_security_level = may\n"
          "smtpd_sasl_security_options = noanonymous\n")),
    ("postfix-unknown-recipients", r"recipient", mail("local_recipient_maps =\n"), mail("")),
    ("postfix-trusts-class", r"relay|network|class",
     {MAIN: "inet_interfaces = all\nmynetworks_style = class\n", **MASTER},
     {MAIN: "inet_interfaces = all\nmynetworks_style = host\n", **MASTER}),
    ("postfix-sender-before-relay", r"relay",
     {**mail("smtpd_relay_restrictions = permit_mynetworks, check_sender_access hash:/etc/postfix/ok,\n"
             "  reject_unauth_destination\n"), "etc/postfix/ok": "partner.example OK\n"},
     {**mail("smtpd_relay_restrictions = permit_mynetworks, reject_unauth_destination,\n"
             "  check_sender_access hash:/etc/postfix/ok\n"), "etc/postfix/ok": "partner.example OK\n"}),
    ("dovecot-passwords-logged", r"password|log", {DOVECOT: "protocols = imap\nauth_debug_passwords = yes\n"},
     {DOVECOT: "protocols = imap\nauth_debug = yes\n"}),
    ("dovecot-trusts-all", r"trust", {DOVECOT: "protocols = imap\nlogin_trusted_networks = 0.0.0.0/0\n"},
     {DOVECOT: "protocols = imap\nlogin_trusted_networks = 10.0.0.5\n"}),
    ("dovecot-without-password", r"password",
     {DOVECOT: "protocols = imap\npassdb {\n  driver = static\n  args = nopassword=y\n}\n"},
     {DOVECOT: "protocols = imap\npassdb {\n  driver = pam\n}\n"}),
    ("dovecot-anonymous", r"anonym", {DOVECOT: "protocols = imap\nauth_mechanisms = plain anonymous\n"},
     {DOVECOT: "protocols = imap\nauth_mechanisms = plain login\n"}),

    ("samba-bad-password", r"guest|password", share("   read only = no\n", "   map to guest = Bad Password\n"),
     share("   read only = no\n", "   map to guest = Bad User\n")),
    ("samba-admin-users", r"admin|root", share("   read only = no\n   admin users = @users\n"),
     share("   read only = no\n   valid users = @users\n")),
    ("samba-force-root", r"root", share("   read only = no\n   force user = root\n"),
     share("   read only = no\n   force user = nobody\n")),
    ("samba-ldap-clear", r"ldap",
     share("", "   passdb backend = ldapsam:ldap://ldap.example.org\n   ldap ssl = off\n"),
     share("", "   passdb backend = ldapsam:ldap://ldap.example.org\n   ldap ssl = start tls\n")),

    ("my-sync-binlog", r"binlog", {MY: "[mysqld]\nlog_bin = /var/lib/mysql/b\nserver_id = 1\nsync_binlog = 0\n"},
     {MY: "[mysqld]\nlog_bin = /var/lib/mysql/b\nserver_id = 1\nsync_binlog = 1\n"}),
    ("my-binlogs-forever", r"binlog|log", {MY: "[mysqld]\nlog_bin = b\nsync_binlog = 1\nexpire_logs_days = 0\n"},
     {MY: "[mysqld]\nlog_bin = b\nsync_binlog = 1\nexpire_logs_days = 10\n"}),
    ("my-old-passwords", r"password", {MY: "[mysqld]\nold_passwords = 1\n"}, {MY: "[mysqld]\nold_passwords = 0\n"}),
    ("my-pool-above-memory", r"pool|memory",
     {MY: "[mysqld]\ninnodb_buffer_pool_size = 64G\n", "proc/meminfo": "MemTotal:        8000000 kB\n"},
     {MY: "[mysqld]\ninnodb_buffer_pool_size = 4G\n", "proc/meminfo": "MemTotal:        8000000 kB\n"}),
    ("pg-ident", r"ident", {PG: "listen_addresses = '*'\nssl = on\n", HBA: "local all postgres peer\n"
                            "hostssl all all 10.0.0.0/8 ident\n"},
     {PG: "listen_addresses = '*'\nssl = on\n", HBA: "local all postgres peer\nhostssl all all 10.0.0.0/8 scram-sha-256\n"}),
    ("pg-archive-nothing", r"archive", {PG: "archive_mode = on\narchive_command = '/bin/true'\n", HBA: "local all all peer\n"},
     {PG: "archive_mode = on\narchive_command = 'test ! -f /srv/wal/%f && cp %p /srv/wal/%f'\n", HBA: "local all all peer\n"}),
    ("pg-md5", r"md5|password|hash", {PG: "password_encryption = md5\n", HBA: "local all all peer\n"},
     {PG: "password_encryption = scram-sha-256\n", HBA: "local all all peer\n"}),

    ("cis-passwd-plus", r"account|passwd|plus", accounts("+::::::\n"), accounts("bob:x:1000:1000::/home/bob:/bin/bash\n")),
    ("cis-same-uid", r"account|uid|twin",
     accounts("bob:x:1000:1000::/home/bob:/bin/bash\neve:x:1000:1000::/home/eve:/bin/bash\n"),
     accounts("bob:x:1000:1000::/home/bob:/bin/bash\neve:x:1001:1001::/home/eve:/bin/bash\n")),
    ("cis-protected-fifos", r"fifo|regular|protect",
     {"etc/sysctl.d/99-x.conf": "fs.protected_fifos = 0\nfs.protected_regular = 0\n"},
     {"etc/sysctl.d/99-x.conf": "fs.protected_fifos = 1\nfs.protected_regular = 2\n"}),
    ("lynis-umask", r"umask", {"etc/profile": "umask 000\n"}, {"etc/profile": "umask 022\n"}),
    ("lynis-chrony-open", r"chrony", {"etc/chrony/chrony.conf": "pool 2.debian.pool.ntp.org iburst\ncmdallow all\n"
                                      "bindcmdaddress 0.0.0.0\n"},
     {"etc/chrony/chrony.conf": "pool 2.debian.pool.ntp.org iburst\nallow 10.0.0.0/8\n"}),
    ("pve-container-unconfined", r"container|apparmor|unconfined",
     {"etc/pve/lxc/102.conf": "arch: amd64\nhostname: a\nmemory: 512\nlxc.apparmor.profile: unconfined\n"},
     {"etc/pve/lxc/102.conf": "arch: amd64\nhostname: a\nmemory: 512\nunprivileged: 1\n"}),
    ("fstab-same-mountpoint", r"fstab|mount",
     {"etc/fstab": "UUID=1 / ext4 errors=remount-ro 0 1\nUUID=2 /srv xfs defaults 0 2\nUUID=3 /srv ext4 defaults 0 2\n"},
     {"etc/fstab": "UUID=1 / ext4 errors=remount-ro 0 1\nUUID=2 /srv xfs defaults 0 2\nUUID=3 /srv/b ext4 defaults 0 2\n"}),
]
