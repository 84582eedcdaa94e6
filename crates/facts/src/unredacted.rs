//! What has to see names to tell whether they fit: the machine as it is, not as [`crate::Redacted`] shows
//! it. Facts of these collectors are yes and no, counts, keywords, and paths that are facts elsewhere too;
//! no name of a host, a user or an address. Only for a machine or a tree that is here: no capture and no
//! bundle has what they read.

mod authorities;
mod authorized_keys;
mod dependencies;
mod openssl_copies;
mod pfsense;
mod resume;
mod sites;
mod sshd;

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
}
