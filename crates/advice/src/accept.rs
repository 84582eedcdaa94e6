//! Accepted findings: the user excludes them from the count of findings and gives a reason for each. The rule is still
//! evaluated, and the report lists the accepted findings.
//!
//! ```toml
//! [[accept]]
//! rule = "ssh-usedns"
//! subject = "sshd.scope.everywhere"   # as in the --json output; without it, all subjects
//! machine = "box1"           # only this machine, by its name in the fleet; without it, all machines
//! reason = "from= patterns with host names until the old gateway is gone"
//! owner = "ops"
//! expires = "2027-01-31"     # last day on which the entry is valid
//! ```

use assay_model::finding::{Accepted, Certainty, Checked, Finding};
use jiff::civil::Date;
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    rule: String,
    #[serde(default)]
    subject: Option<String>,
    #[serde(default)]
    machine: Option<String>,
    reason: String,
    #[serde(default)]
    owner: Option<String>,
    #[serde(default)]
    expires: Option<String>,
}

impl Entry {
    fn means(&self, finding: &Finding) -> bool {
        let subject = || finding.subject.to_string();
        self.rule == finding.rule && self.subject.as_ref().is_none_or(|only| *only == subject())
    }
}

/// Moves accepted findings from `findings` to `accepted`, so that they no longer count. `text` is the content of the
/// file `path`.
///
/// Adds a remark if the text is not TOML, and for each entry that is malformed, has expired by `today`, or matches no
/// finding. Such an entry accepts nothing.
///
/// `machine` is the name of the checked machine, or `None` for this machine. With a name, entries for other machines
/// are ignored. An entry without a machine that matches no finding then causes no remark, because it may be meant for
/// another machine.
pub fn accept(checked: &mut Checked, path: &str, text: &str, today: Date, machine: Option<&str>) {
    let table: toml::Table = match toml::from_str(text) {
        Ok(table) => table,
        Err(error) => {
            let why = error.message();
            let remark = format!("{path}: {why}; nothing of it is accepted");
            return checked.remarks.push(remark);
        }
    };
    for key in table.keys().filter(|key| *key != "accept") {
        let remark = format!("{path}: `{key}` is not known; entries begin with [[accept]]");
        checked.remarks.push(remark);
    }
    let entries = table.get("accept").and_then(toml::Value::as_array);
    for (at, value) in entries.into_iter().flatten().enumerate() {
        let nth = at + 1;
        match entry(value, today) {
            Ok(entry)
                if entry
                    .machine
                    .as_deref()
                    .is_some_and(|only| !machine.is_some_and(|name| is_machine(name, only))) => {}
            Ok(entry) if checked.findings.iter().any(|found| entry.means(found)) => {
                take(checked, &entry);
            }
            Ok(entry) if machine.is_some() && entry.machine.is_none() => {}
            Ok(entry) => checked.remarks.push(format!(
                "{path}: entry {nth} accepts `{}`, which was not found: remove it",
                entry.rule
            )),
            Err(why) => {
                let remark = format!("{path}: entry {nth} accepts nothing: {why}");
                checked.remarks.push(remark);
            }
        }
    }
}

/// Returns whether an entry for the machine `only` applies to the checked machine `name`. A user part (`user@machine`)
/// of `name` is ignored.
fn is_machine(name: &str, only: &str) -> bool {
    name == only || name.rsplit_once('@').is_some_and(|(_, host)| host == only)
}

fn entry(value: &toml::Value, today: Date) -> Result<Entry, String> {
    let entry: Entry = value
        .clone()
        .try_into()
        .map_err(|error: toml::de::Error| error.message().to_owned())?;
    if entry.reason.trim().is_empty() {
        return Err(format!("`{}` has no reason", entry.rule));
    }
    if let Some(name) = entry.machine.as_deref()
        && name.contains(['*', '?'])
    {
        return Err(format!(
            "`{name}` is a pattern; `machine` is the name of one"
        ));
    }
    if let Some(day) = &entry.expires {
        let last: Date = day
            .parse()
            .map_err(|_| format!("`{day}` is no day; write it as 2027-01-31"))?;
        if last < today {
            return Err(format!("`{}` expired on {day}", entry.rule));
        }
    }
    Ok(entry)
}

/// Moves the findings that an entry accepts. A finding whose violation is uncertain is not accepted, because the state
/// may be worse than the accepted one.
fn take(checked: &mut Checked, entry: &Entry) {
    let findings = std::mem::take(&mut checked.findings);
    for finding in findings {
        match entry.means(&finding) && finding.certainty == Certainty::Violated {
            true => checked.accepted.push(Accepted {
                finding,
                reason: entry.reason.clone(),
                owner: entry.owner.clone(),
                expires: entry.expires.clone(),
            }),
            false => checked.findings.push(finding),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_model::Subject;
    use assay_model::finding::{Fix, Severity};

    fn found(rule: &str, subject: &str) -> Finding {
        Finding {
            rule: rule.to_owned(),
            domain: "ssh".to_owned(),
            subject: Subject::new(["sshd.scope", subject]),
            severity: Severity::High,
            certainty: Certainty::Violated,
            title: String::new(),
            text: String::new(),
            places: Vec::new(),
            evidence: Vec::new(),
            fix: Fix::AfterReading,
            trial: None,
            verdict: None,
        }
    }

    /// Applies the accept file `text`. Returns the numbers of counted findings, accepted findings and remarks.
    fn after(text: &str) -> (usize, usize, usize) {
        let mut checked = Checked {
            findings: vec![found("a", "0"), found("a", "1"), found("b", "0")],
            ..Checked::default()
        };
        let today = Date::constant(2026, 11, 22);
        accept(&mut checked, "own.toml", text, today, None);
        (
            checked.findings.len(),
            checked.accepted.len(),
            checked.remarks.len(),
        )
    }

    #[test]
    fn the_life_of_an_entry() {
        let entry = |lines: &str| after(&format!("[[accept]]\nrule = \"a\"\n{lines}\n"));
        assert_eq!(entry("reason = \"r\""), (1, 2, 0));
        assert_eq!(
            entry("reason = \"r\"\nsubject = \"sshd.scope.1\""),
            (2, 1, 0)
        );
        // The last day is included.
        assert_eq!(entry("reason = \"r\"\nexpires = \"2026-11-22\""), (1, 2, 0));
        assert_eq!(entry("reason = \"r\"\nexpires = 2026-11-30"), (1, 2, 0));
        for refused in [
            "reason = \"r\"\nexpires = \"2026-11-21\"",
            "reason = \"r\"\nexpires = \"soon\"",
            "reason = \" \"",
            "",
            "reason = \"r\"\nexpries = \"2027-01-01\"",
            "reason = \"r\"\nsubject = \"sshd.scope.7\"",
            "reason = \"r\"\nmachine = \"box*\"",
        ] {
            assert_eq!(entry(refused), (3, 0, 1), "{refused}");
        }
        assert_eq!(
            after("[[accept]]\nrule = \"c\"\nreason = \"r\"\n"),
            (3, 0, 1)
        );
        assert_eq!(after("[[accept]\n"), (3, 0, 1));
        assert_eq!(
            after("[[suppress]]\nrule = \"a\"\nreason = \"r\"\n"),
            (3, 0, 1)
        );
        let mut checked = Checked {
            findings: vec![Finding {
                certainty: Certainty::Unknown,
                ..found("a", "0")
            }],
            ..Checked::default()
        };
        let text = "[[accept]]\nrule = \"a\"\nreason = \"r\"\n";
        let today = Date::constant(2026, 1, 1);
        accept(&mut checked, "own.toml", text, today, None);
        assert_eq!((checked.findings.len(), checked.accepted.len()), (1, 0));
    }

    /// Each machine of a fleet has entries of its own. Entries without a machine apply to all machines.
    #[test]
    fn entries_for_one_machine_of_several() {
        let today = Date::constant(2026, 1, 1);
        let text = "[[accept]]\nrule = \"a\"\nmachine = \"box1\"\nreason = \"r\"\n\
                    [[accept]]\nrule = \"b\"\nreason = \"r\"\n\
                    [[accept]]\nrule = \"c\"\nmachine = \"box2\"\nreason = \"r\"\n";
        let after = |rules: &[&str], machine| {
            let mut checked = Checked {
                findings: rules.iter().map(|rule| found(rule, "0")).collect(),
                ..Checked::default()
            };
            accept(&mut checked, "own.toml", text, today, machine);
            (checked.accepted.len(), checked.remarks.len())
        };
        assert_eq!(after(&["a", "b"], Some("box1")), (2, 0));
        assert_eq!(after(&["a"], Some("box1")), (1, 0));
        assert_eq!(after(&["a"], Some("root@box1")), (1, 0));
        assert_eq!(after(&["a"], Some("box1@gate")), (0, 0));
        // An entry for this machine only that matches nothing.
        assert_eq!(after(&["a", "b"], Some("box2")), (1, 1));
        assert_eq!(after(&["a", "b"], None), (1, 0));
    }
}
