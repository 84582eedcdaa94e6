//! A misspelt option: fio refuses to run, so the figure beside such a command comes from another one.

use crate::doubts::{Evidence, Origin, clean, suspect, void};
use assay_fio::options::{engine, misspelt, nearest_engine};
use assay_model::Doubt;

/// Name of the rule.
pub const CODE: &str = "unknown-option";

pub(super) fn check(evidence: &Evidence) -> Option<Doubt> {
    // What ran was understood by the fio that ran it.
    if evidence.source != Origin::CommandLine {
        return None;
    }
    let options = evidence.options?;
    // `external:/path` and paths are engines of one's own.
    if engine(&options.engine).is_none() && !options.engine.contains('/') {
        let meant = nearest_engine(&options.engine).map_or(
            "`fio --enghelp` lists the engines.".to_owned(),
            |meant| {
                format!(
                    "Write {meant}, if that is what was meant; `fio --enghelp` lists the engines."
                )
            },
        );
        return Some(void(
            CODE,
            format!(
                "fio has no engine `{}` and does not run",
                clean(&options.engine)
            ),
            &meant,
        ));
    }
    let (key, meant) = options
        .given
        .keys()
        .find_map(|key| Some((key, misspelt(key)?)))?;
    Some(suspect(
        CODE,
        format!("fio does not know `{}`", clean(key)),
        &format!(
            "Write {meant}, if that is what was meant; `fio --cmdhelp=all` lists all options."
        ),
    ))
}
