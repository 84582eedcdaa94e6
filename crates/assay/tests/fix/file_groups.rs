//! Groups of faults in files of several programs, each with the programs that read the files.

use super::groups::Plant::{Append, Whole};
use super::groups::{Group, OWN_SYSCTL, Reader, fault};

const APACHE: &str = "apache2/apache2.conf";
const OWN_NGINX: &str = "nginx/conf.d/own.conf";
const POSTGRESQL: &str = "postgresql/15/main/conf.d/own.conf";
const MARIADB: &str = "mysql/mariadb.conf.d/90-own.cnf";
const FSTAB: &str = "fstab";

pub const GROUPS: [Group; 5] = [
    Group {
        name: "web servers",
        rare: false,
        faults: &[
            fault(
                "nginx-status-open",
                OWN_NGINX,
                Whole(
                    "server {\n    listen 4401;\n    location = /status { stub_status; }\n    \
                     location ~ \\.php$ { fastcgi_pass 127.0.0.1:9000; }\n    \
                     location /old { return 301 http://$host$uri; }\n    \
                     location /api { proxy_pass http://127.0.0.1:8080; proxy_set_header Host $http_host; }\n    \
                     location /team {\n        allow 192.0.2.0/24; # office\n        allow 198.51.100.7;\n    }\n}\n\
                     ssl_ciphers ECDHE-RSA-AES128-GCM-SHA256:DES-CBC3-SHA;\n",
                ),
            ),
            fault("nginx-php-unguarded", OWN_NGINX, Append("")),
            fault("nginx-redirect-splitting", OWN_NGINX, Append("")),
            fault("nginx-host-unchecked", OWN_NGINX, Append("")),
            fault("nginx-allow-without-deny", OWN_NGINX, Append("")),
            fault("nginx-weak-ciphers", OWN_NGINX, Append("")),
            fault(
                "apache-root-granted",
                APACHE,
                Whole(
                    "ServerName a.example\nDefaultRuntimeDir /run\nPidFile /run/a.pid\n\
                     ErrorLog /run/a.log\nListen 4402\n\
                     LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so\n\
                     LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so\n\
                     LoadModule authz_host_module /usr/lib/apache2/modules/mod_authz_host.so\n\
                     LoadModule status_module /usr/lib/apache2/modules/mod_status.so\n\
                     LoadModule socache_shmcb_module /usr/lib/apache2/modules/mod_socache_shmcb.so\n\
                     LoadModule ssl_module /usr/lib/apache2/modules/mod_ssl.so\n\
                     LoadModule proxy_module /usr/lib/apache2/modules/mod_proxy.so\n\
                     <Directory />\n  # all\n  Require all granted\n</Directory>\n\
                     <Location \"/status\">\n\tSetHandler server-status\n\tRequire all granted\n</Location>\n\
                     TraceEnable On\nProxyRequests On\nSSLInsecureRenegotiation on\n\
                     <VirtualHost *:4403>\n  SSLEngine on\n  SSLProtocol -all +TLSv1 +TLSv1.2\n  \
                     SSLCipherSuite HIGH:RC4-SHA:DES-CBC3-SHA:!aNULL\n</VirtualHost>\n",
                ),
            ),
            fault("apache-status-open", APACHE, Append("")),
            fault("apache-trace-on", APACHE, Append("")),
            fault("apache-insecure-renegotiation", APACHE, Append("")),
            fault("apache-forward-proxy-open", APACHE, Append("")),
            fault("web-server-tls-1-0", APACHE, Append("")),
            fault("web-server-rc4", APACHE, Append("")),
            fault("web-server-weak-ciphers", APACHE, Append("")),
            fault(
                "lighttpd-listing",
                "lighttpd/lighttpd.conf",
                Append("dir-listing.activate = \"enable\" # browse\n"),
            ),
            fault(
                "php-includes-urls",
                "php/8.2/fpm/conf.d/99-own.ini",
                Whole("; old application\nallow_url_include = On\n"),
            ),
            fault(
                "php-errors-shown",
                "php/8.2/fpm/pool.d/www.conf",
                Append("php_flag[display_errors] = on\n"),
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
                program: "/usr/sbin/lighttpd",
                argv: &["lighttpd", "-tt", "-f", "/etc/lighttpd/lighttpd.conf"],
            },
            Reader {
                program: "/usr/sbin/php-fpm8.2",
                argv: &["php-fpm8.2", "-t"],
            },
        ],
    },
    Group {
        name: "mail and files",
        rare: false,
        faults: &[
            fault(
                "postfix-soft-bounce",
                "postfix/main.cf",
                Append(
                    "soft_bounce = yes\nsmtpd_tls_security_level = may\nsmtpd_sasl_auth_enable = yes\n\
                     smtpd_tls_mandatory_protocols = TLSv1, TLSv1.2\ntls_high_cipherlist = HIGH:DES-CBC3-SHA\n\
                     smtpd_client_restrictions = permit_mynetworks, reject_rbl_client dnsbl.njabl.org\n",
                ),
            ),
            fault("postfix-cleartext-login", "postfix/main.cf", Append("")),
            fault("mail-tls-1-0", "postfix/main.cf", Append("")),
            fault("dnsbl-closed", "postfix/main.cf", Append("")),
            fault("cipher-list-broken", "postfix/main.cf", Append("")),
            fault(
                "mail-ssl3",
                "postfix/master.cf",
                Append(
                    "submission inet n - y - - smtpd\n  -o smtpd_tls_security_level=encrypt\n  \
                     -o smtpd_tls_mandatory_protocols=SSLv3,TLSv1.2\n",
                ),
            ),
            fault(
                "dovecot-cleartext",
                "dovecot/conf.d/99-own.conf",
                Whole(
                    "disable_plaintext_auth = no\nauth_debug_passwords = yes # look\n\
                     ssl_cipher_list = HIGH:DES-CBC3-SHA\n",
                ),
            ),
            fault(
                "dovecot-passwords-logged",
                "dovecot/conf.d/99-own.conf",
                Append(""),
            ),
            fault(
                "mail-weak-ciphers",
                "dovecot/conf.d/99-own.conf",
                Append(""),
            ),
            fault(
                "smb-wide-links",
                "samba/smb.conf",
                Append(
                    "\n[global]\n   allow insecure wide links = yes\n[wide]\n   path = /srv\n   wide links = yes\n   \
                     follow symlinks = yes\n",
                ),
            ),
            fault(
                "nfs-root-kept",
                "exports",
                Append("/srv 192.0.2.0/24(rw,no_root_squash,sync) # nas\n/srv/b 192.0.2.7 (ro)\n"),
            ),
            fault("nfs-blank-before-options", "exports", Append("")),
            fault(
                "rsyncd-open-write",
                "rsyncd.conf",
                Whole("[data]\n  path = /srv\n  read only = no\n"),
            ),
            fault(
                "vsftpd-anonymous-write",
                "vsftpd.conf",
                Whole("anonymous_enable=YES\nwrite_enable=YES\nanon_upload_enable=YES\n"),
            ),
        ],
        readers: &[
            Reader {
                program: "/usr/sbin/postfix",
                argv: &["postfix", "check"],
            },
            Reader {
                program: "/usr/bin/doveconf",
                argv: &["doveconf", "-n"],
            },
            Reader {
                program: "/usr/bin/testparm",
                argv: &["testparm", "-s"],
            },
        ],
    },
    Group {
        name: "databases",
        rare: false,
        faults: &[
            fault(
                "postgresql-fsync-off",
                POSTGRESQL,
                Whole(
                    "fsync off # load\nfull_page_writes = 'off'\nautovacuum = off\nzero_damaged_pages = on\n",
                ),
            ),
            fault("postgresql-autovacuum-off", POSTGRESQL, Append("")),
            fault("postgresql-damage-hidden", POSTGRESQL, Append("")),
            fault(
                "postgresql-tls-1-0",
                "postgresql/15/main/postgresql.conf",
                Append("ssl_min_protocol_version = 'TLSv1' # old\npassword_encryption = md5\n"),
            ),
            fault(
                "postgresql-old-hash",
                "postgresql/15/main/postgresql.conf",
                Append(""),
            ),
            fault(
                "postgresql-cleartext-password",
                "postgresql/15/main/pg_hba.conf",
                Append("host\tall  all 192.0.2.0/24 password # old client\n"),
            ),
            fault(
                "mariadb-skip-grant-tables",
                MARIADB,
                Whole(
                    "# own\n[mysqld]\nskip-grant-tables\ninnodb-flush-log-at-trx-commit = 2 # fast\n\
                     innodb_doublewrite = 0\nlog_bin = x\nsync_binlog = 0\nold_passwords = 1\nssl_cert = /a\n\
                     ssl_key = /b\ntls_version = TLSv1.0,TLSv1.2\n",
                ),
            ),
            fault("mariadb-flush-log-at-trx-commit", MARIADB, Append("")),
            fault("mariadb-doublewrite-off", MARIADB, Append("")),
            fault("mariadb-binlog-unsynced", MARIADB, Append("")),
            fault("mariadb-old-passwords", MARIADB, Append("")),
            fault("mariadb-tls-1-0", MARIADB, Append("")),
            fault(
                "mariadb-never-flushed",
                MARIADB,
                Append("innodb_flush_method = nosync\nsql_mode = 'NO_ENGINE_SUBSTITUTION' # old\n"),
            ),
            fault("mariadb-values-cut", MARIADB, Append("")),
            fault(
                "redis-open",
                "redis/redis.conf",
                Whole("port 6379\nbind 0.0.0.0\nprotected-mode no\n"),
            ),
            fault(
                "memcached-udp",
                "sysconfig/memcached",
                Whole("PORT=\"11211\"\nOPTIONS=\"-l 192.0.2.1 -U 11211\"\n"),
            ),
        ],
        readers: &[
            Reader {
                program: "/usr/lib/postgresql/15/bin/postgres",
                argv: &[
                    "runuser",
                    "-u",
                    "postgres",
                    "--",
                    "/usr/lib/postgresql/15/bin/postgres",
                    "-C",
                    "fsync",
                    "-D",
                    "/etc/postgresql/15/main",
                ],
            },
            Reader {
                program: "/usr/sbin/mariadbd",
                argv: &["mariadbd", "--verbose", "--help"],
            },
        ],
    },
    Group {
        name: "system",
        rare: false,
        faults: &[
            fault(
                "sysctl-tcp-syncookies-off",
                OWN_SYSCTL,
                Whole(
                    "# tuned\nnet.ipv4.tcp_syncookies = 0\n-kernel/randomize_va_space = 0\n\
                     net.ipv4.tcp_tw_recycle = 1\nnet.ipv4.conf.all.accept_source_route=1\n\
                     fs.protected_fifos = 0\nvm.dirty_ratio = 80\n",
                ),
            ),
            fault("sysctl-aslr-off", OWN_SYSCTL, Append("")),
            fault("sysctl-tcp-tw-recycle", OWN_SYSCTL, Append("")),
            fault("sysctl-source-route", OWN_SYSCTL, Append("")),
            fault("sysctl-fifos-unprotected", OWN_SYSCTL, Append("")),
            fault("sysctl-dirty-ratio", OWN_SYSCTL, Append("")),
            fault(
                "hostapd-tkip",
                "hostapd/hostapd.conf",
                Whole(
                    "interface=wlan0\nssid=a\nwpa=3\nwpa_passphrase=a long passphrase\nwpa_key_mgmt=WPA-PSK\n\
                     wpa_pairwise=TKIP CCMP\nieee80211w=1\nwps_state=2\nap_pin=12345670\n",
                ),
            ),
            fault("hostapd-wps", "hostapd/hostapd.conf", Append("")),
            fault(
                "tftpd-creates-files",
                "default/tftpd-hpa",
                Whole("TFTP_OPTIONS=\"--secure --create\" # uploads\n"),
            ),
            fault(
                "ups-warns-late",
                "nut/upsmon.conf",
                Whole(
                    "MONITOR a@localhost 1 u p primary\nSHUTDOWNCMD \"/sbin/shutdown -h +0\"\nFINALDELAY 900\n",
                ),
            ),
            fault(
                "journald-stores-nothing",
                "systemd/journald.conf.d/own.conf",
                Whole("[Journal]\nStorage=none\n"),
            ),
            fault(
                "apt-unauthenticated",
                "apt/apt.conf.d/99own",
                Whole("APT::Get::AllowUnauthenticated \"true\";\n"),
            ),
            fault(
                "path-has-foreign-directory",
                "environment",
                Whole("PATH=\"/usr/local/bin:/usr/bin:.\"\n"),
            ),
            fault(
                "mask-lets-all-write",
                "profile.d/own.sh",
                Whole("umask 000 # share\n"),
            ),
            fault("hosts-equiv-trusts-all", "hosts.equiv", Whole("+\n")),
            fault(
                "fstab-option-refused",
                FSTAB,
                Append(
                    "/dev/vdb /srv/a xfs noatime,nobarrier,noauto 0 0\n/dev/vdc /srv/b ext4 barrier=0,noauto 0 0\n\
                     nas:/a\t/mnt/nas nfs4 soft,timeo=30 0 0 # nas\n\
                     //nas/b /mnt/b cifs credentials=/root/nas,vers=1.0,nofail 0 0\n",
                ),
            ),
            fault("fstab-barriers-off", FSTAB, Append("")),
            fault("network-mount-waits", FSTAB, Append("")),
            fault("nfs-soft-writes", FSTAB, Append("")),
            fault("cifs-1-mounted", FSTAB, Append("")),
            fault(
                "zfs-nocacheflush",
                "modprobe.d/zfs.conf",
                Whole("options zfs zfs_arc_max=1073741824 zfs_nocacheflush=1\n"),
            ),
            fault(
                "apcupsd-never-shuts-down",
                "apcupsd/apcupsd.conf",
                Whole(
                    "## apcupsd.conf v1.1 ##\nUPSCABLE usb\nBATTERYLEVEL -1\nMINUTES -1\nTIMEOUT 0\n",
                ),
            ),
        ],
        readers: &[
            Reader {
                program: "/usr/bin/apt-config",
                argv: &["apt-config", "dump"],
            },
            Reader {
                program: "/usr/bin/systemd-analyze",
                argv: &["systemd-analyze", "cat-config", "systemd/journald.conf"],
            },
        ],
    },
    Group {
        name: "programs that are not installed for tests",
        rare: true,
        faults: &[
            fault(
                "haproxy-tls-1-0",
                "haproxy/haproxy.cfg",
                Whole(
                    "global\n  ssl-default-bind-options ssl-min-ver TLSv1.0 no-tls-tickets\n\
                     defaults\n  mode http\n  timeout connect 5s\n  timeout client 5s\n  timeout server 5s\n\
                     frontend f # one\n  bind 127.0.0.1:4405\n  default_backend b\n\
                     backend b\n  server a 127.0.0.1:80\n",
                ),
            ),
            fault(
                "sudo-ticket-forever",
                "sudoers.d/own",
                Whole(
                    "Defaults timestamp_timeout=-1\nDefaults env_keep += \"LD_PRELOAD\" # tools\n",
                ),
            ),
            fault("sudo-loads-foreign-code", "sudoers.d/own", Append("")),
            fault(
                "chrony-commands-open",
                "chrony/chrony.conf",
                Whole("pool 2.debian.pool.ntp.org iburst\nbindcmdaddress 0.0.0.0\ncmdallow all\n"),
            ),
        ],
        readers: &[
            Reader {
                program: "/usr/sbin/haproxy",
                argv: &["haproxy", "-c", "-q", "-f", "/etc/haproxy/haproxy.cfg"],
            },
            Reader {
                program: "/usr/sbin/visudo",
                argv: &["visudo", "-c", "-q", "-f", "/etc/sudoers.d/own"],
            },
            Reader {
                program: "/usr/sbin/chronyd",
                argv: &["chronyd", "-p", "-f", "/etc/chrony/chrony.conf"],
            },
        ],
    },
];
