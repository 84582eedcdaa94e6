//! Applies the difference of two arms to a third arm, so that one object can have the changes of several advice pages.

use super::Arm;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Name of a property. A property of a map, such as an option of `qemu-img`, also has the name of the map.
type Name = (String, Option<String>);

/// The properties in which two arms of one kind differ, with their values in the second arm. `None` means that the
/// second arm does not have the property.
#[derive(Clone, Debug, PartialEq)]
pub struct ArmDifference(BTreeMap<Name, Option<Value>>);

impl ArmDifference {
    /// Returns the difference from `now` to `changed`. Returns `None` if the arms are of different kinds.
    #[must_use]
    pub fn between(now: &Arm, changed: &Arm) -> Option<Self> {
        if std::mem::discriminant(now) != std::mem::discriminant(changed) {
            return None;
        }
        let (now, changed) = (properties(now)?, properties(changed)?);
        let names = now.keys().chain(changed.keys());
        let differing = names.filter(|name| now.get(*name) != changed.get(*name));
        let value = |name: &Name| (name.clone(), changed.get(name).cloned());
        Some(Self(differing.map(value).collect()))
    }

    /// Returns whether two arms are equal except for the properties of these differences.
    #[must_use]
    pub fn explain(differences: &[Self], one: &Arm, other: &Arm) -> bool {
        let rest = |arm: &Arm| {
            let mut all = properties(arm)?;
            all.retain(|name, _| !differences.iter().any(|known| known.0.contains_key(name)));
            Some(all)
        };
        rest(one).is_some_and(|one| rest(other) == Some(one))
    }

    /// Returns the names of the properties, their values in `before`, and their values after the difference, each as a
    /// list in text.
    #[must_use]
    pub fn describe(&self, before: &Arm) -> [String; 3] {
        let all = properties(before).unwrap_or_default();
        let text = |value: Option<&Value>| match value {
            None => "absent".to_owned(),
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
        };
        let mut columns: [Vec<String>; 3] = Default::default();
        for (name, value) in &self.0 {
            columns[0].push(name.1.clone().unwrap_or_else(|| name.0.clone()));
            columns[1].push(text(all.get(name)));
            columns[2].push(text(value.as_ref()));
        }
        columns.map(|column| column.join(", "))
    }

    /// Returns the arm with the properties of this difference. Returns `None` if the result is not a valid arm.
    #[must_use]
    pub fn applied_to(&self, arm: &Arm) -> Option<Arm> {
        let mut all = properties(arm)?;
        for (name, value) in &self.0 {
            match value {
                Some(value) => drop(all.insert(name.clone(), value.clone())),
                None => drop(all.remove(name)),
            }
        }
        let mut whole = Map::new();
        for ((name, inner), value) in all {
            match inner {
                None => drop(whole.insert(name, value)),
                Some(inner) => {
                    let map = whole
                        .entry(name)
                        .or_insert_with(|| Value::Object(Map::new()));
                    map.as_object_mut()?.insert(inner, value);
                }
            }
        }
        serde_json::from_value(Value::Object(whole)).ok()
    }
}

fn properties(arm: &Arm) -> Option<BTreeMap<Name, Value>> {
    let Ok(Value::Object(whole)) = serde_json::to_value(arm) else {
        return None;
    };
    let mut all = BTreeMap::new();
    for (name, value) in whole {
        match value {
            Value::Object(map) => {
                let inner = |(key, value)| ((name.clone(), Some(key)), value);
                all.extend(map.into_iter().map(inner));
            }
            value => drop(all.insert((name, None), value)),
        }
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arm(text: &str) -> Arm {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn differences_of_several_pages_join_in_one_arm() {
        let raw = r#"{"kind": "image", "format": "raw", "cache": "writeback", "filled": true}"#;
        let base = arm(raw);
        let cache = arm(&raw.replace("writeback", "none"));
        let threads = arm(r#"{"kind": "image", "format": "raw", "filled": true}"#);
        let native = arm(r#"{"kind": "image", "format": "raw", "filled": true, "aio": "native"}"#);
        let no_cache = ArmDifference::between(&base, &cache).unwrap();
        let native = ArmDifference::between(&threads, &native).unwrap();
        let both = no_cache.applied_to(&base).unwrap();
        let both = native.applied_to(&both).unwrap();
        let expected = raw
            .replace("writeback", "none")
            .replace("true", r#"true, "aio": "native""#);
        assert_eq!(both, arm(&expected));
        let described = no_cache.describe(&base);
        assert_eq!(described, ["cache", "writeback", "none"].map(str::to_owned));
        let explain = |known: &[ArmDifference]| ArmDifference::explain(known, &base, &cache);
        assert!(explain(&[native.clone(), no_cache]) && !explain(&[native]));
        let zfs = arm(r#"{"kind": "dataset", "parent": "tank"}"#);
        assert_eq!(ArmDifference::between(&base, &zfs), None);
    }

    #[test]
    fn options_come_and_go() {
        let plain = arm(r#"{"kind": "image", "format": "qcow2"}"#);
        let options = r#"{"cluster_size": "1M", "extended_l2": "on"}"#;
        let text = format!(r#"{{"kind": "image", "format": "qcow2", "options": {options}}}"#);
        let large = arm(&text);
        let there = ArmDifference::between(&plain, &large).unwrap();
        let back = ArmDifference::between(&large, &plain).unwrap();
        assert_eq!(there.applied_to(&plain), Some(large.clone()));
        assert_eq!(back.applied_to(&large), Some(plain));
        let set = arm(r#"{"kind": "sshd", "config": "/c", "set": {"UseDNS": "yes"}}"#);
        let unset = arm(r#"{"kind": "sshd", "config": "/c", "set": {"UseDNS": "no"}}"#);
        let dns = ArmDifference::between(&set, &unset).unwrap();
        assert_eq!(dns.applied_to(&set), Some(unset));
    }
}
