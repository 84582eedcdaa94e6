//! Tests that reports of any width contain the same figures, and that hostile names are escaped.

use super::*;
use assay_net::air::{Air, Point, Sample};
use assay_net::plan::NetPlan;
use assay_net::record::{PersonRecord, RecordEvent, RoleRecord, Start};
use assay_net::result::Taken;
use assay_wifi::channel::Channel;

const HOSTILE: &str = "<b>Anna\u{202e}";

/// Returns a run with a call whose packets are all late, a video that stalled, a download, and a person who left.
fn run() -> Run {
    let plan = format!(
        "name = 'x'\nseconds = 30\n[[person]]\nname = '{HOSTILE}'\nroles = ['call', 'gaming']\n\
         [[person]]\nname = 'Ben'\nroles = ['4kstream']\n[[person]]\nname = 'Carl'\nroles = ['download']\n\
         [[person]]\nname = 'Dora'\nroles = ['voip']\n[[person]]\nname = 'Eve'\nroles = ['call']\n"
    );
    let packets = |role: &str, every: u64, took: &dyn Fn(u64) -> Option<u64>| RoleRecord {
        role: role.to_owned(),
        events: (0..30_000_000 / every)
            .map(|i| RecordEvent {
                due: i * every,
                late: 0,
                took: took(i),
            })
            .collect(),
        slots: vec![900_000; 300],
        ..RoleRecord::default()
    };
    let late = |_: u64| Some(347_000);
    let film = |i: u64| Some(if i == 40 { 5_000_000 } else { 90_000 });
    let broken = |i: u64| (!(600..705).contains(&i) && i % 300 > 5).then_some(8_000);
    let roles = [
        vec![
            packets("call", 20_000, &late),
            packets("gaming", 16_667, &late),
        ],
        vec![packets("4kstream", 335_544, &film)],
        vec![packets("download", 30_000_000, &|_| None)],
        vec![],
        vec![packets("call", 20_000, &broken)],
    ];
    let plan = NetPlan::read(&plan).unwrap();
    let people = plan.people.iter().zip(roles);
    let people = people.map(|(person, roles)| Taken {
        person: person.name.clone(),
        client: "device".to_owned(),
        missing: roles.is_empty().then(|| "its client is gone".to_owned()),
        record: (!roles.is_empty()).then(|| PersonRecord {
            person: person.name.clone(),
            ran_us: 30_000_000,
            start: Start {
                late_us: 100,
                error_us: 20,
                idle_us: 400,
                ..Start::default()
            },
            air: (person.name == "Eve").then(walk),
            roles,
            ..PersonRecord::default()
        }),
    });
    Run {
        people: people.collect(),
        plan,
        began: "2026-11-22T14:02:00Z".parse().unwrap(),
        aborted: false,
        congestion: Vec::new(),
    }
}

/// A roaming event: by 14:02:12 Eve's device uses the other access point.
fn walk() -> Air {
    let sample = |second: u64| {
        let second = second.min(29);
        let (point, mhz, signal) = match second {
            ..12 => (Some(0), 5180, Some(-50 - 3 * second as i32)),
            12 | 13 => (None, 0, None),
            _ => (Some(1), 2412, Some(-58)),
        };
        Sample {
            at: second * 1_000_000,
            point,
            channel: Channel::at(mhz),
            signal,
            down_bit_per_s: signal.map(|_| 866_700_000),
            up_bit_per_s: None,
        }
    };
    let point = |address: &str| Point {
        address: address.to_owned(),
    };
    Air {
        points: vec![point("00:1a:2b:xx:xx:xx"), point("<b>00:1a:2b:xx")],
        samples: (0..30).map(sample).collect(),
        heard: Vec::new(),
    }
}

fn with<T>(of: impl FnOnce(&Net) -> T) -> T {
    let run = run();
    let judged = run.judged();
    of(&Net {
        run: &run,
        judged: &judged,
        zone: TimeZone::UTC,
    })
}

#[test]
fn a_terminal() {
    for (width, name) in [(80, "narrow"), (140, "wide")] {
        let style = Style {
            color: false,
            width,
        };
        let text = with(|net| terminal(net, style));
        assert!(
            text.lines().all(|line| line.chars().count() <= width),
            "{text}"
        );
        insta::assert_snapshot!(name, text);
    }
}

#[test]
fn the_page_is_whole_and_escapes() {
    let page = with(page);
    assert!(page.trim_end().ends_with("</html>") && page.contains("assay net"));
    assert!(!page.contains("<b>Anna") && !page.contains('\u{202e}') && !page.contains("<script"));
    assert!(
        page.contains("14:02:") && page.matches("<svg").count() == 4,
        "{}",
        page.matches("<svg").count()
    );
}

#[test]
fn json_has_what_was_seen_and_what_it_means() {
    let value: serde_json::Value = serde_json::from_str(&with(json)).unwrap();
    assert_eq!(
        serde_json::from_value::<Run>(value["run"].clone()).unwrap(),
        run()
    );
    assert_eq!(value["experience"]["bad"], 3);
    assert_eq!(value["experience"]["unknown"], 1);
}

#[test]
fn two_runs_on_one_page() {
    let run = run();
    let mut other = run.clone();
    // Another person joined, and Dora has no results in either run.
    other.plan.people[2].name = "Fred".to_owned();
    other.people[2].person = "Fred".to_owned();
    if let Some(record) = &mut other.people[2].record {
        record.person = "Fred".to_owned();
    }
    let named = |name: &str, run| NamedRun {
        name: name.to_owned(),
        run,
    };
    let page = compared_page(&[named("<i>a", &run), named("b", &other)], &TimeZone::UTC);
    assert!(
        page.trim_end().ends_with("</html>") && !page.contains("<i>a") && !page.contains("<b>Anna")
    );
    let rows = page
        .split("<tr")
        .skip(1)
        .filter_map(|row| row.split_once("</tr>"));
    let theirs = rows.filter(|(row, _)| row.contains("Carl") || row.contains("Fred"));
    let texts = theirs.flat_map(|(row, _)| row.split('<').filter_map(|part| part.split_once('>')));
    let cells = texts
        .map(|(_, text)| text.trim())
        .filter(|text| !text.is_empty());
    insta::assert_snapshot!(cells.collect::<Vec<_>>().join("\n"), @r"
    Carl
    good
    –
    The download ran at 72.0 Mbit&#x2f;s.
    Not in this run.
    Fred
    –
    good
    Not in this run.
    The download ran at 72.0 Mbit&#x2f;s.
    Carl
    download
    good, 72.0 Mbit&#x2f;s
    –
    –
    –
    –
    Fred
    download
    –
    good, 72.0 Mbit&#x2f;s
    –
    –
    –
    ");
    assert_eq!(page.matches("<svg").count(), 2);
    assert!(page.matches("class=\"line\"").count() > 3);
}

/// The length of the bars is a fraction of the page's width, so that 80 and 100 % differ on a phone.
#[test]
fn bars_of_verdicts_are_shares_of_the_drawing() {
    let plan = "name = 'x'\nseconds = 10\n[[person]]\nname = 'Anna'\nroles = ['call']\n\
                [[person]]\nname = 'Ben'\nroles = ['call']\n";
    let plan = NetPlan::read(plan).unwrap();
    let people = plan.people.iter().zip([5, 4]).map(|(person, late)| Taken {
        person: person.name.clone(),
        client: "device".to_owned(),
        missing: None,
        record: Some(PersonRecord {
            person: person.name.clone(),
            ran_us: 10_000_000,
            roles: vec![RoleRecord {
                role: "call".to_owned(),
                events: (0..500)
                    .map(|i| RecordEvent {
                        due: i * 20_000,
                        late: 0,
                        took: Some(if i % 5 < late { 300_000 } else { 9_000 }),
                    })
                    .collect(),
                ..RoleRecord::default()
            }],
            ..PersonRecord::default()
        }),
    });
    let run = Run {
        people: people.collect(),
        plan: plan.clone(),
        began: "2026-11-22T14:02:00Z".parse().unwrap(),
        aborted: false,
        congestion: Vec::new(),
    };
    let judged = run.judged();
    let page = page(&Net {
        run: &run,
        judged: &judged,
        zone: TimeZone::UTC,
    });
    let number = |text: &str, name: &str| -> f64 {
        let at = text.find(&format!(" {name}=\"")).unwrap() + name.len() + 3;
        text[at..]
            .split(['"', ' '])
            .next()
            .unwrap()
            .parse()
            .unwrap()
    };
    let svg = &page[page.find("<svg").unwrap()..];
    let svg = &svg[..svg.find("</svg>").unwrap()];
    let bars: Vec<f64> = svg
        .match_indices("<rect")
        .map(|(at, _)| &svg[at..])
        .filter(|rect| rect[..rect.find('>').unwrap()].contains("c-special"))
        .map(|rect| number(rect, "width"))
        .collect();
    assert_eq!(bars.len(), 2, "{svg}");
    assert!((bars[1] / bars[0] - 0.8).abs() < 0.01, "{bars:?}");
    let whole: f64 = svg
        .split("viewBox=\"0 0 ")
        .nth(1)
        .unwrap()
        .split(' ')
        .next()
        .unwrap()
        .parse()
        .unwrap();
    assert!(
        bars[0] < whole && bars[0] > 0.9 * whole,
        "{bars:?} of {whole}"
    );
}
