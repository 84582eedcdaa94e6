//! Planted machines by name: what each must, and how often it does.

use crate::machine::{Machine, plan};
use crate::parallel::repeat;
use crate::stream::{Kind, Stream};
use crate::world::World;
use assay_model::Nanos;
use assay_model::advice::Guard;
use assay_model::result::Interval;
use assay_tune::{
    BottomRung, Ending, LeftOut, OperationShare, Row, TunePlan, TuneSession, carry_out,
};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use std::fmt::Write as _;

/// Settings of a machine.
const SETTINGS: usize = 14;
const MINUTES: f64 = 30.0;

/// A session on a planted machine, over.
struct Over {
    ending: Ending,
    kept: Row,
    session: TuneSession,
    touched: usize,
}

/// A machine by name.
struct Planted {
    name: &'static str,
    must: &'static str,
    want: &'static str,
    world: fn() -> World,
    adjust: fn(&mut TunePlan),
    holds: fn(&Over) -> bool,
}

fn with(effects: &[(usize, f64)]) -> World {
    let mut world = World::still(SETTINGS);
    for (at, gain) in effects {
        world.effects[*at] = gain.ln_1p();
    }
    world
}

fn guard_tail(plan: &mut TunePlan) {
    plan.goal.guards.push(Guard {
        metric: assay_model::criterion::Metric::all(assay_model::criterion::Quantity::P99),
        margin: 0.25,
    });
}

fn as_it_is(_: &mut TunePlan) {}

const MORE: &str = "more w.iops";

const MACHINES: [Planted; 17] = [
    Planted {
        name: "still",
        must: "keep nothing",
        want: MORE,
        world: || World::still(SETTINGS),
        adjust: as_it_is,
        holds: |over| over.kept.is_empty(),
    },
    Planted {
        name: "gains: +20 %",
        must: "keep it",
        want: MORE,
        world: gains,
        adjust: as_it_is,
        holds: |over| over.kept.contains(&3),
    },
    Planted {
        name: "gains: +10 %",
        must: "keep it",
        want: MORE,
        world: gains,
        adjust: as_it_is,
        holds: |over| over.kept.contains(&7),
    },
    Planted {
        name: "gains: −20 %",
        must: "never keep it",
        want: MORE,
        world: gains,
        adjust: as_it_is,
        holds: |over| !over.kept.contains(&1) && !over.kept.contains(&9),
    },
    Planted {
        name: "twins",
        must: "keep one",
        want: MORE,
        world: || World {
            together: vec![(2, 5, -0.15f64.ln_1p())],
            ..with(&[(2, 0.15), (5, 0.15)])
        },
        adjust: as_it_is,
        holds: |over| over.kept.contains(&2) != over.kept.contains(&5),
    },
    Planted {
        name: "rivals",
        must: "not both",
        want: MORE,
        world: || World {
            together: vec![(2, 5, 0.75f64.ln() - 1.15f64.ln())],
            ..with(&[(2, 0.15)])
        },
        adjust: as_it_is,
        holds: |over| !(over.kept.contains(&2) && over.kept.contains(&5)),
    },
    Planted {
        name: "only together",
        must: "nothing worse (may miss it)",
        want: MORE,
        world: || World {
            together: vec![(2, 5, 0.2f64.ln_1p())],
            ..World::still(SETTINGS)
        },
        adjust: as_it_is,
        holds: |over| over.kept.is_empty() || over.kept == Row::from([2, 5]),
    },
    Planted {
        name: "rare stalls",
        must: "never keep it",
        want: MORE,
        world: || World {
            stalls: Some((4, 0.1)),
            ..with(&[(4, 0.08)])
        },
        adjust: as_it_is,
        holds: |over| !over.kept.contains(&4),
    },
    Planted {
        name: "tail",
        must: "never keep it with p99 25 %",
        want: MORE,
        world: || World {
            tail: vec![(4, 0.6f64.ln_1p())],
            ..with(&[(4, 0.15)])
        },
        adjust: guard_tail,
        holds: |over| !over.kept.contains(&4),
    },
    Planted {
        name: "breaker",
        must: "drop it, keep the +20 %",
        want: MORE,
        world: || World {
            breaks: vec![(6, None), (8, Some(10))],
            ..with(&[(3, 0.2)])
        },
        adjust: as_it_is,
        holds: |over| {
            let reason = over.session.left_out().get(&6);
            over.kept.contains(&3) && matches!(reason, Some(LeftOut::FailsLoad { .. }))
        },
    },
    Planted {
        name: "ceiling",
        must: "leave it out with the arithmetic",
        want: MORE,
        world: || World::still(SETTINGS),
        adjust: |plan| {
            plan.candidates[0].share = Some(OperationShare {
                part: "encryption".to_owned(),
                takes: Nanos(10_000),
                of: Nanos(412_000),
            });
        },
        holds: |over| {
            matches!(
                over.session.left_out().get(&0),
                Some(LeftOut::Ceiling { .. })
            )
        },
    },
    Planted {
        name: "met",
        must: "stop, touch nothing",
        want: "w.iops >= 7k",
        world: || World::still(SETTINGS),
        adjust: as_it_is,
        holds: |over| {
            over.touched == 0
                && matches!(over.ending, Ending::Met { .. } | Ending::MetForNow { .. })
        },
    },
    Planted {
        name: "beyond",
        must: "say so, touch nothing",
        want: "w.iops >= 20k",
        world: || World::still(SETTINGS),
        adjust: |plan| {
            plan.bottom = Some(BottomRung {
                what: "vda alone".to_owned(),
                figure: Interval {
                    low: 14_000.0,
                    high: 15_000.0,
                    confidence: 0.95,
                },
                is_tunable: false,
            });
        },
        holds: |over| over.touched == 0 && matches!(over.ending, Ending::Beyond { .. }),
    },
    Planted {
        name: "evaporates after 10 minutes",
        must: "never keep it",
        want: MORE,
        world: || World {
            evaporates: Some((3, 600.0)),
            ..with(&[(3, 0.2)])
        },
        adjust: as_it_is,
        holds: |over| !over.kept.contains(&3),
    },
    Planted {
        name: "+20 % that lasts",
        must: "keep it",
        want: MORE,
        world: || with(&[(3, 0.2)]),
        adjust: as_it_is,
        holds: |over| over.kept == Row::from([3]),
    },
    Planted {
        name: "+20 % that wears off in 45 s",
        must: "never keep it",
        want: MORE,
        world: || World {
            works: Some((3, 0.0..45.0)),
            ..with(&[(3, 0.2)])
        },
        adjust: as_it_is,
        holds: |over| !over.kept.contains(&3),
    },
    Planted {
        name: "+20 % after 30 s",
        must: "nothing worse (may miss it)",
        want: MORE,
        world: || World {
            works: Some((3, 30.0..f64::INFINITY)),
            ..with(&[(3, 0.2)])
        },
        adjust: as_it_is,
        holds: |over| over.kept.is_empty() || over.kept == Row::from([3]),
    },
];

fn gains() -> World {
    with(&[(3, 0.2), (7, 0.1), (11, 0.05), (1, -0.2), (9, -0.2)])
}

fn run(planted: &Planted, kind: Kind, seed: u64, random: &mut ChaCha8Rng) -> Over {
    let mut generator = || ChaCha8Rng::seed_from_u64(random.random());
    let stream = Stream::new(kind, generator());
    let mut machine = Machine::new((planted.world)(), stream, generator());
    let mut plan = plan(&[planted.want], &[0.1; SETTINGS], MINUTES, seed);
    (planted.adjust)(&mut plan);
    let mut session = TuneSession::begin(plan).expect("a plan");
    let ending = carry_out(&mut session, &mut machine).expect("a session");
    Over {
        ending,
        kept: machine.kept,
        touched: machine.touched,
        session,
    }
}

/// Every machine: in how many sessions it does what it must.
pub fn table(n: usize, kinds: &[Kind]) -> String {
    let mut out = String::from("| machine | must |");
    for kind in kinds {
        let _ = write!(out, " {}, % |", kind.name());
    }
    let _ = writeln!(out, "\n|---|---|{}", "---|".repeat(kinds.len()));
    for planted in &MACHINES {
        let _ = write!(out, "| {} | {} |", planted.name, planted.must);
        for kind in kinds {
            let cell = format!("{} {}", planted.name, kind.name());
            let ends = repeat(&cell, n, |seed, random| {
                (planted.holds)(&run(planted, *kind, seed, random))
            });
            let holds = ends.iter().filter(|holds| **holds).count();
            let _ = write!(out, " {:.1} |", 100.0 * holds as f64 / n as f64);
        }
        out.push('\n');
    }
    out
}
