//! Collects the kernel version, command line and page size, and the operating system. Collects the host name only if
//! the user requests it.

use crate::gather::Gather;
use assay_model::{FactKind, FactValue};

pub(crate) const CMDLINE: &str = "/proc/cmdline";

/// Path of the current clock source.
const CLOCK: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

pub(crate) fn collect(g: &mut Gather<'_>, with_identity: bool) {
    g.text("kernel.release", "/proc/sys/kernel/osrelease");
    g.text("kernel.arch", "/proc/sys/kernel/arch");
    g.text("kernel.cmdline", CMDLINE);
    // The kernel uses the last of several words.
    let mitigations = g.facts.str("kernel.cmdline").and_then(|line| {
        let words = line.split_whitespace();
        let last = words
            .filter_map(|word| word.strip_prefix("mitigations="))
            .next_back();
        last.map(str::to_owned)
    });
    const MITIGATIONS: &str = "kernel.mitigations";
    let line = g.facts.map.get("kernel.cmdline").map(|fact| &fact.value);
    match (mitigations, line) {
        (Some(value), _) => g
            .facts
            .known(MITIGATIONS, value, FactKind::Runtime, CMDLINE),
        (None, Some(FactValue::Unknown(why))) => {
            let why = why.clone();
            g.facts
                .unknown(MITIGATIONS, why, FactKind::Runtime, CMDLINE);
        }
        (None, _) => {}
    }
    g.text("kernel.clocksource", CLOCK);
    page_size(g);
    os_name(g);
    if with_identity {
        g.text("host.name", "/proc/sys/kernel/hostname");
    }
}

/// Notes the page size from the auxiliary vector, which the kernel passes to every process (getauxval(3)).
fn page_size(g: &mut Gather<'_>) {
    const KEY: &str = "kernel.page_size";
    const AUXV: &str = "/proc/self/auxv";
    match g.host.read(std::path::Path::new(AUXV)) {
        Ok(bytes) => match page_size_of(&bytes) {
            Some(size) => g.facts.known(KEY, size, FactKind::Runtime, AUXV),
            None => g
                .facts
                .unknown(KEY, "no AT_PAGESZ in it", FactKind::Runtime, AUXV),
        },
        Err(error) => g.fault(KEY, &error, FactKind::Runtime, AUXV),
    }
}

/// Keeps only the page size of the auxiliary vector, because its addresses are private.
pub(crate) fn redact_auxv(auxv: &[u8]) -> Vec<u8> {
    const AT_PAGESZ: u64 = 6;
    let size = page_size_of(auxv);
    let words = size.map_or([0, 0, 0, 0], |size| [AT_PAGESZ, size, 0, 0]);
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Parses AT_PAGESZ from pairs of 64-bit or 32-bit little-endian words.
fn page_size_of(auxv: &[u8]) -> Option<u64> {
    const AT_PAGESZ: u64 = 6;
    let find = |width: usize| {
        let word = |bytes: &[u8]| {
            bytes
                .iter()
                .rev()
                .fold(0u64, |value, byte| value << 8 | u64::from(*byte))
        };
        auxv.chunks_exact(2 * width)
            .map(|pair| (word(&pair[..width]), word(&pair[width..])))
            .find(|(tag, value)| {
                *tag == AT_PAGESZ && value.is_power_of_two() && (4096..=1 << 20).contains(value)
            })
            .map(|(_, size)| size)
    };
    find(8).or_else(|| find(4))
}

fn os_name(g: &mut Gather<'_>) {
    const KEY: &str = "os.name";
    let path = "/etc/os-release";
    let Some(text) = g.read(KEY, path) else {
        return;
    };
    let line = text
        .lines()
        .enumerate()
        .find_map(|(at, line)| Some((at, line.strip_prefix("PRETTY_NAME=")?)));
    if let Some((at, name)) = line {
        g.facts.known(
            KEY,
            name.trim_matches('"'),
            FactKind::Configured,
            format!("{path}:{}", at + 1),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_size_in_both_widths() {
        let wide: Vec<u8> = [33u64, 7, 6, 4096, 0, 0]
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        assert_eq!(page_size_of(&wide), Some(4096));
        let kept = redact_auxv(&wide);
        assert_eq!((kept.len(), page_size_of(&kept)), (32, Some(4096)));
        let narrow: Vec<u8> = [16u32, 7, 6, 65536, 0, 0]
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        assert_eq!(page_size_of(&narrow), Some(65536));
        assert_eq!(page_size_of(b"short"), None);
    }
}
