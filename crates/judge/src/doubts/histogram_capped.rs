//! Rule `histogram-capped`: fio's latency histogram ends at 17.1 s (axboe/fio#1668), so percentiles above this are
//! reported too small. The maximum is exact.

use crate::doubts::{DoubtEvidence, suspect_doubt};
use assay_model::Doubt;
use assay_model::Nanos;

/// Stable code of this doubt in results and in the book.
pub const CODE: &str = "histogram-capped";
/// End of the last bin: 2^34 ns (`FIO_IO_U_PLAT_GROUP_NR` = 29, fio 3.33 stat.h).
const CAP: Nanos = Nanos(1 << 34);

pub(super) fn check(evidence: &DoubtEvidence) -> Option<Doubt> {
    let longest = evidence
        .directions()
        .map(|io| io.clat.max.max(io.lat.max))
        .max()?;
    (longest > CAP.0).then(|| {
        suspect_doubt(
            CODE,
            format!(
                "the longest I/O took {}, the histogram ends at 17.1 s",
                Nanos(longest)
            ),
            "Read the maximum; percentiles near it are too small.",
        )
    })
}
