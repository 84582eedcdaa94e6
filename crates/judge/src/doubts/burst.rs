//! Rule `burst`: the rate fell while the sample ran, because a write cache filled up, a burst
//! credit ran out, or heat throttled the drive. The mean over the sample then describes neither
//! phase.

use crate::doubts::{DoubtEvidence, suspect_doubt};
use assay_model::Doubt;
use assay_model::units::mb_per_s;

/// Stable code of this doubt in results and in the book.
pub const CODE: &str = "burst";
/// Minimum number of points of the rate over time. With fewer points, its thirds cannot be compared.
const POINTS: usize = 9;
/// The rate counts as fallen if the mean rate in the last third is at most this fraction of the mean rate in the first
/// third. Samples of 1.5 s vary by a factor of two on a quiet machine, so a smaller fall is noise.
const FALL: f64 = 0.4;

pub(super) fn check(evidence: &DoubtEvidence) -> Option<Doubt> {
    let points = evidence.series;
    if points.len() < POINTS {
        return None;
    }
    let rates: Vec<f64> = points
        .iter()
        .map(assay_model::sample::RatePoint::bytes_per_s)
        .collect();
    let third = rates.len() / 3;
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    let (first, last) = (mean(&rates[..third]), mean(&rates[rates.len() - third..]));
    (first > 0.0 && last < first * FALL).then(|| {
        suspect_doubt(
            CODE,
            format!(
                "{} MB/s in the first third of the sample, {} MB/s in the last",
                mb_per_s(first),
                mb_per_s(last)
            ),
            "Measure longer after a ramp_time, and report what holds in the end.",
        )
    })
}
