//! Determines whether a piece of advice applies to a machine, with the evidence.

use crate::condition::{self, Known, Ledger, Truth, World};
use crate::resolve;
use assay_model::advice::Advice;
use assay_model::{Bytes, Fact, FactKind, FactPlace, FactValue, Facts, TargetInfo};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Result of evaluating the conditions of a piece of advice on a machine.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "applies")]
pub enum Applicability {
    /// All conditions are true, so the advice applies.
    #[serde(rename = "yes")]
    Applies {
        /// Facts, parameters and target properties that the conditions used.
        evidence: Vec<Evidence>,
    },
    /// At least one condition is false.
    #[serde(rename = "no")]
    Not {
        /// The false conditions, each with the reason.
        reasons: Vec<Reason>,
        /// Facts, parameters and target properties that the conditions used.
        evidence: Vec<Evidence>,
    },
    /// No condition is known to be false, and it is unknown whether at least one is true.
    #[serde(rename = "unknown")]
    Unknown {
        /// Facts that are needed to decide the conditions.
        missing: Vec<Missing>,
        /// Facts, parameters and target properties that are known.
        evidence: Vec<Evidence>,
    },
}

impl Applicability {
    /// Returns the evidence, whatever the result is.
    #[must_use]
    pub fn evidence(&self) -> &[Evidence] {
        match self {
            Self::Applies { evidence }
            | Self::Not { evidence, .. }
            | Self::Unknown { evidence, .. } => evidence,
        }
    }
}

/// A fact, parameter or property of the target that a condition used.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Evidence {
    /// Name, such as `disk.vda.scheduler`, `parameter size` or `target fstype`.
    pub key: String,
    /// Value that the condition used.
    pub value: Value,
    /// Where the value comes from.
    #[serde(rename = "source", serialize_with = "in_words")]
    #[schemars(with = "String")]
    pub place: FactPlace,
    /// Whether the value is a default, configured or a run-time value. `None` for parameters and the target.
    pub kind: Option<FactKind>,
}

fn in_words<S: serde::Serializer>(place: &FactPlace, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(place)
}

/// A condition that is false.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Reason {
    /// Reason why the advice does not apply, as a sentence for users.
    pub otherwise: String,
    /// The condition, as a CEL expression.
    pub condition: String,
    /// Values that the condition used.
    pub evidence: Vec<Evidence>,
    /// Keys of facts that the condition used but that this machine does not have.
    pub absent: Vec<String>,
}

/// An unknown value without which a condition cannot be decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Missing {
    /// Name, such as `disk.vda.scheduler` or `target fstype`.
    pub key: String,
    /// Reason why the value is unknown.
    pub why: String,
    /// The condition, as a CEL expression.
    pub condition: String,
}

/// Evaluates the conditions of a piece of advice on a machine.
///
/// In conditions, `target` has these properties: `kind` (`directory`, `file`, `block-device`), `fstype`, `mountpoint`,
/// `options` (a list), `source`, `pool` (of ZFS), `device` (the whole block device directly below), `disk` (the
/// physical disk at the bottom), and `free` and `size` in bytes. Properties that the target lacks are absent. `trial`
/// has the property `size`, the size of the load in bytes: the argument `size` if given, else the value of the page.
/// The given `parameters` override their defaults and are not validated.
#[must_use]
pub fn applies(
    advice: &Advice,
    facts: &Facts,
    target: Option<&TargetInfo>,
    parameters: &BTreeMap<String, String>,
    size: Option<Bytes>,
) -> Applicability {
    if advice.when.is_empty() {
        let evidence = Vec::new();
        return Applicability::Applies { evidence };
    }
    let known = Sources::new(advice, facts, target, parameters, size);
    let world = known.world();
    let (mut reasons, mut missing) = (Vec::new(), Vec::new());
    let mut evidence: Vec<Evidence> = Vec::new();
    for one in &advice.when {
        let truth = condition::evaluate(&one.cel, &world);
        let (seen, unseen) = known.asked(&world, &one.cel);
        for item in &seen {
            if !evidence.iter().any(|known| known.key == item.key) {
                evidence.push(item.clone());
            }
        }
        match truth {
            Truth::True => {}
            Truth::False => reasons.push(Reason {
                otherwise: one.otherwise.clone(),
                condition: one.cel.clone(),
                evidence: seen,
                absent: unseen.into_iter().map(|missing| missing.key).collect(),
            }),
            // A type error, not a missing fact.
            Truth::Unknown(why) if unseen.is_empty() => missing.push(Missing {
                key: seen
                    .first()
                    .map_or_else(String::new, |seen| seen.key.clone()),
                why,
                condition: one.cel.clone(),
            }),
            Truth::Unknown(_) => missing.extend(unseen),
        }
    }
    match (reasons.is_empty(), missing.is_empty()) {
        (false, _) => Applicability::Not { reasons, evidence },
        (true, false) => Applicability::Unknown { missing, evidence },
        (true, true) => Applicability::Applies { evidence },
    }
}

/// Values for the maps `facts`, `parameters` and `target` of a condition, and for `trial.size`.
struct Sources<'a> {
    advice: &'a Advice,
    facts: &'a Facts,
    given: &'a BTreeMap<String, String>,
    target: Option<(&'a str, BTreeMap<&'static str, Value>)>,
    /// Size of the load, and the origin of this size (`--size` or the advice).
    size: Option<(Bytes, &'static str)>,
}

impl<'a> Sources<'a> {
    fn new(
        advice: &'a Advice,
        facts: &'a Facts,
        target: Option<&'a TargetInfo>,
        given: &'a BTreeMap<String, String>,
        size: Option<Bytes>,
    ) -> Self {
        Self {
            size: match size {
                Some(size) => Some((size, "--size")),
                None => size_of_page(advice).map(|size| (size, "the advice")),
            },
            advice,
            facts,
            given,
            target: target.map(|info| (info.name.as_str(), properties(info))),
        }
    }

    fn parameter(&self, name: &str) -> Option<(&str, &'static str)> {
        let given = self.given.get(name).map(|value| (value.as_str(), "--set"));
        given.or_else(|| {
            let default = self.advice.parameters.get(name)?.default.as_deref()?;
            Some((default, "default of the advice"))
        })
    }

    fn world(&self) -> World {
        let fact = |(key, fact): (&String, &Fact)| {
            let known = match &fact.value {
                FactValue::Known(value) => Known::Value(value.clone()),
                FactValue::Unknown(why) => Known::Unreadable(why.clone()),
            };
            (key.clone(), known)
        };
        let parameter = |name: &String| {
            let (value, _) = self.parameter(name)?;
            Some((name.clone(), Known::Value(value.into())))
        };
        let target: Vec<_> = match &self.target {
            Some((_, properties)) => properties
                .iter()
                .map(|(key, value)| ((*key).to_owned(), Known::Value(value.clone())))
                .collect(),
            None => PROPERTIES
                .iter()
                .map(|key| ((*key).to_owned(), Known::Unreadable(NO_TARGET.to_owned())))
                .collect(),
        };
        let size = self
            .size
            .map(|(size, _)| (SIZE.to_owned(), Known::Value(size.0.into())));
        World {
            facts: Ledger::new("fact", self.facts.map.iter().map(fact)),
            parameters: Ledger::new(
                "parameter",
                self.advice.parameters.keys().filter_map(parameter),
            ),
            target: Ledger::new("target", target),
            trial: Ledger::new("trial", size),
            ..World::empty()
        }
    }

    /// Returns what the condition used that was just evaluated: the existing values, and the missing ones.
    fn asked(&self, world: &World, condition: &str) -> (Vec<Evidence>, Vec<Missing>) {
        let (mut seen, mut unseen) = (Vec::new(), Vec::new());
        let mut note =
            |key: String, found: Result<(Value, FactPlace, Option<FactKind>), String>| match found {
                Ok((value, place, kind)) => seen.push(Evidence {
                    key,
                    value,
                    place,
                    kind,
                }),
                Err(why) => unseen.push(Missing {
                    key,
                    why,
                    condition: condition.to_owned(),
                }),
            };
        for key in world.facts.take_asked() {
            let found = match self.facts.map.get(&key) {
                Some(fact) => match &fact.value {
                    FactValue::Known(value) => {
                        Ok((value.clone(), fact.place.clone(), Some(fact.kind)))
                    }
                    FactValue::Unknown(why) => Err(format!("{why} ({})", fact.place)),
                },
                None => Err("there is no such fact here".to_owned()),
            };
            note(key, found);
        }
        for name in world.parameters.take_asked() {
            let found = self
                .parameter(&name)
                .map(|(value, source)| (value.into(), FactPlace::Words(source.to_owned()), None))
                .ok_or_else(|| "not given, and it has no default".to_owned());
            note(format!("parameter {name}"), found);
        }
        for name in world.target.take_asked() {
            let found = match &self.target {
                None => Err(NO_TARGET.to_owned()),
                Some((target, properties)) => match properties.get(name.as_str()) {
                    Some(value) => {
                        Ok((value.clone(), FactPlace::Words((*target).to_owned()), None))
                    }
                    None => Err(format!("{target} has none")),
                },
            };
            note(format!("target {name}"), found);
        }
        for name in world.trial.take_asked() {
            let found = match self.size {
                Some((size, said)) if name == SIZE => {
                    Ok((size.0.into(), FactPlace::Words(said.to_owned()), None))
                }
                _ => Err("the trial of this advice has none".to_owned()),
            };
            note(format!("trial {name}"), found);
        }
        (seen, unseen)
    }
}

/// Name of the only property of the trial that conditions can use.
const SIZE: &str = "size";

/// Returns the size of the load in the page's trial. `None` if the size is a parameter.
fn size_of_page(advice: &Advice) -> Option<Bytes> {
    let load = advice.trial.as_ref()?.get("load")?;
    load.get("size")?.clone().try_into().ok()
}

const NO_TARGET: &str = "no target was named";

/// Properties of the target that conditions can use.
const PROPERTIES: [&str; 10] = [
    "kind",
    "fstype",
    "mountpoint",
    "options",
    "source",
    "pool",
    "device",
    "disk",
    "free",
    "size",
];

fn properties(info: &TargetInfo) -> BTreeMap<&'static str, Value> {
    let options = info
        .mount_options
        .as_ref()
        .map(|options| json!(options.split(',').collect::<Vec<_>>()));
    let source = info.mount_source.as_deref();
    let zfs = info.fs_type.as_deref() == Some("zfs");
    let pool = source
        .filter(|_| zfs)
        .and_then(|name| name.split('/').next());
    let all = [
        ("kind", Some(json!(info.kind))),
        ("fstype", info.fs_type.clone().map(Value::from)),
        ("mountpoint", info.mount_point.clone().map(Value::from)),
        ("options", options),
        ("source", source.map(Value::from)),
        ("pool", pool.map(Value::from)),
        ("device", resolve::device(info).ok().map(Value::from)),
        (
            "disk",
            resolve::one(&info.disks, "disk").ok().map(Value::from),
        ),
        ("free", info.free.map(|free| free.0.into())),
        ("size", Some(info.size.0.into())),
    ];
    all.into_iter()
        .filter_map(|(key, value)| Some((key, value?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::tests::PAGE;
    use crate::page;
    use assay_model::Bytes;
    use assay_model::advice::Condition;
    use assay_model::target::TargetKind;

    fn advice(conditions: &[&str]) -> Advice {
        let mut advice = page::parse("a/b.md", PAGE).unwrap();
        advice.when = conditions
            .iter()
            .map(|cel| Condition {
                cel: (*cel).to_owned(),
                otherwise: format!("not {cel}"),
            })
            .collect();
        advice
    }

    fn facts() -> Facts {
        let mut facts = Facts::default();
        facts.known(
            "disk.vda.scheduler",
            "none",
            FactKind::Runtime,
            "/sys/block/vda/queue/scheduler",
        );
        facts.unknown(
            "disk.vda.size",
            "Permission denied",
            FactKind::Runtime,
            "/sys/block/vda/size",
        );
        facts
    }

    fn target() -> TargetInfo {
        TargetInfo {
            name: "/srv".into(),
            kind: TargetKind::Directory,
            fs_type: Some("ext4".into()),
            mount_point: Some("/srv".into()),
            mount_options: Some("rw,relatime".into()),
            mount_source: Some("/dev/vda2".into()),
            devices: vec!["vda2".into()],
            disks: vec!["vda".into()],
            size: Bytes(0),
            free: Some(Bytes(10)),
        }
    }

    fn says(conditions: &[&str], target: Option<&TargetInfo>) -> Applicability {
        applies(
            &advice(conditions),
            &facts(),
            target,
            &BTreeMap::new(),
            None,
        )
    }

    #[test]
    fn names_the_fact_its_value_and_its_source() {
        let holds = r#"facts["disk." + target.device + ".scheduler"] == "none""#;
        let Applicability::Applies { evidence } = says(&[holds, holds], Some(&target())) else {
            panic!()
        };
        let keys: Vec<&str> = evidence.iter().map(|item| item.key.as_str()).collect();
        assert_eq!(keys, ["disk.vda.scheduler", "target device"]);
        assert_eq!(
            evidence[0].place,
            FactPlace::from("/sys/block/vda/queue/scheduler")
        );
        let fails = r#"facts["disk.vda.scheduler"] == "bfq" && parameters.swap == "11""#;
        let Applicability::Not { reasons, .. } = says(&[fails], None) else {
            panic!()
        };
        assert_eq!(reasons[0].evidence[0].value, "none");
    }

    #[test]
    fn one_condition_that_fails_is_enough_and_unknown_is_said() {
        let absent = r#"facts["disk.sdz.scheduler"] == "none""#;
        let unreadable = r#"facts["disk.vda.size"] > 1"#;
        let target = r#"target.fstype == "ext4""#;
        let Applicability::Unknown { missing, .. } = says(&[absent, unreadable, target], None)
        else {
            panic!()
        };
        let said: Vec<_> = missing
            .iter()
            .map(|m| (m.key.as_str(), m.why.as_str()))
            .collect();
        assert_eq!(
            said,
            [
                ("disk.sdz.scheduler", "there is no such fact here"),
                ("disk.vda.size", "Permission denied (/sys/block/vda/size)"),
                ("target fstype", "no target was named"),
            ]
        );
        let fails = r#""tool.fio" in facts"#;
        let Applicability::Not { reasons, .. } = says(&[absent, fails], None) else {
            panic!()
        };
        assert_eq!((reasons.len(), reasons[0].absent.len()), (1, 1));
        let Applicability::Unknown { missing, .. } =
            says(&["facts[\"disk.vda.scheduler\"] > 1"], None)
        else {
            panic!()
        };
        assert_eq!(missing[0].key, "disk.vda.scheduler");
    }

    #[test]
    fn room_is_asked_for_what_the_trial_works_on() {
        let mut advice = advice(&["target.free >= 2 * trial.size"]);
        let load =
            |size: &str| Some(toml::from_str(&format!("load = {{ size = {size} }}")).unwrap());
        let target = target();
        let says = |advice: &Advice, size| {
            applies(advice, &facts(), Some(&target), &BTreeMap::new(), size)
        };
        advice.trial = load("\"1KiB\"");
        let Applicability::Not { reasons, .. } = says(&advice, None) else {
            panic!()
        };
        let size = &reasons[0].evidence[1];
        assert_eq!(
            (size.key.as_str(), &size.value),
            ("trial size", &json!(1024))
        );
        // The user's value overrides it.
        let Applicability::Applies { evidence } = says(&advice, Some(Bytes(5))) else {
            panic!()
        };
        assert_eq!(evidence[1].place, FactPlace::Words("--size".to_owned()));
        advice.trial = load("\"{size}\"");
        assert!(matches!(says(&advice, None), Applicability::Unknown { .. }));
        advice.trial = None;
        assert!(matches!(says(&advice, None), Applicability::Unknown { .. }));
    }

    #[test]
    fn no_condition_always_applies() {
        assert_eq!(says(&[], None), Applicability::Applies { evidence: vec![] });
    }
}
