//! Targets for the output of other programs about wireless networks, which contains names that strangers choose.

use super::seeds::{text_seeds, to_text};
use crate::ParserTarget;
use assay_wifi::address::mask;
use assay_wifi::census::census;
use assay_wifi::iw::link;
use assay_wifi::registry::Registry;
use assay_wifi::{WifiFile, facts, read};

pub(super) fn targets() -> Vec<ParserTarget> {
    let file = |name, seed: &[u8]| ParserTarget {
        name,
        seeds: vec![seed.to_vec()],
        run: whole,
    };
    vec![
        file(
            "wifi-iw-scan",
            include_bytes!("../../../wifi/fixtures/iw-scan.txt"),
        ),
        file(
            "wifi-unifi",
            include_bytes!("../../../wifi/fixtures/site.json"),
        ),
        file(
            "wifi-unifi-log",
            b"[2017-01-18 23:41:30,160] WARN  uap    - invalid radiusprofile_id: null\n\
              [2023-03-01T10:11:12,345] <inform_stat-3> INFO  event - User[78:8a:20:01:02:03] connected\n",
        ),
        file(
            "wifi-kismet",
            include_bytes!("../../../wifi/fixtures/kismet.csv"),
        ),
        file(
            "wifi-wigle",
            include_bytes!("../../../wifi/fixtures/wigle.csv"),
        ),
        file(
            "wifi-hostapd",
            include_bytes!("../../../wifi/fixtures/hostapd.conf"),
        ),
        ParserTarget {
            name: "wifi-iw-link",
            seeds: text_seeds(&[
                "Connected to 02:00:00:00:01:00 (on wlan0)\n\tSSID: caf\\xc3\\xa9\n\tfreq: 5180\n\tsignal: -59 dBm\n\trx bitrate: 866.7 MBit/s VHT-MCS 9\n",
                "Station 02:00:00:00:01:00 (on wlan0)\n\tsignal:  \t-50 [-52] dBm\n\ttx bitrate:\t72.2 MBit/s MCS 7\n",
                "phy#0\n\tInterface wlan0\n\t\ttype managed\n\t\tchannel 36 (5180 MHz), width: 80 MHz\n",
            ]),
            run: |bytes| {
                let text = to_text(bytes);
                let lines = text.lines().count().max(1);
                for failed in [link::link(&text).err(), link::stations(&text).err()] {
                    assert!(failed.is_none_or(|error| error.line <= lines));
                }
                assert!(link::devices(&text).len() <= lines);
            },
        },
        ParserTarget {
            name: "wifi-registry",
            seeds: text_seeds(&[
                "Registry,Assignment,Organization Name,Organization Address\r\nMA-L,001CD7,\"Harman/Becker, \"\"x\"\"\",Address\r\nMA-M,0055DA0,A,B\n",
            ]),
            run: |bytes| {
                let mut registry = Registry::default();
                let added = registry.add(bytes).is_ok();
                assert!(added || registry.is_empty());
            },
        },
    ]
}

/// Parses, evaluates and reports an input, and checks that the report contains no address and no password.
fn whole(bytes: &[u8]) {
    let Ok(reading) = read(bytes) else { return };
    let lines = bytes.split(|byte| *byte == b'\n').count();
    assert!(reading.unread.first.iter().all(|(line, _)| *line <= lines));
    let named = WifiFile {
        path: "x",
        reading: &reading,
    };
    let known = facts(&[named], &[]);
    let count = census(&[&reading], &Registry::default());
    for counted in &count.makes {
        assert!(counted.at_least <= counted.at_most, "{counted:?}");
        assert_eq!(
            counted.at_most,
            counted.both + counted.name_only + counted.other_maker
        );
    }
    for fact in known.map.values() {
        assert!(
            fact.place.line().is_none_or(|line| line <= lines),
            "{fact:?}"
        );
    }
    // A name may look like an address, or be a password: only what is not a name is asked.
    let shown = format!("{count:?}");
    assert_eq!(mask(&shown), shown);
}
