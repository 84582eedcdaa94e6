//! Finds the known name that is most similar to an unknown one.

/// Returns `; did you mean `noatime`?`, or an empty text if no name is similar.
pub(crate) fn hint<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(name, known).map_or_else(String::new, |near| format!("; did you mean `{near}`?"))
}

/// Returns the known name that differs in the fewest letters, if fewer than half of the letters differ.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    known
        .into_iter()
        .map(|candidate| {
            (
                strsim::damerau_levenshtein(&name, &candidate.to_lowercase()),
                candidate,
            )
        })
        .filter(|(distance, candidate)| 2 * distance < candidate.chars().count().max(3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Formats names as a list in a sentence: "`a`, `b` and `c`".
pub(crate) fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    match names.split_last() {
        None => "none".to_owned(),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_and_far() {
        let known = ["noatime", "cache-none", "cache-unsafe"];
        assert_eq!(nearest("noatim", known), Some("noatime"));
        assert_eq!(nearest("Cache-None", known), Some("cache-none"));
        assert_eq!(nearest("zfs", known), None);
        assert_eq!(hint("zfs", known), "");
        assert_eq!(list(["a", "b", "c"]), "`a`, `b` and `c`");
    }
}
