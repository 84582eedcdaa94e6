//! Alarms about findings on machines that are checked repeatedly. An alarm is reported twice: when it is raised and
//! when it ends, with evidence and start time. Nobody has to clear an alarm. An unreadable state neither raises nor
//! ends an alarm.

use assay_model::finding::{Certainty, Checked, Finding, Severity};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Number of consecutive failures after which a machine counts as unreachable. So a single lost packet raises no alarm.
const NOT_REACHED: u32 = 2;

/// Key of the alarm that a machine is unreachable. No check has this name.
const REACH: &str = "not-reached";

/// Maximum number of alarms per machine, of which the most severe are kept. So one machine cannot hide the alarms of
/// other machines.
const MOST: usize = 500;

/// Key of the alarm that a machine has more findings than [`MOST`].
const MORE: &str = "more-findings";

/// An alarm about a finding on a machine, or about an unreachable machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Alarm {
    /// Name of the machine.
    pub machine: String,
    /// Key that identifies the alarm across checks. It consists of the check and its subject.
    pub key: String,
    /// Advice page of the check; `None` if the machine is unreachable, or for the alarm about further findings.
    pub rule: Option<String>,
    /// Severity of the finding.
    pub severity: Severity,
    /// Description of the finding in one line.
    pub title: String,
    /// Evidence: files and lines on the machine that cause the finding.
    pub evidence: Vec<String>,
    /// Time of the check that first had the finding.
    pub since: Timestamp,
}

/// An alarm that has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Over {
    /// Alarm as it was before it ended.
    #[serde(flatten)]
    pub alarm: Alarm,
    /// Time of the first check that did not have the finding any more.
    pub until: Timestamp,
}

/// Changes of the alarms that were not reported yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct News {
    /// Alarms that were raised since the last report, the most severe first.
    pub raised: Vec<Alarm>,
    /// Alarms that have ended since the last report.
    pub over: Vec<Over>,
}

impl News {
    /// Returns whether no alarm was raised or ended.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.raised.is_empty() && self.over.is_empty()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Standing {
    #[serde(flatten)]
    alarm: Alarm,
    told: bool,
}

/// All active alarms, and the unreported changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alarms {
    standing: Vec<Standing>,
    over: Vec<Over>,
    /// Number of consecutive failures to reach each machine, by its name.
    missed: BTreeMap<String, u32>,
}

/// Result of one attempt to check a machine.
#[derive(Clone, Copy, Debug)]
pub enum MachineState<'a> {
    /// The machine was checked. Contains the findings without those that a user accepted.
    Checked(&'a Checked),
    /// The machine could not be reached. Contains the reason.
    Failed(&'a str),
}

impl Alarms {
    /// Updates the alarms of a machine after a check. Findings below severity `least` raise no alarm.
    pub fn look(&mut self, machine: &str, seen: MachineState<'_>, least: Severity, now: Timestamp) {
        match seen {
            MachineState::Failed(why) => {
                let missed = self.missed.entry(machine.to_owned()).or_default();
                *missed += 1;
                if *missed >= NOT_REACHED {
                    self.raise(Alarm {
                        machine: machine.to_owned(),
                        key: REACH.to_owned(),
                        rule: None,
                        severity: Severity::High,
                        title: format!("{machine} is not reached"),
                        evidence: vec![why.to_owned()],
                        since: now,
                    });
                }
            }
            MachineState::Checked(checked) => {
                self.missed.remove(machine);
                self.checked(machine, checked, least, now);
            }
        }
    }

    fn checked(&mut self, machine: &str, checked: &Checked, least: Severity, now: Timestamp) {
        let counts = |finding: &&Finding| finding.severity >= least;
        let (wrong, unknown): (Vec<_>, Vec<_>) = checked
            .findings
            .iter()
            .filter(counts)
            .partition(|finding| finding.certainty == Certainty::Violated);
        let mut wrong = wrong;
        wrong.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        let names = |all: &[&Finding]| -> BTreeSet<String> {
            all.iter().map(|finding| finding.fingerprint()).collect()
        };
        let (wrong_names, unknown_names) = (names(&wrong), names(&unknown));
        let (mine, others): (Vec<_>, Vec<_>) = std::mem::take(&mut self.standing)
            .into_iter()
            .partition(|one| one.alarm.machine == machine);
        self.standing = others;
        for one in mine {
            let key = &one.alarm.key;
            // A rule that failed as a whole has no result for any of its subjects.
            let lost = unknown
                .iter()
                .any(|finding| one.alarm.rule.as_ref() == Some(&finding.rule));
            let more = key == MORE && wrong.len() > MOST;
            if more || wrong_names.contains(key) || unknown_names.contains(key) || lost {
                self.standing.push(one);
            } else if one.told {
                self.over.push(Over {
                    alarm: one.alarm,
                    until: now,
                });
            }
        }
        if let Some(next) = wrong.get(MOST) {
            self.raise(Alarm {
                machine: machine.to_owned(),
                key: MORE.to_owned(),
                rule: None,
                severity: next.severity,
                title: format!("more findings on {machine} than the worst {MOST}"),
                evidence: vec![format!("{} in all", wrong.len())],
                since: now,
            });
        }
        for finding in wrong.into_iter().take(MOST) {
            self.raise(Alarm {
                machine: machine.to_owned(),
                key: finding.fingerprint(),
                rule: Some(finding.rule.clone()),
                severity: finding.severity,
                title: finding.title.clone(),
                evidence: finding.places.iter().map(ToString::to_string).collect(),
                since: now,
            });
        }
    }

    /// Raises an alarm. An active alarm is reported again only if its severity increased.
    fn raise(&mut self, new: Alarm) {
        let same = |alarm: &Alarm| alarm.machine == new.machine && alarm.key == new.key;
        // The alarm had ended but this was not reported, so it counts as never ended.
        let back = self.over.iter().position(|over| same(&over.alarm));
        if let Some(back) = back {
            let alarm = self.over.remove(back).alarm;
            self.standing.push(Standing { alarm, told: true });
        }
        match self.standing.iter_mut().find(|one| same(&one.alarm)) {
            Some(one) => {
                one.told &= new.severity <= one.alarm.severity;
                let since = one.alarm.since;
                one.alarm = Alarm { since, ..new };
            }
            None => self.standing.push(Standing {
                alarm: new,
                told: false,
            }),
        }
    }

    /// Returns the unreported changes.
    #[must_use]
    pub fn news(&self) -> News {
        let new = self.standing.iter().filter(|one| !one.told);
        let mut news = News {
            raised: new.map(|one| one.alarm.clone()).collect(),
            over: self.over.clone(),
        };
        sort(&mut news.raised);
        news
    }

    /// Marks all changes as reported. [`Alarms::news`] is then empty until the next change.
    pub fn told(&mut self) {
        self.standing.iter_mut().for_each(|one| one.told = true);
        self.over.clear();
    }

    /// Returns the active alarms, the most severe first.
    #[must_use]
    pub fn standing(&self) -> Vec<Alarm> {
        let mut all: Vec<Alarm> = self.standing.iter().map(|one| one.alarm.clone()).collect();
        sort(&mut all);
        all
    }

    /// Removes the alarms of a machine that is no longer watched. Returns whether the machine had been checked before.
    pub fn forget(&mut self, machine: &str) -> bool {
        let before = (self.standing.len(), self.over.len(), self.missed.len());
        self.standing.retain(|one| one.alarm.machine != machine);
        self.over.retain(|over| over.alarm.machine != machine);
        self.missed.remove(machine);
        before != (self.standing.len(), self.over.len(), self.missed.len())
    }
}

fn sort(all: &mut [Alarm]) {
    let rank = |alarm: &Alarm| {
        (
            std::cmp::Reverse(alarm.severity),
            alarm.machine.clone(),
            alarm.key.clone(),
        )
    };
    all.sort_by_key(rank);
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_model::Subject;
    use assay_model::finding::Fix;

    fn finding(rule: &str, severity: Severity, certainty: Certainty) -> Finding {
        Finding {
            rule: rule.to_owned(),
            domain: "ssh".to_owned(),
            subject: Subject::default(),
            severity,
            certainty,
            title: rule.to_owned(),
            text: String::new(),
            places: Vec::new(),
            evidence: Vec::new(),
            fix: Fix::AfterReading,
            trial: None,
            verdict: None,
        }
    }

    fn checked(findings: &[Finding]) -> Checked {
        Checked {
            findings: findings.to_vec(),
            ..Checked::default()
        }
    }

    fn at(hour: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + hour * 3600).unwrap()
    }

    /// Updates the alarms with a check at this hour. Returns the changes as `+key` (raised) and `-key` (ended).
    fn told(alarms: &mut Alarms, hour: i64, seen: MachineState<'_>) -> Vec<String> {
        alarms.look("box", seen, Severity::Medium, at(hour));
        let news = alarms.news();
        alarms.told();
        let raised = news.raised.iter().map(|one| format!("+{}", one.key));
        let over = news.over.iter().map(|one| format!("-{}", one.alarm.key));
        raised.chain(over).collect()
    }

    #[test]
    fn an_alarm_is_told_once_and_clears_itself() {
        let mut alarms = Alarms::default();
        let bad = checked(&[
            finding("a", Severity::High, Certainty::Violated),
            finding("minor", Severity::Low, Certainty::Violated),
        ]);
        assert_eq!(told(&mut alarms, 0, MachineState::Checked(&bad)), ["+a"]);
        assert!(told(&mut alarms, 1, MachineState::Checked(&bad)).is_empty());
        assert_eq!(alarms.standing()[0].since, at(0));
        assert_eq!(
            told(&mut alarms, 2, MachineState::Checked(&checked(&[]))),
            ["-a"]
        );
        assert!(alarms.standing().is_empty());
    }

    #[test]
    fn attack_a_machine_with_more_findings_than_anybody_reads() {
        let mut alarms = Alarms::default();
        let all = |count: usize| -> Vec<Finding> {
            let one = |at| finding(&format!("r{at:05}"), Severity::Medium, Certainty::Violated);
            let last = finding("worst", Severity::High, Certainty::Violated);
            (0..count).map(one).chain([last]).collect()
        };
        let first = told(
            &mut alarms,
            0,
            MachineState::Checked(&checked(&all(20_000))),
        );
        assert_eq!(first.len(), MOST + 1);
        assert_eq!(first[0], "+worst");
        assert!(first.contains(&"+more-findings".to_owned()));
        assert!(
            told(
                &mut alarms,
                1,
                MachineState::Checked(&checked(&all(20_000)))
            )
            .is_empty()
        );
        let fewer = told(
            &mut alarms,
            2,
            MachineState::Checked(&checked(&all(MOST - 1))),
        );
        assert_eq!(fewer, ["-more-findings"]);
    }

    #[test]
    fn what_cannot_be_read_is_neither_raised_nor_over() {
        let mut alarms = Alarms::default();
        let bad = checked(&[finding("a", Severity::High, Certainty::Violated)]);
        let unknown = checked(&[finding("a", Severity::High, Certainty::Unknown)]);
        assert!(told(&mut alarms, 0, MachineState::Checked(&unknown)).is_empty());
        assert_eq!(told(&mut alarms, 1, MachineState::Checked(&bad)), ["+a"]);
        assert!(told(&mut alarms, 2, MachineState::Checked(&unknown)).is_empty());
        assert_eq!(alarms.standing().len(), 1);
        assert!(told(&mut alarms, 3, MachineState::Failed("no route")).is_empty());
        assert_eq!(alarms.standing().len(), 1);
    }

    #[test]
    fn a_machine_is_missed_the_second_time() {
        let mut alarms = Alarms::default();
        assert!(told(&mut alarms, 0, MachineState::Failed("no route")).is_empty());
        assert_eq!(
            told(&mut alarms, 1, MachineState::Failed("no route")),
            ["+not-reached"]
        );
        assert!(told(&mut alarms, 2, MachineState::Failed("no route")).is_empty());
        assert_eq!(
            told(&mut alarms, 3, MachineState::Checked(&checked(&[]))),
            ["-not-reached"]
        );
        assert!(told(&mut alarms, 4, MachineState::Failed("no route")).is_empty());
    }

    #[test]
    fn what_got_worse_is_told_again() {
        let mut alarms = Alarms::default();
        let bad = checked(&[finding("a", Severity::Medium, Certainty::Violated)]);
        let worse = checked(&[finding("a", Severity::Critical, Certainty::Violated)]);
        assert_eq!(told(&mut alarms, 0, MachineState::Checked(&bad)), ["+a"]);
        assert_eq!(told(&mut alarms, 1, MachineState::Checked(&worse)), ["+a"]);
        assert!(told(&mut alarms, 2, MachineState::Checked(&bad)).is_empty());
        assert_eq!(alarms.standing()[0].since, at(0));
    }

    #[test]
    fn what_could_not_be_told_is_told_the_next_time() {
        let mut alarms = Alarms::default();
        let bad = checked(&[finding("a", Severity::High, Certainty::Violated)]);
        let good = checked(&[]);
        alarms.look("box", MachineState::Checked(&bad), Severity::Low, at(0));
        assert_eq!(alarms.news().raised.len(), 1);
        // The message was not sent.
        alarms.look("box", MachineState::Checked(&bad), Severity::Low, at(1));
        assert_eq!(alarms.news().raised.len(), 1);
        alarms.told();
        alarms.look("box", MachineState::Checked(&good), Severity::Low, at(2));
        assert_eq!(alarms.news().over.len(), 1);
        // This message was not sent either, and the alarm is back: its end was never reported.
        alarms.look("box", MachineState::Checked(&bad), Severity::Low, at(3));
        assert!(alarms.news().is_empty());
        assert_eq!(alarms.standing()[0].since, at(0));
        // Raised and ended between two messages: nothing to report.
        let mut alarms = Alarms::default();
        alarms.look("box", MachineState::Checked(&bad), Severity::Low, at(0));
        alarms.look("box", MachineState::Checked(&good), Severity::Low, at(1));
        assert!(alarms.news().is_empty());
    }

    #[test]
    fn it_comes_back_from_its_file_as_it_was() {
        let mut alarms = Alarms::default();
        let bad = checked(&[finding("a", Severity::High, Certainty::Violated)]);
        alarms.look("box", MachineState::Checked(&bad), Severity::Low, at(0));
        alarms.look("gone", MachineState::Failed("x"), Severity::Low, at(0));
        let text = serde_json::to_string(&alarms).unwrap();
        assert_eq!(serde_json::from_str::<Alarms>(&text).unwrap(), alarms);
        assert!(alarms.forget("gone") && !alarms.forget("gone"));
    }
}
