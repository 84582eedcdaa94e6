//! Collects the configuration of services for checks: the settings of each scope with file and line. A setting is noted
//! only in the scope that contains its line, not in scopes that inherit it. One line therefore gives one finding.

pub(crate) mod apache;
pub(crate) mod apache_reading;
pub(crate) mod apache_redact;
pub(crate) mod authorized_keys;
pub(crate) mod certificates;
pub(crate) mod ciphers;
pub(crate) mod databases;
pub(crate) mod dnsbl;
pub(crate) mod dovecot;
pub(crate) mod mail_queue;
pub(crate) mod mail_tls;
pub(crate) mod mapped;
pub(crate) mod nginx;
pub(crate) mod not_asked;
pub(crate) mod not_asked_files;
pub(crate) mod openssh;
pub(crate) mod openvpn;
pub(crate) mod packages;
pub(crate) mod postfix;
pub(crate) mod postfix_lists;
pub(crate) mod postfix_login;
pub(crate) mod postfix_redact;
pub(crate) mod postfix_relay;
pub(crate) mod power;
pub(crate) mod resolver;
pub(crate) mod samba;
pub(crate) mod scopes;
pub(crate) mod setting_lines;
pub(crate) mod smart;
pub(crate) mod spam;
pub(crate) mod ssh;
pub(crate) mod ssh_access;
pub(crate) mod ssh_algorithms;
pub(crate) mod sshd_lines;
pub(crate) mod swap;
pub(crate) mod timers;
pub(crate) mod tls_lines;

use crate::gather::Gather;

/// Runs all collectors of services. Without `accounts`, also notes which checks do not run because names are redacted.
pub(crate) fn collect(g: &mut Gather<'_>, accounts: bool) {
    openssh::collect(g);
    ssh::server(g);
    ssh::client(g);
    nginx::collect(g);
    postfix::collect(g);
    mail_queue::collect(g);
    spam::collect(g);
    dovecot::collect(g);
    resolver::collect(g);
    setting_lines::collect(g);
    samba::collect(g);
    openvpn::collect(g);
    swap::collect(g);
    packages::collect(g);
    certificates::collect(g);
    mapped::collect(g);
    timers::collect(g);
    apache::collect(g);
    tls_lines::collect(g);
    power::collect(g);
    databases::collect(g);
    super::daemons::collect(g);
    if !accounts {
        not_asked::collect(g);
    }
}
