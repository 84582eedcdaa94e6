//! Rule `no-time-based`: `runtime` alone is only an upper limit, because the job also ends after
//! `size` bytes. Observed: a job with runtime=10 ended after 228 ms.

use crate::doubts::{DoubtEvidence, ENOUGH, suspect_doubt, void_doubt};
use assay_model::Doubt;

/// Stable code of this doubt in results and in the book.
pub const CODE: &str = "no-time-based";
const REMEDY: &str = "Add time_based=1 to measure for the whole runtime; or leave runtime out and \
    say how much is read or written.";
/// Fraction of the requested `runtime`. The figures of a shorter run describe something else, such as a warm-up.
const TENTH: f64 = 0.1;

pub(super) fn check(evidence: &DoubtEvidence) -> Option<Doubt> {
    let options = evidence.options?;
    if evidence.results.is_empty()
        && options.given("runtime").is_some()
        && options.runtime.is_none()
    {
        return Some(suspect_doubt(
            CODE,
            "runtime=0 sets no time at all, and time_based without a time is refused: the job ends when \
             everything is done once"
                .to_owned(),
            "Give a runtime, such as runtime=60 with time_based=1.",
        ));
    }
    if evidence.results.is_empty()
        && options.is_on("time_based", false)
        && options.runtime.is_none()
    {
        return Some(suspect_doubt(
            CODE,
            "time_based without runtime is refused by fio (\"requires a runtime/timeout setting\"): the job \
             ends when everything is done once"
                .to_owned(),
            "Give a runtime, such as runtime=60 with time_based=1.",
        ));
    }
    if let Some(doubt) = check_ramp(evidence) {
        return Some(doubt);
    }
    let asked = options.runtime?;
    if options.is_on("time_based", false) {
        return None;
    }
    let Some(took) = evidence.longest_runtime() else {
        if !options.complete() {
            return None;
        }
        let end = match options.size {
            Some(size) => format!("when {size} are done"),
            None => "when the whole file is done".to_owned(),
        };
        return Some(suspect_doubt(
            CODE,
            format!(
                "runtime={asked} without time_based: a job ends {end}, and only at the latest after that time"
            ),
            REMEDY,
        ));
    };
    let share = took.0 as f64 / asked.0 as f64;
    if share >= ENOUGH {
        return None;
    }
    let seen = format!("runtime={asked} was asked for, the job ended after {took}");
    Some(if share < TENTH {
        void_doubt(CODE, seen, REMEDY)
    } else {
        suspect_doubt(CODE, seen, REMEDY)
    })
}

/// Finds a job that ended before its `ramp_time` had passed. fio 3.33 then reports the I/O of the ramp time.
fn check_ramp(evidence: &DoubtEvidence) -> Option<Doubt> {
    let options = evidence.options?;
    let ramp = options.ramp?;
    if options.is_on("time_based", false) && options.runtime.is_some() {
        return None;
    }
    let seen = match evidence.longest_runtime() {
        Some(took) if took.0 < ramp.0 => {
            format!(
                "the job ended after {took}, within its ramp_time of {ramp}: its figures are of the warm-up"
            )
        }
        Some(_) => return None,
        None if evidence.results.is_empty() && options.complete() && options.runtime.is_none() => {
            format!(
                "ramp_time={ramp} without a time: a job that ends within it is reported with its warm-up"
            )
        }
        None => return None,
    };
    Some(suspect_doubt(
        CODE,
        seen,
        "Add time_based=1 and a runtime; fio counts it from the end of the ramp_time.",
    ))
}
