//! Properties of ZFS datasets in a draft of a plan.

use assay_host::CommandOutput;
use assay_model::change::Setting;
use std::collections::BTreeMap;
use std::ffi::OsStr;

/// A property of a dataset and its planned value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PropertyChange {
    /// Name of the dataset.
    pub dataset: String,
    /// Name of the property, such as `sync`.
    pub property: String,
    /// Value that the property has now.
    pub before: String,
    /// Value that the property gets.
    pub after: String,
}

impl PropertyChange {
    /// Returns the change as a journal setting and the new value.
    pub(crate) fn setting(&self) -> (Setting, String) {
        let setting = Setting::ZfsProperty {
            dataset: self.dataset.clone(),
            property: self.property.clone(),
        };
        (setting, self.after.clone())
    }
}

/// Values of properties that replace the real ones, by dataset and property.
pub(crate) type Properties = BTreeMap<(String, String), String>;

/// Replaces values in the output of `zfs get -H -o name,property,value,source`. Datasets that inherit a value get it
/// too. Any other output stays as it is.
pub(crate) fn with_properties(
    new: &Properties,
    argv: &[&OsStr],
    mut output: CommandOutput,
) -> CommandOutput {
    let columns = ["get", "-Hp", "name,property,value,source"].map(OsStr::new);
    if !columns.iter().all(|word| argv.contains(word)) {
        return output;
    }
    let replace = |line: &str| {
        let fields: Vec<&str> = line.split('\t').collect();
        let [dataset, property, _, source] = fields[..] else {
            return None;
        };
        let set_at = source.strip_prefix("inherited from ").unwrap_or(dataset);
        let value = new.get(&(set_at.to_owned(), property.to_owned()))?;
        let source = match set_at == dataset {
            true => "local",
            false => source,
        };
        Some(format!("{dataset}\t{property}\t{value}\t{source}\n"))
    };
    let text = output.text();
    let lines = text.lines();
    let lines = lines.map(|line| replace(line).unwrap_or_else(|| format!("{line}\n")));
    output.stdout = lines.collect::<String>().into_bytes();
    output
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_replaced_where_they_are_set_and_inherited() {
        let table = "tank\tsync\talways\tlocal\ntank\tatime\ton\tdefault\ntank/a\tsync\talways\tinherited from tank\n\
                     tank/b\tsync\talways\tlocal\n";
        let output = || CommandOutput {
            stdout: table.into(),
            ..CommandOutput::default()
        };
        let key = ("tank".to_owned(), "sync".to_owned());
        let new = Properties::from([(key, "standard".to_owned())]);
        let words = |columns: &'static str| ["zfs", "get", "-Hp", "-o", columns].map(OsStr::new);
        let seen = with_properties(&new, &words("name,property,value,source"), output());
        assert_eq!(
            seen.text(),
            "tank\tsync\tstandard\tlocal\ntank\tatime\ton\tdefault\ntank/a\tsync\tstandard\tinherited from tank\n\
             tank/b\tsync\talways\tlocal\n"
        );
        let other = with_properties(&new, &words("value"), output());
        assert_eq!(other.text(), table);
    }
}
