//! Reads and checks studies: the built-in ones (`studies/` in the repository) and those of users.

mod check;

use crate::StudyError;
use assay_model::study::Study;

/// Name and text of each built-in study, in the order in which studies are listed.
pub const BUILTIN: &[(&str, &str)] = &[
    (
        "kvm-cache-modes",
        include_str!("../../../studies/kvm-cache-modes.toml"),
    ),
    (
        "write-distribution",
        include_str!("../../../studies/write-distribution.toml"),
    ),
    (
        "clone-divergence",
        include_str!("../../../studies/clone-divergence.toml"),
    ),
    (
        "mutt-drives",
        include_str!("../../../studies/mutt-drives.toml"),
    ),
    (
        "optane-points",
        include_str!("../../../studies/optane-points.toml"),
    ),
    (
        "static-file-servers",
        include_str!("../../../studies/static-file-servers.toml"),
    ),
    (
        "zfs-tuning",
        include_str!("../../../studies/zfs-tuning.toml"),
    ),
    (
        "zvol-vs-qcow2",
        include_str!("../../../studies/zvol-vs-qcow2.toml"),
    ),
];

/// Returns all built-in studies.
///
/// # Errors
/// A study is invalid. A test ensures that this does not happen.
pub fn builtin_studies() -> Result<Vec<Study>, StudyError> {
    let read = |(name, text): &(&str, &str)| parse(text, &format!("studies/{name}.toml"));
    BUILTIN.iter().map(read).collect()
}

/// Returns the built-in study with this name.
///
/// # Errors
/// The study does not exist. The error contains similar names.
pub fn builtin_study(name: &str) -> Result<Study, StudyError> {
    if let Some((name, text)) = BUILTIN.iter().find(|(known, _)| *known == name) {
        return parse(text, &format!("studies/{name}.toml"));
    }
    let nearest = BUILTIN
        .iter()
        .map(|(known, _)| (strsim::damerau_levenshtein(known, name), *known))
        .min()
        .filter(|(distance, known)| *distance <= known.len() / 2);
    Err(StudyError::Unknown {
        asked: name.escape_debug().to_string(),
        known: match nearest {
            Some((_, known)) => format!("did you mean `{known}`?"),
            None => "`assay study` lists them; a file of your own ends with .toml".to_owned(),
        },
    })
}

/// Updates a stored study with the published figures and conclusions of the current built-in study. Does nothing unless
/// both studies have the same name and measure the same configurations and figures.
#[must_use]
pub fn with_current_text(stored: Study) -> Study {
    match builtin_study(&stored.name) {
        Ok(today)
            if today.configurations == stored.configurations && today.figures == stored.figures =>
        {
            Study {
                forms: stored.forms,
                ..today
            }
        }
        _ => stored,
    }
}

/// Parses a study. `file` is the file name for error messages.
///
/// # Errors
/// The study contains a mistake. The error contains the file and the line.
pub fn parse(text: &str, file: &str) -> Result<Study, StudyError> {
    let study: Study = toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start).min(text.len());
        StudyError::File {
            file: file.to_owned(),
            line: text.as_bytes()[..at]
                .iter()
                .filter(|b| **b == b'\n')
                .count()
                + 1,
            message: error.message().to_owned(),
        }
    })?;
    match check::check(&study) {
        Ok(()) => Ok(study),
        Err(wrong) => Err(StudyError::File {
            file: file.to_owned(),
            line: wrong.line(text),
            message: wrong.message,
        }),
    }
}

#[cfg(test)]
mod tests;
