//! Collects Apache's enabled multi-processing module (MPM), from Debian's symlinks `mods-enabled/mpm_*.load`, and the
//! loaded modules that do not support threads. Reads only the names of the symlinks.

use crate::gather::{Gather, lossy};
use assay_model::{FactKind, FactPlace};

/// Directories with Apache's files on Debian and Red Hat, in the order in which the main files include them; each is
/// listed, including links of enabled sites.
pub(crate) const APACHE: [&str; 6] = [
    "/etc/apache2/mods-enabled",
    "/etc/apache2/conf-enabled",
    "/etc/apache2/sites-enabled",
    "/etc/httpd/conf",
    "/etc/httpd/conf.modules.d",
    "/etc/httpd/conf.d",
];

/// Main configuration files of Debian and Red Hat.
pub(crate) const MAINS: [&str; 2] = ["/etc/apache2/apache2.conf", "/etc/httpd/conf/httpd.conf"];

/// Files in other directories that the main files often include.
pub(crate) const OTHERS: [&str; 2] = [
    "/etc/apache2/ports.conf",
    "/etc/letsencrypt/options-ssl-apache.conf",
];

pub(crate) const ENABLED: &str = "/etc/apache2/mods-enabled";

/// Names of the MPMs. a2enmod enables at most one of them at a time.
const WAYS: [&str; 3] = ["event", "prefork", "worker"];

/// Returns whether a module requires prefork in its `.load` file (`# Depends: mpm_prefork`). This is true for mod_php
/// and ITK. The names of PHP modules contain a version.
fn needs_prefork(name: &str) -> bool {
    let php = name.strip_prefix("php");
    let version = |rest: &str| {
        let known = |byte: u8| byte.is_ascii_digit() || byte == b'.';
        rest.bytes().all(known)
    };
    name == "mpm_itk" || php.is_some_and(version)
}

pub(crate) fn collect(g: &mut Gather<'_>) {
    let names = g.list("apache", ENABLED);
    let names: Vec<String> = names.iter().map(|name| lossy(name)).collect();
    let loaded: Vec<&str> = names
        .iter()
        .filter_map(|name| name.strip_suffix(".load"))
        .collect();
    let way = |name: &&str| {
        let name = name.strip_prefix("mpm_")?;
        WAYS.into_iter().find(|way| *way == name)
    };
    let ways: Vec<&str> = loaded.iter().filter_map(way).collect();
    // Apache does not start with two MPMs.
    let [way] = ways.as_slice() else { return };
    let place = FactPlace::from(format!("{ENABLED}/mpm_{way}.load"));
    let mut needs: Vec<&str> = loaded
        .into_iter()
        .filter(|name| needs_prefork(name))
        .collect();
    needs.sort_unstable();
    g.facts
        .known("apache.mpm", *way, FactKind::Configured, place);
    let place = FactPlace::from(ENABLED);
    g.facts
        .known("apache.needs_prefork", needs, FactKind::Configured, place);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_needs_prefork() {
        for name in ["php8.2", "php7.4", "php5", "php", "mpm_itk"] {
            assert!(needs_prefork(name), "{name}");
        }
        for name in ["proxy_fcgi", "mpm_prefork", "phpx", "php8.2-fpm", ""] {
            assert!(!needs_prefork(name), "{name}");
        }
    }
}
