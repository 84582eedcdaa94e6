//! Rule `unknown-option`: an option is misspelt. fio refuses to run such a command, so a figure that is published with
//! this command comes from another one.

use crate::doubts::{DoubtEvidence, EvidenceOrigin, clean_text, suspect_doubt, void_doubt};
use assay_fio::options::{find_engine, find_meant_option, nearest_engine};
use assay_model::Doubt;

/// Stable code of this doubt in results and in the book.
pub const CODE: &str = "unknown-option";

pub(super) fn check(evidence: &DoubtEvidence) -> Option<Doubt> {
    // The fio that ran the job knew all of its options.
    if evidence.source != EvidenceOrigin::CommandLine {
        return None;
    }
    let options = evidence.options?;
    // `external:/path` and paths are external engines.
    if find_engine(&options.engine).is_none() && !options.engine.contains('/') {
        let meant = nearest_engine(&options.engine).map_or(
            "`fio --enghelp` lists the engines.".to_owned(),
            |meant| {
                format!(
                    "Write {meant}, if that is what was meant; `fio --enghelp` lists the engines."
                )
            },
        );
        return Some(void_doubt(
            CODE,
            format!(
                "fio has no engine `{}` and does not run",
                clean_text(&options.engine)
            ),
            &meant,
        ));
    }
    let (key, meant) = options
        .given
        .keys()
        .find_map(|key| Some((key, find_meant_option(key)?)))?;
    Some(suspect_doubt(
        CODE,
        format!("fio does not know `{}`", clean_text(key)),
        &format!(
            "Write {meant}, if that is what was meant; `fio --cmdhelp=all` lists all options."
        ),
    ))
}
