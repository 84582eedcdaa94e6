//! Rule `unit-trap`: in fio `4kib` is 4000 and `4k` is 4096, because the suffixes of IEC and SI are
//! swapped unless `kb_base=1000`.

use crate::doubts::{DoubtEvidence, clean_text, suspect_doubt};
use assay_fio::options::unit_trap;
use assay_model::Doubt;

/// Stable code of this doubt in results and in the book.
pub const CODE: &str = "unit-trap";
/// Options whose value is a size.
const SIZES: [&str; 10] = [
    "bs",
    "bsrange",
    "bssplit",
    "size",
    "filesize",
    "io_size",
    "offset",
    "offset_increment",
    "rate",
    "rate_min",
];

pub(super) fn check(evidence: &DoubtEvidence) -> Option<Doubt> {
    let options = evidence.options?;
    for key in SIZES {
        let Some(value) = options.given(key) else {
            continue;
        };
        let trap = value
            .split([',', ':', '/', '-'])
            .find_map(|part| Some((part, unit_trap(part, options.kb_base())?)));
        if let Some((part, (got, meant))) = trap {
            return Some(suspect_doubt(
                CODE,
                format!(
                    "{key}={}: fio takes {} for {got} bytes, not {meant}",
                    clean_text(value),
                    clean_text(part)
                ),
                "Write plain bytes, or the one-letter suffixes k, m, g, which are powers of 1024.",
            ));
        }
    }
    None
}
