//! Parses `/proc/mdstat` (md(4); Linux, drivers/md/md.c, md_seq_show): arrays, their disks, and running actions.

/// An array in /proc/mdstat.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Array {
    /// Name of the array, such as `md0` or `md_d127`.
    pub name: String,
    /// Whether the array is running.
    pub active: bool,
    /// RAID level, such as `raid5` or `linear`; `None` if the array is not running.
    pub level: Option<String>,
    /// Numbers of configured and of working disks: `[3/2]`.
    pub disks: Option<(u64, u64)>,
    /// Names of failed members, which the kernel marks with `(F)`.
    pub failed: Vec<String>,
    /// Action that runs or waits: `recovery`, `resync`, `reshape` or `check`.
    pub action: Option<String>,
    /// Whether the metadata is in a firmware format (IMSM, DDF). A container of such arrays is never active.
    pub external: bool,
    /// Size in KiB.
    pub blocks: Option<u64>,
    /// Whether the array has a bitmap, or a member with a journal.
    pub bitmap: bool,
}

/// Words of progress lines in mdstat, each with the name of the action in `sync_action`.
const ACTIONS: [(&str, &str); 5] = [
    ("recovery", "recover"),
    ("resync", "resync"),
    ("reshape", "reshape"),
    ("check", "check"),
    ("repair", "repair"),
];

/// Returns all arrays in the order of `/proc/mdstat`.
#[must_use]
pub fn arrays(text: &str) -> Vec<Array> {
    let mut found: Vec<Array> = Vec::new();
    for line in text.lines() {
        let head = line
            .split_once(" : ")
            .filter(|(name, _)| name.starts_with("md") && !line.starts_with(char::is_whitespace));
        if let Some((name, rest)) = head {
            found.push(parse_head(name.trim(), rest));
        } else if line.starts_with(char::is_whitespace)
            && let Some(array) = found.last_mut()
        {
            add_line(array, line);
        }
    }
    found
}

fn parse_head(name: &str, rest: &str) -> Array {
    let mut words = rest.split_ascii_whitespace().peekable();
    let active = words.next() == Some("active");
    while words.peek().is_some_and(|word| word.starts_with('(')) {
        words.next();
    }
    let is_member = |word: &str| word.contains('[');
    let level = words.next_if(|word| !is_member(word)).map(str::to_owned);
    let failed = words
        .filter(|word| word.contains("(F)"))
        .filter_map(|word| word.split('[').next())
        .map(str::to_owned)
        .collect();
    Array {
        name: name.to_owned(),
        active,
        level,
        failed,
        bitmap: rest.contains("(J)"),
        ..Array::default()
    }
}

fn add_line(array: &mut Array, line: &str) {
    array.external |= line.contains("super external:");
    array.bitmap |= line.trim_start().starts_with("bitmap:");
    let mut words = line.split_ascii_whitespace();
    if let (Some(number), Some("blocks")) = (words.next(), words.next()) {
        array.blocks = number.parse().ok();
    }
    for word in line.split_ascii_whitespace() {
        let inner = word
            .strip_prefix('[')
            .and_then(|word| word.strip_suffix(']'));
        if let Some((all, working)) = inner.and_then(|inner| inner.split_once('/'))
            && let (Ok(all), Ok(working)) = (all.parse(), working.parse())
        {
            array.disks = Some((all, working));
        }
        let action = word.split('=').next().unwrap_or(word);
        if let Some((_, name)) = ACTIONS.iter().find(|(known, _)| *known == action)
            && line.contains('=')
        {
            array.action = Some((*name).to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Text combined from neilbrown/mdadm issue 26, md(4) and linux-raid's wiki (Mdstat).
    const TEXT: &str = "\
Personalities : [raid6] [raid5] [raid4]
md0 : active raid5 sdb1[1] sda1[0]
      7813772288 blocks super 1.2 level 5, 512k chunk, algorithm 2 [3/2] [UU_]
      bitmap: 5/30 pages [20KB], 65536KB chunk

md1 : active (auto-read-only) raid1 sdd1[2] sdc1[1](F) sde1[3](S)
      1250241792 blocks super 1.2 [2/1] [U_]
      [==>..................]  recovery = 12.6% (37043392/292945152) finish=127.5min speed=33440K/sec

md127 : inactive sdf[1](S) sdg[0](S)
      6306 blocks super external:imsm

md2 : inactive sdh1[0](S)
      976630488 blocks super 1.2

md3 : active raid0 sdi[0] sdj[1]
      200 blocks super 1.2 512k chunks

unused devices: <none>
";

    #[test]
    fn arrays_and_what_they_lack() {
        let all = arrays(TEXT);
        let names: Vec<&str> = all.iter().map(|array| array.name.as_str()).collect();
        assert_eq!(names, ["md0", "md1", "md127", "md2", "md3"]);
        assert_eq!(all[0].disks, Some((3, 2)));
        assert_eq!(all[0].level.as_deref(), Some("raid5"));
        assert_eq!(all[1].failed, ["sdc1"]);
        assert_eq!(all[1].action.as_deref(), Some("recover"));
        assert_eq!(all[1].level.as_deref(), Some("raid1"));
        assert!(all[2].external && !all[2].active);
        assert!(!all[3].external && !all[3].active && all[3].level.is_none());
        assert_eq!(all[4].disks, None);
        assert!(arrays("").is_empty());
    }
}
