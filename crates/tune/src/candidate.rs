//! A candidate: an advice page with one value, in the form that the planner needs. `left_out.rs` decides which
//! candidates are not tried.

use assay_model::advice::{MovedOperation, MovedOperations, RiskLevel, Standing};
use assay_model::criterion::{Direction, Metric};
use assay_model::load::Load;
use assay_model::result::LimitKind;
use assay_model::trial::Verdict;
use assay_model::workload::{Durability, Engine};
use assay_model::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

/// A change of settings that a session may try, made from an advice page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// Name of the advice page. If the page has several values, the name is followed by the value: `io-scheduler=none`.
    pub id: String,
    /// Title of the advice page.
    pub title: String,
    /// Whether the page applies to this machine and target.
    pub state: Applicability,
    /// Names of the settings that the candidate changes, such as `queue/sda/scheduler`. Two candidates that change the
    /// same setting are alternatives.
    pub touches: Vec<String>,
    /// Ids of further candidates that cannot be combined with this one, in addition to the alternatives.
    #[serde(default)]
    pub excludes: Vec<String>,
    /// Highest risk that the change carries, from the page.
    pub risk: RiskLevel,
    /// Reason why the candidate may be tried but not kept, or why it cannot be undone; `None` if it may be kept.
    #[serde(default)]
    pub never_kept: Option<String>,
    /// Assessment in the literature, for the versions on this machine.
    pub literature: Standing,
    /// Assessment in the literature, as a sentence for users.
    #[serde(default)]
    pub literature_text: String,
    /// Limits, loads and operations that the change influences.
    pub acts: Acts,
    /// The part of an operation that the candidate can influence; `None` if it was not measured.
    #[serde(default)]
    pub share: Option<OperationShare>,
    /// Verdict of an earlier session on the same page, value, load and kernel; `None` without such a session.
    #[serde(default)]
    pub before: Option<Before>,
    /// Expected effect before anything is measured.
    pub prior: Prior,
    /// How the change is applied and reverted.
    pub toggle: Toggle,
    /// Time to apply or revert the change once.
    pub switch: Nanos,
}

/// Whether a page applies to this machine and target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "state")]
pub enum Applicability {
    /// The page applies, and the current value differs from the page's value.
    Applies,
    /// The page does not apply to this machine or target.
    DoesNotApply {
        /// Text `otherwise` of the page, with facts inserted.
        why: String,
    },
    /// The setting already has the page's value.
    AlreadySo {
        /// Current value of the setting.
        value: String,
    },
}

/// What a change influences. This determines the order of the candidates and which candidates are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acts {
    /// Kinds of limits that the change relieves, such as the CPU or flushes.
    #[serde(default)]
    pub relieves: Vec<LimitKind>,
    /// Kinds of loads for which the change makes sense, such as `fio`, `http` or `command`; empty for all kinds.
    #[serde(default)]
    pub loads: Vec<String>,
    /// Operations whose performance the change influences.
    #[serde(default)]
    pub moves: MovedOperations,
}

/// Properties of the session's load that decide which candidates make sense.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadShape {
    /// Kind of the load: `fio`, `http`, `imap`, `command`, …
    pub kind: String,
    /// Whether the load reads.
    pub reads: bool,
    /// Whether the load writes.
    pub writes: bool,
    /// Whether the load requests durable writes.
    pub flushes: bool,
    /// Whether the load bypasses the page cache.
    pub direct: bool,
    /// Whether the storage operations of the load are unknown, as for a command or a server. Then no candidate is left
    /// out because of its operations.
    #[serde(default)]
    pub opaque: bool,
    /// Whether the offsets of the operations are random; `None` if this is unknown.
    #[serde(default)]
    pub random: Option<bool>,
    /// Size of one operation in bytes; `None` if unknown.
    #[serde(default)]
    pub block_size: Option<Bytes>,
    /// Number of operations in flight (queue depth); `None` if unknown.
    #[serde(default)]
    pub in_flight: Option<u32>,
}

impl LoadShape {
    /// Derives the properties from a load.
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
            // The server decides whether an NBD export uses the page cache, not the load.
            direct: workload.direct && workload.engine != Engine::Nbd,
            opaque: false,
            random: Some(workload.pattern.random()),
            block_size: Some(workload.block_size),
            in_flight: Some(workload.in_flight()),
        }
    }

    /// Returns whether this load performs the operation and the metric measures it.
    #[must_use]
    pub fn counts(&self, operation: MovedOperation, metric: Metric) -> bool {
        let counted = |direction: Direction, done: bool| {
            done && (metric.direction == Direction::All || metric.direction == direction)
        };
        match operation {
            MovedOperation::Read => counted(Direction::Read, self.reads),
            // The latency of a write includes its flush.
            MovedOperation::Write => counted(Direction::Write, self.writes),
            MovedOperation::Flush => {
                counted(Direction::Flush, self.flushes) || counted(Direction::Write, self.flushes)
            }
        }
    }
}

/// The part of an operation that a change can influence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OperationShare {
    /// Name of the part, such as `encryption` or `start of the process`.
    pub part: String,
    /// Time that the part takes within an operation.
    pub takes: Nanos,
    /// Duration of the whole operation.
    pub of: Nanos,
}

impl OperationShare {
    /// Returns the largest possible gain, 0.25 for 25 %. If the part with fraction s of the time took no time at all,
    /// the gain would be 1 ÷ (1 − s) − 1 (Amdahl 1967). `None` if the part is the whole operation.
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

/// A verdict of an earlier session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Before {
    /// Verdict on the change in that session.
    pub verdict: Verdict,
    /// Session and date of the verdict, such as `session 3, 12 November`.
    pub when: String,
}

/// How a change is applied and reverted, which determines its cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Toggle {
    /// The change is written to the kernel and is effective at once.
    Cheap,
    /// A service reloads its configuration.
    Reload,
    /// A service is restarted.
    Restart,
    /// Two objects are created, one for each side, and measured side by side.
    Remake,
    /// The change takes effect only at the next boot.
    Reboot,
}

/// Expected effect of a candidate. It influences the order in which candidates are tried, but not the verdict.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prior {
    /// Probability that the candidate helps, 0 to 1.
    pub helps: f64,
    /// Gain if the candidate helps, 0.1 for 10 %.
    pub gain: f64,
}

impl Prior {
    /// Returns the expected effect that follows from the literature alone.
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

/// Returns whether `excluded` names the candidate `id`: it is either the full id, or the part of the id before `=`,
/// which is the name of the page.
fn names_page(excluded: &str, id: &str) -> bool {
    excluded == id || id.split_once('=').is_some_and(|(page, _)| page == excluded)
}

impl Candidate {
    /// Returns whether the two candidates cannot be in effect at the same time.
    #[must_use]
    pub fn collides(&self, other: &Self) -> bool {
        self.touches.iter().any(|what| other.touches.contains(what))
            || self.excludes.iter().any(|id| names_page(id, &other.id))
            || other.excludes.iter().any(|id| names_page(id, &self.id))
    }

    /// Returns the expected gain as a natural logarithm. The prior is multiplied by 3 if the candidate relieves the
    /// limit that was found, and divided by 3 if it does not. The ceiling of the candidate bounds the result.
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
