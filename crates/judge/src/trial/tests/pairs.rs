//! Tests the computation of pairs from slots, with recorded samples.

use crate::tests::recorded;
use crate::trial::{TrialRule, forecast, judge_pairs, judge_slots_for_display, judge_trial};
use assay_model::advice::{Guard, RiskLevel, SafetyRule};
use assay_model::change::{Change, Setting};
use assay_model::load::Load;
use assay_model::sample::{Latency, Operation, Operations, Outcome, Worker};
use assay_model::trial::{
    DurabilityProof, PairOutcome, Side, Slot, TrialId, TrialPlan, TrialState, Verdict,
};
use assay_model::{Bytes, Doubt, Facts, Histogram, Nanos, Sample, Severity, Trial};

pub(super) fn trial(metric: &str, guards: &[&str]) -> Trial {
    let (run, _) = recorded("clean-read");
    let plan = TrialPlan {
        advice: "swappiness".to_owned(),
        title: String::new(),
        predicts: String::new(),
        parameters: Default::default(),
        target: "/srv".to_owned(),
        change: Change::Set {
            setting: Setting::Sysctl {
                key: "vm.swappiness".to_owned(),
            },
            value: Some("10".to_owned()),
        },
        aa: false,
        load: Load::Command {
            argv: vec!["true".to_owned()],
            prints: None,
        },
        metric: metric.parse().unwrap(),
        guards: guards
            .iter()
            .map(|metric| Guard {
                metric: metric.parse().unwrap(),
                margin: 0.1,
            })
            .collect(),
        margin: 0.03,
        slot: Nanos(5_000_000_000),
        slot_min: None,
        washout: Nanos(1_000_000_000),
        cached: false,
        safety: None,
        keep: None,
        risk: RiskLevel::Low,
        max_pairs: 60,
        budget: None,
        alpha: 0.05,
        seed: 1,
        first: vec![Side::Now; 60],
    };
    Trial {
        id: TrialId(0),
        uid: run.uid,
        assay_version: run.assay_version,
        started: run.started,
        ended: None,
        state: TrialState::Running,
        plan,
        target: run.targets.into_iter().next(),
        facts: Facts::default(),
        durability: Vec::new(),
        kept: None,
        kept_in: None,
        remarks: Vec::new(),
        campaign: Vec::new(),
    }
}

/// Returns the recorded fio sample with its speed multiplied by `speed`.
pub(super) fn fio(speed: f64) -> Sample {
    let (_, samples) = recorded("clean-read");
    let mut sample = samples.into_iter().next().unwrap();
    for job in &mut sample.workers {
        for io in job.operations.values_mut() {
            io.per_s *= speed;
            io.bytes_per_s *= speed;
        }
    }
    sample
}

/// Returns a sample of assay's own load generator: `operations` in 5 s, each of `ns` nanoseconds.
fn own(kind: Operation, operations: u64, ns: u64) -> Sample {
    let mut histogram = Histogram::default();
    histogram.record(ns, operations);
    let latency = Latency {
        n: operations,
        mean: ns as f64,
        max: ns,
        histogram,
        ..Latency::default()
    };
    let read = Operations {
        bytes: Bytes(0),
        count: operations,
        runtime: Nanos(5_000_000_000),
        per_s: operations as f64 / 5.0,
        lat: latency.clone(),
        clat: latency,
        ..Operations::default()
    };
    Sample {
        tool: "assay".to_owned(),
        workers: vec![Worker::default().with(kind, read)],
        ..fio(1.0)
    }
}

pub(super) fn slots(pair: u32, now: Sample, changed: Sample) -> [Slot; 2] {
    [(Side::Now, now), (Side::Changed, changed)].map(|(side, sample)| Slot {
        pair,
        side,
        read_back: String::new(),
        sample,
        doubts: Vec::new(),
    })
}

fn effect(outcome: &PairOutcome) -> (f64, &[f64]) {
    match outcome {
        PairOutcome::Measured { effect, guards, .. } => (*effect, guards),
        other => panic!("{other:?}"),
    }
}

#[test]
fn more_iops_and_less_latency_are_better() {
    let trial = trial("iops", &["p99", "iops"]);
    let slots = slots(
        1,
        own(Operation::Request, 1000, 400_000),
        own(Operation::Request, 1500, 300_000),
    );
    let outcomes = judge_pairs(&trial, &slots);
    let (better, guards) = effect(&outcomes[0]);
    assert!((better - 1.5f64.ln()).abs() < 1e-9, "{better}");
    // Both figures got better, so both worsenings are below 0.
    assert!((guards[0] - 0.75f64.ln()).abs() < 0.01, "{guards:?}");
    assert!((guards[1] + 1.5f64.ln()).abs() < 1e-9, "{guards:?}");
    let by_latency = Trial {
        plan: TrialPlan {
            metric: "mean".parse().unwrap(),
            guards: Vec::new(),
            ..trial.plan.clone()
        },
        ..trial
    };
    let outcomes = judge_pairs(&by_latency, &slots);
    assert!((effect(&outcomes[0]).0 + 0.75f64.ln()).abs() < 1e-9);
}

#[test]
fn a_pair_uses_the_figures_of_every_other_report() {
    let trial = trial("read.iops", &["read.p99"]);
    let slots = slots(1, fio(1.0), fio(1.25));
    let outcomes = judge_pairs(&trial, &slots);
    let (better, guards) = effect(&outcomes[0]);
    assert!((better - 1.25f64.ln()).abs() < 1e-9, "{better}");
    assert!(guards[0].abs() < 1e-9);
}

#[test]
fn a_doubt_about_fio_does_not_touch_other_load_generators() {
    let trial = trial("iops", &[]);
    let mut page_cache = fio(1.0);
    for job in &mut page_cache.workers {
        job.fio
            .options
            .insert("ioengine".to_owned(), "null".to_owned());
    }
    let void = judge_pairs(&trial, &slots(1, fio(1.0), page_cache.clone()));
    let PairOutcome::Void { reason } = &void[0] else {
        panic!("{void:?}")
    };
    insta::assert_snapshot!(reason, @"with the change: null-engine: ioengine=null does no I/O at all");
    for kind in [Operation::Request, Operation::Login, Operation::Run] {
        let sample = Sample {
            workers: own(kind, 1000, 500).workers,
            ..page_cache.clone()
        };
        let outcomes = judge_pairs(&trial, &slots(1, sample.clone(), sample));
        assert_eq!(effect(&outcomes[0]).0, 0.0);
    }
}

#[test]
fn a_doubt_of_the_trial_voids_the_pair_even_when_the_load_failed() {
    let trial = trial("iops", &[]);
    let mut both = slots(1, fio(1.0), fio(1.0));
    both[1].sample.outcome = Outcome::Failed {
        error: "killed".to_owned(),
    };
    both[1].doubts.push(Doubt {
        code: "suspended".to_owned(),
        severity: Severity::Void,
        evidence: "the machine slept for 1 h".to_owned(),
        remedy: String::new(),
    });
    let outcomes = judge_pairs(&trial, &both);
    assert!(matches!(&outcomes[0], PairOutcome::Void { reason } if reason.contains("slept")));
    both[1].doubts[0].severity = Severity::Suspect;
    assert!(
        matches!(&judge_pairs(&trial, &both)[0], PairOutcome::FailedChanged { error } if error == "killed")
    );
}

#[test]
fn failures_are_told_apart_by_their_side() {
    let trial = trial("iops", &[]);
    let mut failed = fio(1.0);
    failed.outcome = Outcome::Failed {
        error: "No space left\u{1b}[31m".to_owned(),
    };
    let mut late = fio(1.0);
    late.outcome = Outcome::TimedOut {
        after: Nanos(60_000_000_000),
    };
    let mut cut = fio(1.0);
    cut.outcome = Outcome::Interrupted;
    let mut broken = fio(1.0);
    broken.workers[0].fio.error = 5;
    let nothing = own(Operation::Login, 0, 0);
    let of = |now: &Sample, changed: &Sample| {
        judge_pairs(&trial, &slots(1, now.clone(), changed.clone())).remove(0)
    };
    for bad in [&failed, &late, &broken, &nothing] {
        assert!(matches!(
            of(&fio(1.0), bad),
            PairOutcome::FailedChanged { .. }
        ));
        assert!(matches!(of(bad, &fio(1.0)), PairOutcome::Failed { .. }));
        assert!(matches!(of(bad, bad), PairOutcome::Failed { .. }));
        assert!(matches!(of(bad, &cut), PairOutcome::Void { .. }));
    }
    let PairOutcome::FailedChanged { error } = of(&fio(1.0), &failed) else {
        panic!()
    };
    assert!(!error.contains('\u{1b}'), "{error}");
}

#[test]
fn what_was_not_measured_makes_no_pair() {
    let trial = trial("iops", &["flush.p99"]);
    let outcomes = judge_pairs(&trial, &slots(1, fio(1.0), fio(1.0)));
    assert!(
        matches!(&outcomes[0], PairOutcome::Void { reason } if reason == "flush.p99 was not measured")
    );
}

#[test]
fn a_forecast_is_in_pairs_and_in_time() {
    let plan = trial("iops", &[]).plan;
    // Slots of 5 s after a washout of 1 s: 12 s per pair.
    let one = forecast::forecast_trial(&plan, 0.2, 0.3);
    assert_eq!((one.pairs, one.time), (11, Nanos(132_000_000_000)));
    // No effect is expected and the noise exceeds the margin, so the forecast is the maximum number of pairs.
    assert_eq!(forecast::forecast_trial(&plan, 0.2, 0.0).pairs, 60);
    assert_eq!(forecast::forecast_trial(&plan, 0.01, 0.0).pairs, 6);
    assert_eq!(forecast::forecast_trial(&plan, f64::NAN, 0.1).pairs, 60);
    assert_eq!(
        forecast::count_pairs_within(&plan, Nanos(20 * 60_000_000_000)),
        100
    );
    let seen = forecast::estimate_noise(&[0.1, -0.1, 0.12, -0.08, 0.0, 9.0]);
    assert!((0.1..0.2).contains(&seen), "{seen}");
}

#[test]
fn pairs_keep_their_place() {
    let trial = trial("iops", &[]);
    let mut all: Vec<Slot> = Vec::new();
    // Pair 2 was interrupted, pair 3 was measured again after an interruption, pair 4 is in progress.
    all.extend(slots(1, fio(1.0), fio(1.1)));
    all.extend(slots(2, fio(1.0), fio(1.1)).into_iter().take(1));
    all.extend(slots(3, fio(1.0), fio(5.0)));
    all.extend(slots(3, fio(1.0), fio(1.2)));
    all.extend(slots(4, fio(1.0), fio(1.1)).into_iter().take(1));
    let outcomes = judge_pairs(&trial, &all);
    assert_eq!(outcomes.len(), 3);
    assert!(matches!(&outcomes[1], PairOutcome::Void { .. }));
    assert!((effect(&outcomes[2]).0 - 1.2f64.ln()).abs() < 1e-9);
    assert!(judge_pairs(&trial, &[]).is_empty());
}

#[test]
fn a_trial_is_judged_with_its_proofs() {
    let mut trial = trial("iops", &[]);
    let slots: Vec<Slot> = (1..=6)
        .flat_map(|pair| slots(pair, fio(1.0), fio(1.4 + f64::from(pair) / 100.0)))
        .collect();
    let (outcomes, judgement) = judge_trial(&trial, &slots);
    assert_eq!((outcomes.len(), judgement.verdict), (6, Verdict::Better));
    trial.plan.safety = Some(SafetyRule::AcknowledgedWrites);
    let (_, unproved) = judge_trial(&trial, &slots);
    assert_eq!(
        (unproved.verdict, unproved.done),
        (Verdict::Undecided, false)
    );
    let proof = |side, lost| DurabilityProof {
        side,
        method: "power cut in QEMU".to_owned(),
        acknowledged: 100,
        lost,
    };
    trial.durability = vec![proof(Side::Now, 0), proof(Side::Changed, 0)];
    assert_eq!(judge_trial(&trial, &slots).1.verdict, Verdict::Better);
    trial.durability = vec![proof(Side::Now, 0), proof(Side::Changed, 7)];
    let (_, judgement) = judge_trial(&trial, &slots);
    assert_eq!((judgement.verdict, judgement.done), (Verdict::Unsafe, true));
    insta::assert_snapshot!(judgement.reason, @"7 of 100 writes acknowledged as durable were lost with the change (power cut in QEMU)");
    trial.plan.aa = true;
    assert!(TrialRule::from_plan(&trial.plan, &[]).unproved.is_none());
}

#[test]
fn reports_see_the_same_measurements_as_the_judge() {
    let trial = trial("iops", &[]);
    let http = |operations, ns| own(Operation::Request, operations, ns);
    let mut all: Vec<Slot> = slots(1, http(1000, 400_000), http(1500, 300_000)).into();
    // Slot B of the second pair is interrupted and measured again; the third pair does not count.
    let mut interrupted = http(700, 300_000);
    interrupted.outcome = Outcome::Interrupted;
    all.extend(slots(2, http(1000, 400_000), interrupted));
    all.extend(slots(2, http(1000, 400_000), http(1600, 300_000)));
    let failed = Outcome::Failed {
        error: "refused".to_owned(),
    };
    all.extend(slots(
        3,
        http(9000, 1),
        Sample {
            outcome: failed,
            ..http(9000, 1)
        },
    ));
    let pairs = judge_pairs(&trial, &all);
    let shown = judge_slots_for_display(&trial, &all, &pairs);
    let counts = shown.latency.each_ref().map(Histogram::count);
    assert_eq!(counts, [2000, 3100]);
    assert_eq!(shown.samples.len(), all.len());
    let iops = |i: usize| shown.samples[i].figures.get(&trial.plan.metric).copied();
    assert_eq!(
        (iops(0), iops(1), iops(3)),
        (Some(200.0), Some(300.0), None)
    );
    let ratio = iops(1).unwrap() / iops(0).unwrap();
    assert!((effect(&pairs[0]).0 - ratio.ln()).abs() < 1e-9);
}
