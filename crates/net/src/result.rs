//! A run with the records of all people, and the comparison of two runs.

use crate::plan::NetPlan;
use crate::queue::LinkLoad;
use crate::record::PersonRecord;
use crate::trial::MARGIN;
use crate::verdict::{Grade, PersonVerdict, judge_among};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// A completed run with the records of all people.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Run {
    /// Plan that was run, with its roles.
    pub plan: NetPlan,
    /// Start time on the controller's clock.
    pub began: jiff::Timestamp,
    /// Whether the run was ended early.
    pub aborted: bool,
    /// Congestion control algorithms that the server may use; empty if unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub congestion: Vec<String>,
    /// People in the order of the plan.
    pub people: Vec<Taken>,
}

/// Data of one person from a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Taken {
    /// Name of the person.
    pub person: String,
    /// Name of the client.
    pub client: String,
    /// Record of the client; `None` if the client did not deliver one.
    pub record: Option<PersonRecord>,
    /// Why the record is missing; `None` if there is a record.
    pub missing: Option<String>,
}

/// How far apart the clients started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Spread {
    /// Time from the first start to the last, in microseconds.
    pub spread_us: i64,
    /// Uncertainty in microseconds: the sum of the two largest clock errors.
    pub error_us: i64,
}

impl Run {
    /// Judges each person, in the order of the plan.
    #[must_use]
    pub fn judged(&self) -> Vec<PersonVerdict> {
        let people = || self.plan.people.iter().zip(&self.people);
        let mut load = LinkLoad::default();
        for (person, taken) in people() {
            let roles = self.plan.roles_of(person).unwrap_or_default();
            if let Some(record) = &taken.record {
                load.add(record, &roles);
            }
        }
        people()
            .map(|(person, taken)| {
                let roles = self.plan.roles_of(person).unwrap_or_default();
                let nothing = PersonRecord {
                    person: person.name.clone(),
                    client: taken.client.clone(),
                    ..PersonRecord::default()
                };
                judge_among(taken.record.as_ref().unwrap_or(&nothing), &roles, &load)
            })
            .collect()
    }

    /// Returns how far apart the clients started; `None` if no client delivered a record.
    #[must_use]
    pub fn spread(&self) -> Option<Spread> {
        let starts = self
            .people
            .iter()
            .filter_map(|taken| Some(taken.record.as_ref()?.start));
        let late: Vec<i64> = starts.clone().map(|start| start.late_us).collect();
        let mut errors: Vec<i64> = starts.map(|start| start.error_us).collect();
        errors.sort_unstable();
        let two = errors.iter().rev().take(2);
        Some(Spread {
            spread_us: late.iter().max()?.saturating_sub(*late.iter().min()?),
            error_us: two.fold(0i64, |sum, error| sum.saturating_add(*error)),
        })
    }
}

/// Summary of the quality of a run, by which two runs are ordered. Byte counts are not part of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Experience {
    /// Number of people with a bad result.
    pub bad: usize,
    /// Number of people with a tolerable result.
    pub tolerable: usize,
    /// Number of people with an unknown result.
    pub unknown: usize,
    /// Mean fraction of late events over all roles that have a goal, 0 to 1.
    pub over: f64,
}

/// Summarises the results of all people of a run, so that two runs can be compared.
#[must_use]
pub fn experience(judged: &[PersonVerdict]) -> Experience {
    let with = |grade: Grade| judged.iter().filter(|person| person.grade == grade).count();
    let roles = judged.iter().flat_map(|person| &person.roles);
    let shares: Vec<f64> = roles
        .filter(|role| {
            role.grade != Grade::Unknown && role.bit_per_s.is_none_or(|_| role.counted > 0)
        })
        .filter_map(|role| role.share_over())
        .collect();
    Experience {
        bad: with(Grade::Bad),
        tolerable: with(Grade::Tolerable),
        unknown: with(Grade::Unknown),
        over: shares.iter().sum::<f64>() / shares.len().max(1) as f64,
    }
}

impl Experience {
    /// Orders two runs; the smaller one is better. Compares first the number of bad results, then the number of
    /// tolerable results, then the fractions of late events. Fractions that differ by less than [`MARGIN`] are equal,
    /// because no user notices the difference.
    #[must_use]
    pub fn order(&self, other: &Self) -> Ordering {
        let people = self
            .bad
            .cmp(&other.bad)
            .then(self.tolerable.cmp(&other.tolerable));
        let shares = match (self.over - other.over).abs() < MARGIN {
            true => Ordering::Equal,
            false => self.over.total_cmp(&other.over),
        };
        people.then(shares)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{RecordEvent, RoleRecord, Start};

    fn run(took: u64, bytes: u64) -> Run {
        let plan = NetPlan::read(
            "name = 'x'\nseconds = 10\n[[person]]\nname = 'a'\nroles = ['voip']\n\
             [[person]]\nname = 'b'\nroles = ['download']\n[[person]]\nname = 'c'\nroles = ['voip']\n",
        )
        .unwrap();
        let taken = |person: &str, late_us, role: RoleRecord| Taken {
            person: person.to_owned(),
            client: person.to_owned(),
            record: Some(PersonRecord {
                person: person.to_owned(),
                ran_us: 10_000_000,
                start: Start {
                    late_us,
                    error_us: 100,
                    ..Start::default()
                },
                roles: vec![role],
                ..PersonRecord::default()
            }),
            missing: None,
        };
        let voip = RoleRecord {
            role: "voip".to_owned(),
            events: (0..70)
                .map(|i| RecordEvent {
                    due: i * 131_072,
                    late: 0,
                    took: Some(took),
                })
                .collect(),
            ..RoleRecord::default()
        };
        let download = RoleRecord {
            role: "download".to_owned(),
            slots: vec![bytes; 100],
            ..RoleRecord::default()
        };
        Run {
            plan,
            began: jiff::Timestamp::UNIX_EPOCH,
            aborted: false,
            congestion: Vec::new(),
            people: vec![
                taken("a", 20, voip),
                taken("b", 170, download),
                Taken {
                    person: "c".to_owned(),
                    client: "c".to_owned(),
                    record: None,
                    missing: Some("gone".to_owned()),
                },
            ],
        }
    }

    #[test]
    fn more_bytes_with_a_worse_experience_rank_lower() {
        let (fast, fine) = (run(400_000, 9_000_000), run(20_000, 4_000_000));
        let [a, b] = [&fast, &fine].map(|run| experience(&run.judged()));
        assert_eq!(a.order(&b), Ordering::Greater);
        assert_eq!((a.bad, a.unknown, b.bad, b.unknown), (1, 1, 0, 1));
        // People do not notice a hundredth of late events, but do notice a tenth.
        let with = |over| Experience { over, ..a };
        assert_eq!(with(0.50).order(&with(0.51)), Ordering::Equal);
        assert_eq!(with(0.60).order(&with(0.50)), Ordering::Greater);
        assert_eq!(
            fast.spread(),
            Some(Spread {
                spread_us: 150,
                error_us: 200
            })
        );
    }

    #[test]
    fn a_run_is_stored_and_read_back() {
        let run = run(20_000, 1);
        let text = serde_json::to_string(&run).unwrap();
        assert_eq!(serde_json::from_str::<Run>(&text).unwrap(), run);
    }
}
