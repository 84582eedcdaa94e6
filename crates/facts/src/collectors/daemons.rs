//! Collects settings of small servers and tools: access rights, risks of data loss, and whether failures are reported.
//! One word list redacts all their files, see [`cleaned_words`]. Larger programs have their own files in `services`.

pub(crate) mod access_points;
pub(crate) mod cleaned_words;
pub(crate) mod data_servers;
mod file_transfer;
mod key_values;
pub(crate) mod lines;
mod name_servers;
pub(crate) mod nested;
mod package_sources;
mod remote_logins;
mod web_and_monitors;

use crate::gather::Gather;

/// Notes the settings of all these servers and tools.
pub(crate) fn collect(g: &mut Gather<'_>) {
    key_values::collect(g);
    data_servers::collect(g);
    name_servers::collect(g);
    file_transfer::collect(g);
    web_and_monitors::collect(g);
    access_points::collect(g);
    package_sources::collect(g);
    remote_logins::collect(g);
}
