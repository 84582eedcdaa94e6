//! Combines the values of several settings into one value: a JSON array in the order of the settings.

/// Parses the array of values; `None` if the text is not an array of `count` values.
pub(crate) fn parse_values(text: Option<&str>, count: usize) -> Option<Vec<Option<String>>> {
    let values: Vec<Option<String>> = serde_json::from_str(text?).ok()?;
    (values.len() == count).then_some(values)
}

/// Formats values as a JSON array.
pub(crate) fn join_values(values: &[Option<String>]) -> String {
    serde_json::Value::from(values.to_vec()).to_string()
}

/// Formats several values as text for messages.
pub(crate) fn display_values(values: &[Option<String>]) -> String {
    let one = |value: &Option<String>| value.clone().unwrap_or_else(|| "no line for it".to_owned());
    values.iter().map(one).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_what_they_were() {
        let all = [Some("a \"b\", c".to_owned()), None, Some(String::new())];
        assert_eq!(
            parse_values(Some(&join_values(&all)), 3).as_deref(),
            Some(&all[..])
        );
        for wrong in ["", "yes", "[]", "[\"a\"]", "[1, 2, 3]", "{}"] {
            assert_eq!(parse_values(Some(wrong), 3), None, "{wrong}");
        }
        assert_eq!(parse_values(None, 0), None);
        assert_eq!(display_values(&all[1..2]), "no line for it");
    }
}
