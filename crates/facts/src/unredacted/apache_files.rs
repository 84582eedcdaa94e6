//! Lists the files of Apache's configuration in the order in which Debian's and Red Hat's main files include them.

use super::lines_of_files::{exists, files};
use crate::gather::Gather;

/// The main configuration files of Debian and Red Hat.
pub(super) const MAINS: [&str; 2] = ["/etc/apache2/apache2.conf", "/etc/httpd/conf/httpd.conf"];
/// Debian's apache2.conf includes the modules first, then the snippets, and the sites last.
const DIRS: [&str; 4] = [
    "/etc/apache2/mods-enabled",
    "/etc/apache2/conf-enabled",
    "/etc/apache2/sites-enabled",
    "/etc/httpd/conf.d",
];

/// Returns the paths of the files that exist.
pub(super) fn apache_files(g: &mut Gather<'_>) -> Vec<String> {
    let mut all: Vec<String> = MAINS
        .into_iter()
        .filter(|path| exists(g, path))
        .map(str::to_owned)
        .collect();
    for dir in DIRS {
        all.extend(files(g, "apache", dir, ".conf"));
    }
    all
}
