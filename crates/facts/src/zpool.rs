//! `zpool status -LP` (zpool-status(8)): the devices of a pool.

/// Full paths of the leaf devices, in the order of the listing. Logs, caches and spares are
/// devices of the pool too.
pub(crate) fn leaves(status: &str) -> Vec<String> {
    let config = status
        .lines()
        .skip_while(|line| line.trim() != "config:")
        .skip(1);
    let config = config.take_while(|line| !line.starts_with("errors:"));
    let names = config.filter_map(|line| line.split_whitespace().next());
    names
        .filter(|name| name.starts_with('/'))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_of_every_class() {
        let status = "  pool: tank\n state: ONLINE\n  scan: scrub of /dev/nothing\nconfig:\n\n\tNAME           STATE     READ WRITE CKSUM\n\ttank           ONLINE       0     0     0\n\t  mirror-0     ONLINE       0     0     0\n\t    /dev/sda1  ONLINE       0     0     0\n\t    /dev/sdb1  ONLINE       0     0     0\n\tlogs\n\t  /dev/nvme0n1p1  ONLINE       0     0     0\n\tspares\n\t  /dev/sdc1    AVAIL   \n\nerrors: No known data errors\n";
        assert_eq!(
            leaves(status),
            ["/dev/sda1", "/dev/sdb1", "/dev/nvme0n1p1", "/dev/sdc1"]
        );
        assert!(leaves("cannot open 'x': no such pool\n").is_empty());
    }
}
