//! What has to see names to tell whether they fit: the machine as it is, not as [`crate::Redacted`] shows
//! it. Facts of these collectors are yes and no, counts, keywords, and paths that are facts elsewhere too;
//! no name of a host, a user or an address. Only for a machine or a tree that is here: no capture and no
//! bundle has what they read.

mod accounts;
mod apache_sections;
mod authorities;
mod authorized_keys;
mod database_access;
mod dependencies;
mod docker;
mod haproxy;
mod lines_of_files;
mod nfs_exports;
mod nginx_pitfalls;
mod openssl_copies;
mod pfsense;
mod resume;
mod sites;
mod sshd;
mod system_state;

use crate::gather::Gather;

/// All of them.
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
}
