//! Synthetic trials, one for each verdict. Figures and judgement come from a formula and not from a measurement,
//! because only the report is tested.

mod cases;

pub use cases::*;

use super::{Random, facts, histogram, target};
use assay_model::advice::{Guard, RiskLevel, SafetyRule};
use assay_model::change::*;
use assay_model::criterion::{Metric, Quantity};
use assay_model::doubt::{Severity, Validity};
use assay_model::result::{Figures, Interval, JudgedSample};
use assay_model::sample::{Outcome, Sample};
use assay_model::trial::*;
use assay_model::workload::{Durability, Engine, Pattern};
use assay_model::{Bytes, Doubt, Histogram, Load, Nanos, Workload};
use assay_report::trial::TrialView;
use std::collections::BTreeMap;

/// A trial with everything that a report needs.
pub struct TrialCase {
    pub trial: Trial,
    pub slots: Vec<Slot>,
    pub samples: Vec<JudgedSample>,
    pub pairs: Vec<PairOutcome>,
    pub judgement: Judgement,
    pub latency: [Histogram; 2],
    pub smallest: Vec<(u32, f64)>,
}

impl TrialCase {
    pub fn view(&self) -> TrialView<'_> {
        TrialView {
            trial: &self.trial,
            slots: &self.slots,
            samples: &self.samples,
            pairs: &self.pairs,
            judgement: &self.judgement,
            latency: &self.latency,
            smallest: &self.smallest,
        }
    }
}

/// Parameters of the formula: the figures of A, the ratios of B to A, and the noise.
pub struct Formula {
    /// Operations per second of A.
    pub rate: f64,
    /// Mean latency of A in nanoseconds.
    pub latency: f64,
    /// Ratio B ÷ A of the rate.
    pub rate_ratio: f64,
    /// Ratio B ÷ A of the latencies up to p90.
    pub latency_ratio: f64,
    /// Ratio B ÷ A of p99 and above.
    pub tail_ratio: f64,
    /// Standard deviation of one figure's logarithm.
    pub noise: f64,
    /// Slow drift over the whole trial, as a fraction.
    pub drift: f64,
    /// Maximum number of pairs.
    pub pairs: u32,
    /// Numbers of the pairs that are void.
    pub void: &'static [u32],
    /// Bytes moved by one operation.
    pub bytes: f64,
}

impl Default for Formula {
    fn default() -> Self {
        Self {
            rate: 5200.0,
            latency: 3.0e6,
            rate_ratio: 1.0,
            latency_ratio: 1.0,
            tail_ratio: 1.0,
            noise: 0.03,
            drift: 0.08,
            pairs: MAX_PAIRS,
            void: &[],
            bytes: 4096.0,
        }
    }
}

fn workload(pattern: Pattern, depth: u32) -> Workload {
    let mut workload = Workload {
        name: String::new(),
        pattern,
        block_size: Bytes(4096),
        queue_depth: depth,
        jobs: 1,
        read_percent: None,
        engine: Engine::IoUring,
        direct: true,
        durability: Durability::None,
        runtime: Some(Nanos(5_000_000_000)),
        ramp: Some(Nanos(1_000_000_000)),
    };
    workload.name = workload.default_name();
    workload
}

pub fn fio(pattern: Pattern, depth: u32) -> Load {
    Load::Fio {
        workload: workload(pattern, depth),
        size: Some(Bytes(1 << 30)),
    }
}

fn image(options: &[(&str, &str)], cache: CacheMode) -> Arm {
    Arm::Image(ImageArm {
        format: ImageFormat::Qcow2,
        options: options
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect(),
        cache,
        aio: Aio::Native,
        luks: false,
        filled: false,
    })
}

pub fn plan(advice: &str, title: &str, change: Change, load: Load, metric: Quantity) -> TrialPlan {
    let mut random = Random(advice.len() as u64);
    TrialPlan {
        advice: advice.to_owned(),
        title: title.to_owned(),
        predicts: "SYNTHETIC: the figure gets better".to_owned(),
        parameters: BTreeMap::new(),
        target: "/srv/synthetic".to_owned(),
        change,
        aa: false,
        load,
        metric: Metric::all(metric),
        guards: vec![Guard {
            metric: Metric::all(Quantity::P99),
            margin: 0.10,
        }],
        margin: 0.03,
        slot: Nanos(5_000_000_000),
        slot_min: None,
        washout: Nanos(1_000_000_000),
        cached: false,
        safety: None,
        keep: None,
        risk: RiskLevel::None,
        max_pairs: MAX_PAIRS,
        budget: None,
        alpha: 0.05,
        seed: 4711,
        first: (0..MAX_PAIRS)
            .map(|_| match random.unit() < 0.5 {
                true => Side::Now,
                false => Side::Changed,
            })
            .collect(),
    }
}

fn trial(id: i64, plan: TrialPlan) -> Trial {
    Trial {
        id: TrialId(id),
        uid: "5eed0000000000000000000000000001".to_owned(),
        assay_version: "0.0.0-synthetic".to_owned(),
        started: "2026-11-21T09:30:00Z".parse().unwrap(),
        ended: Some("2026-11-21T09:33:12Z".parse().unwrap()),
        state: TrialState::Complete,
        target: Some(target(&plan.target)),
        plan,
        facts: facts(),
        durability: vec![],
        kept: Some(Kept::Reverted),
        kept_in: None,
        remarks: vec![],
        campaign: vec![],
    }
}

const LOOKS: [u32; 8] = [6, 8, 11, 15, 21, 30, 42, 60];

/// Returns the mean, the standard deviation, and an approximate interval.
fn spread(values: &[f64]) -> (f64, f64, Option<Interval>) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let sd = (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0)).sqrt();
    let half = 2.3 * sd / n.sqrt();
    let interval = (values.len() >= 6).then(|| Interval {
        low: (mean - half).exp(),
        high: (mean + half).exp(),
        confidence: 0.9,
    });
    (mean.exp(), sd, interval)
}

/// Returns the verdict of the formula, which judges at interim analyses only.
pub fn judge(trial: &Trial, pairs: &[PairOutcome]) -> Judgement {
    let plan = &trial.plan;
    let measured: Vec<(f64, &Vec<f64>)> = pairs
        .iter()
        .filter_map(|pair| match pair {
            PairOutcome::Measured { effect, guards, .. } => Some((*effect, guards)),
            _ => None,
        })
        .collect();
    let effects: Vec<f64> = measured.iter().map(|(effect, _)| *effect).collect();
    let n = effects.len() as u32;
    let at_look = LOOKS.contains(&n);
    let (ratio, sd, interval) = spread(&effects);
    let guard = |i: usize, guard: &Guard| {
        let values: Vec<f64> = measured.iter().map(|(_, guards)| guards[i]).collect();
        let (worsening, _, interval) = spread(&values);
        GuardJudgement {
            metric: guard.metric,
            margin: guard.margin,
            worsening,
            interval,
            held: interval.is_some_and(|i| i.high < 1.0 + guard.margin),
            broken: interval.is_some_and(|i| i.low > 1.0 && i.high > 1.0 + guard.margin),
        }
    };
    let guards: Vec<GuardJudgement> = plan
        .guards
        .iter()
        .enumerate()
        .map(|(i, g)| guard(i, g))
        .collect();
    let lost = trial
        .durability
        .iter()
        .find(|p| p.side == Side::Changed && p.lost > 0);
    let margin = 1.0 + plan.margin;
    let verdict = match interval.filter(|_| at_look) {
        _ if lost.is_some() => Verdict::Unsafe,
        None => Verdict::Undecided,
        Some(_) if guards.iter().any(|guard| guard.broken) => Verdict::Worse,
        Some(i) if i.high < 1.0 => Verdict::Worse,
        Some(i) if i.low > 1.0 / margin && i.high < margin => Verdict::NoPracticalDifference,
        Some(i) if i.low > 1.0 && guards.iter().all(|guard| guard.held) => Verdict::Better,
        Some(_) => Verdict::Undecided,
    };
    let look = |pairs: &u32| {
        let (ratio, _, interval) = spread(&effects[..*pairs as usize]);
        TrialLook {
            pairs: *pairs,
            ratio,
            low: interval.map(|i| i.low),
            high: interval.map(|i| i.high),
        }
    };
    let reason = match lost {
        Some(proof) => format!(
            "{} of {} writes that were acknowledged as durable were lost",
            proof.lost, proof.acknowledged
        ),
        None if n == 0 => "nothing was measured yet".to_owned(),
        None => "SYNTHETIC".to_owned(),
    };
    Judgement {
        verdict,
        done: n == MAX_PAIRS
            || (lost.is_some() && n >= 6)
            || (!plan.aa && verdict != Verdict::Undecided && lost.is_none()),
        reason,
        pairs: n,
        left_out: pairs.len() as u32 - n,
        ratio: (n > 0).then_some(ratio),
        interval,
        guards: if n > 0 { guards } else { vec![] },
        total: total(&effects, pairs, plan.margin),
        figures: vec![],
        looks: LOOKS.iter().filter(|at| **at <= n).map(look).collect(),
        pair_sd: (n >= 2).then_some(sd),
        forecast: (n > 0).then(|| (10.0 * (sd / ratio.ln()).powi(2)).ceil() as u32),
        e_value: (n > 0).then_some(1.0),
    }
}

/// Computes the sums over all slots.
fn total(effects: &[f64], pairs: &[PairOutcome], margin: f64) -> Option<TotalJudgement> {
    let works: Vec<[f64; 2]> = pairs
        .iter()
        .filter_map(|pair| match pair {
            PairOutcome::Measured { work, .. } => Some(*work),
            _ => None,
        })
        .collect();
    let sum = |of: &dyn Fn(&[f64; 2]) -> f64| works.iter().map(of).sum::<f64>();
    let (work, time) = (
        sum(&|w| w[1]) / sum(&|w| w[0]),
        sum(&|w| 1.0 / w[1]) / sum(&|w| 1.0 / w[0]),
    );
    (!effects.is_empty()).then(|| TotalJudgement {
        work,
        time,
        margin,
        within: (work.ln().abs()).max(time.ln().abs()) <= margin,
        stands: time <= 1.0 + margin,
        worse: false,
        slow: [0, 0],
        stalled: [0, 0],
    })
}

/// Computes the rows of the table of figures by the formula.
fn rows(case: &TrialCase) -> Vec<FigureJudgement> {
    let plan = &case.trial.plan;
    let usual = [Quantity::Iops, Quantity::P50, Quantity::P99, Quantity::P999].map(Metric::all);
    let mut metrics = vec![plan.metric];
    for metric in plan.guards.iter().map(|guard| guard.metric).chain(usual) {
        if !metrics.contains(&metric) {
            metrics.push(metric);
        }
    }
    let figure = |pair: usize, side: Side, metric: Metric| {
        let at = case
            .slots
            .iter()
            .position(|slot| slot.pair as usize == pair + 1 && slot.side == side)?;
        case.samples[at].figures.get(&metric).copied()
    };
    let row = |metric: Metric| {
        let effects: Vec<f64> = (0..case.pairs.len())
            .filter(|pair| matches!(case.pairs[*pair], PairOutcome::Measured { .. }))
            .filter_map(|pair| {
                Some((figure(pair, Side::Changed, metric)? / figure(pair, Side::Now, metric)?).ln())
            })
            .collect();
        let (ratio, _, interval) = spread(&effects);
        FigureJudgement {
            metric,
            ratio: (!effects.is_empty()).then_some(ratio),
            interval,
            worse: false,
        }
    };
    metrics.into_iter().map(row).collect()
}

/// Simulates a trial by the formula until the judgement ends it.
pub fn carry_out(trial: Trial, formula: &Formula, read_back: [&str; 2], tool: &str) -> TrialCase {
    let mut random = Random(trial.plan.seed ^ trial.id.0 as u64);
    let mut case = TrialCase {
        slots: vec![],
        samples: vec![],
        pairs: vec![],
        judgement: judge(&trial, &[]),
        latency: [(); 2].map(|()| Histogram::default()),
        smallest: vec![],
        trial,
    };
    let mut at: jiff::Timestamp = case.trial.started;
    for pair in 1..=formula.pairs {
        let first = case.trial.plan.first[pair as usize - 1];
        let second = match first {
            Side::Now => Side::Changed,
            Side::Changed => Side::Now,
        };
        let void = formula.void.contains(&pair);
        let mut figures = [Figures::new(), Figures::new()];
        for side in [first, second] {
            let drift = 1.0 + formula.drift * (f64::from(case.slots.len() as u32) / 20.0).sin();
            figures[side as usize] = draw(formula, side, drift, &mut random);
            let name = read_back[side as usize];
            case.slots.push(slot(pair, side, name, tool, at, void));
            case.samples
                .push(judged(&case, pair, figures[side as usize].clone()));
            at = at.checked_add(jiff::SignedDuration::from_secs(6)).unwrap();
        }
        case.pairs.push(match void {
            true => PairOutcome::Void {
                reason: "with the change: suspended: the machine slept for 31 s in this slot"
                    .to_owned(),
            },
            false => outcome(&case.trial.plan, &figures),
        });
        case.judgement = judge(&case.trial, &case.pairs);
        if case.judgement.done {
            break;
        }
    }
    case.trial.ended = Some(at);
    case.judgement.figures = rows(&case);
    let n = u64::from(case.judgement.pairs) * (formula.rate * 5.0) as u64;
    case.latency = [
        tailed(histogram(formula.latency, n, &mut random), 1.0, 1.0),
        tailed(
            histogram(formula.latency, n, &mut random),
            formula.latency_ratio,
            formula.tail_ratio,
        ),
    ];
    if let Some(sd) = case.judgement.pair_sd {
        let least = |n: u32| (sd * (10.0 / f64::from(n)).sqrt()).exp_m1();
        case.smallest = [10, 30, 60].map(|n| (n, least(n))).to_vec();
    }
    case
}

/// Scales the slowest 1 % and the remaining operations by different factors.
fn tailed(all: Histogram, bulk: f64, tail: f64) -> Histogram {
    let from = all.percentile(98.0).unwrap_or(0);
    let bins = all.bins().map(|(nanos, count)| {
        let factor = if nanos < from { bulk } else { tail };
        ((nanos as f64 * factor) as u64, count)
    });
    bins.collect()
}

fn draw(formula: &Formula, side: Side, drift: f64, random: &mut Random) -> Figures {
    let pick = |ratio: f64| if side == Side::Changed { ratio } else { 1.0 };
    let mut noise = |scale: f64| (random.bell() * formula.noise * scale).exp();
    let common = noise(1.0);
    let rate = formula.rate * pick(formula.rate_ratio) * drift * common;
    let latency = formula.latency * pick(formula.latency_ratio) / drift / common;
    let tail = formula.latency * pick(formula.tail_ratio) / drift / common;
    [
        (Quantity::Iops, rate),
        (Quantity::Throughput, rate * formula.bytes),
        (Quantity::Mean, latency * noise(0.3)),
        (Quantity::P50, latency * 0.95 * noise(0.5)),
        (Quantity::P90, latency * 1.4 * noise(0.7)),
        (Quantity::P99, tail * 2.6 * noise(1.2)),
        (Quantity::P999, tail * 6.1 * noise(2.0)),
    ]
    .into_iter()
    .map(|(quantity, value)| (Metric::all(quantity), value))
    .collect()
}

fn slot(
    pair: u32,
    side: Side,
    read_back: &str,
    tool: &str,
    at: jiff::Timestamp,
    void: bool,
) -> Slot {
    let doubt = Doubt {
        code: "suspended".to_owned(),
        severity: Severity::Void,
        evidence: "the machine slept for 31 s in this slot".to_owned(),
        remedy: "Keep the machine awake while a trial runs.".to_owned(),
    };
    Slot {
        pair,
        side,
        read_back: read_back.to_owned(),
        sample: Sample {
            workload: String::new(),
            target: "/srv/synthetic".to_owned(),
            round: pair,
            slot: 2 * (pair - 1) + side as u32,
            started: at,
            wall: Nanos(6_050_000_000),
            outcome: Outcome::Completed,
            tool: tool.to_owned(),
            workers: vec![],
            counters: Default::default(),
            file: None,
            series: vec![],
        },
        doubts: if void && side == Side::Changed {
            vec![doubt]
        } else {
            vec![]
        },
    }
}

fn judged(case: &TrialCase, pair: u32, figures: Figures) -> JudgedSample {
    let doubts = match pair % 5 {
        0 => vec![Doubt {
            code: "cpu-steal".to_owned(),
            severity: Severity::Suspect,
            evidence: "SYNTHETIC: the hypervisor took 6 % of the CPU time".to_owned(),
            remedy: "Measure when the host is quiet.".to_owned(),
        }],
        _ => vec![],
    };
    JudgedSample {
        workload: String::new(),
        target: case.trial.plan.target.clone(),
        round: pair,
        slot: case.samples.len() as u32,
        validity: Validity::of(&doubts),
        doubts,
        figures,
    }
}

fn outcome(plan: &TrialPlan, figures: &[Figures; 2]) -> PairOutcome {
    let better = |metric: &Metric| {
        let ratio = (figures[1][metric] / figures[0][metric]).ln();
        if metric.quantity.is_latency() {
            -ratio
        } else {
            ratio
        }
    };
    PairOutcome::Measured {
        effect: better(&plan.metric),
        guards: plan
            .guards
            .iter()
            .map(|guard| -better(&guard.metric))
            .collect(),
        work: [0, 1].map(|side: usize| {
            let value = figures[side][&plan.metric];
            if plan.metric.quantity.is_latency() {
                1.0 / value
            } else {
                value
            }
        }),
    }
}
