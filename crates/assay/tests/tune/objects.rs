//! Sessions that compare objects which assay creates: disk images with the changes of several pages.

use super::planted::{PAGE, json, names};
use crate::common::Home;
use std::fs;
use std::path::Path;

/// Writes a page that compares two disk images. Returns its path.
fn image_page(dir: &Path, id: &str, now: &str, changed: &str) -> String {
    let from = PAGE.find("[trial.change]").unwrap();
    let to = PAGE.find("+++\n## Claim").unwrap();
    let image = |more: &str| format!("{{ kind = 'image', format = 'raw', filled = true, {more} }}");
    let trial = format!(
        "[trial.change]\nkind = \"side-by-side\"\nnow = {}\nchanged = {}\n[trial.load]\nkind = \"fio\"\n\
         workload = {{ name = \"randwrite-4k-qd4\", \
         pattern = \"randwrite\", block_size = \"4KiB\", queue_depth = 4 }}\n",
        image(now),
        image(changed)
    );
    let page = [&PAGE[..from], &trial, &PAGE[to..]].concat();
    let page = page.replace("metric = \"p50\"", "metric = \"iops\"");
    let path = dir.join(format!("{id}.md"));
    fs::write(&path, page).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn several_pages_about_images_are_proved_in_one_session_that_keeps_nothing() {
    if assay_testing::servers::skip(&["fio", "qemu-img", "qemu-storage-daemon"], false) {
        return;
    }
    let home = Home::new();
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let pages = tempfile::tempdir().unwrap();
    // Each write waits for the medium, or none does.
    let write_back = image_page(
        pages.path(),
        "write-back",
        r#"cache = "writethrough""#,
        r#"cache = "writeback""#,
    );
    let ring = image_page(
        pages.path(),
        "ring",
        r#"cache = "writethrough", aio = "threads""#,
        r#"cache = "writethrough", aio = "io_uring""#,
    );
    // Its objects differ from those of the first page in a property that no page changes.
    let other = image_page(
        pages.path(),
        "other",
        r#"cache = "none", options = { size = "1" }, luks = false"#,
        r#"cache = "none", options = { size = "1" }, luks = true"#,
    );
    let only = [write_back, ring, other].join(",");
    let words = [
        "tune",
        place.path().to_str().unwrap(),
        "--want",
        "more randwrite-4k-qd4.iops",
        "--only",
        &only,
        "--size",
        "32M",
        "--slot",
        "300ms",
        "--washout",
        "100ms",
        "--no-tail-guard",
        "--no-boot-undo",
        "--budget",
        "6m",
        "--json",
    ];
    let planned = home.assay(&[&words[..], &["--dry-run"]].concat());
    let document = json(&planned);
    assert_eq!(planned.code, Some(0), "{}\n{document:#}", planned.stderr);
    let planned = document["planned"].as_array().unwrap();
    assert_eq!(names(&document, "planned").len(), 2, "{document:#}");
    let first = planned
        .iter()
        .find(|one| one["advice"] == "write-back")
        .unwrap();
    assert_eq!(
        (&first["is"], &first["would_be"]),
        (&"writethrough".into(), &"writeback".into())
    );
    assert_eq!(names(&document, "left_out"), ["other"]);
    let ran = home.assay(&[&words[..], &["--whole", "--yes"]].concat());
    let document = json(&ran);
    assert_eq!(ran.code, Some(0), "{}\n{document:#}", ran.stderr);
    assert!(document["gain"].as_f64().unwrap() > 0.05, "{document:#}");
    assert!(names(&document, "kept").is_empty(), "{document:#}");
    let left: Vec<_> = fs::read_dir(place.path()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    let shown = home.assay(&["tune", "--show", "--markdown"]);
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
}
