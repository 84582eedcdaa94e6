use super::*;
use crate::WatchSubject;
use proptest::prelude::*;

fn sample() -> Vec<u8> {
    let mut out = Vec::new();
    let header = RecordingHeader::new(
        "box\u{1b}[31m".to_owned(),
        "6.1".to_owned(),
        7,
        WatchSubject::Machine,
    );
    write_line(&mut out, &header).unwrap();
    for at in [0, 1000, 2000] {
        let mut look = MachineSnapshot {
            at_ms: at,
            ..MachineSnapshot::default()
        };
        look.set("cpu.user_total", at as f64);
        write_line(&mut out, &look).unwrap();
    }
    out
}

fn fault_line(bytes: &[u8]) -> usize {
    match read_recording(&mut &bytes[..]) {
        Err(RecordingError::Line { line, .. }) => line,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_was_written_is_read_back() {
    let read = read_recording(&mut &sample()[..]).unwrap();
    assert_eq!(read.looks.len(), 3);
    assert_eq!(read.looks[2].machine["cpu.user_total"], 2000.0);
    assert_eq!(read.header.machine, "box\u{1b}[31m");
}

#[test]
fn damage_is_an_error_with_its_line() {
    let good = String::from_utf8(sample()).unwrap();
    assert_eq!(fault_line(b""), 1);
    assert_eq!(fault_line(&good.as_bytes()[..good.len() - 1]), 4);
    assert_eq!(fault_line(good.replacen("1000", "3000", 1).as_bytes()), 4);
    assert_eq!(
        fault_line(good.replacen("\"at_ms\":1000", "\"at\":1000", 1).as_bytes()),
        3
    );
    assert_eq!(
        fault_line(
            good.replacen("\"assay-why\":1", "\"assay-why\":2", 1)
                .as_bytes()
        ),
        1
    );
    let short: String = good.split_inclusive('\n').take(2).collect();
    assert_eq!(fault_line(short.as_bytes()), 2);
}

proptest! {
    #[test]
    fn no_damage_makes_it_panic(at in 0usize..400, byte in any::<u8>(), cut in 0usize..400) {
        let mut bytes = sample();
        let place = at % bytes.len();
        bytes[place] = byte;
        bytes.truncate(bytes.len() - cut.min(bytes.len()));
        let _ = read_recording(&mut &bytes[..]);
    }
}
