//! A planted machine behind the planner's own interface, on a clock of its own.

use crate::stream::Stream;
use crate::world::World;
use assay_model::Nanos;
use assay_model::advice::{Guard, RiskLevel, Standing};
use assay_model::criterion::Metric;
use assay_model::trial::{PairOutcome, Side};
use assay_tune::{
    Acts, Allowed, Applicability, Candidate, Costs, Diagnosis, Driver, Goal, Incident, LoadShape,
    PairOrder, Prior, Row, StepOutcome, Toggle, TunePlan, Unexpected, Visit, Want, combine,
};
use rand_chacha::ChaCha8Rng;

/// Seconds of the steps of a session.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// A slot.
    pub slot: f64,
    /// The washout before it.
    pub washout: f64,
    /// Starting the load.
    pub start: f64,
    /// One switch.
    pub switch: f64,
    /// Setting up.
    pub set_up: f64,
    /// Reverting or keeping.
    pub set_back: f64,
}

/// fio on a directory.
pub const FIO: Times = Times {
    slot: 4.0,
    washout: 1.0,
    start: 0.0,
    switch: 0.3,
    set_up: 10.0,
    set_back: 5.0,
};
/// A program that is run over and over.
pub const COMMAND: Times = Times {
    slot: 1.0,
    washout: 0.0,
    start: 0.05,
    switch: 0.03,
    set_up: 0.5,
    set_back: 1.0,
};

impl Times {
    /// The same as the planner expects it.
    pub fn costs(&self) -> Costs {
        let seconds = Nanos::from_secs_f64;
        Costs {
            slot: seconds(self.slot),
            washout: seconds(self.washout),
            start: seconds(self.start),
            set_up: seconds(self.set_up),
            set_back: seconds(self.set_back),
        }
    }
}

/// Operations per second with nothing on.
pub const RATE: f64 = 10_000.0;

/// The machine.
pub struct Machine {
    /// Its truth.
    pub world: World,
    /// Its noise.
    pub stream: Stream,
    /// Seconds since it began.
    pub seconds: f64,
    /// Seconds since a setting was changed.
    pub age: f64,
    /// How long its steps take.
    pub times: Times,
    /// Where stalls come from.
    pub random: ChaCha8Rng,
    /// Everything that was seen.
    pub seen: Vec<StepOutcome>,
    /// What is kept.
    pub kept: Row,
    /// Slots in which something was on.
    pub touched: usize,
    /// Ends the session after so many steps, as a kill would.
    pub dies_after: Option<usize>,
}

/// Killed, as the test planned it.
#[derive(Debug)]
pub struct Killed;

impl From<Unexpected> for Killed {
    fn from(error: Unexpected) -> Self {
        unreachable!("the planner and its driver disagree: {error}")
    }
}

impl Machine {
    /// A machine that nobody has touched.
    pub fn new(world: World, stream: Stream, random: ChaCha8Rng) -> Self {
        Self {
            world,
            stream,
            seconds: 0.0,
            age: 0.0,
            times: FIO,
            random,
            seen: Vec::new(),
            kept: Row::new(),
            touched: 0,
            dies_after: None,
        }
    }

    /// ln of rate and p99 of one slot with these on; none when the load fails.
    pub fn slot(&mut self, row: &Row) -> Option<[f64; 2]> {
        let [rate, tail] = self.stream.slot(self.seconds);
        self.seconds += self.slot_time();
        self.age += self.slot_time();
        self.touched += usize::from(!row.is_empty());
        if self.world.fails(row) {
            return None;
        }
        let age = self.age - self.times.slot / 2.0;
        let world = &self.world;
        let value = world.slot_value(row, self.seconds, age, &mut self.random);
        // The slowest run of a command gets faster with all others.
        let faster = if self.stream.is_command() { value } else { 0.0 };
        Some([rate + value, tail + self.world.tail(row) - faster])
    }

    fn slots(&mut self, row: &Row, n: u32) -> Vec<Option<[f64; 2]>> {
        (0..n).map(|_| self.slot(row)).collect()
    }

    fn slot_time(&self) -> f64 {
        self.times.slot + self.times.washout + self.times.start
    }

    /// One alternation.
    fn alternation(&mut self, order: &PairOrder, sides: &[Side], guards: &[Guard]) -> Alternation {
        let mut measured = [None, None];
        for side in sides {
            self.switch(order);
            measured[*side as usize] = self.slot(order.row(*side));
        }
        compare(measured, guards)
    }

    /// Changes the settings that differ between the sides.
    fn switch(&mut self, order: &PairOrder) {
        let differ = order.now.symmetric_difference(&order.changed).count();
        self.seconds += self.times.switch * differ as f64;
        self.age = 0.0;
    }

    /// A pair after the change was on for a while: the slots next to each other first.
    fn held_pair(&mut self, order: &PairOrder, guards: &[Guard]) -> Vec<Alternation> {
        self.switch(order);
        for _ in 0..order.held {
            self.slot(&order.changed);
        }
        let changed = self.slots(&order.changed, order.alternations);
        self.switch(order);
        let now = self.slots(&order.now, order.alternations);
        let pairs = now.into_iter().zip(changed.into_iter().rev());
        pairs.map(|(a, b)| compare([a, b], guards)).collect()
    }
}

/// The outcome of the two sides of a pair, each with ln of rate and p99.
fn compare(measured: [Option<[f64; 2]>; 2], guards: &[Guard]) -> Alternation {
    let failed = || "the load failed".to_owned();
    let outcome = match measured {
        [Some(a), Some(b)] => {
            let outcome = PairOutcome::Measured {
                effect: b[0] - a[0],
                guards: guards.iter().map(|_| b[1] - a[1]).collect(),
                work: [a[0].exp(), b[0].exp()],
            };
            return Alternation {
                outcome,
                rates: Some([a[0], b[0]].map(|ln| RATE * ln.exp())),
            };
        }
        [Some(_), None] => PairOutcome::FailedChanged { error: failed() },
        _ => PairOutcome::Failed { error: failed() },
    };
    Alternation {
        outcome,
        rates: None,
    }
}

struct Alternation {
    outcome: PairOutcome,
    rates: Option<[f64; 2]>,
}

impl Driver for Machine {
    type Error = Killed;

    fn elapsed(&self) -> Nanos {
        Nanos::from_secs_f64(self.seconds)
    }

    fn set_up(&mut self) -> Result<(), Killed> {
        self.seconds += self.times.set_up;
        Ok(())
    }

    fn visit(&mut self, wants: &[Want], wait: Nanos, rounds: u32) -> Result<Visit, Killed> {
        let mut left = wait.as_secs_f64();
        while left > 0.0 {
            // The machine's own life goes on.
            self.stream.slot(self.seconds);
            self.seconds += self.times.slot + self.times.washout;
            left -= self.times.slot + self.times.washout;
        }
        let mut figures = vec![Vec::new(); wants.len()];
        for _ in 0..rounds {
            let slot = self.slot(&self.kept.clone());
            let [rate, tail] = slot.unwrap_or_default();
            for (figures, want) in figures.iter_mut().zip(wants) {
                let latency = want.metric().quantity.is_latency();
                figures.push(if latency && self.stream.is_command() {
                    1e6 * (-rate).exp()
                } else if latency {
                    1e6 * tail.exp()
                } else {
                    RATE * rate.exp()
                });
            }
        }
        Ok(Visit { figures })
    }

    fn diagnose(&mut self, _: &Want, _: u32) -> Result<Diagnosis, Killed> {
        Ok(Diagnosis::default())
    }

    fn try_alone(&mut self, candidate: usize) -> Result<Option<String>, Killed> {
        self.seconds += 2.0 * self.times.switch;
        self.age = 0.0;
        let slot = self.slot(&Row::from([candidate]));
        Ok(slot.is_none().then(|| "the load failed".to_owned()))
    }

    fn measure(
        &mut self,
        order: &PairOrder,
        _: Metric,
        guards: &[Guard],
    ) -> Result<(PairOutcome, Option<[f64; 2]>), Killed> {
        let all: Vec<Alternation> = match order.held {
            0 => (order.sides().chunks(2))
                .map(|sides| self.alternation(order, sides, guards))
                .collect(),
            _ => self.held_pair(order, guards),
        };
        let rates = all.first().and_then(|first| first.rates);
        let outcomes: Vec<PairOutcome> = all.into_iter().map(|one| one.outcome).collect();
        Ok((combine(&outcomes), rates))
    }

    fn keep(&mut self, row: &Row) -> Result<(), Killed> {
        self.seconds += self.times.set_back;
        self.kept = row.clone();
        Ok(())
    }

    fn revert(&mut self) -> Result<(), Killed> {
        self.seconds += self.times.set_back;
        Ok(())
    }

    fn incident(&mut self) -> Option<Incident> {
        None
    }

    fn record(&mut self, seen: &StepOutcome) -> Result<(), Killed> {
        self.seen.push(seen.clone());
        match self.dies_after {
            Some(steps) if self.seen.len() >= steps => Err(Killed),
            _ => Ok(()),
        }
    }
}

/// A plan for a machine of so many settings with these priors.
pub fn plan(wants: &[&str], priors: &[f64], minutes: f64, seed: u64) -> TunePlan {
    let seconds = Nanos::from_secs_f64;
    TunePlan {
        goal: Goal {
            wants: wants.iter().filter_map(|want| want.parse().ok()).collect(),
            guards: Vec::new(),
            margin: 0.03,
        },
        candidates: priors.iter().enumerate().map(candidate).collect(),
        allowed: Allowed::default(),
        load: LoadShape {
            kind: "fio".to_owned(),
            reads: true,
            writes: true,
            flushes: true,
            direct: true,
            ..LoadShape::default()
        },
        limit: None,
        bottom: None,
        diagnose: false,
        anyway: false,
        costs: FIO.costs(),
        budget: seconds(minutes * 60.0),
        between_visits: seconds(300.0),
        together: false,
        keep_nothing: false,
        hold: TunePlan::usual_hold(seconds(minutes * 60.0)),
        screen: true,
        seed,
    }
}

fn candidate((at, helps): (usize, &f64)) -> Candidate {
    Candidate {
        id: format!("x{at}"),
        title: format!("x{at}"),
        state: Applicability::Applies,
        touches: vec![format!("planted/x{at}")],
        excludes: Vec::new(),
        risk: RiskLevel::None,
        never_kept: None,
        literature: Standing::Conditional,
        literature_text: String::new(),
        acts: Acts::default(),
        share: None,
        before: None,
        prior: Prior {
            helps: *helps,
            gain: 0.1,
        },
        toggle: Toggle::Cheap,
        switch: Nanos(300_000_000),
    }
}
