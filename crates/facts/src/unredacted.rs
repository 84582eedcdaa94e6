//! Collectors that read names, to check whether the names are consistent. They read the machine without
//! [`crate::Redacted`]. Their facts contain only booleans, counts, keywords, and paths that other facts contain too,
//! but never the name of a host or user, or an address.
//!
//! The collectors run on the live machine or on a tree of its files. Captures and bundles do not contain their sources.

mod access_lines;
mod accounts;
mod apache_files;
mod apache_sections;
mod authorities;
mod authorized_keys;
mod backup_ages;
mod backup_schedules;
mod boot_settings;
mod cipher_lists;
mod config_mistakes;
mod container_files;
mod database_access;
mod dependencies;
mod docker;
mod enabled_units;
mod file_modes;
mod guest_devices;
mod haproxy;
mod haproxy_traps;
mod ignored_files;
mod lines_of_files;
mod mail_filters;
mod mail_limits;
mod network_cards;
mod nfs_exports;
mod nginx_blocks;
mod nginx_captures;
mod nginx_headers;
mod nginx_pitfalls;
mod open_ports;
mod openssl_copies;
mod pam_lines;
mod pfsense;
mod postgresql_files;
mod resume;
mod search_paths;
mod secret_files;
mod served_files;
mod settings_elsewhere;
mod sites;
mod snmp_access;
mod socket_units;
mod sshd;
mod sudo_rules;
mod system_state;
mod ups_times;

use crate::gather::Gather;

/// Runs all collectors that read names.
pub(crate) fn collect(g: &mut Gather<'_>) {
    sites::collect(g);
    authorities::collect(g);
    resume::collect(g);
    sshd::collect(g);
    authorized_keys::collect(g);
    dependencies::collect(g);
    openssl_copies::collect(g);
    pfsense::collect(g);
    nginx_pitfalls::collect(g);
    apache_sections::collect(g);
    nfs_exports::collect(g);
    accounts::collect(g);
    database_access::collect(g);
    haproxy::collect(g);
    docker::collect(g);
    system_state::collect(g);
    pam_lines::collect(g);
    sudo_rules::collect(g);
    ignored_files::collect(g);
    file_modes::collect(g);
    search_paths::collect(g);
    container_files::collect(g);
    backup_schedules::collect(g);
    open_ports::collect(g);
    network_cards::collect(g);
    cipher_lists::collect(g);
    guest_devices::collect(g);
    served_files::collect(g);
    settings_elsewhere::collect(g);
    boot_settings::collect(g);
    backup_ages::collect(g);
    access_lines::collect(g);
    snmp_access::collect(g);
    socket_units::collect(g);
    ups_times::collect(g);
    mail_filters::collect(g);
    mail_limits::collect(g);
    enabled_units::collect(g);
    config_mistakes::collect(g);
}
