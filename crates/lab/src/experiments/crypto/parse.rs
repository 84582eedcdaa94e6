//! Parses the output of openssl, cryptsetup and the kernel.

use super::FLAGS;
use std::collections::BTreeMap;

/// Parses the flags of [`FLAGS`] in /proc/cpuinfo, from the first CPU; `None` without a line of flags.
pub(super) fn parse_flags(cpuinfo: &str) -> Option<Vec<String>> {
    let line = cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("flags"))?;
    let have: Vec<_> = line.split_whitespace().collect();
    let known = FLAGS.iter().filter(|flag| have.contains(*flag));
    Some(known.map(|flag| (*flag).to_owned()).collect())
}

/// Parses the rate of the last block size from `openssl speed -mr`, in bytes per second:
/// `+F:25:AES-256-GCM:4180494628.57` (apps/speed.c, machine-readable form of `print_result`).
pub(super) fn parse_openssl(text: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix("+F:"))?;
    let rate: f64 = line.rsplit(':').next()?.trim().parse().ok()?;
    (rate.is_finite() && rate > 0.0).then_some(rate)
}

/// Parses the rates of encryption and decryption from `cryptsetup benchmark --cipher`, in bytes per second. A line
/// contains the cipher, the key size followed by `b`, then each rate followed by `MiB/s`.
pub(super) fn parse_cryptsetup(text: &str) -> Option<(f64, f64)> {
    let line = text
        .lines()
        .find(|line| line.contains("MiB/s") && !line.starts_with('#'))?;
    let words: Vec<_> = line.split_whitespace().collect();
    let mut rates = words
        .windows(2)
        .filter(|pair| pair[1] == "MiB/s")
        .filter_map(|pair| pair[0].parse::<f64>().ok());
    let bytes = |rate: f64| rate * f64::from(1 << 20);
    Some((bytes(rates.next()?), bytes(rates.next()?)))
}

/// Parses the driver with the highest priority for each algorithm from /proc/crypto. Internal drivers are skipped,
/// because only other drivers can use them.
pub(super) fn parse_drivers(text: &str, algorithms: &[&str]) -> BTreeMap<String, String> {
    let mut best: BTreeMap<String, (i64, String)> = BTreeMap::new();
    for block in text.split("\n\n") {
        let field = |key: &str| {
            block.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                (name.trim() == key).then(|| value.trim())
            })
        };
        let (Some(name), Some(driver)) = (field("name"), field("driver")) else {
            continue;
        };
        let priority = field("priority")
            .and_then(|text| text.parse().ok())
            .unwrap_or(0);
        let better = best.get(name).is_none_or(|(known, _)| priority > *known);
        if algorithms.contains(&name) && field("internal") != Some("yes") && better {
            best.insert(name.to_owned(), (priority, driver.to_owned()));
        }
    }
    best.into_iter()
        .map(|(name, (_, driver))| (name, driver))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A CPU without any of the flags differs from a CPU whose flags are unknown.
    #[test]
    fn no_flag_is_not_no_answer() {
        let line = "processor\t: 0\nflags\t\t: fpu sse2 aes ssse3 hypervisor\n";
        let found: Vec<String> = ["aes", "ssse3"].map(str::to_owned).into();
        assert_eq!(parse_flags(line), Some(found));
        assert_eq!(
            parse_flags("flags\t\t: fpu sse2 hypervisor\n"),
            Some(Vec::new())
        );
        assert_eq!(parse_flags("Features\t: fp asimd aes\n"), None);
    }

    /// Output of OpenSSL 3.0.19: `openssl speed -mr -seconds 1 -bytes 16384 -evp aes-256-gcm`.
    #[test]
    fn openssl_tells_bytes_a_second() {
        let text = "+H:16384\n+F:25:AES-256-GCM:4180494628.57\n";
        assert_eq!(parse_openssl(text), Some(4_180_494_628.57));
        for bad in [
            "",
            "+H:16384\n",
            "+F:25:AES-256-GCM:nan\n",
            "+F:::\n",
            "+F:25:x:0.00\n",
        ] {
            assert_eq!(parse_openssl(bad), None, "{bad}");
        }
    }
}
