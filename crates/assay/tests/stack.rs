//! Tests `assay stack` on this machine: all formats, and missing targets.
#![allow(clippy::disallowed_methods, reason = "tests drive the real program")]

mod common;

use common::Home;
use serde_json::Value;

#[test]
fn the_layers_under_a_directory_in_all_forms() {
    let home = Home::new();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_str().unwrap();
    let page = dir.path().join("page.html");

    let text = home.assay(&["stack", path]);
    assert_eq!(text.code, Some(0), "{}", text.stderr);
    // Lower layers differ between machines.
    let begins = |start: &str| text.stdout.lines().any(|line| line.starts_with(start));
    assert!(begins(&format!("path {path}")), "{}", text.stdout);
    assert!(begins("file system"), "{}", text.stdout);
    assert!(begins("Next"), "{}", text.stdout);

    let json = home.assay(&["stack", path, "--json", "--html", page.to_str().unwrap()]);
    let document: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(document["target"], path);
    let layers = document["layers"].as_array().unwrap();
    assert_eq!(layers[0]["kind"], "path");
    assert_eq!(layers[1]["kind"], "file-system");
    assert_eq!(layers[0]["below"][0], 1);
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("<svg") && page.contains("file system"));

    let markdown = home.assay(&["stack", path, "--markdown"]);
    let title = markdown.stdout.lines().next().unwrap();
    insta::assert_snapshot!(assay_testing::normalize_output(title, &[(path, "DIR")]), @"# The layers under DIR");
}

#[test]
fn what_is_not_there_is_named() {
    let home = Home::new();
    let mut said = String::new();
    for target in ["/no/such/place", "no-such-guest", "/dev/null"] {
        let ran = home.assay(&["stack", target]);
        assert_eq!(ran.code, Some(2), "{target}");
        assert_eq!(ran.stdout, "");
        said += &home.told(&ran.stderr);
    }
    insta::assert_snapshot!(said, @r#"
    assay: /no/such/place: no such file or directory
    assay: no virtual machine "no-such-guest" is running or defined here
    assay: /dev/null: neither a directory, a file nor a block device
    "#);
}
