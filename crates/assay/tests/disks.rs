//! Tests `assay disks`, also in a guest with one slow disk among others.
#![allow(clippy::disallowed_methods, reason = "tests drive the real program")]

mod common;

use common::{Home, guests};
use serde_json::Value;

#[test]
fn what_cannot_be_watched_is_said() {
    let home = Home::new();
    let none = home.assay(&["disks", "no-such-pool"]);
    assert_eq!(none.code, Some(2), "{}", none.stderr);
    let said = &none.stderr;
    assert!(
        said.contains("no group begins with no-such-pool") || said.contains("no disks share work"),
        "{said}"
    );
}

/// A raidz1 whose third disk is slow, and a mirror of equal disks, under the same load.
const WATCHED: &str = "
set -e
d=/dev/disk/by-id/virtio
for name in a b slow c d; do
    for _ in $(seq 100); do [ -e $d-$name ] && break; sleep 0.1; done
done
# zpool waits 30 s for udev to see its partitions, which a busy machine can exceed.
for try in 1 2 3; do
    zpool create -f -O compression=off study raidz1 $d-a $d-b $d-slow mirror $d-c $d-d && break
    [ $try != 3 ] || exit 9
done
head -c 4M /dev/urandom > /dev/shm/data
( while :; do dd if=/dev/shm/data of=/study/file bs=64k conv=fsync status=none; done ) &
load=$!
status=0
assay disks study --for 60s --json || status=$?
kill $load
wait $load 2> /dev/null || true
exit $status
";

#[test]
fn a_throttled_disk_is_found_and_equal_ones_are_left_in_peace() {
    let Some(_one) = guests::image() else { return };
    let home = Home::new();
    let disks = ["a", "b", "c", "d"].map(|name| format!("256M,name={name}"));
    let mut words = vec!["lab", "run", "--fresh", "--disk", "256M,name=slow,iops=25"];
    for disk in &disks {
        words.extend(["--disk", disk]);
    }
    words.extend(["--", "sh", "-c", WATCHED]);
    let ran = home.assay(&words);
    assert_eq!(ran.code, Some(1), "{}\n{}", ran.stdout, ran.stderr);
    let found: Value = serde_json::from_str(&ran.stdout).unwrap();
    common::schemas::holds("disks", &ran.stdout, &["/comparisons/0"]);
    let of = |group: &str| -> &Value {
        let all = found["comparisons"].as_array().unwrap();
        let ours = all
            .iter()
            .find(|one| one["siblings"] == group && one["way"] == "write");
        ours.unwrap_or_else(|| panic!("{found:#}"))
    };
    let raidz = of("study raidz1-0");
    assert_eq!(raidz["finding"], "slow", "{raidz:#}");
    // The third disk of the vdev.
    assert_eq!(raidz["at"], 2, "{raidz:#}");
    assert!(raidz["chance"].as_f64().unwrap() <= 0.001);
    let mirror = of("study mirror-1");
    assert_ne!(mirror["finding"], "slow", "{mirror:#}");
}
