//! Lists the kinds of facts that are collected only when assay runs on the machine itself: their files contain names of
//! accounts, hosts or sites, or are not part of captures. See `not_asked`.

use crate::gather::Gather;
use assay_model::FactKind;
use std::path::Path;

const NAMES: &str = "its files hold names of accounts, hosts or sites, which stay on the machine";
const STATE: &str = "it is asked of the machine itself alone";

/// Kinds, each with the reason, and with the files or directories of which one must exist for the kind to apply.
const KINDS: [(&str, &str, &str); 116] = [
    ("nginx.alias", NAMES, "/etc/nginx/nginx.conf"),
    ("nginx.status", NAMES, "/etc/nginx/nginx.conf"),
    ("nginx.php", NAMES, "/etc/nginx/nginx.conf"),
    ("nginx.headers", NAMES, "/etc/nginx/nginx.conf"),
    ("nginx.root", NAMES, "/etc/nginx/nginx.conf"),
    ("nginx.redirect", NAMES, "/etc/nginx/nginx.conf"),
    ("nginx.tls_line", NAMES, "/etc/nginx/nginx.conf"),
    (
        "apache.status",
        NAMES,
        "/etc/apache2/apache2.conf /etc/httpd/conf/httpd.conf",
    ),
    (
        "apache.listing",
        NAMES,
        "/etc/apache2/apache2.conf /etc/httpd/conf/httpd.conf",
    ),
    (
        "apache.root",
        NAMES,
        "/etc/apache2/apache2.conf /etc/httpd/conf/httpd.conf",
    ),
    ("nfs.export", NAMES, "/etc/exports"),
    ("accounts.identity", NAMES, "/etc/passwd"),
    ("accounts.password", NAMES, "/etc/shadow"),
    ("sudo.rule", NAMES, "/etc/sudoers /etc/sudoers.d"),
    ("postgresql.access", NAMES, "/etc/postgresql"),
    ("postgresql.tls", NAMES, "/etc/postgresql"),
    ("mariadb.old_tls", NAMES, "/etc/mysql/my.cnf /etc/my.cnf"),
    (
        "mariadb.skip_grant_tables",
        NAMES,
        "/etc/mysql/my.cnf /etc/my.cnf",
    ),
    (
        "mariadb.remote_without_tls",
        NAMES,
        "/etc/mysql/my.cnf /etc/my.cnf",
    ),
    ("haproxy.socket", NAMES, "/etc/haproxy/haproxy.cfg"),
    ("haproxy.statistics", NAMES, "/etc/haproxy/haproxy.cfg"),
    ("haproxy.tls", NAMES, "/etc/haproxy/haproxy.cfg"),
    (
        "docker.daemon",
        NAMES,
        "/etc/docker/daemon.json /etc/systemd/system/docker.service \
         /etc/systemd/system/docker.service.d /etc/default/docker",
    ),
    ("docker.container", NAMES, "/var/lib/docker/containers"),
    ("system.reboot_required", STATE, "/run"),
    ("system.failed_units", STATE, "/run/systemd/system"),
    ("system.clock_kept", STATE, "/proc"),
    ("system.guarded", STATE, "/etc"),
    ("units.syslog_daemon", STATE, "/etc/systemd/journald.conf"),
    (
        "units.libvirt_socket_open",
        STATE,
        "/etc/libvirt/libvirtd.conf",
    ),
    ("units.md_check", STATE, "/etc/default/mdadm"),
    ("network_mount", NAMES, "/etc/fstab"),
    ("pam.line", NAMES, "/etc/pam.d"),
    ("sudo.line", NAMES, "/etc/sudoers /etc/sudoers.d"),
    (
        "ignored_file.cron",
        NAMES,
        "/etc/cron.d /etc/cron.daily /etc/cron.weekly /etc/cron.monthly",
    ),
    ("ignored_file.sudo", NAMES, "/etc/sudoers.d"),
    (
        "ignored_file.kernel",
        NAMES,
        "/etc/sysctl.d /etc/modprobe.d",
    ),
    ("secret_file", STATE, "/etc"),
    ("shell_file", STATE, "/usr/bin"),
    ("cron.job", STATE, "/etc/cron.daily"),
    (
        "root_program",
        STATE,
        "/etc/crontab /etc/cron.d /etc/systemd/system",
    ),
    ("search_path", NAMES, "/etc/profile"),
    ("container_file", NAMES, "/etc/docker /etc/containers"),
    (
        "backup",
        NAMES,
        "/etc/sanoid/sanoid.conf /etc/rsnapshot.conf /etc/borgmatic/config.yaml",
    ),
    ("network_card", STATE, "/sys/class/net"),
    ("nginx.proxy", NAMES, "/etc/nginx/nginx.conf"),
    ("nginx.host", NAMES, "/etc/nginx/nginx.conf"),
    ("nginx.hsts", NAMES, "/etc/nginx/nginx.conf"),
    (
        "apache.proxy",
        NAMES,
        "/etc/apache2/apache2.conf /etc/httpd/conf/httpd.conf",
    ),
    ("haproxy.server", NAMES, "/etc/haproxy/haproxy.cfg"),
    (
        "cipher_list",
        NAMES,
        "/etc/haproxy/haproxy.cfg /etc/postfix/main.cf /etc/postgresql /etc/mysql/my.cnf /etc/my.cnf /etc/openvpn",
    ),
    (
        "guest_device",
        NAMES,
        "/etc/pve/qemu-server /etc/pve/nodes /etc/libvirt/qemu /usr/bin/qemu-system-x86_64 /usr/bin/kvm",
    ),
    ("served_file", NAMES, "/etc/nginx /etc/apache2 /etc/httpd"),
    (
        "redis_instance",
        NAMES,
        "/etc/redis.conf /etc/redis /etc/valkey",
    ),
    ("memcached_option", NAMES, "/etc/sysconfig/memcached"),
    (
        "etcd_unit",
        NAMES,
        "/etc/systemd/system/etcd.service /lib/systemd/system/etcd.service",
    ),
    ("squid_list", NAMES, "/etc/squid/squid.conf"),
    ("bind_list", NAMES, "/etc/bind /etc/named.conf"),
    ("hostapd_file", NAMES, "/etc/default/hostapd"),
    ("php_extra", NAMES, "/etc/php"),
    (
        "zfs_boot.arc_max_below_min",
        NAMES,
        "/sys/module/zfs/version /etc/modprobe.d/zfs.conf",
    ),
    (
        "boot_line.mitigations_off",
        NAMES,
        "/etc/default/grub /etc/kernel/cmdline",
    ),
    (
        "boot_line.apparmor_off",
        NAMES,
        "/etc/default/grub /etc/kernel/cmdline",
    ),
    ("fstab_swap", NAMES, "/etc/fstab"),
    ("encrypted_disk", NAMES, "/etc/crypttab"),
    (
        "backup_age",
        NAMES,
        "/etc/sanoid/sanoid.conf /etc/rsnapshot.conf /etc/borgmatic/config.yaml /etc/restic \
         /etc/proxmox-backup/datastore.cfg",
    ),
    (
        "ups_time",
        NAMES,
        "/etc/nut/ups.conf /etc/nut/upsmon.conf /etc/apcupsd/apcupsd.conf",
    ),
    ("mail_limit", NAMES, "/etc/postfix/main.cf"),
    ("nginx.misuse", NAMES, "/etc/nginx/nginx.conf"),
    (
        "apache.misuse",
        NAMES,
        "/etc/apache2/apache2.conf /etc/httpd/conf/httpd.conf",
    ),
    ("postfix.misuse", NAMES, "/etc/postfix/main.cf"),
    ("dovecot.misuse", NAMES, "/etc/dovecot/dovecot.conf"),
    ("samba.misuse", NAMES, "/etc/samba/smb.conf"),
    ("mariadb.misuse", NAMES, "/etc/mysql/my.cnf /etc/my.cnf"),
    ("postgresql.misuse", NAMES, "/etc/postgresql"),
    ("lighttpd.misuse", NAMES, "/etc/lighttpd/lighttpd.conf"),
    (
        "chrony.misuse",
        NAMES,
        "/etc/chrony/chrony.conf /etc/chrony.conf",
    ),
    (
        "container.misuse",
        NAMES,
        "/etc/pve/lxc /etc/pve/nodes /var/lib/lxc",
    ),
    ("accounts.misuse", NAMES, "/etc/passwd"),
    ("mask.misuse", NAMES, "/etc/profile"),
    ("fstab_line", NAMES, "/etc/fstab"),
    ("ssh.misuse", NAMES, "/etc/ssh/ssh_config"),
    ("firewall.open_ports", STATE, "/proc"),
    ("snmp_access", NAMES, "/etc/snmp/snmpd.conf"),
    (
        "libvirt_socket",
        NAMES,
        "/etc/libvirt/libvirtd.conf /etc/libvirt/virtproxyd.conf",
    ),
    (
        "socket_login",
        STATE,
        "/etc/systemd/system/sockets.target.wants",
    ),
    ("socket_root", NAMES, "/etc/systemd/system"),
    ("vnc_server", NAMES, "/etc/tigervnc /etc/systemd/system"),
    ("registry", NAMES, "/etc/containers/registries.conf"),
    (
        "ldap_access",
        NAMES,
        "/etc/ldap/slapd.conf /etc/openldap/slapd.conf /etc/ldap/slapd.d /etc/openldap/slapd.d",
    ),
    (
        "ldap_tls",
        NAMES,
        "/etc/ldap/slapd.conf /etc/openldap/slapd.conf /etc/ldap/slapd.d /etc/openldap/slapd.d",
    ),
    (
        "ldap_client",
        NAMES,
        "/etc/ldap/ldap.conf /etc/openldap/ldap.conf /etc/nslcd.conf /etc/sssd/sssd.conf",
    ),
    (
        "exim_list",
        NAMES,
        "/etc/exim4/exim4.conf /etc/exim/exim.conf /etc/exim.conf",
    ),
    (
        "pdns_recursor",
        NAMES,
        "/etc/powerdns/recursor.conf /etc/pdns-recursor/recursor.conf",
    ),
    ("ntpd", NAMES, "/etc/ntpsec/ntp.conf /etc/ntp.conf"),
    ("rspamd_controller", NAMES, "/etc/rspamd"),
    ("rspamd_filter", NAMES, "/etc/rspamd"),
    ("opendkim", NAMES, "/etc/opendkim.conf"),
    (
        "spamassassin_trust",
        NAMES,
        "/etc/spamassassin /etc/mail/spamassassin",
    ),
    (
        "spamd",
        NAMES,
        "/etc/default/spamd /etc/default/spamassassin /etc/sysconfig/spamassassin",
    ),
    ("sshd.misuse", NAMES, "/etc/ssh/sshd_config"),
    (
        "exim.misuse",
        NAMES,
        "/etc/exim4 /etc/exim/exim.conf /etc/exim.conf",
    ),
    (
        "cipher_level",
        NAMES,
        "/etc/nginx/nginx.conf /etc/apache2 /etc/httpd /etc/haproxy/haproxy.cfg /etc/lighttpd/lighttpd.conf \
         /etc/dovecot/dovecot.conf",
    ),
    ("rabbitmq", NAMES, "/etc/rabbitmq/rabbitmq.conf"),
    ("etcd_file", NAMES, "/etc/etcd /etc/etcd.conf.yml"),
    (
        "kubelet_args",
        NAMES,
        "/etc/default/kubelet /etc/sysconfig/kubelet /var/lib/kubelet/kubeadm-flags.env",
    ),
    ("apache_dav", NAMES, "/etc/apache2 /etc/httpd"),
    ("lighttpd_status", NAMES, "/etc/lighttpd/lighttpd.conf"),
    ("openvpn_client", NAMES, "/etc/openvpn"),
    ("openvpn_tls", NAMES, "/etc/openvpn"),
    ("hotspot", NAMES, "/etc/NetworkManager/system-connections"),
    ("rhosts", NAMES, "/root"),
    ("doas_rule", NAMES, "/etc/doas.conf"),
    ("polkit_rule", NAMES, "/etc/polkit-1/rules.d"),
    (
        "loaded_library",
        NAMES,
        "/etc/ld.so.preload /etc/ld.so.conf.d",
    ),
    (
        "container_mount",
        NAMES,
        "/etc/pve/lxc /etc/pve/nodes /var/lib/lxc",
    ),
];

/// Notes the kinds of facts that the machine may have.
pub(super) fn collect(g: &mut Gather<'_>) {
    for (kind, why, paths) in KINDS {
        let mut paths = paths.split(' ');
        let may_be = |path: &&str| !matches!(g.host.exists(Path::new(path)), Ok(false));
        if let Some(path) = paths.find(may_be) {
            let fact = format!("not_asked.{kind}");
            g.facts.known(fact, why, FactKind::Runtime, path);
        }
    }
}
