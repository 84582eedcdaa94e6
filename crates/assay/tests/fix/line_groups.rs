//! Faults whose fixes exchange whole lines, remove one, or set one of several settings, as groups of `groups`.

use super::groups::Plant::{Append, Whole};
use super::groups::{Group, Reader, fault};

const NGINX: &str = "nginx/conf.d/own.conf";
const ACCESS: &str = "postgresql/15/main/pg_hba.conf";
const POSTGRESQL: &str = "postgresql/15/main/postgresql.conf";
const DOCKER: &str = "docker/daemon.json";
const MODULES: &str = "modprobe.d/own.conf";
const BIND: &str = "bind/named.conf";

/// Services; the system; programs that are not installed for tests.
pub const LINE_GROUPS: [Group; 3] = [
    Group {
        name: "lines of services",
        rare: false,
        faults: &[
            fault(
                "nginx-alias-traversal",
                NGINX,
                Whole(
                    "server {\n    listen 4411;\n    location /img { # pictures\n\
                    \x20       alias /srv/images/;\n    }\n}\n\
                     server {\n    listen 4412;\n\
                    \x20   add_header Strict-Transport-Security \"includeSubDomains\" always;\n}\n",
                ),
            ),
            fault("nginx-hsts-void", NGINX, Append("")),
            fault(
                "apache-home-of-root",
                "apache2/apache2.conf",
                Whole(
                    "ServerName a.example\nDefaultRuntimeDir /run\nPidFile /run/a.pid\n\
                     ErrorLog /run/a.log\nListen 4413\n\
                     LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so\n\
                     LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so\n\
                     LoadModule userdir_module /usr/lib/apache2/modules/mod_userdir.so\n\
                     UserDir ./\n",
                ),
            ),
            fault(
                "php-fpm-open",
                "php/8.2/fpm/pool.d/own.conf",
                Whole(
                    "[own]\nuser = www-data\nlisten = 0.0.0.0:4414 ; for the proxy\npm = static\npm.max_children = 1\n",
                ),
            ),
            fault(
                "postfix-open-relay",
                "postfix/main.cf",
                Append(
                    "smtpd_relay_restrictions = permit_mynetworks,\n  permit\nmessage_size_limit = 104857600\n\
                     mailbox_size_limit = 51200000\n",
                ),
            ),
            fault("postfix-mailbox-small", "postfix/main.cf", Append("")),
            fault(
                "exim-open-relay",
                "exim4/update-exim4.conf.conf",
                Whole("dc_eximconfig_configtype='internet'\ndc_relay_nets='0.0.0.0/0'\n"),
            ),
            fault(
                "smb-guest-writable",
                "samba/smb.conf",
                Append(
                    "\n[pub]\n   path = /srv/pub\n   public = yes\n   writeable = yes\n\
                     [all]\n   path = /\n   guest ok = yes\n",
                ),
            ),
            fault("smb-guests-in-system", "samba/smb.conf", Append("")),
            fault(
                "postgresql-trust-remote",
                ACCESS,
                Append(
                    "hostssl\tall\tall\t192.0.2.0/25\ttrust # old\nlocal   app   all   trust\n\
                     hostssl all all 192.0.2.128/25 ident\n",
                ),
            ),
            fault("postgresql-trust-local", ACCESS, Append("")),
            fault("postgresql-name-of-client", ACCESS, Append("")),
            fault(
                "postgresql-archive-nothing",
                POSTGRESQL,
                Append("archive_mode = on\narchive_command = '/bin/true'\n"),
            ),
            fault(
                "mariadb-remote-without-tls",
                "mysql/mariadb.conf.d/90-own.cnf",
                Whole(
                    "[mysqld]\nbind-address = 0.0.0.0 # all\nlog_bin = b\nsync_binlog = 1\nexpire_logs_days = 0\n",
                ),
            ),
            fault(
                "mariadb-binlogs-forever",
                "mysql/mariadb.conf.d/90-own.cnf",
                Append(""),
            ),
            fault(
                "memcached-open",
                "memcached.conf",
                Whole("-d\n-m 64\n-l 0.0.0.0\n"),
            ),
            fault(
                "mongodb-open",
                "mongod.conf",
                Whole("net:\n    port: 27017\n    bindIp: 127.0.0.1,0.0.0.0\n"),
            ),
            fault(
                "snmp-writable",
                "snmp/snmpd.conf",
                Whole("agentAddress udp:161\n  rwcommunity s3cret default\n"),
            ),
        ],
        readers: &[
            Reader {
                program: "/usr/sbin/nginx",
                argv: &["nginx", "-t", "-q"],
            },
            Reader {
                program: "/usr/sbin/apache2",
                argv: &["apache2ctl", "-t"],
            },
            Reader {
                program: "/usr/sbin/php-fpm8.2",
                argv: &["php-fpm8.2", "-t"],
            },
            Reader {
                program: "/usr/sbin/postfix",
                argv: &["postfix", "check"],
            },
            Reader {
                program: "/usr/bin/testparm",
                argv: &["testparm", "-s"],
            },
            Reader {
                program: "/usr/sbin/mariadbd",
                argv: &["mariadbd", "--verbose", "--help"],
            },
        ],
    },
    Group {
        name: "lines of the system",
        rare: false,
        faults: &[
            fault(
                "sshd-login-grace-none",
                "ssh/sshd_config.d/own.conf",
                Whole("LoginGraceTime 0\n"),
            ),
            fault(
                "ssh-weak-everywhere",
                "ssh/ssh_config.d/own.conf",
                Whole("Host *\n    Ciphers +3des-cbc\n    Port 22\n"),
            ),
            fault(
                "mitigations-off",
                "default/grub",
                Whole("# own\nGRUB_CMDLINE_LINUX_DEFAULT=\"quiet mitigations=off splash\"\n"),
            ),
            fault(
                "apt-trusted-source",
                "apt/sources.list.d/own.list",
                Whole("# own\ndeb [arch=amd64 trusted=yes] http://r.example/debian stable main\n"),
            ),
            fault(
                "docker-open",
                DOCKER,
                Whole(
                    "{\n  \"hosts\": [\"unix:///run/docker.sock\", \"tcp://0.0.0.0:2375\"],\n  \
                     \"insecure-registries\": [\"registry.example.com:5000\"],\n  \"iptables\": false\n}\n",
                ),
            ),
            fault("docker-insecure-registry", DOCKER, Append("")),
            fault("docker-iptables-off", DOCKER, Append("")),
            fault(
                "zfs-arc-limits-crossed",
                MODULES,
                Whole(
                    "options zfs zfs_arc_min=8589934592 zfs_arc_max=4294967296\noptions zfs zfs_dirty_data_max=8G\n",
                ),
            ),
            fault("module-parameter-refused", MODULES, Append("")),
            fault(
                "smartd-tells-nobody",
                "smartd.conf",
                Whole("# own\nDEVICESCAN -a -o on -S on\n"),
            ),
            fault(
                "libvirt-vnc-open",
                "libvirt/qemu.conf",
                Whole("vnc_listen = \"0.0.0.0\"\n"),
            ),
            fault(
                "inetd-login-in-the-clear",
                "inetd.conf",
                Whole("telnet stream tcp nowait telnetd /usr/sbin/tcpd /usr/sbin/in.telnetd\n"),
            ),
            fault(
                "pam-admits-everybody",
                "pam.d/sshd",
                Whole(
                    "auth sufficient pam_permit.so\n@include common-auth\naccount required pam_unix.so\n",
                ),
            ),
        ],
        readers: &[
            Reader {
                program: "/usr/sbin/sshd",
                argv: &["/usr/sbin/sshd", "-T"],
            },
            Reader {
                program: "/usr/bin/apt-get",
                argv: &["apt-get", "indextargets"],
            },
        ],
    },
    Group {
        name: "lines of programs that are not installed for tests",
        rare: true,
        faults: &[
            fault(
                "haproxy-socket-open",
                "haproxy/haproxy.cfg",
                Whole("global\n  stats socket ipv4@0.0.0.0:4406 level admin\n"),
            ),
            fault(
                "bind-open-resolver",
                BIND,
                Whole(
                    "options { directory \"/tmp\"; recursion yes; allow-recursion { any; }; dnssec-validation no; };\n\
                     zone \"a.example\" {\n  type master;\n  file \"a\";\n  allow-transfer { any; };\n  \
                     allow-update { any; };\n};\n",
                ),
            ),
            fault("bind-validation-off", BIND, Append("")),
            fault("bind-transfer-open", BIND, Append("")),
            fault("bind-update-open", BIND, Append("")),
            fault(
                "unbound-validation-permissive",
                "unbound/unbound.conf",
                Whole("server:\n  username: \"\"\n  val-permissive-mode: yes # for now\n"),
            ),
            fault(
                "proftpd-anonymous-write",
                "proftpd/proftpd.conf",
                Whole(
                    "RootLogin on\nUser nobody\nGroup nogroup\n<Anonymous /srv>\n User nobody\n\
                    \x20<Directory incoming>\n  \
                     <Limit STOR>\n   AllowAll\n  </Limit>\n </Directory>\n</Anonymous>\n",
                ),
            ),
            fault("proftpd-root-login", "proftpd/proftpd.conf", Append("")),
            fault(
                "cups-admin-open",
                "cups/cupsd.conf",
                Whole(
                    "Listen *:631\n<Location /admin>\n Order allow,deny\n Allow @LOCAL\n</Location>\n",
                ),
            ),
            fault(
                "sudo-without-password",
                "sudoers.d/own",
                Whole("%ops ALL=(ALL) NOPASSWD: ALL\n"),
            ),
        ],
        readers: &[
            Reader {
                program: "/usr/sbin/haproxy",
                argv: &["haproxy", "-c", "-q", "-f", "/etc/haproxy/haproxy.cfg"],
            },
            Reader {
                program: "/usr/bin/named-checkconf",
                argv: &["named-checkconf"],
            },
            Reader {
                program: "/usr/sbin/unbound-checkconf",
                argv: &["unbound-checkconf"],
            },
            Reader {
                program: "/usr/sbin/proftpd",
                argv: &["proftpd", "-t", "-c", "/etc/proftpd/proftpd.conf"],
            },
            Reader {
                program: "/usr/sbin/cupsd",
                argv: &["cupsd", "-t"],
            },
            Reader {
                program: "/usr/sbin/visudo",
                argv: &["visudo", "-c", "-q", "-f", "/etc/sudoers.d/own"],
            },
        ],
    },
];
