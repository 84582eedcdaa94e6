//! What could be changed: a page of the catalogue with one value, as the planner sees it.
//! Why one is not tried is in `left_out.rs`.

use assay_model::advice::{MovedOperation, MovedOperations, RiskLevel, Standing};
use assay_model::criterion::{Direction, Metric};
use assay_model::load::Load;
use assay_model::result::LimitKind;
use assay_model::trial::Verdict;
use assay_model::workload::{Durability, Engine};
use assay_model::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

/// One change that may be tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// The page, with its value where the page has several: `io-scheduler=none`.
    pub id: String,
    /// A few words.
    pub title: String,
    /// Whether the page applies to this machine and target.
    pub state: Applicability,
    /// What it touches, by names that are equal where two candidates touch the same:
    /// `queue/sda/scheduler`. Two that touch the same are alternatives.
    pub touches: Vec<String>,
    /// Candidates that must not be on beside it, besides alternatives, by id.
    #[serde(default)]
    pub excludes: Vec<String>,
    /// What can go wrong.
    pub risk: RiskLevel,
    /// Why it may be tried but never kept, or has no undo.
    #[serde(default)]
    pub never_kept: Option<String>,
    /// What the literature says for these versions, with its reason.
    pub literature: Standing,
    /// The literature in words.
    #[serde(default)]
    pub literature_text: String,
    /// What it acts on.
    pub acts: Acts,
    /// Share of an operation that it can act on, where that was measured.
    #[serde(default)]
    pub share: Option<OperationShare>,
    /// The verdict of an earlier session for the same page, value, load and kernel.
    #[serde(default)]
    pub before: Option<Before>,
    /// What was expected before anything was measured.
    pub prior: Prior,
    /// How it is switched on and off.
    pub toggle: Toggle,
    /// How long one switch takes.
    pub switch: Nanos,
}

/// Whether a page applies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "state")]
pub enum Applicability {
    /// It applies, and the value differs.
    Applies,
    /// It is about something else.
    DoesNotApply {
        /// The page's `otherwise`, with the facts.
        why: String,
    },
    /// The machine has the value.
    AlreadySo {
        /// The value.
        value: String,
    },
}

/// What a change acts on; the order and the filters come from here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acts {
    /// Limits that it relieves.
    #[serde(default)]
    pub relieves: Vec<LimitKind>,
    /// Kinds of loads for which it makes sense: `fio`, `http`, `command`; empty for all.
    #[serde(default)]
    pub loads: Vec<String>,
    /// Operations that it moves; all when nothing is restricted.
    #[serde(default)]
    pub moves: MovedOperations,
}

/// What the load of the session does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadShape {
    /// `fio`, `http`, `imap`, `command`, …
    pub kind: String,
    /// It reads.
    pub reads: bool,
    /// It writes.
    pub writes: bool,
    /// It asks for durable writes.
    pub flushes: bool,
    /// It goes around the page cache.
    pub direct: bool,
    /// Its operations on storage are unknown: those of a command or of a server. Then nothing is left out
    /// for its operations.
    #[serde(default)]
    pub opaque: bool,
    /// Its offsets are random; None when that is unknown.
    #[serde(default)]
    pub random: Option<bool>,
    /// Size of one operation.
    #[serde(default)]
    pub block_size: Option<Bytes>,
    /// Operations in flight.
    #[serde(default)]
    pub in_flight: Option<u32>,
}

impl LoadShape {
    /// Describes a load.
    #[must_use]
    pub fn of(load: &Load) -> Self {
        let Load::Fio { workload, .. } = load else {
            return Self {
                kind: load.name().to_owned(),
                reads: true,
                writes: true,
                flushes: true,
                opaque: true,
                ..Self::default()
            };
        };
        Self {
            kind: "fio".to_owned(),
            reads: workload.pattern.reads(),
            writes: workload.pattern.writes(),
            flushes: workload.durability != Durability::None && workload.pattern.writes(),
            // Whether an NBD server uses the page cache is not the load's to say.
            direct: workload.direct && workload.engine != Engine::Nbd,
            opaque: false,
            random: Some(workload.pattern.random()),
            block_size: Some(workload.block_size),
            in_flight: Some(workload.in_flight()),
        }
    }

    /// Whether this load does an operation, and the metric counts it.
    #[must_use]
    pub fn counts(&self, operation: MovedOperation, metric: Metric) -> bool {
        let counted = |direction: Direction, done: bool| {
            done && (metric.direction == Direction::All || metric.direction == direction)
        };
        match operation {
            MovedOperation::Read => counted(Direction::Read, self.reads),
            // A write's latency contains its flush.
            MovedOperation::Write => counted(Direction::Write, self.writes),
            MovedOperation::Flush => {
                counted(Direction::Flush, self.flushes) || counted(Direction::Write, self.flushes)
            }
        }
    }
}

/// The part of an operation that a change can act on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OperationShare {
    /// Its name: `encryption`, `start of the process`.
    pub part: String,
    /// Time of the part.
    pub takes: Nanos,
    /// Time of the whole operation.
    pub of: Nanos,
}

impl OperationShare {
    /// Largest gain, 0.25 for 25 %, if the part took no time at all: 1 ÷ (1 − s) − 1 (Amdahl 1967).
    /// None when the part is the whole.
    #[must_use]
    pub fn ceiling(&self) -> Option<f64> {
        let rest = self
            .of
            .0
            .checked_sub(self.takes.0)
            .filter(|rest| *rest > 0)?;
        Some(self.of.0 as f64 / rest as f64 - 1.0)
    }
}

/// An earlier verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Before {
    /// What it was.
    pub verdict: Verdict,
    /// When and where, for people: `session 3, 12 November`.
    pub when: String,
}

/// How a change is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Toggle {
    /// Written to the kernel, in effect at once.
    Cheap,
    /// A service reads its configuration again.
    Reload,
    /// A service is restarted.
    Restart,
    /// Two things are made and measured side by side.
    Remake,
    /// Takes effect at the next boot only.
    Reboot,
}

/// What is expected of a candidate. It decides the order and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prior {
    /// Probability that it helps, 0 to 1.
    pub helps: f64,
    /// Gain if it does, 0.1 for 10 %.
    pub gain: f64,
}

impl Prior {
    /// What the literature alone lets expect.
    #[must_use]
    pub fn by_literature(standing: Standing) -> Self {
        let helps = match standing {
            Standing::Confirmed => 0.4,
            Standing::Conditional => 0.15,
            _ => 0.1,
        };
        Self { helps, gain: 0.1 }
    }
}

/// Whether `excluded` is the id of a candidate, or of its page with any value.
fn names_page(excluded: &str, id: &str) -> bool {
    excluded == id || id.split_once('=').is_some_and(|(page, _)| page == excluded)
}

impl Candidate {
    /// Whether both cannot be on at once.
    #[must_use]
    pub fn collides(&self, other: &Self) -> bool {
        self.touches.iter().any(|what| other.touches.contains(what))
            || self.excludes.iter().any(|id| names_page(id, &other.id))
            || other.excludes.iter().any(|id| names_page(id, &self.id))
    }

    /// Expected gain in logarithms: the prior, three times as likely where the candidate relieves the
    /// limit that was found and a third where it does not, capped by the ceiling.
    #[must_use]
    pub fn worth(&self, limit: Option<LimitKind>) -> f64 {
        let factor = match limit {
            Some(LimitKind::Unknown) | None => 1.0,
            Some(limit) if self.acts.relieves.contains(&limit) => 3.0,
            Some(_) => 1.0 / 3.0,
        };
        let helps = (self.prior.helps.max(0.0) * factor).min(0.95);
        let ceiling = self.share.as_ref().and_then(OperationShare::ceiling);
        helps
            * self
                .prior
                .gain
                .min(ceiling.unwrap_or(f64::INFINITY))
                .max(0.0)
                .ln_1p()
    }
}
