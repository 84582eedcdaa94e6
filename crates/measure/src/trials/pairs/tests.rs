//! Tests the measuring of pairs on a simulated machine with a known effect.

use super::*;
use crate::trials::noise::measure_noise;
use assay_judge::trial::FRUITLESS;
use assay_model::advice::RiskLevel;
use assay_model::change::Setting;
use assay_model::criterion::{Metric, Quantity};
use assay_model::sample::{Operation, Operations, Outcome, Sample, Worker};
use assay_model::trial::{TrialId, TrialPlan, TrialState, Verdict};
use assay_model::{Change, Facts, Load};
use rand::{RngExt as _, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A machine whose rate with the change is `factor` times the rate of the baseline, plus noise.
struct Null {
    factor: f64,
    noise: f64,
    random: ChaCha8Rng,
    time: Duration,
    /// Number of the pair during which the machine is suspended.
    sleeps_in: Option<u32>,
    slept: Duration,
    /// Whether the load fails while the change is in effect.
    breaks: bool,
    /// Whether the load always fails, on both sides.
    broken: bool,
    /// Number of the slot during which the user interrupts, and the flag that the interrupt sets.
    cancel_at: Option<(u32, Cancel)>,
    entered: Vec<Side>,
    slot: Nanos,
}

impl Null {
    fn new(factor: f64, noise: f64) -> Self {
        Self {
            factor,
            noise,
            random: ChaCha8Rng::seed_from_u64(11),
            time: Duration::from_secs(100),
            sleeps_in: None,
            slept: Duration::ZERO,
            breaks: false,
            broken: false,
            cancel_at: None,
            entered: Vec::new(),
            slot: Nanos(5_000_000_000),
        }
    }
}

impl TrialBench for Null {
    fn enter(&mut self, side: Side) -> Result<String, TrialError> {
        self.entered.push(side);
        Ok(format!("{side:?}"))
    }

    fn load(&mut self, side: Side, pair: u32, slot: u32) -> Result<Sample, TrialError> {
        self.time += Duration::from_secs(1) + Duration::from(self.slot);
        if self.sleeps_in == Some(pair) && side == Side::Changed {
            self.slept += Duration::from_secs(3600);
        }
        if let Some((at, cancel)) = &self.cancel_at
            && *at == slot
        {
            cancel.cancel();
        }
        // Sum of twelve uniform numbers: nearly normal with standard deviation 1.
        let normal: f64 = (0..12).map(|_| self.random.random::<f64>()).sum::<f64>() - 6.0;
        let truth = match side {
            Side::Now => 1000.0,
            Side::Changed => 1000.0 * self.factor,
        };
        let iops = truth * (self.noise * normal).exp();
        let outcome = match self.broken || (self.breaks && side == Side::Changed) {
            true => Outcome::Failed {
                error: "it broke".to_owned(),
            },
            false => Outcome::Completed,
        };
        let read = Operations {
            count: (iops * 5.0) as u64,
            runtime: Nanos(5_000_000_000),
            per_s: iops,
            ..Operations::default()
        };
        Ok(Sample {
            workload: "null".to_owned(),
            target: "null".to_owned(),
            round: pair,
            slot,
            started: jiff::Timestamp::UNIX_EPOCH,
            wall: Nanos(5_000_000_000),
            workers: match outcome {
                Outcome::Completed => vec![Worker {
                    name: "null".to_owned(),
                    runtime: Nanos(5_000_000_000),
                    operations: [(Operation::Run, read)].into(),
                    ..Worker::default()
                }],
                _ => vec![],
            },
            outcome,
            tool: "assay-command".to_owned(),
            counters: Default::default(),
            file: None,
            series: vec![],
        })
    }

    fn slots_last(&mut self, length: Nanos) {
        self.slot = length;
    }

    fn clocks(&self) -> Clocks {
        let seconds = jiff::SignedDuration::try_from(self.time + self.slept).unwrap();
        Clocks {
            wall: jiff::Timestamp::UNIX_EPOCH + seconds,
            monotonic: self.time,
            boottime: self.time + self.slept,
        }
    }
}

pub(crate) fn trial() -> Trial {
    let text = |text: &str| text.to_owned();
    let seed = 5;
    Trial {
        id: TrialId(1),
        uid: text("00"),
        assay_version: text("0"),
        started: jiff::Timestamp::UNIX_EPOCH,
        ended: None,
        state: TrialState::Running,
        plan: TrialPlan {
            advice: text("null"),
            title: text("Null"),
            predicts: text("nothing"),
            parameters: Default::default(),
            target: text("null"),
            change: Change::Set {
                setting: Setting::Sysctl { key: text("null") },
                value: Some(text("1")),
            },
            aa: false,
            load: Load::Command {
                argv: vec![text("true")],
                prints: None,
            },
            metric: Metric::all(Quantity::Iops),
            guards: vec![],
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
            seed,
            first: crate::trials::plan::draw_order(seed, 60),
        },
        target: None,
        facts: Facts::default(),
        durability: vec![],
        kept: None,
        kept_in: None,
        remarks: vec![],
        campaign: vec![],
    }
}

fn run(trial: &Trial, bench: &mut Null, cancel: &Cancel) -> (Vec<Slot>, Judgement, Stop) {
    let mut slots = Vec::new();
    let (judgement, stop) = go_on(trial, &mut slots, bench, cancel);
    (slots, judgement, stop)
}

fn go_on(
    trial: &Trial,
    slots: &mut Vec<Slot>,
    bench: &mut Null,
    cancel: &Cancel,
) -> (Judgement, Stop) {
    measure(
        trial,
        slots,
        bench,
        None,
        cancel,
        &mut |_| Ok(()),
        &mut |_| {},
    )
    .unwrap()
}

#[test]
fn a_planted_gain_is_found_and_a_planted_loss() {
    for (factor, verdict) in [(1.3, Verdict::Better), (0.7, Verdict::Worse)] {
        let (slots, judgement, stop) =
            run(&trial(), &mut Null::new(factor, 0.05), &Cancel::default());
        assert_eq!(judgement.verdict, verdict, "{}", judgement.reason);
        assert_eq!(stop, Stop::Verdict);
        assert!(slots.len() <= 24, "{} slots", slots.len());
        let ratio = judgement.ratio.unwrap();
        assert!((ratio / factor - 1.0).abs() < 0.1, "{ratio}");
    }
}

#[test]
fn each_pair_enters_both_sides_in_the_order_of_its_coin() {
    let mut bench = Null::new(1.3, 0.05);
    let trial = trial();
    run(&trial, &mut bench, &Cancel::default());
    for (two, first) in bench.entered.chunks(2).zip(&trial.plan.first) {
        assert_eq!(two[0], *first);
        assert_ne!(two[0], two[1]);
    }
}

#[test]
fn a_pair_during_which_the_machine_slept_reaches_no_verdict() {
    let mut bench = Null::new(1.3, 0.05);
    bench.sleeps_in = Some(2);
    let (_, judgement, stop) = run(&trial(), &mut bench, &Cancel::default());
    assert_eq!(stop, Stop::Verdict);
    assert_eq!(judgement.left_out, 1);
}

#[test]
fn a_load_that_fails_only_with_the_change_is_unsafe() {
    let mut bench = Null::new(1.3, 0.05);
    bench.breaks = true;
    let (_, judgement, stop) = run(&trial(), &mut bench, &Cancel::default());
    assert_eq!(judgement.verdict, Verdict::Unsafe, "{}", judgement.reason);
    assert_eq!(stop, Stop::Verdict);
}

#[test]
fn a_load_that_always_fails_ends_the_trial_and_says_why() {
    let mut bench = Null::new(1.0, 0.05);
    bench.broken = true;
    let (slots, _, stop) = run(&trial(), &mut bench, &Cancel::default());
    assert!(matches!(stop, Stop::Fruitless(why) if why.contains("it broke")));
    assert_eq!(slots.len(), 2 * FRUITLESS);
    let mut silent = |_: MeasureEvent<'_>| {};
    let noise = measure_noise(&trial(), &mut bench, None, &Cancel::default(), &mut silent);
    assert!(matches!(noise, Err(TrialError::LoadFails { .. })));
}

#[test]
fn the_budget_ends_it_before_a_pair_that_would_not_fit() {
    let mut trial = trial();
    trial.plan.budget = Some(Nanos(60_000_000_000));
    let mut bench = Null::new(1.0, 0.3);
    let (slots, _, stop) = run(&trial, &mut bench, &Cancel::default());
    assert_eq!(stop, Stop::Budget);
    assert_eq!(slots.len(), 10);
}

#[test]
fn an_interrupted_trial_goes_on_to_the_same_answer() {
    let trial = trial();
    let whole = run(&trial, &mut Null::new(1.15, 0.08), &Cancel::default());
    let cancel = Cancel::default();
    let mut bench = Null::new(1.15, 0.08);
    // In the second slot of the third pair: the half pair must not count.
    bench.cancel_at = Some((5, cancel.clone()));
    let (mut slots, _, stop) = run(&trial, &mut bench, &cancel);
    assert_eq!((stop, slots.len()), (Stop::Cancelled, 4));
    bench.cancel_at = None;
    let (judgement, stop) = go_on(&trial, &mut slots, &mut bench, &Cancel::default());
    assert_eq!(stop, Stop::Verdict);
    assert_eq!(judgement.verdict, whole.1.verdict);
    let pairs: Vec<u32> = slots.iter().map(|slot| slot.pair).collect();
    assert!(pairs.is_sorted() && pairs.len() == 2 * judgement.pairs as usize);
}

/// If the plan leaves the slot length open, a quiet machine gets short slots and a noisy one longer slots. The pairs
/// then use this length. A plan with a fixed length keeps it.
#[test]
fn noise_decides_how_long_slots_are() {
    let mut open = trial();
    open.plan.slot_min = Some(Nanos(1_000_000_000));
    let chosen = |plan: &Trial, sd: f64| {
        let mut bench = Null::new(2.0, sd);
        let seen = measure_noise(plan, &mut bench, None, &Cancel::default(), &mut |_| {});
        let slot = seen.unwrap().unwrap().slot;
        assert_eq!(bench.slot, slot.unwrap_or(plan.plan.slot));
        assert!(bench.entered.is_empty(), "nothing is changed for it");
        slot
    };
    assert_eq!(chosen(&open, 0.003), Some(Nanos(1_000_000_000)));
    let noisy = chosen(&open, 0.12).unwrap();
    assert!(
        noisy > Nanos(1_000_000_000) && noisy <= open.plan.slot,
        "{noisy}"
    );
    assert_eq!(chosen(&trial(), 0.003), None);
}

#[test]
fn noise_is_what_was_planted() {
    let mut silent = |_: MeasureEvent<'_>| {};
    let quiet = measure_noise(
        &trial(),
        &mut Null::new(2.0, 0.01),
        None,
        &Cancel::default(),
        &mut silent,
    );
    let loud = measure_noise(
        &trial(),
        &mut Null::new(2.0, 0.3),
        None,
        &Cancel::default(),
        &mut silent,
    );
    let [quiet, loud] = [quiet, loud].map(|seen| seen.unwrap().unwrap().pair_sd);
    // Three pairs determine the noise within a factor of about three; the effect of 2 must not be
    // part of it.
    assert!((0.002..0.05).contains(&quiet), "{quiet}");
    assert!((0.06..1.5).contains(&loud), "{loud}");
}
