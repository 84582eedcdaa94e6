#![no_main]
use std::sync::LazyLock;

static TARGET: LazyLock<assay_hostile::ParserTarget> = LazyLock::new(|| assay_hostile::find_target("benchmark-results"));

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| (TARGET.run)(bytes));
