//! Measures slots with the real fio, real commands and a stand-in for a guest.
#![allow(
    clippy::disallowed_methods,
    reason = "tests make files and read the clock"
)]

use assay_host::LiveHost;
use assay_loads::Cancel;
use assay_loads::counters::Sources;
use assay_loads::fio::{Fio, FioEnd, FioOutput};
use assay_measure::engine::{
    Carried, EngineError, LoadTarget, MeasureEvent, Meter, MeterSlot, Stopped, Tools, Turn,
};
use assay_model::plan::{PlanSpec, Settings};
use assay_model::sample::{Operation, Outcome, Sample};
use assay_model::workload::Engine;
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

fn meter<'a>(work: &'a Path, cancel: &'a Cancel, tools: &'a Tools) -> Meter<'a> {
    Meter {
        host: &LiveHost,
        cancel,
        now: &jiff::Timestamp::now,
        work,
        tools,
    }
}

fn slot<'a>(load: &'a Load, place: &'a LoadTarget, sources: &'a Sources) -> MeterSlot<'a> {
    MeterSlot {
        load,
        name: load.name(),
        ramp: Nanos(20_000_000),
        runtime: Nanos(100_000_000),
        limit: assay_measure::engine::OPERATION_LIMIT,
        size: SIZE,
        seed: 1,
        place,
        sources,
        target: "t",
        round: 3,
        number: 7,
    }
}

fn fio(workload: Workload) -> Load {
    Load::Fio {
        workload,
        size: None,
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
    let Ok(fio_here) = Fio::find(&LiveHost, None) else {
        assay_testing::skipped("fio", "fio is not installed");
        return;
    };
    let work = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let real = work.path().join("a:name of = the user's");
    std::fs::write(&real, vec![7; SIZE.0 as usize]).unwrap();
    std::os::unix::fs::symlink(&real, work.path().join("link")).unwrap();
    let place = LoadTarget::File {
        dir: None,
        link: "link".to_owned(),
        state: None,
    };
    // The test's file system may not support direct I/O.
    let load = fio(Workload {
        direct: false,
        ..workload()
    });
    let (cancel, sources) = (Cancel::default(), Sources::find(&LiveHost, &[]));
    let tools = Tools::fio(fio_here);
    let sample = meter(work.path(), &cancel, &tools)
        .take(&slot(&load, &place, &sources))
        .unwrap();
    belongs(&sample);
    assert_eq!(sample.outcome, Outcome::Completed);
    let version = &tools.fio.as_ref().unwrap().version;
    assert_eq!((sample.workload.as_str(), &sample.tool), ("w", version));
    assert!(sample.workers[0].read().unwrap().count > 0);
    assert!(sample.counters.tool_cpu.unwrap().0 > 0);
    // The counters were read before fio began and after it ended.
    assert!(sample.counters.elapsed >= sample.wall && sample.wall.0 >= 120_000_000);
}

#[test]
fn a_command_that_fails_is_a_sample_that_says_so() {
    let cancel = Cancel::default();
    let place = LoadTarget::Named { path: "x".into() };
    let sources = Sources::find(&LiveHost, &[]);
    let of = |command: &str| {
        let load = Load::Command {
            argv: vec![command.to_owned()],
            prints: None,
        };
        meter(Path::new("."), &cancel, &Tools::default())
            .take(&slot(&load, &place, &sources))
            .unwrap()
    };
    let good = of("true");
    belongs(&good);
    assert_eq!(good.outcome, Outcome::Completed);
    assert_eq!(good.workload, "command");
    assert!(good.workers[0].of(Operation::Run).unwrap().count > 0);
    assert!(matches!(of("false").outcome, Outcome::Failed { .. }));
}

#[test]
fn a_guest_gets_the_job_and_its_clock_is_not_ours() {
    let place = LoadTarget::Guest {
        path: "/dev/vdb".into(),
    };
    let load = fio(workload());
    let (cancel, sources) = (Cancel::default(), Sources::find(&LiveHost, &[]));
    let tools = Tools::default();
    let meter = meter(Path::new("."), &cancel, &tools);
    let slot = slot(&load, &place, &sources);
    let mut given = None;
    let sample: Result<Sample, EngineError> = meter.take_in(&slot, &mut |job, planned| {
        given = Some((job.to_owned(), planned));
        Ok(FioOutput {
            json: br#"{"fio version":"fio-3.33","jobs":[{"jobname":"w","error":0}]}"#.to_vec(),
            stderr: String::new(),
            ended: FioEnd::Exited(0),
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
    // No function for guests was given.
    assert!(matches!(meter.take(&slot), Err(EngineError::Unfit(_))));
}

#[test]
fn what_does_not_fit_is_refused_before_anything_runs() {
    let (cancel, sources) = (Cancel::default(), Sources::find(&LiveHost, &[]));
    let tools = Tools::default();
    let meter = meter(Path::new("."), &cancel, &tools);
    let load = Load::Attributes {
        files: 1,
        size: Bytes(1),
    };
    // A file of the user has no directory of assay.
    let place = LoadTarget::File {
        dir: None,
        link: "link".to_owned(),
        state: None,
    };
    let refused = meter.take(&slot(&load, &place, &sources));
    assert!(matches!(refused, Err(EngineError::Unfit(_))));
    let load = fio(workload());
    let timeless = MeterSlot {
        runtime: Nanos(0),
        ..slot(&load, &place, &sources)
    };
    let refused = meter.take(&timeless);
    assert!(matches!(refused, Err(EngineError::Job { workload, .. }) if workload == "w"));
}

/// Stores samples, and requests a stop after `stop_after` samples.
struct Kept<'a> {
    meter: Meter<'a>,
    sources: Sources,
    stop_after: usize,
    kept: Vec<(u32, u64)>,
}

impl assay_measure::engine::SampleSink<KeptError> for Kept<'_> {
    fn take(&mut self, turn: Turn<'_>) -> Result<Sample, KeptError> {
        let place = LoadTarget::Named { path: "x".into() };
        let slot = MeterSlot {
            name: &turn.workload.name,
            ramp: turn.workload.ramp,
            runtime: turn.workload.runtime,
            round: turn.slot.round,
            number: turn.number,
            ..slot(&turn.workload.load, &place, &self.sources)
        };
        Ok(self.meter.take(&slot)?)
    }

    fn keep(&mut self, turn: Turn<'_>, sample: &Sample) -> Result<(), KeptError> {
        assert_eq!(sample.slot, turn.number);
        let done = sample.workers.iter().flat_map(|worker| worker.asked());
        self.kept
            .push((turn.number, done.map(|(_, done)| done.count).sum()));
        if self.kept.len() == self.stop_after {
            self.meter.cancel.cancel();
        }
        Ok(())
    }

    fn left(&self, todo: &[(u32, assay_model::plan::Slot)]) -> Nanos {
        Nanos(todo.len() as u64)
    }
}

#[derive(Debug, thiserror::Error)]
enum KeptError {
    #[error(transparent)]
    Slot(#[from] EngineError),
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// Events, result, and stored samples. A stored sample is the number of its slot and the number of its operations.
type Seen = (Vec<String>, Result<Carried, KeptError>, Vec<(u32, u64)>);

/// Executes a plan that has one load, which does not use files.
fn carried(load: &str, rounds: u32, stop_after: usize) -> Seen {
    let text = format!(
        "name = \"p\"\nrounds = {rounds}\n[[workload]]\nload = {load}\nruntime = \"100ms\"\nramp = \"0ms\"\n"
    );
    let settings = Settings {
        targets: vec!["t".to_owned()],
        engine: Engine::Auto,
        seed: 1,
    };
    let plan = PlanSpec::from_toml(&text, "p").unwrap().resolve(&settings);
    let plan = plan.unwrap();
    let todo: Vec<_> = (0u32..).zip(plan.order.iter().copied()).collect();
    let cancel = Cancel::default();
    let tools = Tools::default();
    let mut by = Kept {
        meter: meter(Path::new("."), &cancel, &tools),
        sources: Sources::find(&LiveHost, &[]),
        stop_after,
        kept: Vec::new(),
    };
    let mut told = Vec::new();
    let ended =
        assay_measure::engine::carry_out_plan(&plan, &todo, &cancel, &mut by, &mut |event| {
            told.push(match event {
                MeasureEvent::Left(left) => left.0.to_string(),
                MeasureEvent::Begin { workload, .. } => workload.to_owned(),
                MeasureEvent::Stored(_) => "stored".to_owned(),
                other => panic!("{other:?}"),
            });
        });
    (told, ended, by.kept)
}

#[test]
fn slots_are_done_in_order_and_kept_before_the_next_begins() {
    let (told, ended, kept) = carried(r#"{ kind = "null" }"#, 2, 9);
    assert_eq!(ended.unwrap(), Carried::Complete);
    assert_eq!(told, ["2", "null", "stored", "1", "null", "stored", "0"]);
    assert!(
        matches!(kept[..], [(0, a), (1, b)] if a > 0 && b > 0),
        "{kept:?}"
    );
}

#[test]
fn a_stop_between_two_slots_leaves_what_was_kept() {
    let (_, ended, kept) = carried(r#"{ kind = "null" }"#, 5, 2);
    assert_eq!(ended.unwrap(), Carried::Interrupted);
    assert_eq!(kept.len(), 2);
}

#[test]
fn failures_in_a_row_end_it() {
    let (_, ended, kept) = carried(r#"{ kind = "command", argv = ["false"] }"#, 9, 99);
    assert!(matches!(
        ended,
        Err(KeptError::Stopped(Stopped { count: 3, .. }))
    ));
    assert_eq!(kept.len(), 3);
    let (_, ended, _) = carried(r#"{ kind = "command", argv = ["false"] }"#, 1, 99);
    assert!(matches!(
        ended,
        Err(KeptError::Stopped(Stopped { count: 1, .. }))
    ));
}
