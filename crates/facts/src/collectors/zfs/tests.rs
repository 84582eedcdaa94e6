use super::*;
use assay_host::Recorded;
use assay_model::FactValue;

// Recorded with OpenZFS 2.1.11 (Debian 12): a pool with log, cache, special and spare.
const DATASET: &str = include_str!("../../../fixtures/zfs-2.1.11/get-dataset.txt");
const POOL: &str = include_str!("../../../fixtures/zfs-2.1.11/get-pool.txt");
const STATUS: &str = include_str!("../../../fixtures/zfs-2.1.11/status-mirror.txt");
const ZDB: &str = include_str!("../../../fixtures/zfs-2.1.11/zdb-mirror.txt");
const ARC: &str = include_str!("../../../fixtures/zfs-2.1.11/arcstats.txt");
const GET: [&str; 5] = ["get", "-Hp", "-o", "property,value,source", "all"];

fn get<'a>(tool: &'a str, of: &'a str) -> Vec<&'a str> {
    [tool].into_iter().chain(GET).chain([of]).collect()
}

fn host() -> Recorded {
    Recorded::new()
        .command(&get("zfs", "tank/data"), DATASET)
        .command(&get("zpool", "tank"), POOL)
        .command(&["zpool", "status", "-LP", "tank"], STATUS)
        // 2.1 has no vdev properties.
        .command_with(
            &Ashifts::query("tank"),
            2,
            "",
            "bad property list: invalid property 'path'\n",
        )
        .command(&["zdb", "-C", "tank"], ZDB)
        .linked("/dev/disk/by-id/virtio-d3-part1", "../../vdd1")
        .file("/dev/vdd1", "")
        .file("/sys/module/zfs/version", "2.1.11-1+deb12u1\n")
        .file("/sys/module/zfs/parameters/zfs_arc_max", "0\n")
        .denied("/sys/module/zfs/parameters/zfs_txg_timeout")
        .file("/sys/module/zfs/parameters/zfs_txg_timeout", "5\n")
        .file(kstat::ARCSTATS, ARC)
}

#[test]
fn properties_say_how_they_came_to_be() {
    let host = host();
    let mut g = Gather::new(&host);
    dataset(&mut g, "tank/data");
    assert_eq!(g.facts.u64("zfs.dataset.tank/data.recordsize"), Some(65536));
    assert_eq!(
        g.facts.str("zfs.dataset.tank/data.compression"),
        Some("zstd")
    );
    let kind = |name: &str| g.facts.map[&format!("zfs.dataset.tank/data.{name}")].kind;
    assert_eq!(kind("recordsize"), FactKind::Configured);
    assert_eq!(kind("sync"), FactKind::Default);
    assert_eq!(kind("used"), FactKind::Runtime);
    assert!(!format!("{:?}", g.facts).contains("guid"));
    assert_eq!(g.facts.str("zfs.pool.tank.state"), Some("ONLINE"));
    assert_eq!(
        g.facts.get("zfs.pool.tank.layout").unwrap()[0],
        "mirror: /dev/vdb1 /dev/vdc1"
    );
}

#[test]
fn devices_of_a_pool() {
    let host = host();
    let mut g = Gather::new(&host);
    dataset(&mut g, "tank/data");
    let vdev = |at: usize, name: &str| g.facts.get(&format!("zfs.pool.tank.vdev.{at}.{name}"));
    assert_eq!(vdev(0, "kind").unwrap(), "mirror");
    assert_eq!(vdev(0, "ashift").unwrap(), 12);
    assert_eq!(vdev(1, "class").unwrap(), "special");
    assert_eq!(vdev(2, "class").unwrap(), "log");
    // A single device whose path in the pool is a link.
    assert_eq!(vdev(2, "ashift").unwrap(), 12);
    assert_eq!(vdev(3, "class").unwrap(), "cache");
    assert!(vdev(3, "ashift").is_none());
}

/// The output was recorded with OpenZFS 2.3.2. A log device was added by hand, and zdb is denied.
#[test]
fn what_the_properties_tell_is_kept_where_zdb_is_refused() {
    let told = include_str!("../../../fixtures/zfs-2.3.2/properties-draid2.txt");
    let told = format!("{told}vdh\tpath\t/dev/vdh1\nvdh\tashift\t12\n");
    let status = include_str!("../../../fixtures/zfs-2.3.2/status-draid2.txt");
    let log = "\tlogs\t\n\t  /dev/vdh1           ONLINE       0     0     0\n\tspares\n";
    let host = Recorded::new()
        .command(&get("zpool", "tank"), POOL)
        .command(
            &["zpool", "status", "-LP", "tank"],
            &status.replace("\tspares\n", log),
        )
        .command(&Ashifts::query("tank"), &told)
        .command_with(&["zdb", "-C", "tank"], 1, "", "Permission denied\n");
    let mut g = Gather::new(&host);
    dataset(&mut g, "tank");
    let ashift = |at: usize| g.facts.get(&format!("zfs.pool.tank.vdev.{at}.ashift"));
    assert!(ashift(0).is_none());
    assert_eq!(ashift(1).unwrap(), 12);
}

/// The cache file gives the ashifts of all pools but one: a pool with its own cache file is read from its devices.
#[test]
fn pools_in_the_cache_file_are_not_read() {
    let cached = ZDB.replacen("MOS Configuration:", "tank:", 1);
    assert!(cached.contains("tank:\n"));
    let status = STATUS.replace("tank", "other");
    let properties = "tank\thealth\tONLINE\t-\nother\tcachefile\t/root/other.cache\tlocal\n";
    let named = [
        "zpool",
        "get",
        "-Hp",
        "-o",
        "name,property,value,source",
        "all",
    ];
    let host = Recorded::new()
        .command(&named, properties)
        .command(&["zpool", "status", "-LP", "tank"], STATUS)
        .command(&["zpool", "status", "-LP", "other"], &status)
        .command(
            &zpool::CACHED,
            &(cached.clone() + &cached.replace("tank", "other")),
        )
        .command(&["zdb", "-C", "other"], ZDB);
    let mut g = Gather::new(&host);
    everything(&mut g);
    let place = |pool: &str| {
        g.facts.map[&format!("zfs.pool.{pool}.ashifts")]
            .place
            .clone()
    };
    assert_eq!(place("tank"), FactPlace::command(zpool::CACHED));
    assert_eq!(place("other"), FactPlace::command(["zdb", "-C", "other"]));
    assert_eq!(g.facts.u64("zfs.pool.tank.vdev.0.ashift"), Some(12));
}

#[test]
fn what_may_not_be_asked_is_unknown() {
    // Written by hand, not recorded.
    let denied = "Permission denied the ZFS utilities must be run as root.\n";
    let host = Recorded::new()
        .command_with(&get("zpool", "tank"), 1, "", denied)
        .command(&["zpool", "status", "-LP", "tank"], STATUS);
    let mut g = Gather::new(&host);
    dataset(&mut g, "tank");
    let unknown = |key: &str| match &g.facts.map[key].value {
        FactValue::Unknown(why) => why.clone(),
        FactValue::Known(value) => panic!("{value}"),
    };
    insta::assert_snapshot!(unknown("zfs.pool.tank"), @"exit status 1: Permission denied the ZFS utilities must be run as root.");
    assert!(!unknown("zfs.pool.tank.vdev.0.ashift").is_empty());
    let place = &g.facts.map["zfs.pool.tank.vdev.0.ashift"].place;
    assert_eq!(*place, FactPlace::command(["zdb", "-C", "tank"]));
}

#[test]
fn module_and_arc() {
    let host = host();
    let mut g = Gather::new(&host);
    collect(&mut g);
    assert_eq!(g.facts.str("zfs.version"), Some("2.1.11-1+deb12u1"));
    assert_eq!(g.facts.u64("zfs.arc.c_max"), Some(502_472_704));
    assert_eq!(g.facts.u64("zfs.arc.size"), Some(3_286_000));
    assert!(g.facts.get("zfs.param.zfs_txg_timeout").is_none());
    assert!(g.facts.map.contains_key("zfs.param.zfs_txg_timeout"));
}
