//! Lists the kinds of facts that are collected only when assay runs on the machine itself: their files contain names of
//! accounts, hosts or sites, or are not part of captures. See `not_asked`.

use crate::gather::Gather;
use assay_model::FactKind;
use std::path::Path;

const NAMES: &str = "its files hold names of accounts, hosts or sites, which stay on the machine";
const STATE: &str = "it is asked of the machine itself alone";

/// Kinds, each with the reason, and with the files or directories of which one must exist for the kind to apply.
const KINDS: [(&str, &str, &str); 184] = [
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
    (
        "system.guarded",
        STATE,
        "/etc /usr/sbin /usr/bin /usr/local/sbin /usr/local/bin",
    ),
    (
        "units.syslog_daemon",
        STATE,
        "/etc/systemd/journald.conf /etc/systemd/journald.conf.d /run/systemd/journald.conf.d \
         /usr/lib/systemd/journald.conf.d",
    ),
    (
        "units.libvirt_socket_open",
        STATE,
        "/etc/libvirt/libvirtd.conf",
    ),
    ("units.md_check", STATE, "/etc/default/mdadm"),
    (
        "units.md_timer_off",
        STATE,
        "/usr/lib/systemd/system/mdcheck_start.timer",
    ),
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
    ("cron.misuse", NAMES, "/etc/crontab /etc/cron.d"),
    ("crypttab_line", NAMES, "/etc/crypttab"),
    ("fstab_disk", NAMES, "/etc/fstab"),
    ("root_flags", NAMES, "/etc/default/grub /etc/kernel/cmdline"),
    (
        "iscsi_target",
        NAMES,
        "/etc/rtslib-fb-target/saveconfig.json /etc/target/saveconfig.json /etc/tgt",
    ),
    ("pve_store", NAMES, "/etc/pve/storage.cfg"),
    ("pve_token", NAMES, "/etc/pve/user.cfg"),
    ("pve_firewall", NAMES, "/etc/pve/firewall"),
    (
        "corosync",
        NAMES,
        "/etc/pve/corosync.conf /etc/corosync/corosync.conf",
    ),
    ("unit.misuse", NAMES, "/etc/systemd/system"),
    (
        "boot_line.debug_shell",
        NAMES,
        "/etc/default/grub /etc/kernel/cmdline /etc/systemd/system",
    ),
    (
        "clock_source",
        NAMES,
        "/etc/systemd/timesyncd.conf /etc/chrony/chrony.conf /etc/chrony.conf",
    ),
    (
        "apt_pin",
        NAMES,
        "/etc/apt/preferences /etc/apt/preferences.d",
    ),
    ("upgrade_origin", NAMES, "/etc/apt/apt.conf.d"),
    ("held_package", NAMES, "/var/lib/dpkg/status"),
    (
        "filter_file",
        NAMES,
        "/etc/nftables.conf /etc/iptables /etc/ufw/ufw.conf /etc/firewalld/firewalld.conf",
    ),
    ("group_member", NAMES, "/etc/group"),
    (
        "limit",
        NAMES,
        "/etc/security/limits.conf /etc/security/limits.d",
    ),
    ("rotation", NAMES, "/etc/logrotate.conf"),
    ("core_handler", NAMES, "/etc/sysctl.conf /etc/sysctl.d"),
    (
        "ups_setting",
        NAMES,
        "/etc/nut/upsmon.conf /etc/nut/ups.conf",
    ),
    (
        "ignored_file.settings",
        NAMES,
        "/etc/security/limits.d /etc/systemd/system",
    ),
    (
        "podman_default",
        NAMES,
        "/etc/containers/containers.conf /etc/containers/containers.conf.d",
    ),
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
    (
        "redis_command",
        NAMES,
        "/etc/redis.conf /etc/redis /etc/valkey",
    ),
    ("influxdb", NAMES, "/etc/influxdb/influxdb.conf"),
    ("pgbouncer", NAMES, "/etc/pgbouncer/pgbouncer.ini"),
    ("mongodb_tls", NAMES, "/etc/mongod.conf"),
    (
        "elasticsearch_default",
        NAMES,
        "/etc/elasticsearch/elasticsearch.yml",
    ),
    (
        "rabbitmq_terms",
        NAMES,
        "/etc/rabbitmq/advanced.config /etc/rabbitmq/rabbitmq.config",
    ),
    ("clickhouse_user", NAMES, "/etc/clickhouse-server"),
    (
        "proftpd_tls",
        NAMES,
        "/etc/proftpd/proftpd.conf /etc/proftpd/conf.d",
    ),
    (
        "proftpd_protocol",
        NAMES,
        "/etc/proftpd/proftpd.conf /etc/proftpd/conf.d",
    ),
    ("pure_ftpd", NAMES, "/etc/pure-ftpd /etc/pure-ftpd.conf"),
    ("pure_ftpd_tls", NAMES, "/etc/pure-ftpd /etc/pure-ftpd.conf"),
    ("rsyncd_links", NAMES, "/etc/rsyncd.conf"),
    ("tftpd_option", NAMES, "/etc/default/tftpd-hpa"),
    ("wireguard_peer", NAMES, "/etc/wireguard"),
    ("ipsec_mode", NAMES, "/etc/ipsec.conf /etc/swanctl"),
    ("ipsec_proposal", NAMES, "/etc/ipsec.conf /etc/swanctl"),
    (
        "wifi_sign_in",
        NAMES,
        "/etc/wpa_supplicant /etc/NetworkManager/system-connections",
    ),
    ("uci_wifi", NAMES, "/etc/config/wireless"),
    ("uci_wifi_open", NAMES, "/etc/config/wireless"),
    ("uci_zone", NAMES, "/etc/config/firewall"),
    (
        "tomcat_connector",
        NAMES,
        "/etc/tomcat8 /etc/tomcat9 /etc/tomcat10 /etc/tomcat11",
    ),
    (
        "tomcat_servlet",
        NAMES,
        "/etc/tomcat8 /etc/tomcat9 /etc/tomcat10 /etc/tomcat11",
    ),
    (
        "uwsgi",
        NAMES,
        "/etc/uwsgi /etc/uwsgi-emperor /etc/uwsgi.ini /etc/uwsgi.d",
    ),
    ("python_server", NAMES, "/etc/systemd/system"),
    ("php_debugger", NAMES, "/etc/php"),
    ("squid_tls", NAMES, "/etc/squid/squid.conf"),
    ("dhcpd", NAMES, "/etc/dhcp/dhcpd.conf /etc/dhcp/dhcpd6.conf"),
    ("kea_agent", NAMES, "/etc/kea/kea-ctrl-agent.conf"),
    (
        "prometheus",
        NAMES,
        "/etc/default/prometheus /etc/sysconfig/prometheus",
    ),
    ("zabbix_agent", NAMES, "/etc/zabbix"),
    ("cups_printers", NAMES, "/etc/cups/cupsd.conf"),
    ("cups_browsed", NAMES, "/etc/cups/cups-browsed.conf"),
    (
        "resolved",
        NAMES,
        "/etc/systemd/resolved.conf /etc/systemd/resolved.conf.d",
    ),
    ("dnsmasq", NAMES, "/etc/dnsmasq.conf /etc/dnsmasq.d"),
    ("unbound_modules", NAMES, "/etc/unbound"),
    ("bind_update", NAMES, "/etc/bind /etc/named.conf"),
    ("bind_anchor", NAMES, "/etc/bind /etc/named.conf"),
    (
        "time_source",
        NAMES,
        "/etc/chrony/chrony.conf /etc/chrony.conf",
    ),
    (
        "ldap_hashes",
        NAMES,
        "/etc/ldap/slapd.conf /etc/openldap/slapd.conf /etc/ldap/slapd.d /etc/openldap/slapd.d",
    ),
    (
        "ldap_root",
        NAMES,
        "/etc/ldap/slapd.conf /etc/openldap/slapd.conf /etc/ldap/slapd.d /etc/openldap/slapd.d",
    ),
    (
        "ldap_database",
        NAMES,
        "/etc/ldap/slapd.conf /etc/openldap/slapd.conf /etc/ldap/slapd.d /etc/openldap/slapd.d",
    ),
    ("haproxy.proxy", NAMES, "/etc/haproxy/haproxy.cfg"),
    ("nfs.server", NAMES, "/etc/nfs.conf /etc/nfs.conf.d"),
    ("snmp_user", NAMES, "/etc/snmp/snmpd.conf"),
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
