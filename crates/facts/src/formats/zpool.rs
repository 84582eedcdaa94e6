//! Parses the devices of a pool from `zpool status -LP` (zpool-status(8)) and `zdb -C` (zdb(8)).

use std::collections::BTreeMap;

/// A top-level vdev of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vdev {
    /// Name of the vdev in `zpool status`, such as `mirror-0` or `draid2:2d:6c:1s-0`. For a single device, its path.
    pub name: String,
    /// Class of the vdev: `data`, `log`, `cache`, `special`, `dedup` or `spare`.
    pub class: &'static str,
    /// Kind of the vdev, such as `mirror`, `raidz1`, `draid2:2d:6c:1s`, `disk` or `indirect`.
    pub kind: String,
    /// State of the vdev, such as `ONLINE`, `DEGRADED` or `AVAIL`.
    pub state: String,
    /// Leaf devices with their states. Names of existing devices are full paths.
    pub leaves: Vec<(String, String)>,
}

/// Returns the lines of the tree below `config:`, each as indentation and words.
pub(crate) fn tree(status: &str) -> impl Iterator<Item = (usize, Vec<&str>)> {
    let config = status
        .lines()
        .skip_while(|line| line.trim() != "config:")
        .skip(1);
    let lines = config.take_while(|line| !line.starts_with("errors:"));
    lines.filter_map(|line| {
        let line = line.strip_prefix('\t').unwrap_or(line);
        let indent = line.len() - line.trim_start_matches(' ').len();
        let words: Vec<&str> = line.split_whitespace().collect();
        (!words.is_empty() && words[0] != "NAME").then_some((indent, words))
    })
}

/// Returns the top-level vdevs of one pool in the order of the listing. `-L` and `-P` print full paths of leaves. A
/// missing leaf appears with its number and its former path.
#[must_use]
pub fn vdevs(status: &str, pool: &str) -> Vec<Vdev> {
    let mut found: Vec<Vdev> = Vec::new();
    let mut class = "data";
    // A line is taken for a leaf until a deeper line follows.
    let mut deepest = 0;
    for (at, (indent, words)) in tree(status).enumerate() {
        let state = words.get(1).copied().unwrap_or_default().to_owned();
        let name = match words.iter().position(|word| *word == "was") {
            Some(at) if words[0].bytes().all(|byte| byte.is_ascii_digit()) => {
                words.get(at + 1).unwrap_or(&words[0])
            }
            _ => &words[0],
        };
        match indent {
            // The first line is the pool, which may be called `logs` like a heading.
            0 if at == 0 && *name == pool => class = "data",
            0 => {
                class = class_of(name);
            }
            2 => {
                found.push(Vdev {
                    name: (*name).to_owned(),
                    class,
                    kind: kind(name).to_owned(),
                    state: state.clone(),
                    leaves: vec![((*name).to_owned(), state)],
                });
                deepest = 2;
            }
            _ => {
                let Some(vdev) = found.last_mut() else {
                    continue;
                };
                // The previous line was a group, not a leaf.
                if indent > deepest {
                    vdev.leaves.pop();
                }
                vdev.leaves.push(((*name).to_owned(), state));
                deepest = indent;
            }
        }
    }
    found
}

/// Returns the class of the vdevs under a heading of the listing.
pub(crate) fn class_of(heading: &str) -> &'static str {
    match heading {
        "logs" | "log" => "log",
        "cache" => "cache",
        "special" => "special",
        "dedup" => "dedup",
        "spares" | "spare" => "spare",
        _ => "other",
    }
}

/// Returns the kind of a vdev by its name: `mirror` for `mirror-0`, `disk` or `file` for a path.
fn kind(name: &str) -> &str {
    match name.rsplit_once('-') {
        _ if name.starts_with('/') || name.bytes().all(|byte| byte.is_ascii_digit()) => "disk",
        // `draid2-0-0` is a distributed spare.
        Some((rest, _)) if rest.starts_with("draid") && !rest.contains(':') => "draid spare",
        Some((kind, _)) => kind,
        None => "disk",
    }
}

/// Returns the full paths of all leaf devices, including logs, caches and spares, in the order of the listing.
pub(crate) fn leaves(status: &str) -> Vec<String> {
    tree(status)
        .map(|(_, words)| words[0])
        .filter(|name| name.starts_with('/'))
        .map(str::to_owned)
        .collect()
}

/// Returns one line for each top-level vdev, such as `mirror: /dev/sda1 /dev/sdb1` or `log /dev/nvme0n1p1`.
pub(crate) fn layout(status: &str, pool: &str) -> Vec<String> {
    let line = |vdev: Vdev| {
        let class = match vdev.class {
            "data" => String::new(),
            class => format!("{class} "),
        };
        let leaves: Vec<String> = vdev.leaves.into_iter().map(|(name, _)| name).collect();
        match vdev.kind.as_str() {
            "disk" | "draid spare" => format!("{class}{}", vdev.name),
            kind => format!("{class}{kind}: {}", leaves.join(" ")),
        }
    };
    vdevs(status, pool).into_iter().map(line).collect()
}

/// Returns the `state:` of the pool.
#[must_use]
pub fn state(status: &str) -> Option<&str> {
    let mut lines = status.lines();
    lines.find_map(|line| line.trim().strip_prefix("state: "))
}

/// Command that prints the pool cache file. The command opens no pool and needs no privileges.
pub const CACHED: [&str; 2] = ["zdb", "-C"];

/// Returns the part of the output of [`CACHED`] that describes a pool: the lines below its name.
#[must_use]
pub fn find_cached<'a>(cached: &'a str, pool: &str) -> Option<&'a str> {
    let mut at = 0;
    let mut start = None;
    for line in cached.split_inclusive('\n') {
        let next = at + line.len();
        let is_name = !line.starts_with([' ', '\t', '\n']);
        if is_name && start.is_some() {
            return cached.get(start?..at);
        }
        if is_name && line.trim_end().strip_suffix(':') == Some(pool) {
            start = Some(next);
        }
        at = next;
    }
    cached.get(start?..)
}

/// Returns the ashift of each top-level vdev from the output of `zdb -C POOL`, by the number of the vdev and by the
/// paths of its leaves. `zpool get ashift` prints only the default for new vdevs.
#[must_use]
pub fn ashifts(zdb: &str) -> Ashifts {
    let mut found = Ashifts::default();
    // (id, ashift, leaves) of the current top-level vdev.
    let mut top: Option<(u64, Option<u32>, Vec<String>)> = None;
    let mut inside = None;
    for line in zdb.lines() {
        let indent = line.len() - line.trim_start().len();
        let text = line.trim();
        if text.starts_with("vdev_tree:") {
            inside = Some(indent);
            continue;
        }
        let Some(tree) = inside else { continue };
        if indent <= tree {
            inside = None;
            continue;
        }
        // zdb(8) indents by four columns per level.
        if indent == tree + 4 && text.starts_with("children[") {
            found.enter(top.take());
            top = Some((u64::MAX, None, Vec::new()));
            continue;
        }
        let Some((id, ashift, leaves)) = &mut top else {
            continue;
        };
        match text.split_once(": ") {
            Some(("id", value)) if indent == tree + 8 => *id = value.parse().unwrap_or(u64::MAX),
            Some(("ashift", value)) if indent == tree + 8 => {
                // A removed vdev leaves a hole without blocks.
                *ashift = value.parse().ok().filter(|&ashift| ashift != 0);
            }
            Some(("path", value)) => leaves.push(value.trim_matches('\'').to_owned()),
            _ => {}
        }
    }
    found.enter(top);
    found
}

/// Ashift values (base-2 logarithm of the sector size) of the top-level vdevs of a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ashifts {
    /// Ashift of groups such as mirrors, by the number in their name, such as 0 for `mirror-0`.
    pub by_id: BTreeMap<u64, u32>,
    /// Ashift of single devices, by the path that the pool records. Links in this path are not resolved.
    pub by_path: BTreeMap<String, u32>,
}

impl Ashifts {
    fn enter(&mut self, top: Option<(u64, Option<u32>, Vec<String>)>) {
        if let Some((id, Some(ashift), leaves)) = top {
            self.by_id.insert(id, ashift);
            let paths = leaves.into_iter().map(|path| (path, ashift));
            self.by_path.extend(paths);
        }
    }

    /// Returns the common ashift of all vdevs; `None` if the values differ.
    #[must_use]
    pub fn common(&self) -> Option<u32> {
        let mut all = self.by_id.values();
        let first = all.next()?;
        all.all(|one| one == first).then_some(*first)
    }

    /// Returns the command that prints the ashift values since OpenZFS 2.2. In older versions, only zdb prints them.
    #[must_use]
    pub fn query(pool: &str) -> [&str; 7] {
        let columns = "-oname,property,value";
        [
            "zpool",
            "get",
            "-Hp",
            columns,
            "path,ashift",
            pool,
            "all-vdevs",
        ]
    }

    /// Parses the output of [`Ashifts::query`]. A group has a line `mirror-0 ashift 12`; a leaf has its path instead of
    /// the name. For a dRAID, OpenZFS 2.3.2 does not find the name and prints no value. The root vdev has a number too,
    /// but no ashift.
    #[must_use]
    pub fn of_properties(text: &str) -> Self {
        let mut found = Self::default();
        let rows = || {
            text.lines().filter_map(|line| {
                let mut fields = line.split('\t');
                Some((fields.next()?, fields.next()?, fields.next()?.trim()))
            })
        };
        let path_of = |vdev: &str| {
            let mut all = rows();
            all.find_map(|(name, property, value)| {
                (name == vdev && property == "path" && value.starts_with('/')).then_some(value)
            })
        };
        for (name, property, value) in rows() {
            let (true, Ok(ashift @ 1..)) = (property == "ashift", value.parse()) else {
                continue;
            };
            let id = name.rsplit_once('-').and_then(|(_, id)| id.parse().ok());
            match (path_of(name), id) {
                (Some(path), _) => drop(found.by_path.insert(path.to_owned(), ashift)),
                (None, Some(id)) => drop(found.by_id.insert(id, ashift)),
                (None, None) => {}
            }
        }
        found
    }

    /// Returns whether the ashift of every group is known. Cache devices and spares have none.
    #[must_use]
    pub fn is_whole(&self, vdevs: &[Vdev]) -> bool {
        vdevs
            .iter()
            .filter(|vdev| vdev.kind != "disk" && !matches!(vdev.class, "cache" | "spare"))
            .all(|vdev| self.of_group(&vdev.name).is_some())
    }

    /// Returns the ashift of a group. Single devices must be looked up in `by_path`.
    #[must_use]
    pub fn of_group(&self, name: &str) -> Option<u32> {
        let (_, id) = name.rsplit_once('-')?;
        self.by_id.get(&id.parse().ok()?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // Recorded with OpenZFS 2.1.11 (Debian 12).
    const MIRROR: &str = include_str!("../../fixtures/zfs-2.1.11/status-mirror.txt");
    const RAIDZ1: &str = include_str!("../../fixtures/zfs-2.1.11/status-raidz1.txt");
    const RAIDZ2: &str = include_str!("../../fixtures/zfs-2.1.11/status-raidz2.txt");
    const RAIDZ3: &str = include_str!("../../fixtures/zfs-2.1.11/status-raidz3.txt");
    const DRAID2: &str = include_str!("../../fixtures/zfs-2.1.11/status-draid2.txt");
    const ZDB_MIRROR: &str = include_str!("../../fixtures/zfs-2.1.11/zdb-mirror.txt");
    const ZDB_RAIDZ1: &str = include_str!("../../fixtures/zfs-2.1.11/zdb-raidz1.txt");
    const ZDB_DRAID2: &str = include_str!("../../fixtures/zfs-2.1.11/zdb-draid2.txt");

    /// The output was recorded with OpenZFS 2.3.2 (Debian 12, backports).
    #[test]
    fn properties_of_devices() {
        let of = Ashifts::of_properties;
        let mirror = of(include_str!(
            "../../fixtures/zfs-2.3.2/properties-mirror.txt"
        ));
        let status = include_str!("../../fixtures/zfs-2.3.2/status-mirror.txt");
        assert!(mirror.is_whole(&vdevs(status, "tank")));
        assert_eq!(mirror.of_group("mirror-0"), Some(12));
        assert_eq!(mirror.of_group("mirror-2"), Some(12));
        assert_eq!(mirror.by_path.get("/dev/vdd1"), Some(&12));
        // There is no value for the dRAID itself, and the 0 of the root is not used for it.
        let draid = of(include_str!(
            "../../fixtures/zfs-2.3.2/properties-draid2.txt"
        ));
        let status = include_str!("../../fixtures/zfs-2.3.2/status-draid2.txt");
        assert_eq!(draid.of_group("draid2:2d:6c:1s-0"), None);
        assert!(!draid.is_whole(&vdevs(status, "tank")));
    }

    #[test]
    fn a_pool_with_the_name_of_a_heading() {
        let status = "config:\n\n\tNAME  STATE\n\tlogs  ONLINE\n\t  /dev/sda1  ONLINE\n\tlogs\n\t  /dev/sdb1  ONLINE\n";
        assert_eq!(layout(status, "logs"), ["/dev/sda1", "log /dev/sdb1"]);
    }

    #[test]
    fn a_pool_in_the_cache_file() {
        let mirror = ZDB_MIRROR.split_once("MOS Configuration:\n").unwrap().1;
        let all = format!(
            "tan:\n    vdev_tree:\n        children[0]:\n            id: 0\n            ashift: 9\ntank:\n{mirror}"
        );
        assert_eq!(
            ashifts(find_cached(&all, "tank").unwrap()),
            ashifts(ZDB_MIRROR)
        );
        assert_eq!(ashifts(find_cached(&all, "tan").unwrap()).common(), Some(9));
        assert_eq!(find_cached(&all, "ta"), None);
        assert_eq!(find_cached("tank:", "tank"), Some(""));
        let hole = all.replacen("ashift: 9", "ashift: 0", 1);
        let hole = hole.replace(
            "tank:\n",
            "        children[1]:\n            id: 1\n            ashift: 12\ntank:\n",
        );
        assert_eq!(
            ashifts(find_cached(&hole, "tan").unwrap()).common(),
            Some(12)
        );
    }

    #[test]
    fn the_ashift_of_all() {
        assert_eq!(ashifts(ZDB_MIRROR).common(), Some(12));
        assert_eq!(
            ashifts(&ZDB_MIRROR.replacen("ashift: 12", "ashift: 9", 1)).common(),
            None
        );
        assert_eq!(Ashifts::default().common(), None);
    }

    #[test]
    fn layout_of_every_class() {
        assert_eq!(
            layout(MIRROR, "tank"),
            [
                "mirror: /dev/vdb1 /dev/vdc1",
                "special mirror: /dev/vdf1 /dev/vdg1",
                "log /dev/vdd1",
                "cache /dev/vde1",
                "spare /dev/vdh1",
            ]
        );
        assert_eq!(
            layout(RAIDZ1, "tank"),
            [
                "raidz1: /dev/vdb1 /dev/vdc1 /dev/vdd1",
                "dedup /dev/vdh1",
                "log mirror: /dev/vdf1 /dev/vdg1",
            ]
        );
        assert_eq!(vdevs(RAIDZ2, "tank")[0].kind, "raidz2");
        assert_eq!(vdevs(RAIDZ2, "tank")[0].leaves.len(), 4);
        assert_eq!(vdevs(RAIDZ3, "tank")[0].kind, "raidz3");
        assert_eq!(
            layout(DRAID2, "tank"),
            [
                "draid2:2d:6c:1s: /dev/vdb1 /dev/vdc1 /dev/vdd1 /dev/vde1 /dev/vdf1 /dev/vdg1",
                "spare draid2-0-0",
            ]
        );
        assert_eq!(leaves(MIRROR).len(), 7);
        assert!(leaves("cannot open 'x': no such pool\n").is_empty());
    }

    #[test]
    fn states() {
        assert_eq!(state(RAIDZ1), Some("DEGRADED"));
        let vdevs = vdevs(RAIDZ1, "tank");
        assert_eq!(vdevs[0].state, "DEGRADED");
        assert_eq!(vdevs[0].leaves[1], ("/dev/vdc1".into(), "OFFLINE".into()));
    }

    /// Written from zpool-status(8), not recorded.
    #[test]
    fn a_device_that_is_gone_and_one_that_is_replaced() {
        let status = "config:\n\n\tNAME  STATE\n\ttank  DEGRADED\n\t  mirror-0  DEGRADED\n\t    \
            replacing-0  DEGRADED  0 0 0\n\t      123456  UNAVAIL  0 0 0  was /dev/sda1\n\t      \
            /dev/sdc1  ONLINE  0 0 0  (resilvering)\n\t    /dev/sdb1  ONLINE\n\nerrors: none\n";
        let found = vdevs(status, "tank");
        let names: Vec<&str> = found[0]
            .leaves
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(names, ["/dev/sda1", "/dev/sdc1", "/dev/sdb1"]);
    }

    #[test]
    fn ashift_of_each_top_level_device() {
        let mirror = ashifts(ZDB_MIRROR);
        assert_eq!(mirror.of_group("mirror-0"), Some(12));
        assert_eq!(mirror.of_group("mirror-2"), Some(12));
        assert_eq!(mirror.by_path["/dev/disk/by-id/virtio-d3-part1"], 12);
        let raidz = ashifts(ZDB_RAIDZ1);
        assert_eq!(raidz.of_group("raidz1-0"), Some(9));
        assert_eq!(raidz.by_id.len(), 3);
        assert_eq!(ashifts(ZDB_DRAID2).of_group("draid2:2d:6c:1s-0"), Some(9));
        assert_eq!(ashifts("").of_group("mirror-0"), None);
    }

    proptest! {
        #[test]
        fn never_panics(text in "(config:\n)?([\t]? {0,6}[a-z0-9é:/-]{0,9} [A-Z]{0,5}\n){0,8}") {
            let _ = vdevs(&text, "tank");
            let _ = layout(&text, "tank");
            let _ = ashifts(&text);
        }
    }
}
