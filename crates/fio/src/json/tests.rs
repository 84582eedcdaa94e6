use super::*;
use assay_model::{Bytes, Nanos};
use proptest::prelude::*;

macro_rules! fixture {
    ($name:literal) => {
        include_str!(concat!("../../fixtures/", $name))
    };
}

const MIX: &str = fixture!("fio-3.33-mix.json");
const STATUS: &str = fixture!("fio-3.33-status-interval.json");

fn only(text: &str) -> FioDocument {
    let documents = parse(text).unwrap();
    assert_eq!(documents.len(), 1);
    documents.into_iter().next().unwrap()
}

#[test]
fn json_plus_of_3_33() {
    let document = only(MIX);
    assert_eq!(document.version(), Some((3, 33)));
    assert_eq!(document.jobs.len(), 1);
    let job = &document.jobs[0];
    assert_eq!(job.fio.options["rw"], "randrw");
    let (read, write) = (job.read().unwrap(), job.write().unwrap());
    assert_eq!(read.bytes.0, read.count * 4096);
    for io in [read, write] {
        assert_eq!(io.clat.histogram.count(), io.clat.n);
        assert!(io.clat.percentile(99.0).unwrap() >= io.clat.percentile(50.0).unwrap());
        // fio's own percentile is the upper edge of the bin; the histogram uses its middle.
        let printed = io
            .clat
            .percentiles
            .iter()
            .find(|(p, _)| *p == 50.0)
            .unwrap()
            .1;
        let ours = io.clat.percentile(50.0).unwrap();
        assert!((printed as f64 / ours as f64 - 1.0).abs() < 0.02);
    }
    assert!(job.trim().is_none() && job.flush().is_none());
    assert!(job.fio.iodepth_level["8"] > 99.0);
    assert_eq!(document.disks.len(), 1);
}

#[test]
fn flushes_are_their_own_latency() {
    let job = &only(fixture!("fio-3.33-fdatasync.json")).jobs[0];
    let sync = job.flush().unwrap();
    assert!(sync.count > 0 && sync.lat.mean > 0.0);
    assert_eq!(sync.lat.histogram.count(), sync.count);
}

#[test]
fn several_documents_and_text_between() {
    let documents = parse(STATUS).unwrap();
    assert!(documents.len() >= 2);
    let last = final_document(&documents).unwrap();
    assert_eq!(last.jobs.len(), 2);
    let ios = |document: &FioDocument| document.jobs[0].read().map_or(0, |io| io.count);
    assert!(ios(last) > ios(&documents[0]), "totals since the start");
    assert_eq!(
        last.jobs[1].fio.options["bs"], "64k",
        "global options apply"
    );
    let noisy = format!("fio: note {{ not it }}\n{MIX}\nDone {{}}\n{MIX}trailer");
    assert_eq!(parse(noisy).unwrap().len(), 2);
}

#[test]
fn clients_without_their_sum() {
    let document = only(fixture!("fio-3.33-client.json"));
    assert_eq!(document.kind, DocumentKind::Client);
    let names: Vec<&str> = document.jobs.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["c", "d"]);
    let sum = only(fixture!("handmade-fio-2.6-client-unified.json"));
    assert_eq!(sum.jobs.len(), 1);
    assert_eq!(sum.unified, [0]);
    assert!(sum.jobs[0].write().is_some());
}

#[test]
fn every_version_gives_the_same_figures() {
    for text in [
        fixture!("handmade-fio-2.1.11.json"),
        fixture!("handmade-fio-2.2.10-plus.json"),
        fixture!("handmade-fio-2.16.json"),
        fixture!("handmade-fio-3.1.json"),
        fixture!("handmade-fio-3.7.json"),
        fixture!("handmade-fio-3.41-plus.json"),
    ] {
        let document = only(text);
        let version = document.fio_version.as_str();
        let job = &document.jobs[0];
        let io = job.read().or(job.write()).unwrap();
        assert_eq!(io.bytes, Bytes(40_960_000), "{version}");
        assert_eq!(io.bytes_per_s, 4_096_000.0, "{version}");
        assert_eq!(io.runtime, Nanos(10_000_000_000), "{version}");
        assert!(job.runtime >= Nanos(10_000_000_000), "{version}");
        assert_eq!(io.clat.max, 20_000_000, "{version}");
        assert_eq!(io.clat.mean, 7_990_500.0, "{version}");
        if io.clat.histogram.is_empty() {
            assert_eq!(io.clat.percentile(50.0), Some(7_840_000), "{version}");
        }
    }
}

#[test]
fn bins_by_index_become_microseconds() {
    let document = only(fixture!("handmade-fio-2.2.10-plus.json"));
    let histogram = &document.jobs[0].read().unwrap().clat.histogram;
    let bins: Vec<_> = histogram.bins().collect();
    // Below 128 a bin is one microsecond; bin 128 covers 128–129 µs, bin 200 covers 272–275 µs. By
    // plat_idx_to_val: 1 << 7 plus (index % 64 + 0.5) × 2, then 1 << 8 plus (8 + 0.5) × 4.
    assert_eq!(
        bins,
        [(10_000, 1), (127_000, 2), (129_000, 3), (290_000, 4)]
    );
}

#[test]
fn nan_and_warnings_in_the_middle() {
    let line = MIX
        .lines()
        .find(|line| line.contains("\"stddev\""))
        .unwrap();
    let number = line.split(':').nth(1).unwrap().trim().trim_end_matches(',');
    let broken = MIX
        .replacen(line, &line.replace(number, "-nan"), 1)
        .replacen(
            "\"write\"",
            "\nfio: file /srv/x exceeds 32-bit tausworthe\n\"write\"",
            1,
        );
    let job = &only(&broken).jobs[0];
    assert_eq!(job.read().unwrap().slat.stddev, 0.0);
    assert!(job.write().is_some());
}

#[test]
fn bad_input_is_one_clear_error() {
    assert_eq!(parse(""), Err(JsonError::Empty));
    assert_eq!(parse(" \n"), Err(JsonError::Empty));
    for bad in [
        "garbage",
        "{}",
        "[]",
        "{\"a\":1}",
        "3;fio-3.33;x",
        "\u{fffd}",
    ] {
        assert!(
            matches!(parse(bad), Err(JsonError::NoDocument { .. })),
            "{bad}"
        );
    }
    assert!(matches!(
        parse(b"\xff\xfe{"),
        Err(JsonError::NoDocument { .. })
    ));
    for bad in [
        "{\"jobs\" : 3}",
        "{\"fio version\" : \"fio-3.33\",\n\"jobs\" : [{\"jobname\" : []}]}",
        "{\"jobs\" : [{\"read\" : {\"iops\" : \"many\"}}]}",
        "{\"jobs\" : [{\"read\" : {\"iops\" : 1e999}}]}",
        "{\"jobs\" : [}",
    ] {
        let error = parse(bad).unwrap_err();
        assert!(matches!(error, JsonError::Syntax { .. }), "{bad} {error:?}");
        assert!(!error.to_string().contains('\n'));
    }
    let Err(JsonError::Syntax { line, .. }) =
        parse("text\n\n{\"fio version\" : \"fio-3.33\",\n\"jobs\" : 7}")
    else {
        panic!("wrong error");
    };
    assert_eq!(line, 4);
}

#[test]
fn numbers_without_sense_do_not_survive() {
    let document = only(
        "{\"jobs\" : [{\"jobname\" : 7, \"error\" : -5, \"job_runtime\" : -3, \"read\" : {\"total_ios\" : 1, \
         \"io_bytes\" : 18446744073709551615, \"runtime\" : 18446744073709551615, \"iops\" : -1.5, \
         \"clat_ns\" : {\"max\" : 1e300, \"bins\" : {\"18446744073709551615\" : 18446744073709551615}}}}]}",
    );
    let job = &document.jobs[0];
    assert_eq!((job.fio.error, job.name.as_str()), (0, "7"));
    assert_eq!(job.read().unwrap().per_s, 0.0);
}

#[test]
fn a_cut_document_says_what_was_left() {
    let two = format!("{MIX}{STATUS}");
    let cut = &two[..two.rfind("disk_util").unwrap()];
    let Err(JsonError::Truncated {
        line,
        byte,
        documents,
        partial,
    }) = parse(cut)
    else {
        panic!("not recognised as cut");
    };
    assert_eq!(byte, cut.len());
    assert_eq!(line, cut.matches('\n').count() + 1);
    assert!(documents.len() >= 2);
    assert_eq!(partial.jobs.len(), 2);
    insta::assert_snapshot!(parse(cut)
            .unwrap_err()
            .to_string(), @"cut off at line 2205 (byte 54209): the end of the JSON is missing; 3 complete documents and 2 complete jobs of the cut one could still be read; run fio again, or copy the whole file");
}

#[test]
fn deep_nesting_and_many_openings_end() {
    let deep = format!("{{\"jobs\":[{{\"x\":{}", "[{\"jobs\":".repeat(100_000));
    assert!(parse(&deep).is_err());
    let many = "{\"jobs\":1}".repeat(100_000);
    assert!(parse(&many).is_err());
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = parse(&bytes);
    }

    #[test]
    fn mutated_results_never_panic(at in 0..MIX.len(), byte in any::<u8>(), cut in 0..MIX.len()) {
        let mut bytes = MIX.as_bytes().to_vec();
        bytes[at] = byte;
        let _ = parse(&bytes);
        bytes.truncate(cut);
        prop_assert!(parse(&bytes).is_err() || cut > MIX.trim_end().len() - 1);
    }
}
