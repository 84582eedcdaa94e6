use super::*;

/// A Wi-Fi history of five seconds: channel 36 with a fading signal, then no access point, then channel 1.
pub fn walk() -> Air {
    let sample = |second: u64, point, mhz, signal| Sample {
        at: second * 1_000_000,
        point,
        channel: Channel::at(mhz),
        signal,
        down_bit_per_s: signal.map(|_| 866_700_000),
        up_bit_per_s: None,
    };
    Air {
        points: ["00:1a:2b:xx:xx:xx", "00:1a:2b:xx:xx:xx"]
            .map(|address| Point {
                address: address.to_owned(),
            })
            .to_vec(),
        samples: vec![
            sample(0, Some(0), 5180, Some(-61)),
            sample(1, Some(0), 5180, Some(-84)),
            sample(2, None, 0, None),
            sample(3, Some(1), 2412, Some(-58)),
            sample(4, Some(1), 2417, Some(-58)),
        ],
        heard: vec![Heard {
            address: "00:1a:2b:xx:xx:xx".to_owned(),
            channel: Channel::at(5500).unwrap(),
            signal: -52,
        }],
    }
}

#[test]
fn a_walk_through_the_house() {
    let air = walk();
    let judged = judge(&air);
    assert_eq!(judged.roams.len(), 1, "a change of channel is no roam");
    let roam = judged.roams[0];
    assert_eq!((roam.from_us, roam.to_us), (1_000_000, 3_000_000));
    assert_eq!(
        [roam.from, roam.to].map(|channel| channel.unwrap().number),
        [36, 1]
    );
    assert_eq!(judged.away, [(2_000_000, 3_000_000)]);
    assert_eq!(
        (judged.signal, judged.weakest.unwrap().dbm),
        (Some(-58), -84)
    );
    assert_eq!(judged.channel.unwrap().number, 36);
    assert_eq!(air.at(1_900_000).unwrap().signal, Some(-84));
    assert_eq!(air.better_band().unwrap().signal, -52);
    assert_eq!(judge(&Air::default()), AirVerdict::default());
    assert_eq!(Air::default().at(5), None);
}

#[test]
fn a_record_is_read_back_and_older_ones_are_read() {
    let record = crate::record::PersonRecord {
        air: Some(walk()),
        ..Default::default()
    };
    let text = serde_json::to_string(&record).unwrap();
    assert!(text.contains("\"5GHz\""), "{text}");
    assert_eq!(
        serde_json::from_str::<crate::record::PersonRecord>(&text).unwrap(),
        record
    );
    let older: crate::record::PersonRecord = serde_json::from_str("{\"person\":\"a\"}").unwrap();
    assert_eq!(older.air, None);
}

#[test]
fn nothing_is_taken_from_a_client_in_full() {
    let mut air = walk();
    assert!(air.is_bounded());
    air.points[0].address = "00:1a:2b:01:02:03".to_owned();
    air.mask();
    assert_eq!(air.points[0].address, "00:1a:2b:xx:xx:xx");
    air.samples.swap(0, 4);
    assert!(!air.is_bounded());
    let mut air = walk();
    air.points = vec![Point::default(); MOST_POINTS + 1];
    assert!(!air.is_bounded());
}
