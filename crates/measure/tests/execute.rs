//! Executes a plan with the real fio, without the command line and without a terminal.
#![allow(
    clippy::disallowed_methods,
    reason = "tests make directories and read the clock"
)]

use assay_changes::Journal;
use assay_host::LiveHost;
use assay_loads::Cancel;
use assay_loads::scratch::ScratchRegistry;
use assay_measure::runner::{
    Begin, Environment, MeasureEvent, Permission, execute, prepare, prepare_resume,
};
use assay_model::plan::PlanSpec;
use assay_model::run::RunState;
use assay_model::sample::Outcome;
use assay_store::Store;

const PLAN: &str = r#"
name = "test"
rounds = 2
runtime = "200ms"
ramp = "50ms"
file_size = "8M"

[[workload]]
pattern = "randwrite"
block_size = "4k"
queue_depth = 4

[[workload]]
pattern = "read"
block_size = "64k"
queue_depth = 2
jobs = 2
"#;

#[test]
fn a_run_cancelled_after_its_first_sample_is_resumed_to_its_end() {
    if std::process::Command::new("fio")
        .arg("--version")
        .output()
        .is_err()
    {
        assay_testing::skipped("fio", "not installed");
        return;
    }
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let target = dir.path().join("target");
    std::fs::create_dir(&target).unwrap();
    let state = ScratchRegistry::open(&dir.path().join("state")).unwrap();
    let journal = Journal::open(&dir.path().join("state")).unwrap();
    let mut store = Store::open(&dir.path().join("store.db")).unwrap();
    let cancel = Cancel::default();
    let env = Environment {
        host: &LiveHost,
        fio: None,
        state: &state,
        journal: &journal,
        cancel: &cancel,
        now: &jiff::Timestamp::now,
        version: "test",
        command_helper: None,
    };
    let begin = Begin {
        uid: "0123456789abcdef0123456789abcdef".to_owned(),
        seed: 5,
        permission: Permission::default(),
    };
    let spec = PlanSpec::from_toml(PLAN, "test").unwrap();
    let targets = vec![target.to_str().unwrap().to_owned()];
    let prepared = prepare(&spec, targets, &begin, &env).unwrap();
    assert_eq!(prepared.todo.len(), 4);
    let stop = cancel.clone();
    let mut laid_out = false;
    let finished = execute(prepared, &env, &mut store, &mut |event| match event {
        MeasureEvent::Stored(_) => stop.cancel(),
        MeasureEvent::Layout { written, size, .. } => laid_out = written == size,
        _ => {}
    })
    .unwrap();
    assert!(laid_out);
    assert_eq!(
        (finished.taken, finished.run.state),
        (1, RunState::Interrupted)
    );

    let cancel = Cancel::default();
    let env = Environment {
        cancel: &cancel,
        ..env
    };
    let run = store.run(finished.run.id).unwrap();
    let samples = store.samples(run.id).unwrap();
    let prepared = prepare_resume(run, &samples, begin.permission, &env).unwrap();
    assert_eq!(prepared.todo.len(), 3);
    let finished = execute(prepared, &env, &mut store, &mut |_| {}).unwrap();
    assert_eq!(
        (finished.taken, finished.run.state),
        (3, RunState::Complete)
    );
    assert!(
        finished
            .run
            .remarks
            .iter()
            .any(|remark| remark.contains("resumed"))
    );

    let samples = store.samples(finished.run.id).unwrap();
    assert_eq!(samples.len(), 4);
    for (slot, sample) in (0u32..).zip(&samples) {
        assert_eq!((sample.slot, &sample.outcome), (slot, &Outcome::Completed));
        let jobs = if sample.workload.starts_with("read") {
            2
        } else {
            1
        };
        assert_eq!(sample.workers.len(), jobs, "{}", sample.workload);
        assert!(sample.counters.cpu.is_some());
    }
    // On a busy machine fio may miss all intervals of such a short sample.
    assert!(samples.iter().any(|sample| !sample.series.is_empty()));
    let again = prepare_resume(finished.run, &samples, begin.permission, &env)
        .err()
        .unwrap();
    insta::assert_snapshot!(again, @"run 1 cannot be resumed: all of its samples are there; `assay run` starts a new one");
    assert_eq!(std::fs::read_dir(&target).unwrap().count(), 0);
}
