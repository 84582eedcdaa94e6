#![no_main]
use std::sync::LazyLock;

static TARGET: LazyLock<assay_hostile::Target> = LazyLock::new(|| assay_hostile::target("kernel-text"));

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| (TARGET.run)(bytes));
