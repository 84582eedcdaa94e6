//! Programs whose configuration assay changes, with the syntax of their files.

use crate::change::ConfigLanguage;
use serde::{Deserialize, Serialize};

/// Programs whose configuration `assay check --fix` changes. `assay-changes` validates the configuration of each
/// program and makes the program reload it.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Configured {
    /// OpenSSH's server.
    Sshd,
    /// OpenSSH's system-wide client configuration.
    Ssh,
    /// nginx.
    Nginx,
    /// Postfix.
    Postfix,
    /// Dovecot.
    Dovecot,
    /// Samba.
    Samba,
    /// Options of the services in Postfix's master.cf.
    PostfixServices,
    /// Kernel parameters, in files of sysctl.d and in the running kernel.
    Sysctl,
    /// Apache httpd.
    Apache,
    /// lighttpd.
    Lighttpd,
    /// `HAProxy`.
    Haproxy,
    /// PHP and its pools of workers.
    Php,
    /// `PostgreSQL`.
    Postgresql,
    /// Access rules of `PostgreSQL` (`pg_hba.conf`).
    PostgresqlAccess,
    /// `MariaDB`.
    Mariadb,
    /// Redis.
    Redis,
    /// `OpenVPN`.
    Openvpn,
    /// hostapd.
    Hostapd,
    /// vsftpd.
    Vsftpd,
    /// rsync's daemon.
    Rsyncd,
    /// tftpd-hpa.
    Tftpd,
    /// memcached, whose options are in a file with shell syntax.
    Memcached,
    /// chrony.
    Chrony,
    /// sudo.
    Sudo,
    /// apt.
    Apt,
    /// systemd-journald.
    Journald,
    /// Boot options in the configuration of GRUB.
    Grub,
    /// Environment variables of login sessions.
    Login,
    /// umask of login shells.
    Mask,
    /// hosts.equiv: hosts that rlogin and sshd trust.
    HostsEquiv,
    /// Mount table /etc/fstab.
    Fstab,
    /// NFS exports.
    Exports,
    /// Parameters of kernel modules (modprobe.d).
    Modprobe,
    /// mdadm: `mdadm.conf.d`, and the options of Debian's checks in /etc/default/mdadm.
    Mdadm,
    /// smartd.
    Smartd,
    /// Network UPS Tools.
    Nut,
    /// apcupsd.
    Apcupsd,
    /// BIND.
    Bind,
    /// Unbound.
    Unbound,
    /// Squid.
    Squid,
    /// Net-SNMP's daemon.
    Snmpd,
    /// Mosquitto.
    Mosquitto,
    /// `MongoDB`.
    Mongodb,
    /// Elasticsearch.
    Elasticsearch,
    /// Docker's daemon.
    Docker,
    /// `ProFTPD`.
    Proftpd,
    /// CUPS.
    Cups,
    /// Exim as Debian configures it.
    Exim,
    /// systemd units that the administrator wrote.
    Units,
    /// Package sources of apt.
    AptSources,
    /// inetd and xinetd.
    Inetd,
    /// Configuration of libvirt's drivers.
    Libvirt,
    /// PAM.
    Pam,
    /// Proxmox VE.
    Proxmox,
    /// OpenDKIM.
    #[serde(rename = "opendkim")]
    OpenDkim,
    /// rspamd.
    Rspamd,
    /// `SpamAssassin`.
    #[serde(rename = "spamassassin")]
    SpamAssassin,
    /// Options of `SpamAssassin`'s daemon in /etc/default.
    Spamd,
    /// cups-browsed.
    CupsBrowsed,
    /// ISC's DHCP server.
    Dhcpd,
    /// Agent of the DHCP server Kea.
    Kea,
    /// OpenLDAP with slapd.conf.
    Slapd,
    /// ntpd and `NTPsec`.
    Ntpd,
    /// `PowerDNS`'s recursor.
    PdnsRecursor,
    /// Pure-FTPd.
    PureFtpd,
    /// NFS server (`nfs.conf`).
    NfsServer,
    /// `RabbitMQ`.
    #[serde(rename = "rabbitmq")]
    RabbitMq,
    /// The kubelet of Kubernetes.
    Kubelet,
    /// Defaults of Podman (`containers.conf`).
    Containers,
    /// Tables of cron.
    Cron,
    /// login.defs: defaults for accounts and passwords.
    LoginDefs,
    /// openssl.cnf.
    #[serde(rename = "openssl")]
    OpenSsl,
    /// initramfs-tools.
    Initramfs,
    /// Options of Prometheus in /etc/default.
    Prometheus,
    /// Tomcat.
    Tomcat,
    /// uWSGI.
    Uwsgi,
    /// Agent of Zabbix.
    Zabbix,
    /// Search paths and preloaded libraries of the dynamic linker.
    LdSo,
    /// logrotate.
    Logrotate,
    /// nsswitch.conf: the sources of names.
    Nsswitch,
    /// systemd-timesyncd.
    Timesyncd,
    /// Properties of ZFS datasets.
    Zfs,
    /// Permissions of files.
    Files,
}

impl Configured {
    /// Returns the syntax of the program's configuration files.
    #[must_use]
    pub fn language(self) -> ConfigLanguage {
        match self {
            Self::Sshd | Self::Ssh => ConfigLanguage::Ssh,
            Self::Nginx => ConfigLanguage::Nginx,
            Self::Postfix => ConfigLanguage::Postfix,
            Self::Dovecot => ConfigLanguage::Dovecot,
            Self::Samba | Self::Php | Self::Rsyncd | Self::Journald | Self::NfsServer => {
                ConfigLanguage::Ini
            }
            Self::PostfixServices => ConfigLanguage::PostfixServices,
            Self::Sysctl => ConfigLanguage::Sysctl,
            Self::Apache | Self::Cups => ConfigLanguage::Apache,
            Self::Lighttpd | Self::Hostapd | Self::Vsftpd => ConfigLanguage::KeyValue,
            Self::Postgresql => ConfigLanguage::Postgresql,
            Self::Mariadb => ConfigLanguage::Mysql,
            Self::Tftpd | Self::Memcached | Self::Grub | Self::Login | Self::Mdadm => {
                ConfigLanguage::Shell
            }
            Self::Fstab => ConfigLanguage::Fstab,
            Self::Libvirt => ConfigLanguage::KeyValue,
            Self::Exim => ConfigLanguage::Shell,
            Self::Nsswitch => ConfigLanguage::Nsswitch,
            Self::Squid | Self::Snmpd | Self::Mosquitto => ConfigLanguage::Words,
            Self::Bind
            | Self::Timesyncd
            | Self::Zfs
            | Self::LdSo
            | Self::Rspamd
            | Self::SpamAssassin
            | Self::Spamd
            | Self::Dhcpd
            | Self::Kea
            | Self::PdnsRecursor
            | Self::PureFtpd
            | Self::RabbitMq
            | Self::Kubelet
            | Self::Containers
            | Self::Cron
            | Self::OpenSsl
            | Self::Initramfs
            | Self::Prometheus
            | Self::Tomcat
            | Self::Uwsgi
            | Self::Zabbix
            | Self::Unbound
            | Self::Mongodb
            | Self::Elasticsearch
            | Self::Docker
            | Self::Units
            | Self::AptSources
            | Self::Inetd
            | Self::Pam
            | Self::Proxmox
            | Self::Files => ConfigLanguage::Lines,
            Self::Modprobe => ConfigLanguage::Modprobe,
            Self::Haproxy
            | Self::Logrotate
            | Self::Ntpd
            | Self::OpenDkim
            | Self::CupsBrowsed
            | Self::Slapd
            | Self::LoginDefs
            | Self::PostgresqlAccess
            | Self::Redis
            | Self::Openvpn
            | Self::Chrony
            | Self::Sudo
            | Self::Apt
            | Self::Exports
            | Self::Mask
            | Self::HostsEquiv
            | Self::Smartd
            | Self::Nut
            | Self::Proftpd
            | Self::Apcupsd => ConfigLanguage::Words,
        }
    }
}
