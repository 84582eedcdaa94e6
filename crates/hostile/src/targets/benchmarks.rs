//! Targets for results that users paste: fio's text and terse output, and the output of other benchmarks.

use super::seeds::{text_seeds, to_text};
use crate::ParserTarget;
use assay_fio::{import, terse, text_result};
use assay_imports::ResultContext;

pub(super) fn targets() -> Vec<ParserTarget> {
    vec![
        ParserTarget {
            name: "fio-text",
            seeds: text_seeds(&[
                include_str!("../../../fio/fixtures/fio-3.33-mix.txt"),
                include_str!("../../../fio/fixtures/fio-3.33-fdatasync.txt"),
                include_str!("../../../fio/fixtures/handmade-fio-2.2.10.txt"),
            ]),
            run: |bytes| {
                let text = to_text(bytes);
                let _ = text_result::is_text_result(&text);
                for document in text_result::parse_text(&text).unwrap_or_default() {
                    judge_document(&document);
                }
            },
        },
        ParserTarget {
            name: "fio-terse",
            seeds: text_seeds(&[
                include_str!("../../../fio/fixtures/fio-3.33-terse-2.txt"),
                include_str!("../../../fio/fixtures/fio-3.33-terse-5.txt"),
            ]),
            run: |bytes| {
                let text = to_text(bytes);
                let _ = terse::is_terse(&text);
                if let Ok(document) = terse::parse_terse(&text) {
                    judge_document(&document);
                }
            },
        },
        ParserTarget {
            name: "benchmark-results",
            seeds: text_seeds(&[
                include_str!("../../../imports/fixtures/made-crystaldiskmark-3.txt"),
                include_str!("../../../imports/fixtures/made-crystaldiskmark-8.txt"),
                include_str!("../../../imports/fixtures/sysbench-1.0.20.txt"),
                include_str!("../../../imports/fixtures/made-sysbench-0.4.12.txt"),
                include_str!("../../../imports/fixtures/made-iozone.txt"),
                include_str!("../../../imports/fixtures/made-bonnie-1.96.txt"),
                "# dd if=/dev/zero of=/srv/f bs=1M\n67108864 bytes (67 MB, 64 MiB) copied, 0.06 s, 1.1 GB/s\n",
                "CPU BOGOMIPS: 1\nHD SIZE: 1 GB (/dev/x)\nBUFFERED READS: 2 MB/sec\nFSYNCS/SECOND: 3\n",
                "HD Tune Pro: D Benchmark\nTransfer Rate Average : 3 MB/sec\n4 KB 45 IOPS 0.2 ms 3.7 ms 17 MB/s\n",
                "ATTO Disk Benchmark\nQueue Depth: 4\nSize Write kB/s Read kB/s\n4 KB 80120 91230\n",
            ]),
            run: |bytes| {
                for result in assay_imports::parse_results(&to_text(bytes)).unwrap_or_default() {
                    let _ = assay_judge::doubts::other_results::judge_tool_result(&result);
                    let context = ResultContext {
                        file: String::new(),
                        uid: String::new(),
                        version: String::new(),
                        now: Default::default(),
                        remarks: Vec::new(),
                    };
                    let (run, samples) = assay_imports::to_run(&result, &context);
                    let _ = assay_judge::judge_run(&run, &samples);
                }
            },
        },
    ]
}

fn judge_document(document: &assay_fio::json::FioDocument) {
    let about = import::Context {
        file: String::new(),
        uid: String::new(),
        version: String::new(),
        now: Default::default(),
    };
    let (run, samples) = import::run(document, &about);
    let _ = assay_judge::judge_run(&run, &samples);
    let _ = assay_judge::doubts::judge_result(document);
}
