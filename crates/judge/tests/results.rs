//! Tests the doubts about recorded results of the real fio. Each result is an example of one pitfall, and must cause
//! exactly the expected doubts.
#![allow(clippy::disallowed_methods, reason = "reads the fixtures beside it")]

use assay_judge::doubts::judge_result;
use std::path::Path;

#[test]
fn recorded_results_are_doubted_for_the_right_reasons() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/fio-3.33");
    let expected = std::fs::read_to_string(dir.join("expected.txt")).unwrap();
    let mut found = String::new();
    let mut names: Vec<_> = std::fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "json"))
        .collect();
    names.sort();
    for path in names {
        let documents = assay_fio::json::parse(std::fs::read(&path).unwrap()).unwrap();
        let judged = judge_result(documents.last().unwrap());
        assert_eq!(judged.len(), 1, "{}", path.display());
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        found.push_str(&name);
        for doubt in &judged[0].doubts {
            found.push_str(&format!(" {}:{:?}", doubt.code, doubt.severity).to_lowercase());
        }
        found.push('\n');
    }
    assert_eq!(found, expected, "found:\n{found}");
}
