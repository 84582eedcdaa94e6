use super::*;
use crate::setting::Original;
use crate::temporary_objects::Made;
use assay_host::seal::seal;
use assay_model::change::Setting;
use proptest::prelude::*;

fn header(format: u32) -> Header {
    Header {
        format,
        uid: "0123456789abcdef".into(),
        label: "trial of \"x\"\n".into(),
        target: "/mnt/a b".into(),
        pid: 7,
        boot: "b".into(),
        begun: 1,
    }
}

fn write(lines: &[Line]) -> Vec<u8> {
    let mut text = seal(0, &header(FORMAT)).unwrap();
    for (number, line) in (1..).zip(lines) {
        text.extend(seal(number, line).unwrap());
    }
    text
}

/// Writes lines in the format of assay 0.1.
fn write_first(lines: &[Line]) -> Vec<u8> {
    let mut text = serde_json::to_vec(&header(FIRST_FORMAT)).unwrap();
    for line in lines {
        text.push(b'\n');
        text.extend(serde_json::to_vec(line).unwrap());
    }
    text.push(b'\n');
    text
}

fn lines() -> Vec<Line> {
    let original = Original {
        value: Some("1".into()),
        shown: "1".into(),
        origin: crate::ValueOrigin::Set,
        place: "/proc/sys/a".into(),
        along: Vec::new(),
        file: None,
    };
    vec![
        Line::Made {
            id: 0,
            thing: Made::File("/tmp/assay-0123456789abcdef".into()),
        },
        Line::Opened {
            id: 1,
            setting: Box::new(Setting::Sysctl { key: "a".into() }),
            identity: "kernel:/proc/sys/a".into(),
            original: Box::new(original),
        },
        Line::Set {
            id: 1,
            value: Some("2".into()),
        },
        Line::Confirmed {
            id: 1,
            reads: Some("2".into()),
        },
        Line::Restored { id: 1 },
        Line::Closed { id: 1 },
        Line::Unmade { id: 0 },
    ]
}

fn state(lines: &[Line]) -> State {
    let mut state = State::default();
    lines.iter().cloned().for_each(|line| state.apply(line));
    state
}

/// Returns the state of a journal, and the number of its first damaged line.
fn said(bytes: &[u8]) -> Option<(State, Option<usize>)> {
    match read(bytes).unwrap() {
        Read::Unborn => None,
        Read::Journal(lines) => Some((lines.state, lines.damaged.map(|(line, _)| line))),
    }
}

#[test]
fn torn_anywhere_it_says_what_its_whole_lines_say() {
    for write in [write, write_first] {
        let (lines, whole) = (lines(), write(&lines()));
        for end in 0..=whole.len() {
            let torn = &whole[..end];
            // A complete line without its line end is valid.
            let ends = |text: &[u8]| text.iter().filter(|byte| **byte == b'\n').count();
            let count = ends(torn) + usize::from(whole.get(end) == Some(&b'\n'));
            let expected = match count {
                0 => None,
                count => Some((state(&lines[..count - 1]), None)),
            };
            assert_eq!(said(torn), expected, "{end}");
            // A power cut may leave zero bytes in place of the rest.
            let zeros = [torn, &[0; 100]].concat();
            assert_eq!(said(&zeros), expected, "{end} and zeros");
        }
    }
}

#[test]
fn every_flipped_bit_is_seen_and_no_line_is_made_of_it() {
    let (lines, whole) = (lines(), write(&lines()));
    for at in 0..whole.len() {
        for bit in 0..8 {
            let mut flipped = whole.clone();
            flipped[at] ^= 1 << bit;
            let number = whole[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
            match said(&flipped) {
                Some((found, Some(damaged))) => {
                    assert_eq!(damaged, number, "{at} {bit}");
                    let others = lines.iter().enumerate();
                    let lost = |index: usize| {
                        // The line end is lost together with both lines.
                        let last = number + usize::from(whole[at] == b'\n');
                        (number..=last).contains(&(index + 2))
                    };
                    let kept: Vec<_> = others
                        .filter(|(index, _)| !lost(*index))
                        .map(|(_, line)| line.clone())
                        .collect();
                    assert_eq!(found, state(&kept), "{at} {bit}");
                }
                found => panic!("{at} {bit}: {found:?}"),
            }
        }
    }
}

#[test]
fn a_missing_and_a_repeated_line_are_damage() {
    let text = write(&lines());
    let all: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
    for missing in 1..all.len() - 1 {
        let mut rest = all.clone();
        rest.remove(missing);
        assert_eq!(said(&rest.concat()).unwrap().1, Some(missing + 1));
        let mut twice = all.clone();
        twice.insert(missing, all[missing]);
        assert_eq!(said(&twice.concat()).unwrap().1, Some(missing + 2));
    }
    let mut headless = all.clone();
    headless.remove(0);
    assert_eq!(said(&headless.concat()).unwrap().1, Some(1));
}

#[test]
fn a_torn_line_is_not_kept_and_a_damaged_one_is() {
    let whole = write(&lines());
    let keep = |bytes: &[u8]| match read(bytes).unwrap() {
        Read::Journal(lines) => (lines.keep, lines.next),
        Read::Unborn => (0, 0),
    };
    assert_eq!(keep(&whole), (whole.len(), 8));
    let last = seal(8, &Line::Resumed { pid: 1 }).unwrap();
    let torn = [&whole[..], &last[..last.len() / 2]].concat();
    assert_eq!(keep(&torn), (whole.len(), 8));
    let damaged = [&whole[..], b"#\n"].concat();
    assert_eq!(keep(&damaged), (damaged.len(), 9));
}

#[test]
fn in_the_first_format_a_lost_line_is_damage_unless_somebody_took_over_behind_it() {
    let mut text = write_first(&lines()[..2]);
    text.extend(b"{\"set\":{\"id\":1,\"va");
    let torn = text.clone();
    let (known, damaged) = said(&torn).unwrap();
    assert_eq!((known, damaged), (state(&lines()[..2]), None));
    let more = |mut text: Vec<u8>, line: &Line| {
        text.push(b'\n');
        text.extend(serde_json::to_vec(line).unwrap());
        text.push(b'\n');
        text
    };
    let resumed = more(torn.clone(), &Line::Resumed { pid: 8 });
    assert_eq!(said(&resumed).unwrap().1, None);
    let resumed = more(resumed, &Line::Closed { id: 1 });
    assert_eq!(said(&resumed).unwrap().1, None);
    let damaged = more(torn.clone(), &Line::Closed { id: 1 });
    assert_eq!(said(&damaged).unwrap().1, Some(4));
    // A line with its line end was written completely.
    assert_eq!(said(&[&torn[..], b"\n"].concat()).unwrap().1, Some(4));
}

#[test]
fn other_files_and_later_formats_are_refused() {
    let told = |text: &[u8]| read(text).unwrap_err();
    insta::assert_snapshot!(told(b"[Unit]\nDescription=x\n"), @"not a journal of assay (expected value at line 1 column 2)");
    let sealed = seal(0, &serde_json::json!({"assay-journal": 3, "more": []})).unwrap();
    let later = told(b"{\"assay-journal\":3,\"more\":[]}\n");
    assert_eq!(later, told(&sealed));
    insta::assert_snapshot!(later, @"a journal of format 3; this assay knows formats 1 and 2: use the newer assay that wrote it to take its changes back");
    // A power cut may leave such a file if its first line never reached the disk.
    assert_eq!(read(b""), Ok(Read::Unborn));
    assert_eq!(read(b"{\"assay-jou"), Ok(Read::Unborn));
    assert_eq!(read(&[0; 512]), Ok(Read::Unborn));
}

#[test]
fn names_that_are_no_text_survive() {
    use std::os::unix::ffi::OsStringExt as _;
    let name = std::ffi::OsString::from_vec(b"/tmp/\xff\n\"assay-0123456789abcdef".to_vec());
    let made = vec![Line::Made {
        id: 0,
        thing: Made::File(name.into()),
    }];
    assert_eq!(said(&write(&made)), Some((state(&made), None)));
}

proptest! {
    #[test]
    fn garbage_behind_the_last_line_is_told(
        garbage in proptest::collection::vec(any::<u8>(), 1..200),
    ) {
        let lines = lines();
        let text = [write(&lines[..3]), b"#".to_vec(), garbage].concat();
        let (found, damaged) = said(&text).unwrap();
        prop_assert_eq!((found, damaged), (state(&lines[..3]), Some(5)));
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = read(&bytes);
        let _ = read(&[write(&lines()), bytes].concat());
    }
}

#[test]
fn attack_mutated_journals() {
    let target = assay_hostile::ParserTarget {
        name: "journal",
        seeds: vec![
            write(&lines()),
            write_first(&lines()),
            include_bytes!("../../tests/fixtures/journal-0.1-killed.jsonl").to_vec(),
        ],
        run: |bytes| {
            let first = read(bytes);
            assert_eq!(read(bytes), first, "reading changes nothing");
            if let Ok(Read::Journal(lines)) = first {
                assert!(lines.keep <= bytes.len());
            }
        },
    };
    let tried = 200 * assay_testing::attack_factor();
    let held = assay_hostile::attack(&target, tried).is_ok();
    assay_testing::attacked("mutated journals", tried, if held { tried } else { 0 });
}
