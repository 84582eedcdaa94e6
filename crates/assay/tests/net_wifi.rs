//! A device with a radio: what `iw` tells during a run is on the axis of the run, and a roam is the cause of what
//! was late then. The virtual radios of the kernel (mac80211_hwsim) are no part of most kernels that tests run on, so
//! `iw` is a program that prints what the real one printed, and the network is really gone while it says so.
#![allow(clippy::disallowed_methods, reason = "tests drive the real program")]

mod common;
mod serving;

use assay_lab::network_bed::{Bed, BedError, Discipline, LinkShape, Rate, SERVER};
use serde_json::Value;
use serving::{Ends, Serving, role};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

/// Prints the state in a file; `ip` is the real program.
const IW: &str = r#"#!/bin/sh
state=$(cat "$(dirname "$0")/state")
case "$*" in
dev) printf 'phy#0\n\tInterface home\n\t\tifindex 2\n\t\ttype managed\n' ;;
"dev home link")
    case "$state" in
    gone) printf 'Not connected.\n' ;;
    far) printf 'Connected to 00:1a:2b:10:20:40 (on home)\n\tSSID: Workshop\n\tfreq: 5180\n\tsignal: -84 dBm\n\trx bitrate: 54.0 MBit/s\n' ;;
    near) printf 'Connected to 00:1a:2b:10:20:30 (on home)\n\tSSID: Workshop\n\tfreq: 2412\n\tsignal: -58 dBm\n\trx bitrate: 72.2 MBit/s\n' ;;
    esac ;;
"dev home scan dump")
    printf 'BSS 00:1a:2b:10:20:31(on home)\n\tfreq: 5500\n\tsignal: -61.00 dBm\n\tSSID: Workshop\n'
    printf 'BSS 00:1a:2b:aa:bb:cc(on home)\n\tfreq: 2437\n\tsignal: -50.00 dBm\n\tSSID: Neighbour\n' ;;
*) exit 1 ;;
esac
"#;

fn state(dir: &Path, state: &str) {
    let fresh = dir.join("fresh");
    std::fs::write(&fresh, state).unwrap();
    std::fs::rename(fresh, dir.join("state")).unwrap();
}

#[test]
fn a_roam_is_on_the_axis_and_is_the_cause() {
    let shape = LinkShape {
        rate: Rate::BitPerS(5e7),
        discipline: Discipline::FqCodel,
        buffer: Duration::from_millis(100),
        delay: Duration::ZERO,
        loss: 0.0,
    };
    let bed = match Bed::new(1, shape.clone(), shape, 1) {
        Ok(bed) => bed,
        Err(error @ (BedError::Namespace(_) | BedError::Tun(_))) => {
            assay_testing::skipped("root", error);
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let serving = Serving::at(SERVER.into(), &|mut command| {
        bed.server()
            .inside(move || command.spawn().unwrap())
            .unwrap()
    });
    let tools = tempfile::tempdir().unwrap();
    let iw = tools.path().join("iw");
    std::fs::write(&iw, IW).unwrap();
    std::fs::set_permissions(&iw, std::fs::Permissions::from_mode(0o755)).unwrap();
    state(tools.path(), "far");
    let mut command = serving.client("anna");
    let path = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{path}", tools.path().display()));
    let person = bed.person(0).unwrap();
    let _client = Ends(person.inside(move || command.spawn().unwrap()).unwrap());
    let plan = serving
        .plan("name = 'walk'\nseconds = 12\n[[person]]\nname = 'Anna'\nroles = ['gaming']\n");
    let page = serving.file("page.html");
    let server = format!("@{}", serving.file("controller").display());
    let ran = thread::scope(|scope| {
        let args = [
            &*plan,
            "--json",
            "--html",
            page.to_str().unwrap(),
            "--server",
            &server,
        ];
        let mut command = serving.home.command(&["net", "run"]);
        command.args(args);
        let bed = &bed;
        let running =
            scope.spawn(move || bed.server().inside(|| command.output().unwrap()).unwrap());
        // Three seconds of lead, and a part of the run, which may have begun later.
        thread::sleep(Duration::from_secs(8));
        let link = |to: &str| {
            let words = ["link", "set", "dev", "p0", to];
            let set = bed
                .router()
                .inside(|| Command::new("ip").args(words).status().unwrap());
            assert!(set.unwrap().success());
        };
        link("down");
        state(tools.path(), "gone");
        thread::sleep(Duration::from_secs(2));
        link("up");
        state(tools.path(), "near");
        running.join().unwrap()
    });
    let value: Value = serde_json::from_slice(&ran.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&ran.stderr)));
    let air = &value["judged"][0]["air"];
    assert_eq!(air["roams"].as_array().unwrap().len(), 1, "{air}");
    let roam = &air["roams"][0];
    assert_eq!(
        (&roam["from"]["number"], &roam["to"]["number"]),
        (&36.into(), &1.into())
    );
    assert_eq!(air["weakest"]["dbm"], -84, "{air}");
    let record = &value["run"]["people"][0]["record"]["air"];
    let samples = record["samples"].as_array().unwrap();
    assert!((8..=13).contains(&samples.len()), "{samples:?}");
    assert_eq!(record["heard"][0]["channel"]["number"], 100, "{record}");
    assert_eq!(
        record["heard"].as_array().unwrap().len(),
        1,
        "a neighbour is nobody's business"
    );
    let gaming = role(&value, "gaming");
    assert_eq!(gaming["grade"], "bad", "{gaming}");
    assert_eq!(gaming["cause"]["kind"], "roam", "{}", gaming["cause"]);
    // No written file contains a full address or the name of a network.
    let page = std::fs::read_to_string(page).unwrap();
    for text in [&*String::from_utf8_lossy(&ran.stdout), &page] {
        assert!(!text.contains("10:20:") && !text.contains("Workshop"));
        assert!(text.contains("00:1a:2b:xx:xx:xx"));
    }
    assert!(page.contains("roamed"));
}
