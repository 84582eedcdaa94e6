//! Fixes of several programs on one machine: all faults are planted at once, fixed one after the other, and undone in
//! reverse order. The programs check the result as a whole.

use super::bed::Bed;
use super::common::{self, Ran};
use super::line_groups::LINE_GROUPS;
use serde_json::Value;
use std::collections::BTreeSet;

/// A rule, the file with its fault, and the text that has the fault. The text is appended to an existing file, unless
/// the file of the package has to be replaced.
pub struct Fault {
    rule: &'static str,
    file: &'static str,
    plant: Plant,
}

pub enum Plant {
    Append(&'static str),
    Whole(&'static str),
}

use Plant::{Append, Whole};

pub const fn fault(rule: &'static str, file: &'static str, plant: Plant) -> Fault {
    Fault { rule, file, plant }
}

/// A program that reads the files of a group; its command reads the whole configuration and starts nothing.
pub struct Reader {
    pub program: &'static str,
    pub argv: &'static [&'static str],
}

pub struct Group {
    pub name: &'static str,
    /// Whether the test needs programs that are not installed for tests; where one is missing, nothing is tried.
    pub rare: bool,
    pub faults: &'static [Fault],
    pub readers: &'static [Reader],
}

const APACHE: &str = "apache2/apache2.conf";
const OWN_NGINX: &str = "nginx/conf.d/own.conf";
pub const OWN_SYSCTL: &str = "sysctl.d/99-zz-own.conf";
const POSTGRESQL: &str = "postgresql/15/main/conf.d/own.conf";
const MARIADB: &str = "mysql/mariadb.conf.d/90-own.cnf";
const FSTAB: &str = "fstab";

const GROUPS: [Group; 5] = [
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

/// Reason of the sysctls that are not tried here: the program and the edit are those of the others, and
/// `fixture_plans` of assay-changes plans each. Their running values are of the whole machine.
const SAME: &str = "only the name and the value differ from the sysctls that are tried here";
/// Reason of those whose running values belong to a network namespace.
const BELOW: &str = "`running_values_follow_their_file` fixes it";

/// Rules whose edits are not tried here, with the reason.
const NOT_HERE: [(&str, &str); 21] = [
    (
        "guest-cpu-old-model",
        "the finding depends on the processor of the machine; `fixture_plans` plans it",
    ),
    ("sysctl-tcp-timestamps-off", BELOW),
    ("sysctl-router-takes-redirects", BELOW),
    (
        "web-server-sslv3",
        "Debian's OpenSSL refuses SSLv3; the edit is that of web-server-tls-1-0",
    ),
    ("sysctl-links-unprotected", SAME),
    ("sysctl-hardlinks-unprotected", SAME),
    ("sysctl-suid-dumpable", SAME),
    ("sysctl-panic-on-oom", SAME),
    ("sysctl-abort-on-overflow", BELOW),
    ("sysctl-echo-broadcasts", BELOW),
    ("sysctl-file-max-small", SAME),
    ("sysctl-max-map-count-small", SAME),
    ("sysctl-mmap-min-addr", SAME),
    ("sysctl-no-pmtu-disc", BELOW),
    ("sysctl-rcvbuf-fixed", BELOW),
    ("sysctl-tcp-sack-off", BELOW),
    ("sysctl-tw-buckets-few", BELOW),
    ("sysctl-unprivileged-bpf", SAME),
    ("sysctl-vfs-cache-pressure-zero", SAME),
    ("sysctl-window-scaling-off", BELOW),
    ("sysctl-zone-reclaim", SAME),
];

/// Returns the rules that the groups fix.
pub fn rules() -> BTreeSet<&'static str> {
    let all = GROUPS.iter().chain(&LINE_GROUPS);
    let all = all.flat_map(|group| group.faults);
    let elsewhere = NOT_HERE.iter().map(|(rule, _)| *rule);
    all.map(|fault| fault.rule)
        .chain(elsewhere)
        .chain(super::permissions::rules())
        .collect()
}

/// Returns how a finding of the rule stands in the list of findings.
fn violated(rule: &str) -> String {
    format!("\"{rule}\" \"violated\"")
}

fn plant(bed: &Bed, fault: &Fault) {
    let path = bed.path(fault.file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    bed.edit(fault.file, |text| match fault.plant {
        Append(more) => text + more,
        Whole(whole) => whole.to_owned(),
    });
}

/// Asserts that the installed programs read their files.
fn accepted(bed: &Bed, group: &Group, when: &str) {
    for reader in group.readers {
        if !group.rare && !std::path::Path::new(reader.program).exists() {
            assay_testing::skipped("program", reader.program);
            continue;
        }
        let ran = bed.run(reader.argv);
        assert_eq!(
            ran.code,
            Some(0),
            "{when}: {:?}: {}",
            reader.argv,
            ran.stderr
        );
    }
}

fn fixed_and_undone(group: &Group) {
    let is_there = |reader: &Reader| assay_testing::servers::find(reader.argv[0]).is_some();
    if group.rare && !group.readers.iter().all(is_there) {
        return;
    }
    let Some(bed) = Bed::new() else { return };
    let stock = bed.findings();
    // A value of the running kernel is not changed by a test.
    let here = |fault: &&Fault| !stock.contains(&violated(fault.rule));
    let faults: Vec<&Fault> = group.faults.iter().filter(here).collect();
    let files: BTreeSet<&str> = faults.iter().map(|fault| fault.file).collect();
    let fresh: Vec<&str> = files
        .iter()
        .copied()
        .filter(|file| !bed.path(file).exists())
        .collect();
    faults.iter().for_each(|fault| plant(&bed, fault));
    files
        .iter()
        .filter(|file| !fresh.contains(*file))
        .for_each(|file| bed.adorn(file));
    let planted: Vec<_> = files.iter().map(|file| bed.look(file)).collect();
    let found = bed.findings();
    let missing: Vec<&str> = faults
        .iter()
        .map(|fault| fault.rule)
        .filter(|rule| !found.contains(&violated(rule)))
        .collect();
    assert_eq!(missing, Vec::<&str>::new(), "{}: {found:?}", group.name);
    accepted(&bed, group, "planted");
    let mut changes = Vec::new();
    for Fault { rule, file, .. } in &faults {
        let ran: Ran = bed.mend(rule);
        assert_eq!(ran.code, Some(0), "{rule}: {}{}", ran.stdout, ran.stderr);
        let document: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(document["became"], "kept", "{rule}: {document}");
        let named = document["files"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["path"].as_str().unwrap());
        assert_eq!(
            named.collect::<Vec<_>>(),
            [format!("/etc/{file}")],
            "{rule}: {document}"
        );
        changes.push((*rule, document["change"].as_str().unwrap().to_owned()));
    }
    let fixed: Vec<String> = faults.iter().map(|fault| violated(fault.rule)).collect();
    let others: Vec<String> = found
        .into_iter()
        .filter(|one| !fixed.contains(one))
        .collect();
    assert_eq!(
        bed.findings(),
        others,
        "{}: all is fixed, and nothing new",
        group.name
    );
    accepted(&bed, group, "fixed");
    for (rule, change) in changes.iter().rev() {
        let undone = bed.assay(&["check", "--undo", change, "--yes", "--json"]);
        common::schemas::holds("check-undo", &undone.stdout, &[]);
        assert_eq!(
            undone.code,
            Some(0),
            "{rule}: {}{}",
            undone.stdout,
            undone.stderr
        );
    }
    let back: Vec<_> = files.iter().map(|file| bed.look(file)).collect();
    assert_eq!(
        back, planted,
        "{}: byte for byte, with owner, mode, attributes and times",
        group.name
    );
}

/// Each group takes one to two minutes of CPU time; one of them is always tried.
pub fn is_long_wanted() -> bool {
    let wanted = std::env::var_os("ASSAY_LAB_ALL").is_some();
    if !wanted {
        assay_testing::skipped("long", "it takes minutes; ASSAY_LAB_ALL=1 runs it");
    }
    wanted
}

#[test]
fn fixes_of_web_servers_clear_their_findings_and_are_undone() {
    if is_long_wanted() {
        fixed_and_undone(&GROUPS[0]);
    }
}

#[test]
fn fixes_of_mail_and_file_servers_clear_their_findings_and_are_undone() {
    if is_long_wanted() {
        fixed_and_undone(&GROUPS[1]);
    }
}

#[test]
fn fixes_of_databases_clear_their_findings_and_are_undone() {
    fixed_and_undone(&GROUPS[2]);
}

#[test]
fn fixes_of_the_system_clear_their_findings_and_are_undone() {
    if is_long_wanted() {
        fixed_and_undone(&GROUPS[3]);
    }
}

#[test]
fn fixes_of_programs_that_are_not_installed_for_tests_clear_their_findings_and_are_undone() {
    if is_long_wanted() {
        fixed_and_undone(&GROUPS[4]);
    }
}

#[test]
fn fixes_of_lines_of_services_clear_their_findings_and_are_undone() {
    fixed_and_undone(&LINE_GROUPS[0]);
}

#[test]
fn fixes_of_lines_of_the_system_clear_their_findings_and_are_undone() {
    if is_long_wanted() {
        fixed_and_undone(&LINE_GROUPS[1]);
    }
}

#[test]
fn fixes_of_lines_of_programs_that_are_not_installed_clear_their_findings_and_are_undone() {
    if is_long_wanted() {
        fixed_and_undone(&LINE_GROUPS[2]);
    }
}
