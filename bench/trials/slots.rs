//! Minutes to a verdict: slots of a fixed length beside the length that `choose` takes from the noise
//! before, replayed on records of 250 ms.

use crate::parallel::repeat;
use crate::tables::{measured, percent, rule};
use assay_judge::trial::decide_verdict;
use assay_judge::trial::slot_length::{SlotBounds, choose_slot_length};
use assay_model::Nanos;
use assay_model::trial::{MAX_PAIRS, Verdict};
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use std::fmt::Write as _;

/// Milliseconds of a value of a record.
const STEP: usize = 250;
/// A slot as most pages have it, the least one, washout and the start of a load, in steps.
const SLOT: usize = 4000 / STEP;
const LEAST: usize = 1000 / STEP;
const BESIDES: usize = 1500 / STEP;

/// What is done, by what was seen before.
#[derive(Clone, Copy)]
enum Policy {
    Fixed,
    Chosen,
}

/// A machine as it was recorded, from a moment on, again and again.
struct Machine<'a> {
    record: &'a [f64],
    at: usize,
    passed: usize,
}

impl Machine<'_> {
    /// ln of what a slot measures.
    fn slot(&mut self, length: usize) -> f64 {
        let from = self.at + BESIDES;
        let sum: f64 = (from..from + length)
            .map(|at| self.record[at % self.record.len()])
            .sum();
        self.at = from + length;
        self.passed += BESIDES + length;
        (sum / length as f64).max(f64::MIN_POSITIVE).ln()
    }
}

/// How a trial ended, after how many minutes, and the seconds of its slots.
fn trial(
    record: &[f64],
    gain: f64,
    policy: Policy,
    seed: u64,
    random: &mut ChaCha8Rng,
) -> (Verdict, f64, f64) {
    let mut machine = Machine {
        record,
        at: random.random_range(0..record.len()),
        passed: 0,
    };
    let length = match policy {
        Policy::Fixed => {
            // Three pairs say how noisy it is.
            (0..6).for_each(|_| {
                machine.slot(SLOT);
            });
            SLOT
        }
        Policy::Chosen => {
            let many = assay_judge::trial::slot_length::count_short_slots(
                nanos(LEAST),
                nanos(SLOT),
                nanos(BESIDES),
            );
            let logs: Vec<f64> = (0..many).map(|_| machine.slot(LEAST)).collect();
            let bounds = SlotBounds {
                least: nanos(LEAST),
                most: nanos(SLOT),
                besides: nanos(BESIDES),
                margin: rule(seed).margin,
                max_pairs: MAX_PAIRS,
            };
            choose_slot_length(&logs, &bounds)
                .map_or(SLOT, |choice| choice.slot.0 as usize / nanos(1).0 as usize)
        }
    };
    let before = machine.passed;
    let work: Vec<[f64; 2]> = (0..MAX_PAIRS)
        .map(|_| {
            let (first, second) = (machine.slot(length), machine.slot(length));
            match random.random::<bool>() {
                true => [second, gain.ln_1p() + first],
                false => [first, gain.ln_1p() + second],
            }
        })
        .collect();
    let (verdict, pairs) = decide_verdict(&rule(seed), &measured(&work));
    let steps = before + pairs * 2 * (length + BESIDES);
    let minutes = (steps * STEP) as f64 / 60_000.0;
    (verdict, minutes, (length * STEP) as f64 / 1000.0)
}

fn nanos(steps: usize) -> Nanos {
    Nanos((steps * STEP) as u64 * 1_000_000)
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

/// The records, by name; operations a second in each 250 ms.
fn records() -> Vec<(&'static str, Vec<f64>)> {
    let read = |text: &str| text.lines().filter_map(|line| line.parse().ok()).collect();
    vec![
        (
            "reads, quiet",
            read(include_str!(
                "../../crates/judge/fixtures/noise/reads-quiet-250ms.txt"
            )),
        ),
        (
            "reads beside compilers and guests",
            read(include_str!(
                "../../crates/judge/fixtures/noise/reads-busy-250ms.txt"
            )),
        ),
        (
            "fsync beside compilers",
            read(include_str!(
                "../../crates/judge/fixtures/noise/fsync-busy-250ms.txt"
            )),
        ),
    ]
}

/// Both policies, by record and true effect.
pub fn minutes(n: usize) -> String {
    let mut out = String::from(
        "| noise | true gain, % | slots | better, % | worse, % | no difference, % | undecided, % | median minutes | median slot, s |\n\
         |---|---|---|---|---|---|---|---|---|\n",
    );
    for (name, record) in records() {
        for gain in [0.0, 0.05, 0.10] {
            for (policy, called) in [(Policy::Fixed, "4 s"), (Policy::Chosen, "chosen")] {
                let ends = repeat(&format!("{name} {gain} {called}"), n, |seed, random| {
                    trial(&record, gain, policy, seed, random)
                });
                let [better, worse, same, open] = [
                    Verdict::Better,
                    Verdict::Worse,
                    Verdict::NoPracticalDifference,
                    Verdict::Undecided,
                ]
                .map(|verdict| percent(ends.iter().map(|end| end.0 == verdict)));
                let minutes = median(ends.iter().map(|end| end.1).collect());
                let slot = median(ends.iter().map(|end| end.2).collect());
                let _ = writeln!(
                    out,
                    "| {name} | {:.0} | {called} | {better:.1} | {worse:.1} | {same:.1} | {open:.1} | {minutes:.1} | {slot:.0} |",
                    gain * 100.0
                );
            }
        }
    }
    out
}
