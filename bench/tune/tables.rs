//! Sessions by noise and budget, beside a campaign of trials as `assay trial A B C` runs it.

use crate::machine::{COMMAND, Machine, RATE, Times, plan};
use crate::parallel::repeat;
use crate::stream::{Kind, Stream};
use crate::world::{draw, priors};
use assay_judge::trial::{TrialRule, campaign_level, decide_verdict, find_next_look};
use assay_model::Nanos;
use assay_model::advice::Guard;
use assay_model::trial::{MAX_PAIRS, Side, Verdict};
use assay_tune::{
    Driver as _, Ending, HoldEnd, PairOrder, Row, Stage, Step, StepOutcome, TuneSession, carry_out,
};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use std::fmt::Write as _;

/// Settings of a machine.
const SETTINGS: usize = 14;
/// Margin of the guardrail p99.
const TAIL: f64 = 0.25;

/// How one session ended.
struct End {
    /// Nothing could have been gained.
    hopeless: bool,
    kept: bool,
    useless: bool,
    /// ln of the true gain, and of the best one.
    truth: f64,
    attainable: f64,
    /// The gain that is shown, with whether its interval holds the truth.
    said: Option<(f64, bool)>,
    /// ln by which p99 rose.
    tail: f64,
    minutes: f64,
    /// Each was proved, together they were not.
    whole_open: bool,
    /// The whole was proved, and reverted because its gain seemed to wear off.
    taken_back: bool,
    /// What is kept seems to wear off in part.
    fades: bool,
    /// What is kept was not held.
    not_held: bool,
}

/// Who searches.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SearchMethod {
    Screened,
    Single,
    Campaign,
}

#[derive(Clone, Copy)]
struct Cell {
    kind: Kind,
    minutes: f64,
    way: SearchMethod,
    guarded: bool,
}

fn generator(random: &mut ChaCha8Rng) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(random.random())
}

fn run(cell: Cell, seed: u64, random: &mut ChaCha8Rng) -> End {
    let mut world = draw(SETTINGS, random);
    if cell.guarded && random.random::<f64>() < 0.3 {
        let helper = (0..SETTINGS).find(|at| world.effects[*at] > 0.0);
        world.tail.extend(helper.map(|at| (at, 1.6f64.ln())));
    }
    let priors = priors(&world, random);
    let stream = Stream::new(cell.kind, generator(random));
    let mut machine = Machine::new(world, stream, generator(random));
    let mut plan = plan(&["more w.iops"], &priors, cell.minutes, seed);
    plan.screen = cell.way == SearchMethod::Screened;
    if cell.guarded {
        plan.goal.guards.push(Guard {
            metric: assay_model::criterion::Metric::all(assay_model::criterion::Quantity::P99),
            margin: TAIL,
        });
    }
    let (mut whole_open, mut taken_back, mut fades, mut not_held) = (false, false, false, false);
    let (kept, gain) = match cell.way {
        SearchMethod::Campaign => (run_campaign(&mut machine, cell.minutes, seed), None),
        _ => {
            let mut session = TuneSession::begin(plan).expect("a plan");
            let ending = carry_out(&mut session, &mut machine).expect("a session");
            whole_open = ending == Ending::WholeNotProved;
            taken_back = matches!(ending, Ending::DoesNotLast { .. });
            let hold = session.hold();
            fades = hold.is_some_and(|hold| hold.end == Some(HoldEnd::Fades));
            not_held = hold.is_none();
            match ending {
                Ending::Kept { row } => (row, session.gain()),
                _ => (Row::new(), None),
            }
        }
    };
    let world = &machine.world;
    let allowed = if cell.guarded {
        TAIL.ln_1p()
    } else {
        f64::INFINITY
    };
    let truth = world.value(&kept, 0.0);
    End {
        hopeless: world.effects.iter().all(|effect| *effect <= 0.0),
        kept: !kept.is_empty(),
        useless: kept.iter().any(|at| world.is_useless(&kept, *at)),
        truth,
        attainable: world.attainable(allowed),
        said: gain.map(|gain| {
            let holds = gain.interval.is_some_and(|interval| {
                interval.low <= truth.exp_m1() && truth.exp_m1() <= interval.high
            });
            (gain.said, holds)
        }),
        tail: world.tail(&kept),
        minutes: machine.seconds / 60.0,
        whole_open,
        taken_back,
        fades,
        not_held,
    }
}

/// One trial after the other, in the order named, each at 5 % ÷ number, kept as it goes.
fn run_campaign(machine: &mut Machine, minutes: f64, seed: u64) -> Row {
    let mut kept = Row::new();
    for candidate in 0..SETTINGS {
        let rule = TrialRule {
            margin: 0.03,
            guards: Vec::new(),
            max_pairs: MAX_PAIRS,
            alpha: campaign_level::compute_level_per_trial(0.05, SETTINGS),
            seed: seed.wrapping_mul(31).wrapping_add(candidate as u64),
            safety_broken: None,
            looks: Vec::new(),
            unproved: None,
            aa: false,
            by_latency: false,
        };
        let mut changed = kept.clone();
        changed.insert(candidate);
        let mut pairs = Vec::new();
        while pairs.len() < MAX_PAIRS as usize && machine.seconds < minutes * 60.0 {
            let order = PairOrder {
                stage: Stage::Whole { attempt: 0 },
                number: pairs.len() as u32 + 1,
                now: kept.clone(),
                changed: changed.clone(),
                first: if machine.random.random() {
                    Side::Now
                } else {
                    Side::Changed
                },
                alternations: 1,
                held: 0,
            };
            let metric = "iops".parse().expect("a metric");
            let (outcome, _) = machine.measure(&order, metric, &[]).expect("a pair");
            pairs.push(outcome);
            let n = pairs.len() as u32;
            if find_next_look(MAX_PAIRS, n - 1) == Some(n) {
                let verdict = decide_verdict(&rule, &pairs).0;
                if verdict == Verdict::Better {
                    kept.insert(candidate);
                }
                if verdict != Verdict::Undecided {
                    break;
                }
            }
        }
    }
    kept
}

/// Percent, and its standard error.
fn percent(hits: usize, of: usize) -> (f64, f64) {
    let share = hits as f64 / of.max(1) as f64;
    (
        100.0 * share,
        100.0 * (share * (1.0 - share) / of.max(1) as f64).sqrt(),
    )
}

fn shown((value, error): (f64, f64)) -> String {
    format!("{value:.1} ± {error:.1}")
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// Share of the attainable gain over all sessions, with the standard error of a ratio of sums.
fn share(ends: &[End]) -> (f64, f64) {
    let best: f64 = ends.iter().map(|end| end.attainable).sum();
    let share = ends.iter().map(|end| end.truth).sum::<f64>() / best;
    let rest: f64 = ends
        .iter()
        .map(|end| (end.truth - share * end.attainable).powi(2))
        .sum();
    (100.0 * share, 100.0 * rest.sqrt() / best)
}

fn table(n: usize, minutes: f64, ways: &[SearchMethod], guarded: bool, kinds: &[Kind]) -> String {
    let mut out = String::from(
        "| noise | way | share of attainable gain, % | kept though nothing helps, % | useless change kept, % | \
         handed back worse, % | p99 beyond margin, % | reported − true, points | 90 % interval holds, % | \
         whole not proved, % | reverted, % | fades, % | kept and not held, % | median min | longest min |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for kind in kinds {
        for way in ways {
            let cell = Cell {
                kind: *kind,
                minutes,
                way: *way,
                guarded,
            };
            let named = match way {
                SearchMethod::Screened => "tune",
                SearchMethod::Single => "tune, no screen",
                SearchMethod::Campaign => "campaign",
            };
            // The same machines for every way.
            let seeds = format!("{} {minutes} {guarded}", kind.name());
            let ends = repeat(&seeds, n, |seed, random| run(cell, seed, random));
            let count = |of: &dyn Fn(&&End) -> bool| ends.iter().filter(of).count();
            let hopeless = count(&|end| end.hopeless);
            let said: Vec<(f64, bool, f64)> = (ends.iter())
                .filter_map(|end| {
                    end.said
                        .map(|(said, holds)| (said, holds, end.truth.exp_m1()))
                })
                .collect();
            let errors: Vec<f64> = said.iter().map(|(s, _, t)| 100.0 * (s - t)).collect();
            let mean = errors.iter().sum::<f64>() / errors.len().max(1) as f64;
            let variance = errors.iter().map(|e| (e - mean).powi(2)).sum::<f64>();
            let error = variance.sqrt() / errors.len().max(1) as f64;
            let holds = percent(
                said.iter().filter(|(_, holds, _)| *holds).count(),
                said.len(),
            );
            let minutes = ends.iter().map(|end| end.minutes);
            let none = way == &SearchMethod::Campaign;
            let _ = writeln!(
                out,
                "| {} | {named} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {:.0} | {:.1} |",
                kind.name(),
                shown(share(&ends)),
                shown(percent(count(&|end| end.hopeless && end.kept), hopeless)),
                shown(percent(count(&|end| end.useless), n)),
                shown(percent(count(&|end| end.truth < -1e-9), n)),
                shown(percent(count(&|end| end.tail > TAIL.ln_1p()), n)),
                if none {
                    "–".to_owned()
                } else {
                    format!("{mean:+.1} ± {error:.1}")
                },
                if none { "–".to_owned() } else { shown(holds) },
                shown(percent(count(&|end| end.whole_open), n)),
                shown(percent(count(&|end| end.taken_back), n)),
                shown(percent(count(&|end| end.fades), n)),
                shown(percent(count(&|end| end.kept && end.not_held), n)),
                median(minutes.clone().collect()),
                minutes.fold(0.0, f64::max),
            );
        }
    }
    out
}

/// 30 minutes.
pub fn thirty(n: usize, kinds: &[Kind]) -> String {
    table(
        n,
        30.0,
        &[SearchMethod::Screened, SearchMethod::Campaign],
        false,
        kinds,
    )
}

/// 120 minutes.
pub fn two_hours(n: usize, kinds: &[Kind]) -> String {
    table(
        n,
        120.0,
        &[SearchMethod::Screened, SearchMethod::Campaign],
        false,
        kinds,
    )
}

/// One at a time.
pub fn without_screen(n: usize, kinds: &[Kind]) -> String {
    table(n, 30.0, &[SearchMethod::Single], false, kinds)
}

/// p99 must not rise by more than 25 %; in 30 of 100 machines with a helper one raises it by 60 %.
pub fn guarded(n: usize, kinds: &[Kind]) -> String {
    table(n, 120.0, &[SearchMethod::Screened], true, kinds)
}

/// How often "met" is wrong where the next hour is 10 % short, and right where it has 10 and 30 % to
/// spare.
pub fn met(n: usize, kinds: &[Kind]) -> String {
    let mut out = String::from(
        "| noise | 10 % short: met, % | 10 % to spare: met, % | 30 % to spare: met, % |\n|---|---|---|---|\n",
    );
    for kind in kinds.iter().copied() {
        let cells = [1.1, 1.0 / 1.1, 1.0 / 1.3].map(|factor| {
            let name = format!("met {} {factor}", kind.name());
            let ends = repeat(&name, n, |seed, random| stands(kind, factor, seed, random));
            shown(percent(ends.iter().filter(|met| **met).count(), n))
        });
        let _ = writeln!(out, "| {} | {} |", kind.name(), cells.join(" | "));
    }
    out
}

/// Whether the goal is called met, where it is `factor` times what the next hour gives.
fn stands(kind: Kind, factor: f64, seed: u64, random: &mut ChaCha8Rng) -> bool {
    let noise = generator(random);
    let world = crate::world::World::still(1);
    let mut ahead = Stream::new(kind, noise.clone());
    let hour: Vec<f64> = (0..720)
        .map(|at| ahead.slot(5.0 * f64::from(at))[0])
        .collect();
    let truth = RATE * (hour.iter().sum::<f64>() / hour.len() as f64).exp();
    let want = format!("w.iops >= {:.3}", factor * truth);
    let mut machine = Machine::new(world, Stream::new(kind, noise), generator(random));
    let plan = plan(&[want.as_str()], &[0.1], 45.0, seed);
    let mut session = TuneSession::begin(plan).expect("a plan");
    loop {
        let began = machine.elapsed();
        let seen = match session.next() {
            Step::SetUp => StepOutcome::SetUp { took: Nanos(0) },
            Step::Visit { wait, rounds } => {
                let wants = &session.plan().goal.wants;
                let visit = machine.visit(wants, wait, rounds).expect("a visit");
                let took = Nanos(machine.elapsed().0 - began.0);
                StepOutcome::Visit { visit, took }
            }
            // The baseline is over.
            _ => break,
        };
        session.observe(seen).expect("the step that was due");
    }
    matches!(session.ending(), Some(Ending::Met { .. }))
}

/// Minutes of the sessions on commands.
const MINUTES: [f64; 3] = [5.0, 10.0, 15.0];

/// A command with five settings: +20 %, +10 %, −20 % and two that do nothing, on a busy machine.
pub fn commands(n: usize, _: &[Kind]) -> String {
    let mut out = String::from(
        "| minutes | slot, s | p99 guarded | +20 % kept, % | +10 % kept, % | −20 % kept, % | useless kept, % | \
         nothing kept, % | whole not proved, % | median min |\n|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for minutes in MINUTES {
        for (slot, guarded) in [(1.0, true), (1.0, false), (0.4, true)] {
            let name = format!("commands {minutes} {slot} {guarded}");
            let ends = repeat(&name, n, |seed, random| {
                run_command(minutes, slot, guarded, seed, random)
            });
            let share = |of: &dyn Fn(&(Row, bool, f64)) -> bool| {
                shown(percent(ends.iter().filter(|end| of(end)).count(), n))
            };
            let _ = writeln!(
                out,
                "| {minutes} | {slot} | {guarded} | {} | {} | {} | {} | {} | {} | {:.1} |",
                share(&|end| end.0.contains(&0)),
                share(&|end| end.0.contains(&1)),
                share(&|end| end.0.contains(&2)),
                share(&|end| end.0.contains(&3) || end.0.contains(&4)),
                share(&|end| end.0.is_empty()),
                share(&|end| end.1),
                median(ends.iter().map(|end| end.2).collect()),
            );
        }
    }
    out
}

/// Returns what is kept, whether the whole was not proved, and the minutes.
fn run_command(
    minutes: f64,
    slot: f64,
    guarded: bool,
    seed: u64,
    random: &mut ChaCha8Rng,
) -> (Row, bool, f64) {
    let mut world = crate::world::World::still(5);
    for (at, factor) in [1.2f64, 1.1, 0.8].into_iter().enumerate() {
        world.effects[at] = factor.ln();
    }
    let mut stream = Stream::new(Kind::Command, generator(random));
    stream.length = slot;
    let mut machine = Machine::new(world, stream, generator(random));
    machine.times = Times {
        slot: slot + 0.06,
        ..COMMAND
    };
    let mut plan = plan(&["less p50"], &[0.1; 5], minutes, seed);
    plan.costs = machine.times.costs();
    plan.between_visits = Nanos::from_secs_f64(minutes * 60.0 / 20.0);
    plan.screen = false;
    for candidate in &mut plan.candidates {
        candidate.switch = Nanos::from_secs_f64(COMMAND.switch);
    }
    if guarded {
        plan.goal.guards.push(Guard {
            metric: "p99".parse().expect("a metric"),
            margin: TAIL,
        });
    }
    let mut session = TuneSession::begin(plan).expect("a plan");
    let ending = carry_out(&mut session, &mut machine).expect("a session");
    let minutes = machine.seconds / 60.0;
    match ending {
        Ending::Kept { row } => (row, false, minutes),
        ending => (Row::new(), ending == Ending::WholeNotProved, minutes),
    }
}
