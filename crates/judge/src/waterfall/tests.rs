use super::*;
use assay_model::doubt::Severity;
use assay_model::ladder::{Rung, RungPlace};
use assay_model::{Doubt, LayerKind};
use proptest::prelude::*;
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;

/// Returns a chain with a branch: file, raw, qcow2, then ext4 and xfs in parallel. The bottom and ext4 are measured
/// twice.
fn ladder() -> Ladder {
    let rung = |name: &str, parent, again| Rung {
        name: name.to_owned(),
        parent,
        layer: name.to_owned(),
        kind: LayerKind::Image,
        place: RungPlace::Host,
        settings: BTreeMap::new(),
        holds: Vec::new(),
        again,
    };
    Ladder {
        target: "/srv".to_owned(),
        rungs: vec![
            rung("file", None, None),
            rung("raw", Some(0), None),
            rung("qcow2", Some(1), None),
            rung("ext4", Some(2), None),
            rung("xfs", Some(2), None),
            rung("file again", None, Some(0)),
            rung("ext4 again", None, Some(3)),
        ],
        ..Ladder::default()
    }
}

fn workload() -> Planned {
    let text = r#"{"name": "w", "pattern": "randread", "block_size": "4k"}"#;
    serde_json::from_str(text).unwrap()
}

fn sample(rung: &str, round: u32, latency: f64) -> JudgedSample {
    let figures = [
        (Metric::all(Quantity::Mean), latency),
        (Metric::all(Quantity::Iops), 1e9 / latency),
    ];
    JudgedSample {
        workload: "w".to_owned(),
        target: rung.to_owned(),
        round,
        slot: 0,
        validity: Validity::Valid,
        doubts: Vec::new(),
        figures: figures.into(),
    }
}

/// Generator of normal noise (Box and Muller 1958), seeded.
struct Noise(ChaCha8Rng);

impl Noise {
    fn normal(&mut self) -> f64 {
        let mut uniform = || (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64 + 1e-18;
        let (a, b) = (uniform(), uniform());
        (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
    }
}

/// Returns rounds on a machine with drift. `costs` are the times in µs that raw, qcow2, ext4 and xfs add to 100 µs.
fn rounds(costs: [f64; 4], noise: f64, count: u32, seed: u64) -> Vec<JudgedSample> {
    let mut random = Noise(ChaCha8Rng::seed_from_u64(seed));
    let [raw, qcow2, ext4, xfs] = costs;
    let base = 100e3;
    let mut samples = Vec::new();
    for round in 1..=count {
        let drift = random.normal() * 30e3 + f64::from(round) * 5e3 + 200e3;
        for (name, added) in [
            ("file", 0.0),
            ("raw", raw),
            ("qcow2", raw + qcow2),
            ("ext4", raw + qcow2 + ext4),
            ("xfs", raw + qcow2 + xfs),
            ("file again", 0.0),
            ("ext4 again", raw + qcow2 + ext4),
        ] {
            let latency = base + drift + added + random.normal() * noise;
            samples.push(sample(name, round, latency.max(1.0)));
        }
    }
    samples
}

fn judge(samples: &[JudgedSample]) -> Waterfall {
    build_waterfalls(&ladder(), &[workload()], samples).remove(0)
}

fn names(ladder: &Ladder, waterfall: &Waterfall, first: &[usize]) -> Vec<String> {
    let name = |step: &usize| ladder.rungs[waterfall.steps[*step].to].layer.clone();
    first.iter().map(name).collect()
}

#[test]
fn known_costs_are_found_and_the_parts_add_up() {
    let found = judge(&rounds([50e3, 0.0, 20e3, 5e3], 1e3, 8, 1));
    let added: Vec<f64> = found.steps.iter().map(|s| s.added.unwrap().value).collect();
    for (found, truth) in added.iter().zip([50e3, 0.0, 20e3, 5e3]) {
        assert!((found - truth).abs() < 2e3, "{added:?}");
    }
    assert!(found.steps[0].told && !found.steps[1].told && found.steps[2].told);
    let [ext4, xfs] = &found.wholes[..] else {
        panic!("{:?}", found.wholes);
    };
    assert_eq!((ext4.bottom, ext4.top, xfs.top), (0, 3, 4));
    // Branches share their trunk, and each is compared with its own parent.
    assert_eq!(
        (&ext4.steps[..], &xfs.steps[..]),
        (&[0, 1, 2][..], &[0, 1, 3][..])
    );
    let sum: f64 = ext4.steps.iter().map(|&step| added[step]).sum();
    assert!((sum - ext4.sum.unwrap().value).abs() < 1.0);
    let closing = ext4.closing.unwrap();
    assert!(ext4.separate && closing.value != 0.0);
    assert!(closing.interval.unwrap().low < 0.0 && closing.interval.unwrap().high > 0.0);
    assert!(
        !xfs.separate && xfs.closing.is_none(),
        "it would be zero whatever was measured"
    );
    assert_eq!(names(&ladder(), &found, &ext4.first), ["raw"]);
    let share = found.steps[0].share.unwrap();
    assert!((share - 50.0 / 70.0).abs() < 0.05, "{share}");
    assert_eq!(found.steps[1].share, None);
}

/// Checks how often a 95 % interval contains the true value, and how often a layer is reported as the largest although
/// all are equal.
#[test]
fn intervals_hold_as_often_as_they_say() {
    let truth = [40e3, 10e3, 10e3, 0.0];
    const RUNS: u64 = 600;
    let (mut held, mut closed, mut invented, mut all) = (0u64, 0, 0, 0);
    for seed in 0..RUNS {
        let found = judge(&rounds(truth, 5e3, 5, seed));
        for (step, truth) in found.steps.iter().zip(truth) {
            let interval = step.added.unwrap().interval.unwrap();
            all += 1;
            held += u64::from((interval.low..=interval.high).contains(&truth));
        }
        invented += u64::from(found.steps[3].told);
        let closing = found.wholes[0].closing.unwrap().interval.unwrap();
        closed += u64::from(closing.low <= 0.0 && closing.high >= 0.0);
    }
    let share = |n: u64, of: u64| n as f64 / of as f64;
    println!("held {held} of {all}, closed {closed} and invented {invented} of {RUNS}");
    // Three standard errors of a fraction of 0.95 in that many repetitions.
    assert!(
        (share(held, all) - 0.95).abs() < 0.015,
        "{}",
        share(held, all)
    );
    assert!(
        (share(closed, RUNS) - 0.95).abs() < 0.027,
        "{}",
        share(closed, RUNS)
    );
    assert!(
        (share(invented, RUNS) - 0.05).abs() < 0.027,
        "{}",
        share(invented, RUNS)
    );
}

#[test]
fn one_layer_is_named_alone_only_when_it_is_told_from_all_others() {
    let ladder = ladder();
    let (mut alone, mut both, mut wrong) = (0, 0, 0);
    for seed in 0..200 {
        let clear = judge(&rounds([10e3, 60e3, 12e3, 0.0], 4e3, 6, seed));
        alone += i32::from(names(&ladder, &clear, &clear.wholes[0].first) == ["qcow2"]);
        let equal = judge(&rounds([30e3, 1e3, 30e3, 0.0], 8e3, 6, seed));
        let first = names(&ladder, &equal, &equal.wholes[0].first);
        both += i32::from(first.contains(&"raw".to_owned()) && first.contains(&"ext4".to_owned()));
        wrong += i32::from(first.len() == 1);
    }
    println!("alone {alone}, both {both}, wrong {wrong} of 200");
    assert!(alone >= 190, "{alone}");
    assert!(both >= 150, "{both}");
    assert!(
        wrong <= 20,
        "{wrong} of 200 named one of two that are equal"
    );
    let none = judge(&rounds([0.0; 4], 5e3, 6, 3));
    assert!(none.wholes[0].first.is_empty(), "{none:?}");
}

#[test]
fn a_layer_that_speeds_up_is_told_and_never_named_first() {
    let found = judge(&rounds([60e3, -40e3, 5e3, 5e3], 1e3, 6, 1));
    assert!(found.steps[1].told && found.steps[1].added.unwrap().value < 0.0);
    assert!(found.steps[1].ratio.unwrap().value < 1.0);
    assert_eq!(found.wholes[0].first, [0]);
}

#[test]
fn void_samples_are_left_out_and_their_doubts_stay() {
    let mut samples = rounds([10e3, 5e3, 5e3, 5e3], 1e3, 4, 1);
    for sample in samples
        .iter_mut()
        .filter(|one| one.target == "qcow2" && one.round > 1)
    {
        sample.validity = Validity::Void;
        sample.doubts.push(Doubt {
            code: "cache-hit-read".to_owned(),
            severity: Severity::Void,
            evidence: "the device read nothing".to_owned(),
            remedy: String::new(),
        });
    }
    let found = judge(&samples);
    assert_eq!(found.levels[2].left_out, 3);
    assert_eq!(found.levels[2].doubts[0].samples, 3);
    let step = &found.steps[1];
    assert_eq!(step.added.unwrap().rounds, 1);
    assert!(step.added.unwrap().interval.is_none() && !step.told);
    // The complete stack has samples of its own; only one round contains all of the parts.
    assert_eq!(found.wholes[0].added.unwrap().rounds, 4);
    assert_eq!(found.wholes[0].sum.unwrap().rounds, 1);
}

/// A round in which everything is slow, and a round in which one layer has no figure, must not make the printed
/// times disagree: time below + added time = time above, and time above ÷ time below = factor.
#[test]
fn times_added_times_and_factors_agree_whatever_the_rounds() {
    let mut slow = rounds([40e3, 20e3, 30e3, 10e3], 2e3, 5, 7);
    for sample in slow.iter_mut().filter(|one| one.round == 3) {
        let factor = match sample.target.as_str() {
            "file" | "raw" => 3.0,
            _ => 40.0,
        };
        for value in sample.figures.values_mut() {
            *value *= factor;
        }
    }
    let mut missing = rounds([40e3, 20e3, 30e3, 10e3], 2e3, 5, 8);
    for sample in missing.iter_mut() {
        match (sample.target.as_str(), sample.round) {
            ("raw", 4) => sample.validity = Validity::Void,
            (_, 4) => sample.figures.values_mut().for_each(|value| *value *= 9.0),
            _ => {}
        }
    }
    for (name, samples) in [("slow", slow), ("missing", missing)] {
        let found = judge(&samples);
        let time = |rung: usize| found.levels[rung].latency.unwrap().value;
        for step in &found.steps {
            let (below, above) = (time(step.from), time(step.to));
            let added = step.added.unwrap().value;
            assert!(
                (below + added - above).abs() < 1e-6 * above,
                "{name}: {below} + {added} is not {above}"
            );
            let ratio = step.ratio.unwrap().value;
            assert!(
                (above / below / ratio - 1.0).abs() < 1e-9,
                "{name}: {above} ÷ {below} is not {ratio}"
            );
            let interval = step.ratio.unwrap().interval.unwrap();
            assert!((interval.low..=interval.high).contains(&ratio));
        }
    }
}

#[test]
fn nothing_measured_says_nothing() {
    assert!(build_waterfalls(&ladder(), &[workload()], &[]).is_empty());
    let found = judge(&[sample("raw", 1, 5e3)]);
    assert!(
        found
            .steps
            .iter()
            .all(|step| step.added.is_none() && !step.told)
    );
    assert!(
        found
            .wholes
            .iter()
            .all(|whole| whole.added.is_none() && whole.first.is_empty())
    );
}

proptest! {
    #[test]
    fn the_parts_add_up_to_the_ends_whatever_was_measured(
        latencies in prop::collection::vec(prop::collection::vec(1.0f64..1e9, 7), 1..8),
        scale in 0.001f64..1000.0,
    ) {
        let ladder = ladder();
        let samples = |factor: f64| -> Vec<JudgedSample> {
            let rounds = latencies.iter().enumerate();
            rounds.flat_map(|(round, values)| {
                let rungs = ladder.rungs.iter().zip(values);
                rungs.map(move |(rung, ns)| sample(&rung.name, round as u32 + 1, ns * factor))
            }).collect()
        };
        let found = judge(&samples(1.0));
        for whole in &found.wholes {
            let parts: f64 = whole.steps.iter().map(|&step| found.steps[step].added.unwrap().value).sum();
            let sum = whole.sum.unwrap().value;
            prop_assert!((parts - sum).abs() <= 1e-6 * 1e9, "{parts} {sum}");
            if let Some(closing) = whole.closing {
                let gap = sum - whole.added.unwrap().value;
                prop_assert!((closing.value - gap).abs() <= 1e-6 * 1e9);
            }
        }
        // The unit of time has no effect: costs scale with it, ratios and names stay.
        let scaled = judge(&samples(scale));
        for (one, other) in found.steps.iter().zip(&scaled.steps) {
            let (a, b) = (one.added.unwrap().value * scale, other.added.unwrap().value);
            prop_assert!((a - b).abs() <= 1e-9 * 1e9 * scale.max(1.0), "{a} {b}");
            let (a, b) = (one.ratio.unwrap().value, other.ratio.unwrap().value);
            prop_assert!((a / b - 1.0).abs() < 1e-9);
        }
    }
}
