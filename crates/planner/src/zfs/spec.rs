//! Parses layouts of ZFS pools, such as `raidz2:6`, `2*mirror:2+special/mirror:2+log/single` or `draid2:4d:8c:1s`.

use super::pool::{Class, PoolVdev};
use super::vdev::VdevKind;
use crate::error::PlannerError;

/// Parses a layout, and assigns `disks` in the given order. A vdev without a number takes all remaining disks.
///
/// # Errors
/// [`PlannerError::Layout`] with the mistake and its correction.
pub fn parse(spec: &str, disks: &[u64]) -> Result<Vec<PoolVdev>, PlannerError> {
    let wrong = |reason: String| PlannerError::layout(spec.escape_debug().to_string(), reason);
    let mut wanted: Vec<(Class, Wanted)> = Vec::new();
    for part in spec.split('+') {
        let part = part.trim();
        let (times, rest) = match part.split_once('*') {
            Some((times, rest)) => (
                times
                    .trim()
                    .parse::<usize>()
                    .ok()
                    .filter(|times| (1..=1024).contains(times))
                    .ok_or_else(|| wrong(format!("`{times}*` is not a count from 1 to 1024")))?,
                rest,
            ),
            None => (1, part),
        };
        let (class, kind) = match rest.split_once('/') {
            Some((class, kind)) => (
                class_named(class.trim()).ok_or_else(|| {
                    wrong(format!(
                        "`{class}/` is not special, dedup, log, cache or spare"
                    ))
                })?,
                kind,
            ),
            None => match class_named(rest.trim()) {
                Some(class) => (class, "single"),
                None => (Class::Normal, rest),
            },
        };
        let kind = Wanted::parse(kind.trim()).map_err(wrong)?;
        wanted.extend(std::iter::repeat_n((class, kind), times));
    }
    let open = wanted
        .iter()
        .filter(|(_, kind)| kind.count.is_none())
        .count();
    let fixed: usize = wanted.iter().filter_map(|(_, kind)| kind.count).sum();
    let rest = match open {
        0 => 0,
        1 => disks.len().saturating_sub(fixed),
        _ => {
            return Err(wrong(
                "only one vdev may go without a count; write e.g. mirror:2+mirror:2".into(),
            ));
        }
    };
    if fixed + rest != disks.len() || (open == 1 && rest == 0) {
        return Err(wrong(format!(
            "takes {} disks, {} are given",
            if open == 1 { fixed + 1 } else { fixed },
            disks.len()
        )));
    }
    let mut left = disks;
    let mut vdevs = Vec::new();
    for (class, kind) in wanted {
        let count = kind.count.unwrap_or(rest);
        let (mine, others) = left.split_at(count);
        left = others;
        let kind = kind.kind(count as u64).map_err(wrong)?;
        kind.check()?;
        vdevs.push(PoolVdev {
            class,
            kind,
            disks: mine.to_vec(),
        });
    }
    Ok(vdevs)
}

fn class_named(name: &str) -> Option<Class> {
    Some(match name {
        "special" => Class::Special,
        "dedup" => Class::Dedup,
        "log" => Class::Log,
        "cache" => Class::Cache,
        "spare" => Class::Spare,
        _ => return None,
    })
}

/// A vdev as the user wrote it, before disks are assigned.
#[derive(Clone, Copy)]
struct Wanted {
    family: Family,
    count: Option<usize>,
}

#[derive(Clone, Copy)]
enum Family {
    Single,
    Mirror,
    Raidz(u64),
    Draid {
        parity: u64,
        data: Option<u64>,
        spares: u64,
    },
}

impl Wanted {
    fn parse(text: &str) -> Result<Self, String> {
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default();
        if let Some(parity) = name.strip_prefix("draid") {
            return Self::draid(parity, parts, text);
        }
        let family = match name {
            "single" | "disk" | "stripe" => Family::Single,
            "mirror" => Family::Mirror,
            "raidz" | "raidz1" => Family::Raidz(1),
            "raidz2" => Family::Raidz(2),
            "raidz3" => Family::Raidz(3),
            _ => {
                return Err(format!(
                    "`{}` is not single, mirror:N, raidz1:N, raidz2:N, raidz3:N or \
                     draidP:Dd:Cc:Ss",
                    name.escape_debug()
                ));
            }
        };
        let count = match parts.next() {
            Some(count) => Some(
                count
                    .parse::<usize>()
                    .ok()
                    .filter(|&count| count > 0)
                    .ok_or_else(|| {
                        format!("`{}` is not a number of disks", count.escape_debug())
                    })?,
            ),
            None if matches!(family, Family::Single) => Some(1),
            None => None,
        };
        if let Some(more) = parts.next() {
            return Err(format!("`:{}` does not belong there", more.escape_debug()));
        }
        if matches!(family, Family::Single) && count != Some(1) {
            return Err("a single vdev is one disk; write 3*single for three".into());
        }
        Ok(Self { family, count })
    }

    /// Parses `draid[P][:Dd][:Cc][:Ss]`, the syntax of `zpool create` (`draid_config_by_type`,
    /// cmd/zpool/zpool_vdev.c).
    fn draid<'a>(
        parity: &str,
        parts: impl Iterator<Item = &'a str>,
        text: &str,
    ) -> Result<Self, String> {
        let bad = || format!("`{}` is not draid[P][:Dd][:Cc][:Ss]", text.escape_debug());
        let parity = match parity {
            "" => 1,
            digits => digits.parse().map_err(|_| bad())?,
        };
        let (mut data, mut spares, mut count) = (None, 0, None);
        for part in parts {
            let (index, suffix) = part.char_indices().last().ok_or_else(bad)?;
            let value: u64 = part[..index].parse().map_err(|_| bad())?;
            match suffix.to_ascii_lowercase() {
                'd' => data = Some(value),
                's' => spares = value,
                'c' => count = Some(usize::try_from(value).map_err(|_| bad())?),
                _ => return Err(bad()),
            }
        }
        if count == Some(0) || data == Some(0) {
            return Err(bad());
        }
        Ok(Self {
            family: Family::Draid {
                parity,
                data,
                spares,
            },
            count,
        })
    }

    fn kind(self, children: u64) -> Result<VdevKind, String> {
        Ok(match self.family {
            Family::Single => VdevKind::Single,
            Family::Mirror => VdevKind::Mirror { children },
            Family::Raidz(parity) => VdevKind::Raidz { parity, children },
            Family::Draid {
                parity,
                data,
                spares,
            } => VdevKind::Draid {
                parity,
                // By default zpool create limits a group to 8 data disks.
                data: match data {
                    Some(data) => data,
                    None => children
                        .checked_sub(spares.saturating_add(parity))
                        .filter(|&left| left > 0)
                        .ok_or("the spares and the parity leave no disk for data")?
                        .min(8),
                },
                children,
                spares,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(spec: &str, disks: usize) -> Result<Vec<String>, String> {
        parse(spec, &vec![1 << 40; disks])
            .map(|vdevs| vdevs.iter().map(|v| v.kind.to_string()).collect())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn what_zpool_create_would_take() {
        assert_eq!(kinds("raidz2", 6).unwrap(), ["raidz2:6"]);
        assert_eq!(
            kinds("2*mirror:2+log", 5).unwrap(),
            ["mirror:2", "mirror:2", "single"]
        );
        assert_eq!(
            kinds("raidz1:3+special/mirror:2+cache+spare", 7).unwrap(),
            ["raidz1:3", "mirror:2", "single", "single"]
        );
        assert_eq!(kinds("draid2:4d:8c:1s", 8).unwrap(), ["draid2:4d:8c:1s"]);
        assert_eq!(kinds("draid", 14).unwrap(), ["draid1:8d:14c:0s"]);
    }

    #[test]
    fn what_it_would_not_take() {
        for (spec, disks, why) in [
            ("raidz2:6", 5, "takes 6 disks, 5 are given"),
            ("mirror+mirror", 4, "only one vdev"),
            ("raidz4", 6, "is not single"),
            ("mirror:1", 1, "at least 2"),
            ("raidz2:2", 2, "at least 3"),
            ("draid2:8d:8c", 8, "need 10 disks"),
            ("draid1:3x", 4, "is not draid"),
            ("draid1:0d", 4, "is not draid"),
            ("draid1:18446744073709551615d", 4, ""),
            ("fast/mirror:2", 2, "is not special"),
            ("0*mirror:2", 2, "count from 1"),
            ("", 1, "is not single"),
            ("single:3", 3, "3*single"),
        ] {
            let error = kinds(spec, disks).unwrap_err();
            assert!(error.contains(why), "{spec}: {error}");
        }
    }
}
