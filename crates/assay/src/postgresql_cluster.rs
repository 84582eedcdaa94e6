//! Lets the pages of PostgreSQL try the cluster that exists: their defaults name the cluster 15/main of Debian 12.

use assay_host::Host;
use assay_model::advice::Advice;
use std::collections::BTreeMap;
use std::path::Path;

const CLUSTERS: &str = "/etc/postgresql";
const DEFAULT: [&str; 2] = ["15/main", "15 main"];

/// Replaces the cluster in the defaults of a page by the newest cluster of the machine, if the default does not exist.
/// A value that the user gave has priority; `name_of` returns the name under which a value is given.
pub(crate) fn enter_cluster(
    host: &dyn Host,
    page: &Advice,
    given: &mut BTreeMap<String, String>,
    name_of: impl Fn(&str) -> String,
) {
    if !page.id.starts_with("postgresql-") || exists(host, "15", "main") {
        return;
    }
    let Some((version, name)) = newest(host) else {
        return;
    };
    for (parameter, value) in &page.parameters {
        let Some(default) = &value.default else {
            continue;
        };
        let own = default
            .replace(DEFAULT[0], &format!("{version}/{name}"))
            .replace(DEFAULT[1], &format!("{version} {name}"));
        if own != *default && !given.contains_key(parameter) {
            given.entry(name_of(parameter)).or_insert(own);
        }
    }
}

fn exists(host: &dyn Host, version: &str, name: &str) -> bool {
    let path = format!("{CLUSTERS}/{version}/{name}/postgresql.conf");
    host.exists(Path::new(&path)).unwrap_or(false)
}

/// Returns the version and the name of the newest cluster; of several, the first name.
fn newest(host: &dyn Host) -> Option<(String, String)> {
    let names = |path: &str| {
        let names = host.list(Path::new(path)).unwrap_or_default();
        let mut names: Vec<String> = names
            .iter()
            .map(|name| name.to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    };
    let mut versions = names(CLUSTERS);
    // 9.6 is older than 15.
    versions.sort_by_key(|version| {
        let mut parts = version
            .split('.')
            .map(|part| part.parse::<u32>().unwrap_or(0));
        (parts.next(), parts.next())
    });
    versions.into_iter().rev().find_map(|version| {
        let mut clusters = names(&format!("{CLUSTERS}/{version}")).into_iter();
        let name = clusters.find(|name| exists(host, &version, name))?;
        Some((version, name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_advice::Catalogue;
    use assay_host::Recorded;

    fn entered(clusters: &[&str], given: &[(&str, &str)]) -> BTreeMap<String, String> {
        let host = clusters.iter().fold(Recorded::new(), |host, cluster| {
            host.file(&format!("{CLUSTERS}/{cluster}/postgresql.conf"), "")
        });
        let page = Catalogue::builtin().unwrap();
        let page = page.get("postgresql-jit-off").unwrap().clone();
        let mut given: BTreeMap<String, String> = given
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        enter_cluster(&host, &page, &mut given, str::to_owned);
        given
    }

    #[test]
    fn the_cluster_that_exists_is_tried() {
        let own = entered(&["9.6/main", "17/shop"], &[]);
        assert_eq!(own["config"], "/etc/postgresql/17/shop/postgresql.conf");
        assert_eq!(own["reload"], "pg_ctlcluster 17 shop reload");
        assert!(entered(&["15/main", "17/main"], &[]).is_empty());
        assert!(entered(&[], &[]).is_empty());
        let said = entered(&["17/main"], &[("config", "/srv/p.conf")]);
        assert_eq!(said["config"], "/srv/p.conf");
    }
}
