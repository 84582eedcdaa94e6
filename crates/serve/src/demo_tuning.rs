//! An invented tuning session. The real planner chooses the steps, and a formula supplies the figures.

use crate::demo_records::{REMARK, Random, describe_facts, describe_target};
use assay_model::advice::{Guard, RiskLevel, Standing};
use assay_model::change::Setting;
use assay_model::criterion::{Metric, Quantity};
use assay_model::trial::PairOutcome;
use assay_model::workload::{Durability, Engine, Pattern};
use assay_model::{Bytes, Load, Nanos, Workload};
use assay_tune::{
    Acts, Allowed, Applicability, Candidate, CandidateChange, Costs, Diagnosis, Driver, Goal,
    Incident, KeptState, LoadShape, PairOrder, Prior, Row, StepOutcome, Toggle, TunePlan,
    TuneRecord, TuneSession, TuneState, Unexpected, Visit, Want, carry_out,
};
use jiff::{SignedDuration, Timestamp};

const SECOND: u64 = 1_000_000_000;

/// Advice that the session tries, each with id, title, setting of `sda` or of the kernel, value, and the true gain in
/// the formula.
const PAGES: [(&str, &str, &str, &str, f64); 4] = [
    (
        "io-scheduler=none",
        "Fast disks need no I/O scheduler",
        "scheduler",
        "none",
        0.09,
    ),
    (
        "read-ahead=4096",
        "A larger read-ahead makes disks faster",
        "read_ahead_kb",
        "4096",
        -0.06,
    ),
    (
        "queue-nr-requests=1024",
        "More requests in the queue",
        "nr_requests",
        "1024",
        0.004,
    ),
    (
        "writeback-throttling-off",
        "Write-back throttling slows writers",
        "wbt_lat_usec",
        "0",
        0.05,
    ),
];

/// An invented machine whose true gains are in [`PAGES`].
struct Formula<'a> {
    elapsed: u64,
    random: &'a mut Random,
    seen: Vec<StepOutcome>,
}

impl Formula<'_> {
    fn gain(row: &Row) -> f64 {
        row.iter()
            .filter_map(|at| PAGES.get(*at))
            .map(|page| page.4)
            .sum()
    }
}

impl Driver for Formula<'_> {
    type Error = Unexpected;

    fn elapsed(&self) -> Nanos {
        Nanos(self.elapsed)
    }

    fn set_up(&mut self) -> Result<(), Unexpected> {
        self.elapsed += 4 * SECOND;
        Ok(())
    }

    fn visit(&mut self, wants: &[Want], wait: Nanos, rounds: u32) -> Result<Visit, Unexpected> {
        self.elapsed += wait.0 + 5 * SECOND * u64::from(rounds);
        let mut round = || 6_100.0 * (self.random.bell() * 0.02).exp();
        let figures = wants
            .iter()
            .map(|_| (0..rounds).map(|_| round()).collect())
            .collect();
        Ok(Visit { figures })
    }

    fn diagnose(&mut self, _: &Want, _: u32) -> Result<Diagnosis, Unexpected> {
        Ok(Diagnosis::default())
    }

    fn try_alone(&mut self, _: usize) -> Result<Option<String>, Unexpected> {
        self.elapsed += 5 * SECOND;
        Ok(None)
    }

    fn measure(
        &mut self,
        order: &PairOrder,
        _: Metric,
        guards: &[Guard],
    ) -> Result<(PairOutcome, Option<[f64; 2]>), Unexpected> {
        let slots = order.held + 2 * order.alternations.max(1);
        self.elapsed += 11 * SECOND / 2 * u64::from(slots);
        let gain = Self::gain(&order.changed) - Self::gain(&order.now);
        let effect = gain + self.random.bell() * 0.02;
        let now = 6_100.0 * (Self::gain(&order.now) + self.random.bell() * 0.02).exp();
        let work = [now, now * effect.exp()];
        let outcome = PairOutcome::Measured {
            effect,
            guards: guards
                .iter()
                .map(|_| self.random.bell() * 0.03 - gain / 2.0)
                .collect(),
            work,
        };
        Ok((outcome, Some(work)))
    }

    fn keep(&mut self, _: &Row) -> Result<(), Unexpected> {
        self.elapsed += 2 * SECOND;
        Ok(())
    }

    fn revert(&mut self) -> Result<(), Unexpected> {
        self.elapsed += 2 * SECOND;
        Ok(())
    }

    fn incident(&mut self) -> Option<Incident> {
        None
    }

    fn record(&mut self, seen: &StepOutcome) -> Result<(), Unexpected> {
        self.seen.push(seen.clone());
        Ok(())
    }
}

fn build_candidate(page: &(&str, &str, &str, &str, f64)) -> Candidate {
    Candidate {
        id: page.0.to_owned(),
        title: page.1.to_owned(),
        state: match page.2 {
            "nr_requests" => Applicability::AlreadySo {
                value: "1024".to_owned(),
            },
            _ => Applicability::Applies,
        },
        touches: vec![format!("queue/sda/{}", page.2)],
        excludes: Vec::new(),
        risk: RiskLevel::None,
        never_kept: None,
        literature: Standing::Conditional,
        literature_text: "It depends on the disk.".to_owned(),
        acts: Acts::default(),
        share: None,
        before: None,
        prior: Prior::by_literature(Standing::Conditional),
        toggle: Toggle::Cheap,
        switch: Nanos(SECOND / 10),
    }
}

fn build_plan(goal: &str, seed: u64) -> Result<TunePlan, Box<dyn std::error::Error + Send + Sync>> {
    let plan = TunePlan {
        goal: Goal {
            wants: vec![goal.parse()?],
            guards: vec![Guard {
                metric: Metric::all(Quantity::P99),
                margin: 0.25,
            }],
            margin: 0.03,
        },
        candidates: PAGES.iter().map(build_candidate).collect(),
        allowed: Allowed::default(),
        load: LoadShape {
            kind: "fio".to_owned(),
            reads: true,
            direct: true,
            random: Some(true),
            block_size: Some(Bytes(4096)),
            in_flight: Some(16),
            ..LoadShape::default()
        },
        limit: None,
        bottom: None,
        diagnose: false,
        anyway: false,
        costs: Costs {
            slot: Nanos(4 * SECOND),
            washout: Nanos(SECOND),
            start: Nanos(SECOND / 2),
            set_up: Nanos(4 * SECOND),
            set_back: Nanos(2 * SECOND),
        },
        budget: Nanos(2 * 3_600 * SECOND),
        between_visits: Nanos(20 * SECOND),
        together: false,
        keep_nothing: false,
        hold: TunePlan::usual_hold(Nanos(2 * 3_600 * SECOND)),
        screen: false,
        seed,
    };
    Ok(plan.check()?)
}

/// Builds a tuning session on the mail server. The session began at `started`.
pub(crate) fn tune_mail(
    started: Timestamp,
    random: &mut Random,
) -> Result<TuneRecord, Box<dyn std::error::Error + Send + Sync>> {
    let goal = "more randread-4k-qd16.iops";
    let plan = build_plan(goal, random.next())?;
    let mut session = TuneSession::begin(plan.clone())?;
    let mut driver = Formula {
        elapsed: 0,
        random,
        seen: Vec::new(),
    };
    carry_out(&mut session, &mut driver)?;
    let (elapsed, seen) = (driver.elapsed, driver.seen);
    let mut workload = Workload {
        name: String::new(),
        pattern: Pattern::RandRead,
        block_size: Bytes(4096),
        queue_depth: 16,
        jobs: 1,
        read_percent: None,
        engine: Engine::IoUring,
        direct: true,
        durability: Durability::None,
        runtime: Some(Nanos(4 * SECOND)),
        ramp: Some(Nanos(SECOND)),
    };
    workload.name = workload.default_name();
    let is_kept = matches!(session.ending(), Some(assay_tune::Ending::Kept { .. }));
    let change = |page: &(&str, &str, &str, &str, f64)| CandidateChange {
        setting: Setting::Queue {
            device: "sda".to_owned(),
            attribute: page.2.to_owned(),
        },
        value: Some(page.3.to_owned()),
        name: format!("{} of sda", page.2),
        found: Some("default".to_owned()),
        was: "default".to_owned(),
    };
    Ok(TuneRecord {
        arms: None,
        uid: random.uid(),
        assay_version: env!("CARGO_PKG_VERSION").to_owned(),
        command: ["tune", "/var/mail", "--want", goal]
            .map(str::to_owned)
            .to_vec(),
        started,
        ended: Some(started + SignedDuration::from_secs((elapsed / SECOND) as i64)),
        state: TuneState::Complete,
        undone: Row::new(),
        target: "/var/mail".to_owned(),
        target_info: Some(describe_target("/var/mail")),
        facts: describe_facts("Intel Xeon E-2388G", "6.1.0-28-amd64"),
        load: Load::Fio {
            workload,
            size: Some(Bytes(1 << 30)),
        },
        slot: Nanos(4 * SECOND),
        washout: Nanos(SECOND),
        guard_command: None,
        plan,
        changes: PAGES.iter().map(|page| Some(change(page))).collect(),
        seen,
        incident: None,
        error: None,
        journal: None,
        kept: match is_kept {
            true => KeptState::Kept {
                journal: random.uid(),
            },
            false => KeptState::Nothing,
        },
        remarks: vec![REMARK.to_owned()],
    })
}
