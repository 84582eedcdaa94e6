//! Faults of one setting each, as groups of `groups`.

use super::groups::Plant::{Append, Whole};
use super::groups::{Group, OWN_SYSCTL, Reader, fault};

const APACHE: &str = "apache2/apache2.conf";
const NGINX: &str = "nginx/conf.d/own.conf";
const SPAM: &str = "spamassassin/local.cf";
const JOURNALD: &str = "systemd/journald.conf.d/own.conf";
const LIBVIRT: &str = "libvirt/libvirtd.conf";
const GUEST: &str = "pve/qemu-server/100.conf";
const GRUB: &str = "default/grub";
const VSFTPD: &str = "vsftpd.conf";
const DKIM: &str = "opendkim.conf";
const SLAPD: &str = "ldap/slapd.conf";
// Debian's file of this name is read too.
const UNBOUND: &str = "unbound/unbound.conf.d/remote-control.conf";
const PROFTPD: &str = "proftpd/proftpd.conf";

/// Programs that check their settings; programs that check nothing; programs that are not installed for tests.
pub const SETTING_GROUPS: [Group; 3] = [
    Group {
        name: "settings that their programs check",
        rare: false,
        faults: &[
            fault(
                "apache-listing",
                APACHE,
                Whole(
                    "ServerName a.example\nDefaultRuntimeDir /run\nPidFile /run/a.pid\n\
                     ErrorLog /run/a.log\nListen 4431\n\
                     LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so\n\
                     LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so\n\
                     LoadModule authz_host_module /usr/lib/apache2/modules/mod_authz_host.so\n\
                     LoadModule autoindex_module /usr/lib/apache2/modules/mod_autoindex.so\n\
                     LoadModule socache_shmcb_module /usr/lib/apache2/modules/mod_socache_shmcb.so\n\
                     LoadModule ssl_module /usr/lib/apache2/modules/mod_ssl.so\n\
                     LoadModule proxy_module /usr/lib/apache2/modules/mod_proxy.so\n\
                     LoadModule proxy_http_module /usr/lib/apache2/modules/mod_proxy_http.so\n\
                     <Directory /srv/www>\n  Options +Indexes\n  Require all granted\n</Directory>\n\
                     <IfModule mod_authz_host>\n  <Location /admin>\n    Require ip 10.0.0.0/8\n  \
                     </Location>\n</IfModule>\n\
                     <VirtualHost *:4432>\n  DocumentRoot /srv/www\n  SSLEngine on\n  \
                     SSLCipherSuite DEFAULT:@SECLEVEL=0\n  ProxyPass \"/app/\" \"http://10.0.0.7\"\n</VirtualHost>\n",
                ),
            ),
            fault("apache-module-impossible", APACHE, Append("")),
            fault("apache-host-completed", APACHE, Append("")),
            fault("cipher-level-0", APACHE, Append("")),
            fault(
                "nginx-cookies-cached",
                NGINX,
                Whole(
                    "proxy_cache_path /run/cached keys_zone=a:1m;\n\
                     server {\n    listen 4433;\n    location / {\n        \
                     proxy_pass http://127.0.0.1:8080;\n        proxy_cache a;\n        \
                     proxy_ignore_headers Cache-Control Set-Cookie; # cache\n    }\n    \
                     add_header Public-Key-Pins 'pin-sha256=\"AAAA\"; max-age=5184000' always;\n}\n",
                ),
            ),
            fault("nginx-hpkp", NGINX, Append("")),
            fault(
                "nginx-files-below-connections",
                "nginx/nginx.conf",
                Append("worker_rlimit_nofile 512;\n"),
            ),
            fault(
                "lighttpd-status-open",
                "lighttpd/lighttpd.conf",
                Append(
                    "server.modules += ( \"mod_status\" )\nstatus.status-url = \"/server-status\" # load\n",
                ),
            ),
            fault(
                "php-debugger-open",
                "php/8.2/fpm/conf.d/99-own.ini",
                Whole(
                    "zend_extension=xdebug.so\nxdebug.mode=debug\nxdebug.discover_client_host=1\n",
                ),
            ),
            fault(
                "php-runs-any-file",
                "php/8.2/fpm/pool.d/own.conf",
                Whole(
                    "[own]\nuser = www-data\nlisten = /run/own.sock\npm = static\npm.max_children = 1\n\
                     security.limit_extensions =\n",
                ),
            ),
            fault(
                "postfix-option-unread",
                "postfix/master.cf",
                Append("once unix - - n - - smtp\n  -o maximal_queue_lifetime=2h\n"),
            ),
            fault(
                "postfix-password-cleartext",
                "postfix/main.cf",
                Append(
                    "relayhost = [smtp.example.net]:587\nsmtp_sasl_auth_enable = yes\n\
                     smtp_sasl_security_options = noanonymous\nsmtp_tls_security_level = may\n",
                ),
            ),
            fault(
                "spamassassin-loadplugin",
                SPAM,
                Append(
                    "loadplugin Mail::SpamAssassin::Plugin::MIMEHeader\nscore RCVD_IN_OWN_GONE 3.5\n\
                     allow_user_rules 1\nwelcomelist_from *@example.org\ntrusted_networks 0/0\n",
                ),
            ),
            fault("spamassassin-score-nothing", SPAM, Append("")),
            fault("spamassassin-user-rules", SPAM, Append("")),
            fault("spamassassin-welcomes-forged", SPAM, Append("")),
            fault("spamassassin-trusts-all", SPAM, Append("")),
            fault(
                "smb-flushes-ignored",
                "samba/smb.conf",
                Append("\n[vm]\n   path = /srv/vm\n   read only = no\n   strict sync = no\n"),
            ),
            fault(
                "hostapd-frames-unprotected",
                "hostapd/hostapd.conf",
                Whole(
                    "interface=wlan0\nssid=home\nhw_mode=g\nchannel=6\nwpa=2\nwpa_key_mgmt=SAE\n\
                     rsn_pairwise=CCMP\nwpa_passphrase=a long passphrase\n",
                ),
            ),
            fault(
                "guest-screen-open",
                "systemd/system/own-web.service",
                Whole(
                    "[Service]\nExecStart=/usr/bin/qemu-system-x86_64 -name web -m 1024 -accel kvm -cpu host -vnc :1\n",
                ),
            ),
            fault(
                "guest-monitor-open",
                "systemd/system/own-db.service",
                Whole(
                    "[Service]\nExecStart=/usr/bin/qemu-system-x86_64 -name db -m 1024 -accel kvm -cpu host \
                     -monitor tcp::4444,server=on,wait=off\n",
                ),
            ),
            fault(
                "library-from-shared-directory",
                "ld.so.conf.d/own.conf",
                Whole("# own\n/dev/shm\n"),
            ),
            fault(
                "logs-not-rotated",
                "logrotate.conf",
                Whole("weekly\nrotate 4\ncreate\n"),
            ),
            fault(
                "ssh-displays-to-all",
                "ssh/ssh_config.d/own.conf",
                Whole("Host *\n    ForwardX11 yes\n"),
            ),
            fault(
                "openssl-limits-lowered",
                "ssl/openssl.cnf",
                Append(
                    "\n[system_default_sect]\nMinProtocol = TLSv1 # old\nCipherString = DEFAULT:@SECLEVEL=0\n",
                ),
            ),
            fault(
                "apt-upgrades-off",
                "apt/apt.conf.d/20auto-upgrades",
                Whole(
                    "APT::Periodic::Update-Package-Lists \"1\";\nAPT::Periodic::Unattended-Upgrade \"0\";\n",
                ),
            ),
            fault(
                "apt-peer-unverified",
                "apt/apt.conf.d/99own",
                Whole("Acquire { https { Verify-Peer \"false\"; }; };\n"),
            ),
            fault(
                "apt-security-pinned-away",
                "apt/preferences.d/own",
                Whole(
                    "Explanation: slow line\nPackage: *\nPin: release n=bookworm-security\nPin-Priority: 100\n",
                ),
            ),
            fault(
                "fstab-errors-continue",
                "fstab",
                Append(
                    "/dev/vdb /srv/e ext4 noatime,errors=continue 0 2\n/dev/nbd0 /srv/n ext4 defaults 0 2\n",
                ),
            ),
            fault("fstab-network-disk-early", "fstab", Append("")),
        ],
        readers: &[
            Reader {
                program: "/usr/sbin/apache2",
                argv: &["apache2ctl", "-t"],
            },
            Reader {
                program: "/usr/sbin/nginx",
                argv: &["nginx", "-t", "-q"],
            },
            Reader {
                program: "/usr/sbin/lighttpd",
                argv: &["lighttpd", "-tt", "-f", "/etc/lighttpd/lighttpd.conf"],
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
                program: "/usr/bin/spamassassin",
                argv: &["spamassassin", "--lint", "--local"],
            },
            Reader {
                program: "/usr/bin/testparm",
                argv: &["testparm", "-s"],
            },
            Reader {
                program: "/usr/sbin/hostapd",
                // hostapd reads the whole file before it opens the interface, which is missing.
                argv: &[
                    "sh",
                    "-c",
                    "! hostapd /etc/hostapd/hostapd.conf | grep -E '^Line |errors? found'",
                ],
            },
            Reader {
                program: "/usr/sbin/logrotate",
                argv: &["logrotate", "--debug", "/etc/logrotate.conf"],
            },
            Reader {
                program: "/usr/bin/ssh",
                argv: &["ssh", "-G", "git.example.org"],
            },
            Reader {
                program: "/usr/bin/openssl",
                argv: &["openssl", "ciphers"],
            },
            Reader {
                program: "/usr/bin/apt-cache",
                argv: &["apt-cache", "policy"],
            },
        ],
    },
    Group {
        name: "settings that no program checks",
        rare: false,
        faults: &[
            fault(
                "mongodb-journal-off",
                "mongod.conf",
                Whole(
                    "storage:\n  dbPath: /srv/db\n  journal:\n    enabled: false\nnet:\n  bindIp: 127.0.0.1\n",
                ),
            ),
            fault(
                "elasticsearch-open",
                "elasticsearch/elasticsearch.yml",
                Whole("cluster.name: x\nnetwork.host: 0.0.0.0\nxpack.security.enabled: false\n"),
            ),
            fault(
                "rabbitmq-guest-remote",
                "rabbitmq/rabbitmq.conf",
                Whole("listeners.tcp.default = 5672\nloopback_users = none\n"),
            ),
            fault(
                "redis-append-unsynced",
                "redis/redis.conf",
                Whole(
                    "bind 192.0.2.5\nprotected-mode yes\nrequirepass x\nenable-module-command yes\n\
                     appendonly yes\nappendfsync no\n",
                ),
            ),
            fault("redis-code-from-clients", "redis/redis.conf", Append("")),
            fault(
                "redis-save-errors-ignored",
                "valkey/valkey.conf",
                Whole("bind 127.0.0.1\nstop-writes-on-bgsave-error no\n"),
            ),
            fault(
                "swap-resume-gone",
                "initramfs-tools/conf.d/resume",
                Whole("# own\nRESUME=UUID=6a1c3f0e-1111-4222-8333-444455556666\n"),
            ),
            fault(
                "cache-unsafe",
                GUEST,
                Whole(
                    "boot: order=scsi0\ncores: 2\ncpu: kvm64\nmemory: 4096\nname: web\n\
                     scsi0: thin:vm-100-disk-0,cache=unsafe,size=32G\n\
                     scsi1: thin:vm-100-disk-1,cache=writethrough,size=8G\n",
                ),
            ),
            fault("cache-writethrough", GUEST, Append("")),
            fault("cpu-kvm64", GUEST, Append("")),
            fault(
                "container-unconfined",
                "pve/lxc/102.conf",
                Whole("arch: amd64\nhostname: a\nmemory: 512\nlxc.apparmor.profile: unconfined\n"),
            ),
            fault(
                "libvirt-socket-open",
                LIBVIRT,
                Append("auth_unix_rw = \"none\"\nlisten_tcp = 1\nauth_tcp = \"none\"\n"),
            ),
            fault("libvirt-tcp-open", LIBVIRT, Append("")),
            fault(
                "apparmor-off",
                GRUB,
                Whole(
                    "GRUB_CMDLINE_LINUX_DEFAULT=\"quiet apparmor=0 systemd.debug-shell=1 splash\"\n",
                ),
            ),
            fault("debug-shell-open", GRUB, Append("")),
            fault(
                "sysctl-aslr-partial",
                OWN_SYSCTL,
                Whole(
                    "# tuned\nkernel/randomize_va_space = 1\nvm.min_free_kbytes = 33554432\n\
                     kernel.core_pattern = |/tmp/collect %p %e\n",
                ),
            ),
            fault("sysctl-min-free-large", OWN_SYSCTL, Append("")),
            fault("core-handler-foreign", OWN_SYSCTL, Append("")),
            fault(
                "spamd-open",
                "default/spamd",
                Whole("OPTIONS=\"--create-prefs --listen --allow-tell -A 0.0.0.0/0\" # all\n"),
            ),
            fault(
                "cups-browsed-open",
                "cups/cups-browsed.conf",
                Whole("BrowseRemoteProtocols dnssd cups\nBrowseAllow all\n"),
            ),
            fault(
                "ntpd-queries-open",
                "ntpsec/ntp.conf",
                Whole(
                    "server ntp.example.org iburst\nrestrict default nomodify\nrestrict 127.0.0.1\n",
                ),
            ),
            fault(
                "openvpn-tls-1-0",
                "openvpn/server/office.conf",
                Whole(
                    "port 1194\ndev tun\nca ca.crt\ncert s.crt\nkey s.key\ndh none\n\
                     server 10.8.0.0 255.255.255.0\ntls-version-min 1.0 # old\n",
                ),
            ),
            fault(
                "powerdns-recursor-open",
                "powerdns/recursor.conf",
                Whole("local-address=0.0.0.0\nallow-from=0.0.0.0/0\n"),
            ),
            fault(
                "pure-ftpd-login-in-the-clear",
                "pure-ftpd/conf/TLS",
                Whole("1\n"),
            ),
            fault(
                "vsftpd-login-in-the-clear",
                VSFTPD,
                Whole(
                    "local_enable=YES\nssl_enable=YES\nforce_local_logins_ssl=NO\nssl_sslv3=YES\nssl_sslv2=YES\n",
                ),
            ),
            fault("vsftpd-sslv3", VSFTPD, Append("")),
            fault(
                "rsyncd-links-lead-out",
                "rsyncd.conf",
                Whole(
                    "[web]\npath = /srv/web\nread only = no\nauth users = web\nuse chroot = no\nmunge symlinks = no\n",
                ),
            ),
            fault(
                "nfs-acknowledges-early",
                "exports",
                Append("/srv/data 192.0.2.0/24(rw,async,no_subtree_check) # nas\n"),
            ),
            fault("nfs-by-udp", "nfs.conf", Whole("[nfsd]\nudp=y\n")),
            fault(
                "ups-times-contradict",
                "nut/upsmon.conf",
                Whole(
                    "MONITOR a@localhost 1 u p primary\nPOLLFREQ 5\nDEADTIME 4\nSHUTDOWNCMD \"/sbin/shutdown -h +0\"\n",
                ),
            ),
            fault(
                "docker-seccomp-off",
                "docker/daemon.json",
                Whole("{\n  \"seccomp-profile\": \"unconfined\"\n}\n"),
            ),
            fault(
                "journald-drops-errors",
                JOURNALD,
                Whole("[Journal]\nMaxLevelStore=crit\nStorage=volatile\n"),
            ),
            fault("journald-lost-at-boot", JOURNALD, Append("")),
            fault(
                "clock-without-source",
                "systemd/timesyncd.conf",
                Whole("[Time]\nNTP=\nFallbackNTP=\n"),
            ),
            fault(
                "kubelet-open",
                "default/kubelet",
                Whole(
                    "KUBELET_EXTRA_ARGS=\"--anonymous-auth=true --authorization-mode=AlwaysAllow\"\n",
                ),
            ),
            fault(
                "login-old-hash",
                "login.defs",
                Whole("PASS_MAX_DAYS 99999\nENCRYPT_METHOD MD5\n"),
            ),
            fault(
                "pam-old-hash",
                "pam.d/common-password",
                Whole(
                    "password [success=1 default=ignore] pam_unix.so obscure md5\npassword requisite pam_deny.so\n",
                ),
            ),
            fault(
                "pam-systemd-off",
                "pam.d/common-session",
                Whole("session\trequired\tpam_unix.so\n#session\toptional\tpam_systemd.so\n"),
            ),
            fault(
                "podman-unconfined",
                "containers/containers.conf.d/own.conf",
                Whole("[containers]\nseccomp_profile = \"unconfined\"\n"),
            ),
            fault(
                "prometheus-admin-open",
                "default/prometheus",
                Whole("ARGS=\"--web.enable-admin-api\"\n"),
            ),
            fault(
                "tomcat-ajp-open",
                "tomcat10/server.xml",
                Whole(
                    "<Server>\n  <Service name=\"Catalina\">\n    \
                     <Connector protocol=\"AJP/1.3\" address=\"0.0.0.0\" secretRequired=\"false\"/>\n  </Service>\n\
                     </Server>\n",
                ),
            ),
            fault(
                "uwsgi-open",
                "uwsgi/apps-enabled/app.ini",
                Whole("[uwsgi]\nsocket = :3031\n"),
            ),
            fault(
                "zabbix-agent-runs-commands",
                "zabbix/zabbix_agentd.conf",
                Whole("Server=192.0.2.2\nAllowKey=system.run[*]\n"),
            ),
        ],
        readers: &[Reader {
            program: "/usr/bin/systemd-analyze",
            argv: &["systemd-analyze", "cat-config", "systemd/journald.conf"],
        }],
    },
    Group {
        name: "settings of programs that are not installed for tests",
        rare: true,
        faults: &[
            fault(
                "opendkim-body-length",
                DKIM,
                Whole(
                    "Domain example.org\nSelector a\nKeyFile /etc/ssh/ssh_host_rsa_key\nSocket inet:8891\nMode v\n\
                     SignatureAlgorithm rsa-sha1\nBodyLengthDB refile:/etc/hosts\nInternalHosts 127.0.0.1\n",
                ),
            ),
            fault("opendkim-sha1", DKIM, Append("")),
            fault("opendkim-signs-nothing", DKIM, Append("")),
            fault("opendkim-socket-open", DKIM, Append("")),
            fault(
                "kea-agent-open",
                "kea/kea-ctrl-agent.conf",
                Whole(
                    "{ \"Control-agent\": {\n  \"http-port\": 8000,\n  \"http-host\": \"0.0.0.0\"\n} }\n",
                ),
            ),
            fault(
                "rspamd-controller-open",
                "rspamd/local.d/worker-controller.inc",
                Whole("bind_socket = \"*:11334\";\nsecure_ip = \"0.0.0.0/0\"; # office\n"),
            ),
            fault(
                "rspamd-rejects-before-marking",
                "rspamd/local.d/actions.conf",
                Whole("reject = 2;\n"),
            ),
            fault(
                "dhcpd-omapi-open",
                "dhcp/dhcpd.conf",
                Whole("omapi-port 7911;\nsubnet 192.0.2.0 netmask 255.255.255.0 { }\n"),
            ),
            fault(
                "ldap-database-unsynced",
                SLAPD,
                Whole(
                    "include /etc/ldap/schema/core.schema\nmodulepath /usr/lib/ldap\nmoduleload back_mdb\n\
                     TLSProtocolMin 3.1\ndatabase mdb\nsuffix \"dc=example,dc=org\"\ndirectory /tmp\ndbnosync\n\
                     access to *\n  by * write\n",
                ),
            ),
            fault("ldap-writable", SLAPD, Append("")),
            fault("ldap-tls-1-0", SLAPD, Append("")),
            fault(
                "proftpd-tls-1-0",
                PROFTPD,
                Whole(
                    "LoadModule mod_tls.c\nUser nobody\nGroup nogroup\nTLSEngine on\nTLSRequired off\n\
                     TLSProtocol ALL -SSLv3\n",
                ),
            ),
            fault("proftpd-login-in-the-clear", PROFTPD, Append("")),
            fault(
                "unbound-control-open",
                UNBOUND,
                Whole(
                    "server:\n  username: \"\"\n  module-config: \"iterator\"\n\
                     remote-control:\n  control-enable: yes\n  \
                     control-interface: 0.0.0.0\n  control-use-cert: no\n",
                ),
            ),
            fault("unbound-without-validator", UNBOUND, Append("")),
            fault(
                "cups-printers-open",
                "cups/cupsd.conf",
                Whole("Listen *:631\n<Location />\n  Order deny,allow\n</Location>\n"),
            ),
            fault(
                "sudo-path-foreign",
                "sudoers.d/own",
                Whole("Defaults secure_path = /usr/sbin:/usr/bin:.\n"),
            ),
            fault(
                "squid-server-unverified",
                "squid/squid.conf",
                Whole(
                    "http_port 3128\nhttp_access deny all\nsslproxy_cert_error allow all\nssl_bump bump all\n",
                ),
            ),
        ],
        readers: &[
            Reader {
                program: "/usr/sbin/opendkim",
                argv: &["opendkim", "-n", "-x", "/etc/opendkim.conf"],
            },
            Reader {
                program: "/usr/sbin/kea-ctrl-agent",
                argv: &["kea-ctrl-agent", "-t", "/etc/kea/kea-ctrl-agent.conf"],
            },
            Reader {
                program: "/usr/bin/rspamadm",
                argv: &["rspamadm", "configtest", "-q"],
            },
            Reader {
                program: "/usr/sbin/dhcpd",
                argv: &["dhcpd", "-t", "-q", "-cf", "/etc/dhcp/dhcpd.conf"],
            },
            Reader {
                program: "/usr/sbin/slaptest",
                argv: &["slaptest", "-u", "-f", "/etc/ldap/slapd.conf"],
            },
            Reader {
                program: "/usr/sbin/proftpd",
                argv: &["proftpd", "-t", "-c", "/etc/proftpd/proftpd.conf"],
            },
            Reader {
                program: "/usr/sbin/unbound-checkconf",
                argv: &["unbound-checkconf"],
            },
            Reader {
                program: "/usr/sbin/cupsd",
                argv: &["cupsd", "-t"],
            },
            Reader {
                program: "/usr/sbin/visudo",
                argv: &["visudo", "-c", "-q", "-f", "/etc/sudoers.d/own"],
            },
            Reader {
                program: "/usr/sbin/squid",
                argv: &["squid", "-k", "parse", "-f", "/etc/squid/squid.conf"],
            },
        ],
    },
];
