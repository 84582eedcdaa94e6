//! Slots measured with the real fio, real commands and a stand-in for a guest.
#![allow(
    clippy::disallowed_methods,
    reason = "tests make files and read the clock"
)]

use assay_engine::{Asked, EngineError, Meter, Place, Slot};
use assay_host::Live;
use assay_instruments::Cancel;
use assay_instruments::counters::Sources;
use assay_instruments::fio::{Ended, Fio, Output};
use assay_model::sample::{Outcome, Sample};
use assay_model::{Bytes, Load, Nanos, Workload};
use std::path::Path;

const SIZE: Bytes = Bytes(1 << 20);

fn workload() -> Workload {
    let text = r#"
        name = "w"
        pattern = "randread"
        block_size = "4k"
        engine = "psync"
        runtime = "100ms"
        ramp = "20ms"
    "#;
    toml::from_str(text).unwrap()
}

fn meter<'a>(work: &'a Path, cancel: &'a Cancel, fio: Option<&'a Fio>) -> Meter<'a> {
    Meter {
        host: &Live,
        cancel,
        now: &jiff::Timestamp::now,
        work,
        fio,
        password: None,
    }
}

fn slot<'a>(asked: Asked<'a>, place: &'a Place, sources: &'a Sources) -> Slot<'a> {
    Slot {
        asked,
        place,
        sources,
        target: "t",
        round: 3,
        number: 7,
    }
}

fn belongs(sample: &Sample) {
    assert_eq!(
        (sample.target.as_str(), sample.round, sample.slot),
        ("t", 3, 7)
    );
}

#[test]
fn fio_reads_a_file_through_its_link_and_its_time_is_counted() {
    let Ok(fio) = Fio::find(&Live, None) else {
        assay_testing::skipped("fio", "fio is not installed");
        return;
    };
    let work = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let real = work.path().join("a:name of = the user's");
    std::fs::write(&real, vec![7; SIZE.0 as usize]).unwrap();
    std::os::unix::fs::symlink(&real, work.path().join("link")).unwrap();
    let place = Place::File {
        dir: None,
        link: "link".to_owned(),
        state: None,
    };
    // The test's own file system may have no direct I/O.
    let workload = Workload {
        direct: false,
        ..workload()
    };
    let asked = Asked::Fio {
        workload: &workload,
        size: SIZE,
        seed: 1,
    };
    let (cancel, sources) = (Cancel::default(), Sources::find(&Live, &[]));
    let meter = meter(work.path(), &cancel, Some(&fio));
    let sample = meter.take(&slot(asked, &place, &sources)).unwrap();
    belongs(&sample);
    assert_eq!(sample.outcome, Outcome::Completed);
    assert_eq!(
        (&sample.workload, &sample.tool),
        (&workload.name, &fio.version)
    );
    assert!(sample.workers[0].read().unwrap().count > 0);
    assert!(sample.counters.tool_cpu.unwrap().0 > 0);
    // The counters were read before fio began and after it had ended.
    assert!(sample.counters.elapsed >= sample.wall && sample.wall.0 >= 120_000_000);
}

#[test]
fn a_command_that_fails_is_a_sample_that_says_so() {
    let cancel = Cancel::default();
    let place = Place::Named { path: "x".into() };
    let sources = Sources::find(&Live, &[]);
    let of = |command: &str| {
        let load = Load::Command {
            argv: vec![command.to_owned()],
        };
        let asked = Asked::Operations {
            load: &load,
            washout: Nanos(0),
            runtime: Nanos(50_000_000),
        };
        let slot = slot(asked, &place, &sources);
        meter(Path::new("."), &cancel, None).take(&slot).unwrap()
    };
    let good = of("true");
    belongs(&good);
    assert_eq!(good.outcome, Outcome::Completed);
    assert_eq!(good.workload, "command");
    assert!(matches!(of("false").outcome, Outcome::Failed { .. }));
}

#[test]
fn a_guest_gets_the_job_and_its_clock_is_not_ours() {
    let place = Place::Guest {
        path: "/dev/vdb".into(),
    };
    let workload = workload();
    let asked = Asked::Fio {
        workload: &workload,
        size: SIZE,
        seed: 1,
    };
    let (cancel, sources) = (Cancel::default(), Sources::find(&Live, &[]));
    let meter = meter(Path::new("."), &cancel, None);
    let slot = slot(asked, &place, &sources);
    let mut given = None;
    let sample: Result<Sample, EngineError> = meter.take_in(&slot, &mut |job, planned| {
        given = Some((job.to_owned(), planned));
        Ok(Output {
            json: br#"{"fio version":"fio-3.33","jobs":[{"jobname":"w","error":0}]}"#.to_vec(),
            stderr: String::new(),
            ended: Ended::Exited(0),
            wall: Nanos(0),
            cpu: None,
            series: Vec::new(),
        })
    });
    let sample = sample.unwrap();
    let (job, planned) = given.unwrap();
    assert!(job.contains("filename=/dev/vdb"), "{job}");
    assert_eq!(planned, Nanos(120_000_000));
    assert_eq!(sample.outcome, Outcome::Completed);
    assert!(sample.wall.0 > 0 && sample.wall == sample.counters.elapsed);
    assert_eq!(sample.counters.tool_cpu, None);
    // Nobody said how the guest is reached.
    assert!(matches!(meter.take(&slot), Err(EngineError::Unfit(_))));
}

#[test]
fn what_does_not_fit_is_refused_before_anything_runs() {
    let (cancel, sources) = (Cancel::default(), Sources::find(&Live, &[]));
    let meter = meter(Path::new("."), &cancel, None);
    let load = Load::Attributes {
        files: 1,
        size: Bytes(1),
    };
    let asked = Asked::Operations {
        load: &load,
        washout: Nanos(0),
        runtime: Nanos(1),
    };
    // A file of the user's has no directory of assay's own.
    let place = Place::File {
        dir: None,
        link: "link".to_owned(),
        state: None,
    };
    let refused = meter.take(&slot(asked, &place, &sources));
    assert!(matches!(refused, Err(EngineError::Unfit(_))));
    let open = Workload {
        runtime: None,
        ..workload()
    };
    let asked = Asked::Fio {
        workload: &open,
        size: SIZE,
        seed: 1,
    };
    let refused = meter.take(&slot(asked, &place, &sources));
    assert!(matches!(refused, Err(EngineError::Job { workload, .. }) if workload == "w"));
}
