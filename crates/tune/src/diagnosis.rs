//! The diagnosis, which is measured once after the baseline: it finds the resource that limits the load. The diagnosis
//! determines the order of the candidates, bounds the gain of each candidate, and shows whether the goal can be reached
//! at all. The measurement is in `assay_measure::tuning`.

use crate::baseline::BottomRung;
use crate::candidate::{Candidate, OperationShare};
use crate::plan::TunePlan;
use assay_model::Nanos;
use assay_model::advice::MovedOperation;
use assay_model::result::{Limit, LimitKind};
use serde::{Deserialize, Serialize};

/// Result of the diagnosis, measured on the unchanged machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Diagnosis {
    /// Resource that limits the load, with the evidence as text.
    #[serde(default)]
    pub limit: Option<Limit>,
    /// Parts of an operation whose duration is known.
    #[serde(default)]
    pub parts: Vec<PartTime>,
    /// Figure that the lowest layer reaches under the same load; `None` if it was not measured.
    #[serde(default)]
    pub bottom: Option<BottomRung>,
    /// Reason why no lowest layer was measured.
    #[serde(default)]
    pub no_bottom: Option<String>,
}

/// A part of an operation whose duration can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OperationPart {
    /// The flush after a write.
    Flush,
    /// CPU time of the whole machine, by the load, by servers and by all other processes.
    Cpu,
}

/// Duration of one part of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartTime {
    /// Part that was measured.
    pub part: OperationPart,
    /// Time that the part takes within an operation.
    pub takes: Nanos,
    /// Duration of the whole operation, including this part.
    pub of: Nanos,
}

impl OperationPart {
    /// Returns whether a candidate acts only on this part, so that the part bounds its gain.
    fn bounds(self, candidate: &Candidate) -> bool {
        match self {
            Self::Flush => candidate.acts.moves.operations == [MovedOperation::Flush],
            Self::Cpu => {
                let relieves = &candidate.acts.relieves;
                let cpu =
                    |limit: &LimitKind| matches!(limit, LimitKind::MachineCpu | LimitKind::ToolCpu);
                !relieves.is_empty() && relieves.iter().all(cpu)
            }
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Flush => "the flush",
            Self::Cpu => "the CPU",
        }
    }
}

impl TunePlan {
    /// Adds a diagnosis to the session's plan: the limit, the lowest layer, and for each candidate the part of an
    /// operation that the candidate can influence.
    pub(crate) fn enter_diagnosis(&mut self, diagnosis: &Diagnosis) {
        self.limit = diagnosis.limit.as_ref().map(|limit| limit.what);
        self.bottom.clone_from(&diagnosis.bottom);
        for candidate in &mut self.candidates {
            let part = diagnosis
                .parts
                .iter()
                .find(|one| one.part.bounds(candidate));
            if let (Some(part), None) = (part, &candidate.share) {
                candidate.share = Some(OperationShare {
                    part: part.part.name().to_owned(),
                    takes: part.takes,
                    of: part.of,
                });
            }
        }
    }

    /// Returns the largest gain that a candidate in `order` is expected to bring to the lowest layer itself, 0.2 for 20
    /// %. Only candidates that act on the device count, such as a scheduler. If the lowest layer is the smallest answer
    /// of a server, all candidates count.
    pub(crate) fn hope_below_bottom(&self, order: &[usize]) -> f64 {
        let is_tunable = self.bottom.as_ref().is_some_and(|rung| rung.is_tunable);
        let below = |at: &&usize| is_tunable || self.candidates[**at].acts_on_device();
        let gains = order.iter().filter(below);
        gains
            .map(|at| self.candidates[*at].prior.gain)
            .fold(0.0, f64::max)
    }
}

impl Candidate {
    /// Returns whether the candidate changes the device or its queue, and not a higher layer.
    fn acts_on_device(&self) -> bool {
        let below = [
            "queue/",
            "/sys/block/",
            "/sys/class/block/",
            "/sys/module/",
            "module/",
        ];
        let touches = |what: &String| below.iter().any(|start| what.starts_with(start));
        self.touches.iter().any(touches)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::baseline::Visit;
    use crate::left_out::{Allowed, LeftOut, leave_out};
    use crate::outcome::Ending;
    use crate::planted;
    use crate::session::TuneSession;
    use crate::step::{Step, StepOutcome};
    use assay_model::result::Interval;

    fn diagnosis(part: OperationPart, takes: u64) -> Diagnosis {
        let of = Nanos(48_000_000);
        let takes = Nanos(takes);
        Diagnosis {
            parts: vec![PartTime { part, takes, of }],
            ..Diagnosis::default()
        }
    }

    fn left_out(mut plan: TunePlan, diagnosis: &Diagnosis) -> Option<LeftOut> {
        plan.enter_diagnosis(diagnosis);
        let metric = plan.goal.wants[0].metric();
        leave_out(
            &plan.candidates[0],
            &Allowed::default(),
            &planted::load(),
            metric,
            0.03,
        )
    }

    #[test]
    fn a_part_that_takes_little_bounds_what_acts_on_it_alone() {
        let mut plan = planted::plan(&["randwrite-4k-qd1-fsync.p99 <= 5ms"], &["x"]);
        plan.candidates[0].acts.relieves = vec![LimitKind::MachineCpu];
        let small = diagnosis(OperationPart::Cpu, 1_000_000);
        let reason = left_out(plan.clone(), &small);
        assert!(
            matches!(reason, Some(LeftOut::Ceiling { .. })),
            "{reason:?}"
        );
        let large = diagnosis(OperationPart::Cpu, 40_000_000);
        assert_eq!(left_out(plan.clone(), &large), None);
        // It also relieves something else: nothing is known about its ceiling.
        plan.candidates[0].acts.relieves.push(LimitKind::Flush);
        assert_eq!(left_out(plan, &small), None);
    }

    #[test]
    fn a_flush_bounds_what_acts_on_flushes_alone() {
        let mut plan = planted::plan(&["randwrite-4k-qd1-fsync.p99 <= 5ms"], &["x"]);
        plan.candidates[0].acts.moves.operations = vec![MovedOperation::Flush];
        let reason = left_out(plan.clone(), &diagnosis(OperationPart::Flush, 500_000));
        assert!(
            matches!(reason, Some(LeftOut::Ceiling { .. })),
            "{reason:?}"
        );
        assert_eq!(
            left_out(plan, &diagnosis(OperationPart::Flush, 20_000_000)),
            None
        );
    }

    #[test]
    fn what_acts_on_the_device_is_counted_on_below_the_bottom() {
        let mut plan = planted::plan(&["less p50"], &["scheduler", "mount"]);
        plan.candidates[0].touches = vec!["queue/sda/scheduler".to_owned()];
        plan.candidates[0].prior.gain = 0.2;
        plan.candidates[1].prior.gain = 0.9;
        assert_eq!(plan.hope_below_bottom(&[0, 1]), 0.2);
        assert_eq!(plan.hope_below_bottom(&[1]), 0.0);
        let figure = Interval {
            low: 1.0,
            high: 2.0,
            confidence: 0.95,
        };
        plan.bottom = Some(BottomRung {
            what: "the smallest answer".to_owned(),
            figure,
            is_tunable: true,
        });
        assert_eq!(plan.hope_below_bottom(&[0, 1]), 0.9);
    }

    #[test]
    fn a_diagnosis_that_is_measured_is_read_back_with_the_session() {
        let mut unreachable = planted::plan(&["w.iops >= 20k"], &["a", "b"]);
        unreachable.diagnose = true;
        let mut session = TuneSession::begin(unreachable.clone()).unwrap();
        let took = Nanos(1_000_000_000);
        let visit = Visit {
            figures: vec![vec![10e3; 8]],
        };
        session.observe(StepOutcome::SetUp { took }).unwrap();
        session.observe(StepOutcome::Visit { visit, took }).unwrap();
        assert_eq!(session.next(), Step::Diagnose { rounds: 8 });
        let figure = Interval {
            low: 14e3,
            high: 15e3,
            confidence: 0.95,
        };
        let diagnosis = |high: f64| Diagnosis {
            bottom: Some(BottomRung {
                what: "vda alone".to_owned(),
                figure: Interval { high, ..figure },
                is_tunable: false,
            }),
            ..Diagnosis::default()
        };
        let after = |high: f64| {
            let mut session = session.clone();
            let diagnosis = Box::new(diagnosis(high));
            session
                .observe(StepOutcome::Diagnosed { diagnosis, took })
                .unwrap();
            session
        };
        let beyond = after(15e3);
        assert!(matches!(beyond.ending(), Some(Ending::Beyond { .. })));
        let within = after(25e3);
        assert!(
            matches!(within.next(), Step::TryAlone { .. }),
            "{:?}",
            within.next()
        );
        // Where nothing has a threshold, no lowest layer is measured.
        let mut open = planted::plan(&["more w.iops"], &["a", "b"]);
        open.diagnose = true;
        let mut session = TuneSession::begin(open).unwrap();
        let visit = Visit {
            figures: vec![vec![10e3; 8]],
        };
        session.observe(StepOutcome::SetUp { took }).unwrap();
        session.observe(StepOutcome::Visit { visit, took }).unwrap();
        assert_eq!(session.next(), Step::Diagnose { rounds: 0 });
    }
}
