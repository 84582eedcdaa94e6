//! Parses the vdevs of a pool from `zpool list` and `zpool iostat`.

use super::Vdev;
use crate::error::PlannerError;

/// Parses `zpool list -vHp POOL`. Returns the vdevs with their sizes and used bytes. All vdevs get the given `speed`.
///
/// # Errors
/// [`PlannerError::Record`] for a truncated line or an invalid number.
pub fn parse_zpool_list(source: &str, text: &str, speed: f64) -> Result<Vec<Vdev>, PlannerError> {
    let mut vdevs: Vec<Vdev> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let broken = |reason: String| PlannerError::record(source, index + 1, reason);
        // Vdevs are indented by a tab; the pool itself is not.
        let Some(row) = line.strip_prefix('\t') else {
            // Headings of classes without data are not indented and, even with -H, padded with spaces.
            if !vdevs.is_empty() && !line.contains('\t') {
                break;
            }
            continue;
        };
        let columns: Vec<&str> = row.split('\t').collect();
        let &[name, size, alloc, ..] = columns.as_slice() else {
            // The headings `logs`, `cache` and `spare` follow the data vdevs.
            if columns.len() == 1
                && ["logs", "cache", "spare", "special", "dedup"].contains(&row.trim())
            {
                break;
            }
            return Err(broken(
                "expected name, size and alloc; was `zpool list -vHp` cut off?".into(),
            ));
        };
        if ["logs", "cache", "spare", "special", "dedup"].contains(&name) {
            break;
        }
        if alloc == "-" {
            continue;
        }
        let number = |what: &str, text: &str| {
            text.parse::<u64>().map_err(|_| {
                broken(format!(
                    "{what} is `{}`, not bytes; use -p",
                    text.escape_debug()
                ))
            })
        };
        vdevs.push(Vdev {
            name: name.to_owned(),
            size: number("size", size)?,
            used: number("alloc", alloc)?,
            speed,
            data_disks: 1,
        });
    }
    match vdevs.is_empty() {
        true => Err(PlannerError::record(
            source,
            1,
            "holds no vdev; record with `zpool list -vHp POOL`",
        )),
        false => Ok(vdevs),
    }
}

/// Parses `zpool iostat -vHp POOL SECONDS 2`. Returns, for each vdev, the bytes written per second. Columns: name,
/// alloc, free, read and write operations, read and write bytes. Uses the last report, because the first report is the
/// mean since the import of the pool.
///
/// # Errors
/// [`PlannerError::Record`] for a truncated line or an invalid number.
pub fn parse_zpool_iostat(source: &str, text: &str) -> Result<Vec<(String, f64)>, PlannerError> {
    let mut rates: Vec<(String, f64)> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let broken = |reason: String| PlannerError::record(source, index + 1, reason);
        let columns: Vec<&str> = line.trim_start_matches('\t').split('\t').collect();
        let &[name, _, _, _, _, _, written] = columns.as_slice() else {
            if columns.len() == 1 {
                continue;
            }
            return Err(broken(format!(
                "expected the 7 columns of `zpool iostat -vHp`, found {}; was it cut off?",
                columns.len()
            )));
        };
        if written == "-" {
            continue;
        }
        let rate = written
            .parse::<f64>()
            .ok()
            .filter(|rate| rate.is_finite())
            .ok_or_else(|| {
                broken(format!(
                    "write bandwidth is `{}`, not bytes; use -p",
                    written.escape_debug()
                ))
            })?;
        match rates.iter_mut().find(|(seen, _)| seen == name) {
            Some((_, last)) => *last = rate,
            None => rates.push((name.to_owned(), rate)),
        }
    }
    Ok(rates)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zpool_list_is_read() {
        let text = "tank\t100\t10\t90\t-\t-\t0\t10\t1.00\tONLINE\t-\n\
                    \tmirror-0\t60\t6\t54\t-\t-\t0\t10\t-\tONLINE\n\
                    \t/dev/sda\t60\t-\t-\t-\t-\t-\t-\t-\tONLINE\n\
                    \tmirror-1\t40\t4\t36\t-\t-\t0\t10\t-\tONLINE\n";
        let vdevs = parse_zpool_list("zpool list", text, 1e8).unwrap();
        assert_eq!(vdevs.len(), 2);
        assert_eq!((vdevs[1].size, vdevs[1].used), (40, 4));
        assert!(parse_zpool_list("z", "tank\t1\n\tmirror-0\t6", 1.0).is_err());
        assert!(parse_zpool_list("z", "", 1.0).is_err());
    }

    #[test]
    fn logs_caches_and_spares_are_no_vdevs() {
        let text = include_str!("../../fixtures/zfs/zpool-list-vHp-2.1.11.txt");
        let vdevs = parse_zpool_list("zpool list", text, 1e8).unwrap();
        let names: Vec<_> = vdevs.iter().map(|vdev| vdev.name.as_str()).collect();
        assert_eq!(names, ["raidz1-0", "mirror-1"]);
        assert_eq!((vdevs[1].size, vdevs[1].used), (251_658_240, 9_293_824));
    }

    #[test]
    fn zpool_iostat_counts_the_last_report() {
        let text = "tank\t10\t90\t0\t5\t0\t500\nmirror-0\t6\t54\t0\t3\t0\t300\n\
                    tank\t10\t90\t0\t9\t0\t900\nmirror-0\t6\t54\t0\t8\t0\t800\nsda\t-\t-\t0\t8\t0\t800\n";
        let rates = parse_zpool_iostat("zpool iostat", text).unwrap();
        assert_eq!(rates[1], ("mirror-0".to_owned(), 800.0));
        insta::assert_snapshot!(parse_zpool_iostat("z", "tank\t1\t2")
                .unwrap_err()
                .to_string(), @"z, line 1: expected the 7 columns of `zpool iostat -vHp`, found 3; was it cut off?");
        assert!(parse_zpool_iostat("z", "t\t1\t2\t3\t4\t5\t1.5M").is_err());
    }
}
