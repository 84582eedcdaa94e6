//! Determines the service of each rule, and the outcome of each rule on a machine: evaluated, not applicable or
//! unknown. The module `findings` determines the violations.

use assay_model::advice::Advice;
use assay_model::coverage::{Outcome, Service, WithoutRules};
use assay_model::finding::{Certainty, Check, Checked};
use assay_model::{FactValue, Facts};
use std::collections::BTreeMap;

/// Services, each with the first components of the keys of its facts. If a rule uses facts of several services, the
/// first of these services in the table is the service of the rule.
const SERVICES: [(&str, &[&str]); 127] = [
    ("sshd", &["sshd"]),
    ("ssh client", &["ssh"]),
    ("SSH keys of accounts", &["authorized_keys"]),
    ("nginx", &["nginx"]),
    ("Apache", &["apache", "apache_dav"]),
    ("lighttpd", &["lighttpd", "lighttpd_status"]),
    ("published files", &["served_file"]),
    ("lists of ciphers", &["cipher_list", "cipher_level"]),
    ("HAProxy", &["haproxy"]),
    ("Postfix", &["postfix", "mail_queue", "mail_limit"]),
    ("Dovecot", &["dovecot"]),
    ("mail over TLS", &["mail_tls"]),
    (
        "SpamAssassin",
        &["spamassassin", "spamassassin_trust", "spamd"],
    ),
    ("Samba", &["samba"]),
    ("NFS server", &["nfs"]),
    (
        "OpenVPN",
        &[
            "openvpn",
            "openvpn_client",
            "openvpn_tls",
            "openvpn_management",
        ],
    ),
    ("pfSense", &["pfsense"]),
    ("PostgreSQL", &["postgresql"]),
    ("MariaDB", &["mariadb"]),
    (
        "Redis",
        &[
            "redis",
            "redis_durability",
            "redis_instance",
            "redis_command",
        ],
    ),
    ("memcached", &["memcached", "memcached_option"]),
    ("MongoDB", &["mongodb", "mongodb_tls"]),
    (
        "Elasticsearch",
        &["elasticsearch", "elasticsearch_default", "search_heap"],
    ),
    ("etcd", &["etcd", "etcd_unit", "etcd_file", "etcd_client"]),
    ("Mosquitto", &["mosquitto"]),
    (
        "BIND",
        &[
            "bind",
            "bind_list",
            "bind_update",
            "bind_anchor",
            "bind_control",
        ],
    ),
    ("Unbound", &["unbound", "unbound_modules"]),
    ("vsftpd", &["vsftpd"]),
    ("ProFTPD", &["proftpd", "proftpd_tls", "proftpd_protocol"]),
    ("rsync daemon", &["rsyncd", "rsyncd_links", "rsyncd_path"]),
    ("TFTP", &["tftpd", "tftpd_option"]),
    ("Squid", &["squid", "squid_list", "squid_tls"]),
    (
        "PHP",
        &["php", "php_pool", "php_extra", "php_debugger", "php_trap"],
    ),
    ("Exim", &["exim", "exim_list"]),
    ("SNMP", &["snmp", "snmp_access", "snmp_user", "snmptrapd"]),
    ("CUPS", &["cups", "cups_printers", "cups_browsed"]),
    (
        "libvirt daemon",
        &["libvirtd", "libvirt_qemu", "libvirt_socket"],
    ),
    (
        "access points",
        &["hostapd", "hostapd_file", "hotspot", "hostapd_passphrase"],
    ),
    (
        "apt",
        &[
            "apt",
            "apt_pin",
            "upgrade_origin",
            "held_package",
            "update_blacklist",
            "apt_timer",
        ],
    ),
    ("Kubernetes", &["kubelet", "kubelet_args", "kube_apiserver"]),
    (
        "container files",
        &["container_file", "container_mount", "podman_default"],
    ),
    ("backups", &["backup", "backup_age", "backup_setting"]),
    (
        "logins without SSH",
        &["hosts_equiv", "rhosts", "inetd", "socket_login"],
    ),
    (
        "rights of files",
        &[
            "secret_file",
            "shell_file",
            "root_program",
            "search_path",
            "mask",
            "user_program",
        ],
    ),
    ("socket units", &["socket_root"]),
    (
        "LDAP",
        &[
            "ldap_access",
            "ldap_tls",
            "ldap_client",
            "ldap_hashes",
            "ldap_root",
            "ldap_database",
            "ldap_sign_in",
            "ldap_update",
        ],
    ),
    ("PowerDNS Recursor", &["pdns_recursor"]),
    ("ntpd", &["ntpd"]),
    ("VNC servers", &["vnc_server"]),
    ("rspamd", &["rspamd_controller", "rspamd_filter"]),
    ("OpenDKIM", &["opendkim"]),
    (
        "RabbitMQ",
        &["rabbitmq", "rabbitmq_terms", "rabbitmq_account"],
    ),
    ("polkit", &["polkit_rule", "polkit_group"]),
    ("dynamic loader", &["loaded_library"]),
    ("OpenSSL", &["openssl_cnf"]),
    ("journal", &["journald", "journal_size", "rsyslog"]),
    ("firewall", &["firewall", "filter_file"]),
    ("network cards", &["network_card"]),
    ("Docker", &["docker", "registry"]),
    ("chrony", &["chrony", "time_source"]),
    ("clock", &["clock_source"]),
    (
        "Proxmox VE",
        &["pve_store", "pve_token", "pve_firewall", "corosync"],
    ),
    ("units of systemd", &["unit", "timer"]),
    ("ZFS", &["zfs", "zfs_boot", "zfs_zed", "zfs_scrub"]),
    ("btrfs", &["btrfs"]),
    ("LVM", &["lvm", "lvm_setting"]),
    ("software RAID", &["md", "mdadm", "mdadm_check"]),
    (
        "virtual machines",
        &["proxmox", "libvirt", "vm", "guest_device", "container"],
    ),
    (
        "certificates and keys",
        &["certificate", "key_file", "tls_site"],
    ),
    ("libraries in use", &["mapped", "openssl-copy"]),
    ("Wi-Fi", &["wifi"]),
    ("UPS", &["ups", "apcupsd", "ups_time", "ups_setting"]),
    (
        "accounts and sudo",
        &[
            "accounts",
            "sudo",
            "doas_rule",
            "login_defs",
            "group_member",
        ],
    ),
    (
        "file systems",
        &[
            "mount",
            "fstab",
            "fstab_line",
            "fstab_disk",
            "crypttab_line",
            "root_flags",
            "iscsi_target",
            "swap",
            "fstab_swap",
            "network_mount",
            "encrypted_disk",
            "disk_key",
            "swap_order",
            "multipath",
        ],
    ),
    (
        "disks",
        &["smart", "smartd", "smartd_lines", "disk", "dm", "edac"],
    ),
    ("logins through PAM", &["pam", "password_rule"]),
    ("name resolution", &["resolver"]),
    (
        "scheduled jobs",
        &["cron", "ignored_file", "rotation", "rotation_file"],
    ),
    ("packages", &["packages", "package", "os", "dnf"]),
    (
        "kernel",
        &[
            "sysctl",
            "module",
            "kernel",
            "boot_line",
            "limit",
            "core_handler",
            "apparmor",
            "selinux",
            "audit",
            "unattended",
            "cpu",
            "memory",
            "cgroup",
            "system",
            "virtualisation",
            "tool",
        ],
    ),
    ("ClickHouse", &["clickhouse_user"]),
    ("InfluxDB", &["influxdb"]),
    ("PgBouncer", &["pgbouncer"]),
    ("Pure-FTPd", &["pure_ftpd", "pure_ftpd_tls"]),
    ("WireGuard", &["wireguard_peer"]),
    ("IPsec", &["ipsec_mode", "ipsec_proposal"]),
    ("Wi-Fi sign-ins", &["wifi_sign_in"]),
    ("OpenWrt", &["uci_wifi", "uci_wifi_open", "uci_zone"]),
    (
        "Tomcat",
        &["tomcat_connector", "tomcat_servlet", "tomcat_manager"],
    ),
    ("uWSGI", &["uwsgi"]),
    ("Python servers", &["python_server"]),
    ("ISC DHCP", &["dhcpd"]),
    ("Kea", &["kea_agent", "kea_leases"]),
    ("Prometheus", &["prometheus", "prometheus_alert"]),
    ("Zabbix agent", &["zabbix_agent", "zabbix_parameter"]),
    ("systemd-resolved", &["resolved"]),
    ("dnsmasq", &["dnsmasq", "dnsmasq_tftp"]),
    (
        "Kerberos",
        &["kerberos_acl", "kerberos_types", "kerberos_kdc"],
    ),
    (
        "FreeRADIUS",
        &["radius_user", "radius_client", "radius_tls"],
    ),
    ("PowerDNS", &["pdns_web", "pdns_transfer"]),
    ("Knot DNS", &["knot_acl"]),
    ("network interfaces", &["interface_line"]),
    ("OpenSearch", &["opensearch"]),
    ("NRPE", &["nrpe"]),
    ("Icinga", &["icinga_user"]),
    ("Grafana", &["grafana"]),
    ("collectd", &["collectd"]),
    ("Telegraf", &["telegraf"]),
    ("Alertmanager", &["alertmanager"]),
    ("Gitea", &["gitea"]),
    ("fail2ban", &["fail2ban", "fail2ban_jail"]),
    ("k3s", &["k3s_kubeconfig"]),
    ("TeX", &["tex", "tex_files"]),
    ("Cassandra", &["cassandra"]),
    ("CouchDB", &["couchdb"]),
    ("OpenDMARC", &["opendmarc"]),
    ("Dropbear", &["dropbear"]),
    ("Caddy", &["caddy"]),
    ("Varnish", &["varnish"]),
    ("Java management", &["jmx"]),
    ("certbot", &["certbot", "certbot_line"]),
    ("mail aliases", &["mail_alias"]),
    ("mail servers together", &["mail_socket"]),
    ("Cyrus", &["cyrus"]),
    ("OpenSMTPD", &["opensmtpd"]),
    ("fetchmail", &["fetchmail"]),
    ("Mailman", &["mailman"]),
];

/// Returns the service of a rule. If the rule is about several services, this is the first of them that exists on the
/// machine; without one, the first in the table.
pub(crate) fn service_of(page: &Advice, check: &Check, facts: &Facts) -> String {
    let mut kinds: Vec<&str> = check.about.iter().map(|about| about.kind()).collect();
    if kinds.is_empty() {
        let conditions = [Some(&check.violated), check.applies.as_ref()];
        let texts = conditions.into_iter().flatten();
        kinds.extend(texts.flat_map(|cel| cel.split('"').skip(1).step_by(2)));
    }
    let first: Vec<&str> = kinds.into_iter().map(first_word).collect();
    let of_rule = |(_, words): &&(&str, &[&str])| words.iter().any(|word| first.contains(word));
    let is_here = |(_, words): &&(&str, &[&str])| {
        let mut known = words.iter().filter(|word| first.contains(word));
        known.any(|word| {
            let inside = format!("{word}.");
            facts.under(&inside).next().is_some() || facts.map.contains_key(*word)
        })
    };
    let mut known = SERVICES.iter().filter(of_rule);
    let found = known.clone().find(is_here).or_else(|| known.next());
    found.map_or(page.domain.clone(), |(name, _)| (*name).to_owned())
}

/// Returns why a rule may not apply. It is the rule's `applies` condition; without one, "no KIND here" for the kinds of
/// subjects that the rule checks.
pub(crate) fn condition_of(check: &Check) -> Option<String> {
    let kinds: Vec<&str> = check.about.iter().map(|about| about.kind()).collect();
    let kinds = (!kinds.is_empty()).then(|| format!("no {} here", kinds.join(", ")));
    check.applies.clone().or(kinds)
}

fn first_word(key: &str) -> &str {
    key.split('.').next().unwrap_or_default()
}

/// Sets the outcome of each rule, and the list of services that exist on the machine.
pub(crate) fn fill_in(checked: &mut Checked, facts: &Facts) {
    let words: Vec<&str> = facts.map.keys().map(|key| first_word(key)).collect();
    let is_here = |service: &str| {
        let known = SERVICES.iter().find(|(name, _)| *name == service);
        known.is_none_or(|(_, of)| of.iter().any(|word| words.contains(word)))
    };
    for rule in &mut checked.rules {
        let mut of = checked
            .findings
            .iter()
            .filter(|finding| finding.rule == rule.rule);
        let unknown = of
            .clone()
            .find(|finding| finding.certainty == Certainty::Unknown);
        let not_asked = checked.not_asked.iter().find(|one| one.rule == rule.rule);
        let applies = rule.why.take();
        (rule.outcome, rule.why) = match (unknown, not_asked) {
            _ if of.any(|finding| finding.certainty == Certainty::Violated) => {
                (Outcome::Found, None)
            }
            (Some(unknown), _) => (Outcome::Unknown, Some(unknown.text.clone())),
            (None, Some(not_asked)) => (Outcome::NotAsked, Some(not_asked.why.clone())),
            _ if !is_here(&rule.service) => (Outcome::NoService, None),
            _ if rule.applied > 0 => (Outcome::Fine, None),
            _ => (Outcome::DoesNotApply, applies),
        };
    }
    checked.services = count_services(checked);
    checked.nothing_read = checked.services.iter().all(|service| service.asked == 0);
    checked.without_rules = without_rules(facts);
}

/// Counts the rules of each existing service by outcome. Services have the order of `SERVICES`; other services follow,
/// sorted by name.
fn count_services(checked: &Checked) -> Vec<Service> {
    let mut found: BTreeMap<(usize, &str), Service> = BTreeMap::new();
    let present = checked
        .rules
        .iter()
        .filter(|rule| rule.outcome != Outcome::NoService);
    for rule in present {
        let at = SERVICES.iter().position(|(name, _)| *name == rule.service);
        let key = (at.unwrap_or(SERVICES.len()), rule.service.as_str());
        let service = found.entry(key).or_insert_with(|| Service {
            service: rule.service.clone(),
            ..Service::default()
        });
        service.asked += usize::from(rule.outcome.is_answered());
        service.found += usize::from(rule.outcome == Outcome::Found);
        service.unknown += usize::from(rule.outcome == Outcome::Unknown);
        service.not_asked += usize::from(rule.outcome == Outcome::NotAsked);
    }
    found.into_values().collect()
}

/// Returns running programs for which the catalogue has no rule, sorted by name.
fn without_rules(facts: &Facts) -> Vec<WithoutRules> {
    let running = facts.under("running.").filter_map(|(key, fact)| {
        let FactValue::Known(what) = &fact.value else {
            return None;
        };
        Some(WithoutRules {
            program: key.trim_start_matches("running.").to_owned(),
            what: what.as_str()?.to_owned(),
        })
    });
    running.collect()
}

#[cfg(test)]
mod tests {
    use crate::{Catalogue, findings};
    use assay_model::coverage::Outcome;
    use assay_model::{FactKind, Facts};

    /// Each rule belongs to a service of the table. The facts of this service show whether the service exists on the
    /// machine.
    #[test]
    fn every_rule_has_a_service() {
        let catalogue = Catalogue::builtin().unwrap();
        let checked = findings(catalogue.all(), &Facts::default());
        assert!(checked.nothing_read && checked.has_unknown());
        let known = |service: &str| super::SERVICES.iter().any(|(name, _)| *name == service);
        let lost = checked.rules.iter().filter(|rule| !known(&rule.service));
        let lost: Vec<&str> = lost.map(|rule| rule.rule.as_str()).collect();
        assert!(lost.is_empty(), "{lost:?}");
        assert!(checked.rules.iter().all(|rule| !rule.sources.is_empty()));
    }

    /// A rule about nginx and Apache belongs to the one that the machine has.
    #[test]
    fn a_rule_belongs_to_a_service_of_the_machine() {
        let catalogue = Catalogue::builtin().unwrap();
        let service = |key: &str| {
            let mut facts = Facts::default();
            facts.known(key, false, FactKind::Configured, "/etc/x:1");
            let checked = findings(catalogue.all(), &facts);
            let mut rules = checked.rules.into_iter();
            let rule = rules.find(|rule| rule.rule == "client-certificates-unused");
            rule.unwrap().service
        };
        assert_eq!(service("apache.misuse.1.trace"), "Apache");
        assert_eq!(service("nginx.misuse.1.error_log_off"), "nginx");
        assert_eq!(service("sshd.version"), "nginx");
    }

    #[test]
    fn rules_are_counted_by_service() {
        let catalogue = Catalogue::builtin().unwrap();
        let mut facts = Facts::default();
        let place = "/etc/ssh/sshd_config:1";
        facts.known(
            "sshd.scope.everywhere.strictmodes",
            "no",
            FactKind::Configured,
            place,
        );
        facts.about(&assay_model::Subject::new(["sshd.scope", "everywhere"]));
        facts.known(
            "running.named",
            "DNS server",
            FactKind::Runtime,
            "/proc/7/comm",
        );
        let checked = findings(catalogue.all(), &facts);
        assert_eq!(checked.services.len(), 1, "{:?}", checked.services);
        let sshd = &checked.services[0];
        assert_eq!((sshd.service.as_str(), sshd.found), ("sshd", 1));
        let of_sshd = checked
            .rules
            .iter()
            .filter(|rule| rule.service == "sshd")
            .count();
        assert_eq!(sshd.asked + sshd.unknown + sshd.not_asked, of_sshd);
        assert!(!checked.nothing_read);
        assert_eq!(checked.without_rules[0].program, "named");
        let of = |id: &str| checked.rules.iter().find(|rule| rule.rule == id).unwrap();
        assert_eq!(of("sshd-strict-modes-off").outcome, Outcome::Found);
        assert_eq!(of("sshd-root-password").outcome, Outcome::DoesNotApply);
        assert_eq!(of("nginx-sslv3").outcome, Outcome::NoService);
    }
}
