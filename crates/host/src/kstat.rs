//! Parses ZFS's kstat files on Linux: two header lines, then lines `name type data` (OpenZFS
//! module/os/linux/spl/spl-kstat.c).

/// File with the counters of the ARC and the L2ARC.
pub const ARCSTATS: &str = "/proc/spl/kstat/zfs/arcstats";
/// File with the counters of the intent log, for all pools together.
pub const ZIL: &str = "/proc/spl/kstat/zfs/zil";

/// Returns a counter by name; `None` if this version of ZFS lacks it.
#[must_use]
pub fn find_counter(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        (words.next()? == name).then(|| words.nth(1)?.parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_openzfs_2_1_11() {
        let zil = include_str!("../fixtures/zfs-2.1.11-kstat-zil.txt");
        assert_eq!(find_counter(zil, "zil_commit_count"), Some(2));
        assert_eq!(find_counter(zil, "zil_commit"), None);
    }

    #[test]
    fn a_whole_name_and_a_number() {
        let text =
            "9 1 0x01 147 39984 1 2\nname type data\nhits 4 900\nl2_hits 4 7\nodd 4 x\ncut 4";
        assert_eq!(find_counter(text, "hits"), Some(900));
        for name in ["l2", "data", "odd", "cut", ""] {
            assert_eq!(find_counter(text, name), None, "{name}");
        }
    }
}
