//! Reads small files of /proc and /sys. An unreadable file counts as a missing file.

use std::path::Path;

/// Returns the text of a file; `None` if the file cannot be read.
pub fn read(path: impl AsRef<Path>) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

/// Returns the entries of a directory whose names are numbers, such as process ids in /proc.
pub fn numbers(path: impl AsRef<Path>) -> Vec<u32> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// Returns a counter from the text of `/proc/net/netstat` or `/proc/net/snmp`. These files have two lines for each
/// prefix, one with names and one with values.
pub fn counter(text: &str, prefix: &str, name: &str) -> Option<u64> {
    let mut lines = text
        .lines()
        .filter_map(|line| line.strip_prefix(prefix)?.strip_prefix(':'));
    let (names, values) = (lines.next()?, lines.next()?);
    let at = names.split_whitespace().position(|own| own == name)?;
    values.split_whitespace().nth(at)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_by_name() {
        let text = "TcpExt: SyncookiesSent ListenOverflows ListenDrops\nTcpExt: 0 7 9\n\
                    IpExt: InNoRoutes\nIpExt: 3\n";
        assert_eq!(counter(text, "TcpExt", "ListenOverflows"), Some(7));
        assert_eq!(counter(text, "IpExt", "InNoRoutes"), Some(3));
        assert_eq!(counter(text, "TcpExt", "Nothing"), None);
        assert_eq!(counter("TcpExt: A\n", "TcpExt", "A"), None);
    }
}
