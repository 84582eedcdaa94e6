//! Groups candidates whose settings are in one configuration file. The settings of one file are changed together,
//! because separate changes of the file would revert each other.

use assay_changes::join_values;
use assay_model::change::{ConfigKey, Setting};
use assay_tune::{CandidateChange, Row};
use std::path::Path;

/// Candidates that are applied and reverted together, because they change one setting or one configuration file.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SwitchGroup {
    /// Setting that contains the values of all candidates of the group.
    pub(super) setting: Setting,
    /// Candidates that belong to the group.
    pub(super) members: Vec<GroupMember>,
    /// Keys of the configuration file, if the setting joins several keys of one file; else empty.
    keys: Vec<ConfigKey>,
}

/// A candidate of a group, with its values.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct GroupMember {
    pub(super) candidate: usize,
    /// Value of the whole setting if only this candidate is applied.
    value: Option<String>,
    /// Keys that the candidate changes, each as an index into the keys of the group, and the new value.
    values: Vec<(usize, Option<String>)>,
}

/// Returns the keys and values that a change of a configuration file sets; `None` for other changes.
fn config_keys(change: &CandidateChange) -> Option<Vec<(ConfigKey, Option<String>)>> {
    match &change.setting {
        Setting::Config { section, key, .. } => {
            let key = ConfigKey {
                section: section.clone(),
                key: key.clone(),
            };
            Some(vec![(key, change.value.clone())])
        }
        Setting::ConfigKeys { keys, .. } => {
            let values = assay_changes::split_values(change.value.as_deref(), keys.len())?;
            Some(keys.iter().cloned().zip(values).collect())
        }
        _ => None,
    }
}

/// Returns whether one write of a file can make both changes.
fn joins(one: &Setting, other: &Setting) -> bool {
    let parts = |setting: &Setting| match setting {
        Setting::Config {
            file,
            language,
            validate,
            reload,
            ..
        }
        | Setting::ConfigKeys {
            file,
            language,
            validate,
            reload,
            ..
        } => {
            let real = Path::new(file).canonicalize();
            let file = real.unwrap_or_else(|_| file.into());
            Some((file, *language, validate.clone(), reload.clone()))
        }
        _ => None,
    };
    match (parts(one), parts(other)) {
        (Some(one), Some(other)) => one == other,
        _ => one == other,
    }
}

/// Groups the changes of all candidates. A candidate is identified by its index in `changes`.
pub(super) fn group_changes(changes: &[Option<CandidateChange>]) -> Vec<SwitchGroup> {
    let mut groups: Vec<SwitchGroup> = Vec::new();
    for (candidate, change) in changes.iter().enumerate() {
        let Some(change) = change else { continue };
        let found = groups
            .iter_mut()
            .find(|group| joins(&group.setting, &change.setting));
        let group = match found {
            Some(group) => group,
            None => {
                groups.push(SwitchGroup {
                    setting: change.setting.clone(),
                    members: Vec::new(),
                    keys: Vec::new(),
                });
                let last = groups.len() - 1;
                &mut groups[last]
            }
        };
        let values = config_keys(change).unwrap_or_default();
        let values = values.into_iter().map(|(key, value)| {
            let at = group.keys.iter().position(|known| *known == key);
            let at = at.unwrap_or_else(|| {
                group.keys.push(key);
                group.keys.len() - 1
            });
            (at, value)
        });
        let values = values.collect();
        group.members.push(GroupMember {
            candidate,
            value: change.value.clone(),
            values,
        });
    }
    for group in &mut groups {
        group.setting = join_setting(&group.setting, &group.keys);
    }
    groups
}

/// Returns one setting that sets all keys of a group.
fn join_setting(setting: &Setting, all: &[ConfigKey]) -> Setting {
    match setting {
        Setting::Config {
            file,
            language,
            validate,
            reload,
            ..
        }
        | Setting::ConfigKeys {
            file,
            language,
            validate,
            reload,
            ..
        } if all.len() > 1 => Setting::ConfigKeys {
            file: file.clone(),
            language: *language,
            keys: all.to_vec(),
            validate: validate.clone(),
            reload: reload.clone(),
        },
        other => other.clone(),
    }
}

impl SwitchGroup {
    /// Returns the value of the setting if exactly the candidates of `row` are applied; `None` removes the setting.
    /// `original` is the value before any change.
    pub(super) fn value_of(&self, row: &Row, original: Option<&str>) -> Option<Option<String>> {
        let on = |member: &&GroupMember| row.contains(&member.candidate);
        let mut on = self.members.iter().filter(on).peekable();
        let first = on.peek()?;
        if self.keys.len() <= 1 {
            return Some(first.value.clone());
        }
        let count = self.keys.len();
        let mut all = assay_changes::split_values(original, count).unwrap_or(vec![None; count]);
        for (at, value) in on.flat_map(|member| &member.values) {
            all[*at].clone_from(value);
        }
        Some(Some(join_values(&all)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_model::change::ConfigLanguage;

    fn config(file: &str, key: &str, value: &str) -> Option<CandidateChange> {
        Some(CandidateChange {
            setting: Setting::Config {
                file: file.to_owned(),
                language: ConfigLanguage::KeyValue,
                section: Vec::new(),
                key: key.to_owned(),
                validate: Vec::new(),
                reload: Vec::new(),
            },
            value: Some(value.to_owned()),
            name: key.to_owned(),
            found: None,
            was: String::new(),
        })
    }

    #[test]
    fn settings_of_one_file_share_a_switch() {
        let changes = [
            config("/a", "x", "1"),
            None,
            config("/b", "x", "2"),
            config("/a", "y", "3"),
            config("/a", "x", "4"),
        ];
        let groups = group_changes(&changes);
        assert_eq!(groups.len(), 2);
        let joined = &groups[0];
        let of = |row: &[usize]| {
            let row: Row = row.iter().copied().collect();
            joined.value_of(&row, Some(r#"["0", null]"#))
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[2]), None);
        assert_eq!(of(&[0]), Some(Some(r#"["1",null]"#.to_owned())));
        assert_eq!(of(&[0, 3]), Some(Some(r#"["1","3"]"#.to_owned())));
        assert_eq!(of(&[4]), Some(Some(r#"["4",null]"#.to_owned())));
        let alone = groups[1].value_of(&Row::from([2]), Some("0"));
        assert_eq!(alone, Some(Some("2".to_owned())));
    }
}
