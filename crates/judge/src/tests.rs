//! Tests the judgement of complete runs, both constructed and recorded.

use super::*;
use assay_fio::import::{self, Context};
use assay_model::doubt::Validity;
use assay_model::result::LimitKind;
use assay_model::sample::Operation;
use assay_model::sample::Outcome;

/// Returns a recorded result of fio 3.33 as a run.
pub(crate) fn recorded(name: &str) -> (Run, Vec<Sample>) {
    let json = match name {
        "fdatasync" => include_str!("../fixtures/fio-3.33/fdatasync.json"),
        "clean-read" => include_str!("../fixtures/fio-3.33/clean-read.json"),
        "tmpfs" => include_str!("../fixtures/fio-3.33/tmpfs.json"),
        "io-error" => include_str!("../fixtures/fio-3.33/io-error.json"),
        other => panic!("no fixture {other}"),
    };
    let documents = assay_fio::json::parse(json.as_bytes()).unwrap();
    let context = Context {
        file: format!("{name}.json"),
        uid: name.to_owned(),
        version: "0".to_owned(),
        now: jiff::Timestamp::UNIX_EPOCH,
    };
    import::run(documents.last().unwrap(), &context)
}

/// Returns the recorded result as several rounds, one for each factor, with its rates multiplied by the factor.
pub(crate) fn rounds(name: &str, factors: &[f64]) -> (Run, Vec<Sample>) {
    let (mut run, samples) = recorded(name);
    let template = run.plan.order.clone();
    run.plan.order.clear();
    run.plan.rounds = factors.len() as u32;
    let mut out = Vec::new();
    for (round, factor) in (1..).zip(factors) {
        for (sample, slot) in samples.iter().zip(&template) {
            let mut sample = sample.clone();
            sample.round = round;
            sample.slot = out.len() as u32;
            for job in &mut sample.workers {
                for io in job.operations.values_mut() {
                    io.per_s *= factor;
                    io.bytes_per_s *= factor;
                }
            }
            run.plan
                .order
                .push(assay_model::plan::Slot { round, ..*slot });
            out.push(sample);
        }
    }
    (run, out)
}

/// Returns the fio load of the first workload.
pub(crate) fn fio(run: &mut Run) -> &mut assay_model::Workload {
    match &mut run.plan.workloads[0].load {
        assay_model::Load::Fio { workload, .. } => workload,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_cost_of_fdatasync_is_in_the_write() {
    let (run, samples) = recorded("fdatasync");
    let judged = judge_run(&run, &samples);
    let result = &judged.results[0];
    let value = |metric: &str| result.estimates[&metric.parse().unwrap()].value;
    let job = &samples[0].workers[0];
    let (write, sync) = (job.write().unwrap(), job.flush().unwrap());
    assert!(value("write.mean") > write.clat.mean + sync.lat.mean * 0.99);
    assert!(value("p99") > write.clat.percentile(99.0).unwrap() as f64);
    assert!(value("p99") >= value("flush.p99"));
    assert_eq!(
        result.limit.what,
        LimitKind::Flush,
        "{}",
        result.limit.evidence
    );
    assert_eq!(result.latency.count(), write.clat.n);
}

#[test]
fn rounds_make_intervals_and_steadiness() {
    let (run, samples) = rounds("clean-read", &[1.0, 1.02, 0.98, 1.01, 0.99]);
    let judged = judge_run(&run, &samples);
    let result = &judged.results[0];
    assert_eq!(
        (result.rounds, result.rounds_void),
        (5, 0),
        "{:?}",
        result.doubts
    );
    let iops = result.estimates[&"iops".parse().unwrap()];
    let interval = iops.interval.unwrap();
    assert!(interval.low < iops.value && iops.value < interval.high);
    assert!(result.steadiness.steady, "{:?}", result.steadiness);
}

#[test]
fn void_samples_reach_no_estimate() {
    let (run, mut samples) = rounds("clean-read", &[1.0, 1.0, 1000.0]);
    samples[2].outcome = Outcome::Failed {
        error: "I/O error\x1b[31m".to_owned(),
    };
    let judged = judge_run(&run, &samples);
    assert_eq!(judged.samples[2].validity, Validity::Void);
    assert!(judged.samples[2].figures.is_empty());
    let evidence = &judged.samples[2].doubts.last().unwrap().evidence;
    assert!(!evidence.contains('\x1b'), "{evidence}");
    let result = &judged.results[0];
    assert_eq!((result.rounds, result.rounds_void), (2, 1));
    let two = judge_run(&run, &samples[..2]);
    assert_eq!(result.estimates, two.results[0].estimates);
}

#[test]
fn when_no_sample_counts_there_is_a_result_without_figures() {
    let (mut run, samples) = recorded("io-error");
    run.plan.want = vec![format!("{}.iops > 1", samples[0].workload).parse().unwrap()];
    let judged = judge_run(&run, &samples);
    let result = &judged.results[0];
    assert_eq!(result.validity, Validity::Void);
    assert!(result.estimates.is_empty() && !result.doubts.is_empty());
    assert_eq!(result.limit.what, LimitKind::Unknown);
    assert!(!judged.criteria[0].met);
}

#[test]
fn a_planned_workload_without_samples_is_listed() {
    let (run, _) = recorded("clean-read");
    let judged = judge_run(&run, &[]);
    assert_eq!(judged.results.len(), 1);
    assert_eq!(judged.results[0].rounds, 0);
    assert_eq!(judged.results[0].validity, Validity::Void);
}

#[test]
fn an_empty_run_is_judged() {
    let (mut run, _) = recorded("clean-read");
    run.plan.order.clear();
    assert!(judge_run(&run, &[]).results.is_empty());
}

#[test]
fn every_figure_of_every_recorded_result_is_finite_and_positive() {
    for name in ["fdatasync", "clean-read", "tmpfs", "io-error"] {
        let (run, samples) = recorded(name);
        for sample in judge_run(&run, &samples).samples {
            for (metric, value) in sample.figures {
                assert!(value.is_finite() && value > 0.0, "{name} {metric} {value}");
            }
        }
    }
}

#[test]
fn with_one_request_at_a_time_the_submission_counts() {
    let (mut run, mut samples) = recorded("clean-read");
    (fio(&mut run).queue_depth, fio(&mut run).jobs) = (1, 1);
    samples[0].workers.truncate(1);
    let io = samples[0].workers[0]
        .operations
        .get_mut(&Operation::Read)
        .unwrap();
    io.per_s = 60_000.0;
    (io.clat.mean, io.lat.mean) = (12_000.0, 16_000.0);
    let limit = &judge_run(&run, &samples).results[0].limit;
    assert_eq!(limit.what, LimitKind::OneAtATime, "{}", limit.evidence);
}

#[test]
fn jobs_without_a_run_are_doubted_as_a_sample_of_which_nothing_else_is_known() {
    let codes = |doubts: &[assay_model::Doubt]| -> Vec<String> {
        doubts.iter().map(|doubt| doubt.code.clone()).collect()
    };
    let mut doubted = 0;
    for name in ["fdatasync", "clean-read", "tmpfs", "io-error"] {
        let (mut run, mut samples) = recorded(name);
        run.origin = assay_model::Origin::Measured;
        run.targets.clear();
        run.facts = assay_model::Facts::default();
        samples.truncate(1);
        let sample = &mut samples[0];
        // Only errors of the jobs count.
        sample.outcome = Outcome::Completed;
        sample.counters = assay_model::sample::Counters::default();
        sample.series.clear();
        sample.file = None;
        let jobs = sample.workers.clone();
        let judged = judge_run(&run, &samples).samples;
        assert_eq!(
            codes(&judge_jobs(&jobs)),
            codes(&judged[0].doubts),
            "{name}"
        );
        doubted += judged[0].doubts.len();
    }
    assert!(doubted > 0);
    assert_eq!(codes(&judge_jobs(&[])), [workload_groups::NOT_COMPLETED]);
}
