//! Commands of each program: one checks the configuration, one makes the program read the configuration again.

use crate::fixes::plan::FileChange;
use assay_host::{Host, Limits};
use assay_model::finding::Configured;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Returns the program's name for messages.
pub(crate) fn program_name(program: Configured) -> &'static str {
    match program {
        Configured::Sshd => "sshd",
        Configured::Ssh => "ssh",
        Configured::Nginx => "nginx",
        Configured::Postfix => "postfix",
        Configured::Dovecot => "dovecot",
        Configured::Samba => "samba",
        Configured::PostfixServices => "postfix",
        Configured::Sysctl => "the kernel",
        Configured::Apache => "apache",
        Configured::Lighttpd => "lighttpd",
        Configured::Haproxy => "haproxy",
        Configured::Php => "php",
        Configured::Postgresql | Configured::PostgresqlAccess => "postgresql",
        Configured::Mariadb => "mariadb",
        Configured::Redis => "redis",
        Configured::Openvpn => "openvpn",
        Configured::Hostapd => "hostapd",
        Configured::Vsftpd => "vsftpd",
        Configured::Rsyncd => "rsync",
        Configured::Tftpd => "tftpd",
        Configured::Memcached => "memcached",
        Configured::Chrony => "chrony",
        Configured::Sudo => "sudo",
        Configured::Apt => "apt",
        Configured::Journald => "systemd-journald",
        Configured::Grub => "grub",
        Configured::Login | Configured::Mask => "logins",
        Configured::HostsEquiv => "trusted hosts",
        Configured::Fstab => "mounts",
        Configured::Exports => "nfs",
        Configured::Modprobe => "kernel modules",
        Configured::Mdadm => "mdadm",
        Configured::Smartd => "smartd",
        Configured::Nut => "nut",
        Configured::Apcupsd => "apcupsd",
        Configured::Bind => "bind",
        Configured::Unbound => "unbound",
        Configured::Squid => "squid",
        Configured::Snmpd => "snmpd",
        Configured::Mosquitto => "mosquitto",
        Configured::Mongodb => "mongodb",
        Configured::Elasticsearch => "elasticsearch",
        Configured::Docker => "docker",
        Configured::Proftpd => "proftpd",
        Configured::Cups => "cups",
        Configured::Exim => "exim",
        Configured::Units => "units",
        Configured::AptSources => "sources of apt",
        Configured::Inetd => "inetd",
        Configured::Libvirt => "libvirt",
        Configured::Pam => "pam",
        Configured::Proxmox => "proxmox",
        Configured::OpenDkim => "opendkim",
        Configured::Rspamd => "rspamd",
        Configured::SpamAssassin => "spamassassin",
        Configured::Spamd => "spamd",
        Configured::CupsBrowsed => "cups-browsed",
        Configured::Dhcpd => "dhcpd",
        Configured::Kea => "kea",
        Configured::Slapd => "slapd",
        Configured::Ntpd => "ntpd",
        Configured::PdnsRecursor => "pdns-recursor",
        Configured::PureFtpd => "pure-ftpd",
        Configured::NfsServer => "nfs-server",
        Configured::RabbitMq => "rabbitmq",
        Configured::Kubelet => "kubelet",
        Configured::Containers => "podman",
        Configured::Cron => "cron",
        Configured::LoginDefs => "login.defs",
        Configured::OpenSsl => "openssl",
        Configured::Initramfs => "initramfs",
        Configured::Prometheus => "prometheus",
        Configured::Tomcat => "tomcat",
        Configured::Uwsgi => "uwsgi",
        Configured::Zabbix => "zabbix",
        Configured::LdSo => "the dynamic linker",
        Configured::Logrotate => "logrotate",
        Configured::Nsswitch => "nsswitch.conf",
        Configured::Timesyncd => "systemd-timesyncd",
        Configured::Zfs => "zfs",
        Configured::Files => "files",
    }
}

/// Returns the command that checks the configuration. With `{file}`, the command checks a candidate file, otherwise the
/// whole installed configuration. The result is empty if the program has no check.
pub(crate) fn validate(program: Configured, file: &Path) -> Vec<String> {
    let words: &[&str] = match program {
        // An included file is not a complete configuration.
        Configured::Sshd if file == Path::new("/etc/ssh/sshd_config") => {
            &["sshd", "-t", "-f", "{file}"]
        }
        Configured::Sshd => &["sshd", "-t"],
        // This command does not connect; it prints the settings for a host with that name.
        Configured::Ssh => &["ssh", "-G", "-F", "{file}", "localhost"],
        Configured::Nginx => &["nginx", "-t", "-q"],
        Configured::Postfix => &["postfix", "check"],
        Configured::Dovecot => &["doveconf", "-n"],
        Configured::Samba => &["testparm", "-s", "{file}"],
        Configured::PostfixServices => &["postfix", "check"],
        Configured::Apache if file.starts_with("/etc/httpd") => &["httpd", "-t"],
        Configured::Apache => &["apache2ctl", "-t"],
        Configured::Lighttpd => &["lighttpd", "-tt", "-f", "/etc/lighttpd/lighttpd.conf"],
        Configured::Haproxy => &["haproxy", "-c", "-q", "-f", "{file}"],
        Configured::Postgresql => return validate_postgresql(file),
        // This command starts no server; it reads all option files, and names an option that is unknown.
        Configured::Mariadb => &["mariadbd", "--verbose", "--help"],
        Configured::Php => match php_version(file) {
            Some(version) => return vec![format!("php-fpm{version}"), "-t".to_owned()],
            None => &[],
        },
        Configured::Tftpd
        | Configured::Memcached
        | Configured::Grub
        | Configured::Spamd
        | Configured::Initramfs
        | Configured::Prometheus => &["sh", "-n", "{file}"],
        Configured::Mdadm if file.starts_with("/etc/default") => &["sh", "-n", "{file}"],
        Configured::Chrony => &["chronyd", "-p", "-f", "{file}"],
        Configured::Sudo => &["visudo", "-c", "-q", "-f", "{file}"],
        Configured::Apt => &["apt-config", "dump"],
        Configured::Bind => &["named-checkconf"],
        Configured::Unbound => &["unbound-checkconf"],
        Configured::Squid => &["squid", "-k", "parse", "-f", "/etc/squid/squid.conf"],
        Configured::Proftpd => &["proftpd", "-t", "-c", "/etc/proftpd/proftpd.conf"],
        Configured::Cups => &["cupsd", "-t", "-c", "{file}"],
        Configured::Exim => &["sh", "-n", "{file}"],
        // This command reads all sources, and no network.
        Configured::AptSources => &["apt-get", "indextargets"],
        Configured::Units => return validate_unit(file),
        // This command rotates nothing.
        Configured::Logrotate => &["logrotate", "--debug", "{file}"],
        Configured::OpenDkim => &["opendkim", "-n", "-x", "{file}"],
        Configured::Rspamd => &["rspamadm", "configtest", "-q"],
        Configured::SpamAssassin => &["spamassassin", "--lint", "--local"],
        Configured::Dhcpd => &["dhcpd", "-t", "-q", "-cf", "{file}"],
        Configured::Kea => &["kea-ctrl-agent", "-t", "{file}"],
        Configured::Slapd => &["slaptest", "-u", "-f", "{file}"],
        Configured::OpenSsl => &["openssl", "ciphers"],
        Configured::Sysctl
        | Configured::PostgresqlAccess
        | Configured::Redis
        | Configured::Openvpn
        | Configured::Hostapd
        | Configured::Vsftpd
        | Configured::Rsyncd
        | Configured::Journald
        | Configured::Login
        | Configured::Mask
        | Configured::HostsEquiv
        | Configured::Fstab
        | Configured::Exports
        | Configured::Modprobe
        | Configured::Mdadm
        | Configured::Smartd
        | Configured::Nut
        | Configured::Apcupsd
        | Configured::Snmpd
        | Configured::Mosquitto
        | Configured::Mongodb
        | Configured::Elasticsearch
        | Configured::Docker
        | Configured::Inetd
        | Configured::Libvirt
        | Configured::Pam
        | Configured::Proxmox
        | Configured::CupsBrowsed
        | Configured::Ntpd
        | Configured::PdnsRecursor
        | Configured::PureFtpd
        | Configured::NfsServer
        | Configured::RabbitMq
        | Configured::Kubelet
        | Configured::Containers
        | Configured::Cron
        | Configured::LoginDefs
        | Configured::Tomcat
        | Configured::Uwsgi
        | Configured::Zabbix
        | Configured::LdSo
        | Configured::Nsswitch
        | Configured::Timesyncd
        | Configured::Zfs
        | Configured::Files => &[],
    };
    to_owned_words(words)
}

/// Returns a command that checks the unit of a file, or the unit to which a drop-in belongs.
fn validate_unit(file: &Path) -> Vec<String> {
    let own = file.to_string_lossy();
    let above = file.parent().and_then(Path::file_name);
    let unit = above.and_then(|dir| dir.to_str()?.strip_suffix(".d"));
    let unit = unit.map_or(own.as_ref(), |unit| unit);
    to_owned_words(&["systemd-analyze", "verify", "--man=no", unit])
}

/// Returns the version and the name of the PostgreSQL cluster to which a file belongs, from Debian's directory layout.
fn postgresql_cluster(file: &Path) -> Option<(&str, &str)> {
    let below = ["/etc/postgresql", "/var/lib/postgresql"];
    let rest = below.iter().find_map(|dir| file.strip_prefix(dir).ok())?;
    let mut parts = rest.iter().filter_map(OsStr::to_str);
    Some((parts.next()?, parts.next()?))
}

/// Returns a command that reads the whole configuration of a PostgreSQL cluster without starting a server. The command
/// runs as user postgres, because the server refuses to run as root.
fn validate_postgresql(file: &Path) -> Vec<String> {
    let Some((version, name)) = postgresql_cluster(file) else {
        return Vec::new();
    };
    let program = format!("/usr/lib/postgresql/{version}/bin/postgres");
    let directory = format!("/etc/postgresql/{version}/{name}");
    let user = ["runuser", "-u", "postgres", "--"];
    let words = [&user[..], &[&program, "-C", "fsync", "-D", &directory]].concat();
    to_owned_words(&words)
}

/// Returns the version of PHP-FPM to which a file belongs, from Debian's directory layout.
fn php_version(file: &Path) -> Option<&str> {
    let mut parts = file
        .strip_prefix("/etc/php")
        .ok()?
        .iter()
        .filter_map(OsStr::to_str);
    let version = parts.next()?;
    (parts.next() == Some("fpm")).then_some(version)
}

/// Describes when the program will read the file; `None` if it reads the file immediately.
pub(crate) fn next_start(file: &FileChange) -> Option<String> {
    let command = |text: &str| Some(format!("takes effect with `{text}`"));
    match file.program {
        Configured::Sysctl if file.is_running_value() => {
            Some("this is the running value of the kernel".to_owned())
        }
        Configured::Sysctl => Some("read at the next boot".to_owned()),
        Configured::Mariadb => command("systemctl restart mariadb"),
        Configured::Redis if file.real.starts_with("/etc/valkey") => {
            command("systemctl restart valkey-server")
        }
        Configured::Redis => command("systemctl restart redis-server"),
        Configured::Openvpn => Some("takes effect when the tunnel is restarted".to_owned()),
        Configured::Hostapd => command("systemctl restart hostapd"),
        Configured::Vsftpd => command("systemctl restart vsftpd"),
        Configured::Rsyncd => Some("read at the next connection".to_owned()),
        Configured::Tftpd => command("systemctl restart tftpd-hpa"),
        Configured::Memcached => command("systemctl restart memcached"),
        Configured::Chrony => command("systemctl restart chrony"),
        Configured::Journald => command("systemctl restart systemd-journald"),
        Configured::Mdadm if file.real.starts_with("/etc/default") => {
            Some("read at the next check of the arrays".to_owned())
        }
        Configured::Mdadm => command("systemctl restart mdmonitor"),
        Configured::Smartd => command("systemctl restart smartmontools"),
        Configured::Nut => command("systemctl restart nut-driver.target nut-server nut-monitor"),
        Configured::Apcupsd => command("systemctl restart apcupsd"),
        Configured::Grub => command("update-grub && systemctl reboot"),
        Configured::Modprobe => Some("takes effect when the module is loaded again".to_owned()),
        Configured::Fstab => Some("takes effect at the next mount".to_owned()),
        Configured::Login | Configured::Mask => Some("takes effect at the next login".to_owned()),
        Configured::Sudo | Configured::Apt | Configured::AptSources | Configured::HostsEquiv => {
            Some("read at the next use".to_owned())
        }
        Configured::Pam => Some("takes effect at the next login".to_owned()),
        Configured::Mosquitto => command("systemctl restart mosquitto"),
        Configured::Mongodb => command("systemctl restart mongod"),
        Configured::Elasticsearch => command("systemctl restart elasticsearch"),
        Configured::Docker => command("systemctl daemon-reload && systemctl restart docker"),
        Configured::Cups => command("systemctl restart cups"),
        Configured::Exim => command("update-exim4.conf && systemctl restart exim4"),
        Configured::Libvirt => command("systemctl restart libvirtd"),
        Configured::Units => Some(
            "takes effect with `systemctl daemon-reload` when the unit starts again".to_owned(),
        ),
        Configured::Inetd => Some("takes effect when inetd or xinetd starts again".to_owned()),
        Configured::Proxmox => {
            Some("takes effect when the guest is shut down and started again".to_owned())
        }
        Configured::OpenDkim => command("systemctl restart opendkim"),
        Configured::SpamAssassin | Configured::Spamd => command("systemctl restart spamd"),
        Configured::CupsBrowsed => command("systemctl restart cups-browsed"),
        Configured::Dhcpd => command("systemctl restart isc-dhcp-server"),
        Configured::Kea => command("systemctl restart kea-ctrl-agent"),
        Configured::Slapd => command("systemctl restart slapd"),
        Configured::PdnsRecursor => command("systemctl restart pdns-recursor"),
        Configured::PureFtpd => command("systemctl restart pure-ftpd"),
        Configured::NfsServer => command("systemctl restart nfs-server"),
        Configured::RabbitMq => command("systemctl restart rabbitmq-server"),
        Configured::Kubelet => command("systemctl restart kubelet"),
        Configured::Containers => {
            Some("takes effect for containers that are created from now on".to_owned())
        }
        Configured::Cron => Some("read within a minute".to_owned()),
        Configured::LoginDefs => Some("takes effect when a password is set".to_owned()),
        Configured::OpenSsl | Configured::Nsswitch => Some("read when a program starts".to_owned()),
        Configured::Initramfs => command("update-initramfs -u"),
        Configured::Prometheus => command("systemctl restart prometheus"),
        Configured::Uwsgi => command("systemctl restart uwsgi"),
        Configured::Ntpd if file.real.starts_with("/etc/ntpsec") => {
            command("systemctl restart ntpsec")
        }
        Configured::Ntpd => command("systemctl restart ntp"),
        Configured::Tomcat => {
            // /etc/tomcat10/server.xml
            let unit = file.real.iter().nth(2)?.to_string_lossy();
            command(&format!("systemctl restart {unit}"))
        }
        Configured::Zabbix if file.real.ends_with("zabbix_agent2.conf") => {
            command("systemctl restart zabbix-agent2")
        }
        Configured::Zabbix => command("systemctl restart zabbix-agent"),
        Configured::LdSo => command("ldconfig"),
        Configured::Timesyncd => command("systemctl restart systemd-timesyncd"),
        Configured::Logrotate => Some("read at the next rotation".to_owned()),
        Configured::Postgresql => next_start_of_postgresql(file),
        _ => None,
    }
}

/// Settings of PostgreSQL that a reload does not change (pg_settings, context `postmaster`) and that pages edit.
const AT_START: [&str; 2] = ["archive_mode", "ignore_invalid_pages"];

/// Describes the restart that a setting needs besides the reload.
fn next_start_of_postgresql(file: &FileChange) -> Option<String> {
    let mut keys = file.keys.iter();
    let (key, _) = keys.find(|(key, _)| AT_START.contains(&key.key.as_str()))?;
    let (version, name) = postgresql_cluster(&file.real)?;
    let key = &key.key;
    Some(format!(
        "{key} takes effect with `systemctl restart postgresql@{version}-{name}`"
    ))
}

/// Returns the command that makes the running service read its configuration. The result is empty if the service does
/// not run, or if it has no such command.
pub(crate) fn reload(host: &dyn Host, program: Configured, file: &Path) -> Vec<String> {
    // Debian's unit, the name of the process, and the command without systemd.
    let (php, cluster) = (php_version(file), postgresql_cluster(file));
    let php = php.map(|version| format!("php{version}-fpm"));
    let php_process = php_version(file).map(|version| format!("php-fpm{version}"));
    let cluster_unit = cluster.map(|(version, name)| format!("postgresql@{version}-{name}"));
    let (unit, process, other): (&str, &str, &[&str]) = match program {
        Configured::PostfixServices => ("postfix", "master", &["postfix", "reload"]),
        Configured::Apache if file.starts_with("/etc/httpd") => {
            ("httpd", "httpd", &["httpd", "-k", "graceful"])
        }
        Configured::Apache => ("apache2", "apache2", &["apache2ctl", "graceful"]),
        Configured::Lighttpd => ("lighttpd", "lighttpd", &["service", "lighttpd", "reload"]),
        Configured::Haproxy => ("haproxy", "haproxy", &["service", "haproxy", "reload"]),
        Configured::Exports => ("nfs-server", "nfsd", &["exportfs", "-ra"]),
        Configured::Php => match (&php, &php_process) {
            (Some(unit), Some(process)) => (unit, process, &["service", unit, "reload"]),
            _ => return Vec::new(),
        },
        Configured::Postgresql | Configured::PostgresqlAccess => match (&cluster_unit, cluster) {
            (Some(unit), Some((version, name))) => (
                unit,
                "postgres",
                &["pg_ctlcluster", version, name, "reload"],
            ),
            _ => return Vec::new(),
        },
        Configured::Bind => ("named", "named", &["rndc", "reload"]),
        Configured::Unbound => ("unbound", "unbound", &["unbound-control", "reload"]),
        Configured::Squid => ("squid", "squid", &["squid", "-k", "reconfigure"]),
        Configured::Snmpd => ("snmpd", "snmpd", &["service", "snmpd", "reload"]),
        Configured::Proftpd => ("proftpd", "proftpd", &["service", "proftpd", "reload"]),
        Configured::Rspamd => ("rspamd", "rspamd", &["service", "rspamd", "reload"]),
        Configured::Sshd => ("ssh", "sshd", &["service", "ssh", "reload"]),
        Configured::Nginx => ("nginx", "nginx", &["nginx", "-s", "reload"]),
        Configured::Postfix => ("postfix", "master", &["postfix", "reload"]),
        Configured::Dovecot => ("dovecot", "dovecot", &["doveadm", "reload"]),
        // On a domain controller samba-ad-dc starts smbd.
        Configured::Samba if is_active(host, "samba-ad-dc") => (
            "samba-ad-dc",
            "samba",
            &["smbcontrol", "all", "reload-config"],
        ),
        Configured::Samba => ("smbd", "smbd", &["smbcontrol", "smbd", "reload-config"]),
        // The others read their files when they start; a restart is the user's decision.
        _ => return Vec::new(),
    };
    if host
        .exists(Path::new("/run/systemd/system"))
        .unwrap_or(false)
    {
        return match is_active(host, unit) {
            // This command ignores a unit that does not run, for example at boot before the unit starts.
            true => to_owned_words(&["systemctl", "try-reload-or-restart", unit]),
            false => Vec::new(),
        };
    }
    match is_running(host, process) {
        true => to_owned_words(other),
        false => Vec::new(),
    }
}

/// Whether systemd runs a unit.
fn is_active(host: &dyn Host, unit: &str) -> bool {
    let argv = ["systemctl", "is-active", "--quiet", unit].map(OsStr::new);
    let active = host.run(&argv, Limits::default());
    active.is_ok_and(|output| output.success())
}

/// Whether a process with this name runs that sees the same files.
fn is_running(host: &dyn Host, name: &str) -> bool {
    !find_processes(host, name).is_empty()
}

/// Returns the /proc directories of the processes with this name and the same mount namespace (proc(5), `comm`;
/// namespaces(7)). A process in a container has its own configuration and is excluded.
pub(crate) fn find_processes(host: &dyn Host, name: &str) -> Vec<PathBuf> {
    let mounts = |process: &Path| host.link(&process.join("ns/mnt")).ok();
    let Some(ours) = mounts(Path::new("/proc/self")) else {
        return Vec::new();
    };
    let all = host.list(Path::new("/proc")).unwrap_or_default();
    all.iter()
        .filter(|pid| pid.as_encoded_bytes().iter().all(u8::is_ascii_digit))
        .map(|pid| Path::new("/proc").join(pid))
        .filter(|process| {
            host.read_text(&process.join("comm"))
                .is_ok_and(|text| text.trim() == name)
                && mounts(process).as_ref() == Some(&ours)
        })
        .collect()
}

fn to_owned_words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}
