#![no_main]
use std::sync::LazyLock;

static TARGET: LazyLock<assay_hostile::ParserTarget> =
    LazyLock::new(|| assay_hostile::find_target("dups-other-writers"));

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| (TARGET.run)(bytes));
