//! Programs whose configuration assay changes, and the syntax of their files.

use crate::change::ConfigLanguage;
use serde::{Deserialize, Serialize};

/// Programs whose configuration `assay check --fix` changes. `assay-changes` validates and reloads
/// the configuration of each.
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
    /// Kernel parameters: files of sysctl.d and the running values.
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
    /// Access rules of `PostgreSQL`.
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
    /// memcached with options in a file of the shell.
    Memcached,
    /// chrony.
    Chrony,
    /// sudo.
    Sudo,
    /// apt.
    Apt,
    /// systemd-journald.
    Journald,
    /// Boot options of GRUB.
    Grub,
    /// Environment of logins.
    Login,
    /// Mask of new files of login shells.
    Mask,
    /// Trusted hosts of rlogin and sshd.
    HostsEquiv,
    /// Table of mounts.
    Fstab,
    /// NFS exports.
    Exports,
    /// Parameters of kernel modules.
    Modprobe,
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
    /// Units of systemd that the administrator wrote.
    Units,
    /// Sources of packages of apt.
    AptSources,
    /// inetd and xinetd.
    Inetd,
    /// libvirt's drivers.
    Libvirt,
    /// PAM.
    Pam,
    /// Proxmox VE.
    Proxmox,
    /// Permissions of files.
    Files,
}

impl Configured {
    /// Returns the syntax of its files.
    #[must_use]
    pub fn language(self) -> ConfigLanguage {
        match self {
            Self::Sshd | Self::Ssh => ConfigLanguage::Ssh,
            Self::Nginx => ConfigLanguage::Nginx,
            Self::Postfix => ConfigLanguage::Postfix,
            Self::Dovecot => ConfigLanguage::Dovecot,
            Self::Samba | Self::Php | Self::Rsyncd | Self::Journald => ConfigLanguage::Ini,
            Self::PostfixServices => ConfigLanguage::PostfixServices,
            Self::Sysctl => ConfigLanguage::Sysctl,
            Self::Apache | Self::Cups => ConfigLanguage::Apache,
            Self::Lighttpd | Self::Hostapd | Self::Vsftpd => ConfigLanguage::KeyValue,
            Self::Postgresql => ConfigLanguage::Postgresql,
            Self::Mariadb => ConfigLanguage::Mysql,
            Self::Tftpd | Self::Memcached | Self::Grub | Self::Login => ConfigLanguage::Shell,
            Self::Fstab => ConfigLanguage::Fstab,
            Self::Libvirt => ConfigLanguage::KeyValue,
            Self::Exim => ConfigLanguage::Shell,
            Self::Squid | Self::Snmpd | Self::Mosquitto => ConfigLanguage::Words,
            Self::Bind
            | Self::Unbound
            | Self::Mongodb
            | Self::Elasticsearch
            | Self::Docker
            | Self::Proftpd
            | Self::Units
            | Self::AptSources
            | Self::Inetd
            | Self::Pam
            | Self::Proxmox
            | Self::Files => ConfigLanguage::Lines,
            Self::Modprobe => ConfigLanguage::Modprobe,
            Self::Haproxy
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
            | Self::Apcupsd => ConfigLanguage::Words,
        }
    }
}
