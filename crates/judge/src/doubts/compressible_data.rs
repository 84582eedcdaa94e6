//! Rule `compressible-data`: fio fills a buffer once and then changes a few bytes per write, so that neighbouring
//! blocks are nearly the same. Observed compression ratio in windows of 128K: 10.9 for blocks of 4k, 1.09 for blocks of
//! 1m, none with `refill_buffers`. ZFS, btrfs, some SSDs and deduplication then store less data than fio wrote.

use crate::doubts::{DoubtEvidence, clean_text, suspect_doubt};
use assay_model::Bytes;
use assay_model::Doubt;

/// Stable code of this doubt in results and in the book.
pub const CODE: &str = "compressible-data";
const REMEDY: &str = "Add refill_buffers=1, and watch that usr_cpu does not become the limit.";
/// Compression ratio (original ÷ compressed) from which data counts as compressible. Random data stays below 1.01.
pub(super) const RATIO: f64 = 1.1;
/// Largest block in bytes that file systems compress at once (ZFS default recordsize, btrfs extent). Within one block
/// of this size, the data in fio's buffer does not repeat.
const WINDOW: Bytes = Bytes(128 << 10);

/// Whether the job uses `verify`. fio then fills its buffers anew for every write (`fixup_options`, fio init.c).
fn is_verified(options: &assay_fio::options::JobOptions) -> bool {
    options
        .given("verify")
        .is_some_and(|method| !matches!(method, "0" | "none" | "null" | "pattern"))
}

pub(super) fn check(evidence: &DoubtEvidence) -> Option<Doubt> {
    if let Some(file) = evidence.file
        && let Some(ratio) = file.compress_ratio.filter(|ratio| *ratio > RATIO)
    {
        let mut seen = format!("the data in the file compresses {ratio:.1} times");
        if file.stored_smaller() {
            seen += &format!(": its {} take {} there", file.size, file.allocated);
        }
        return Some(suspect_doubt(CODE, seen, REMEDY));
    }
    let options = evidence.options?;
    if !options.access.writes {
        return None;
    }
    let seen = if options.is_on("zero_buffers", false) {
        "zero_buffers writes zeroes".to_owned()
    } else if options.given("buffer_pattern").is_some() {
        "buffer_pattern writes the same bytes again and again".to_owned()
    } else if let Some(percent) = options
        .given("buffer_compress_percentage")
        .filter(|p| *p != "0")
    {
        format!(
            "buffer_compress_percentage={} writes data that compresses",
            clean_text(percent)
        )
    } else if let Some(percent) = options.given("dedupe_percentage").filter(|p| *p != "0") {
        format!(
            "dedupe_percentage={} writes blocks that repeat",
            clean_text(percent)
        )
    } else if options.is_on("refill_buffers", false) || is_verified(options) {
        return None;
    } else if !options.is_on("scramble_buffers", true) {
        "scramble_buffers=0 without refill_buffers writes one block again and again".to_owned()
    } else if (options.complete() || options.given("refill_buffers").is_some())
        && options.block_size.1.0 < WINDOW.0
    {
        format!(
            "without refill_buffers fio reuses its buffers: neighbouring blocks of {} are nearly the same",
            options.block_size.1
        )
    } else {
        return None;
    };
    Some(suspect_doubt(CODE, seen, REMEDY))
}
