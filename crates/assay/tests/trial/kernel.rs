//! Trials of kernel settings: sysctls in a separate network namespace, and an attribute of sysfs.

use super::common::{Home, ran};
use super::{SHORT, args, json, skip};
use assay_lab::network_bed::{Bed, BedError, Discipline, LinkShape, Rate, SERVER};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::time::Duration;

/// Both directions of a link of 40 Mbit/s and 10 ms.
fn link() -> LinkShape {
    LinkShape {
        rate: Rate::BitPerS(40e6),
        discipline: Discipline::Fifo,
        buffer: Duration::from_millis(50),
        delay: Duration::from_millis(10),
        loss: 0.0,
    }
}

/// Bytes that a run of the load sends.
const SENT: usize = 200_000;

/// Reads this much from each connection, and responds then.
fn sink(listener: &TcpListener) {
    for stream in listener.incoming() {
        let Ok(mut stream) = stream else { return };
        let mut buffer = vec![0; SENT];
        if stream.read_exact(&mut buffer).is_ok() {
            let _ = stream.write_all(b"k");
        }
    }
}

#[test]
fn sysctls_of_a_network_are_toggled_under_load_and_come_back() {
    if skip(&["ip", "bash"], true) {
        return;
    }
    let bed = match Bed::new(1, link(), link(), 1) {
        Ok(bed) => bed,
        Err(error @ (BedError::Namespace(_) | BedError::Tun(_))) => {
            return assay_testing::skipped("network namespace", error);
        }
        Err(error) => panic!("{error}"),
    };
    let home = Home::new();
    let listener = bed
        .server()
        .inside(|| TcpListener::bind((SERVER, 0)).unwrap());
    let listener = listener.unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || sink(&listener));
    let sender = bed.person(0).unwrap();
    let value = || {
        let read = || fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control");
        sender.inside(read).unwrap().unwrap()
    };
    let before = value();
    // A separate network namespace may use only unrestricted algorithms.
    let offered = fs::read_to_string("/proc/sys/net/ipv4/tcp_allowed_congestion_control");
    let offered = offered.unwrap();
    let mut others = offered.split_whitespace();
    let Some(other) = others.find(|other| *other != before.trim()) else {
        return assay_testing::skipped("congestion control", "there is only one");
    };
    let control = format!("control={other}");
    let load = format!(
        "bash -c 'exec 3<>/dev/tcp/{SERVER}/{port}; head -c {SENT} /dev/zero >&3; head -c 1 <&3'"
    );
    let set = format!("load={load}");
    let mut words = args(&["trial", "tcp-bbr", &SERVER.to_string()], &SHORT);
    words.extend(args(
        &["--yes", "--json", "--pairs", "2", "--set", &set],
        &["--set", &control],
    ));
    let done = sender.inside(|| ran(home.command(&words).output().unwrap()));
    let done = done.unwrap();
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert_eq!(json(&done)["pairs"].as_array().map(Vec::len), Some(2));
    assert_eq!(value(), before);
}

#[test]
fn an_attribute_of_sysfs_is_toggled_and_comes_back() {
    const PATH: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
    if skip(&["sh"], true) {
        return;
    }
    let Ok(before) = fs::read_to_string(PATH) else {
        return assay_testing::skipped("transparent huge pages", "not in this kernel");
    };
    let to = match before.contains("[never]") {
        true => "madvise",
        false => "never",
    };
    let home = Home::new();
    let seen = home.dir.path().join("seen");
    let load = format!("load=sh -c 'cat {PATH} >> {}'", seen.display());
    let enabled = format!("enabled={to}");
    let mut words = args(&["trial", "transparent-huge-pages", "--set", &load], &SHORT);
    words.extend(args(
        &["--set", &enabled, "--yes", "--json", "--pairs", "2"],
        &[],
    ));
    let done = home.assay(&words);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let seen = fs::read_to_string(seen).unwrap();
    assert!(
        seen.contains(&format!("[{to}]")) && seen.contains(&before),
        "{seen}"
    );
    assert_eq!(fs::read_to_string(PATH).unwrap(), before);
}
