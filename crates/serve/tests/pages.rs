//! Tests the structure, links and escaping of every page, with the demonstration fleet, with an empty store, and with
//! hostile names.
#![allow(
    clippy::disallowed_methods,
    reason = "tests work in directories of their own"
)]

#[path = "site/test_server.rs"]
mod test_server;

use std::collections::BTreeSet;
use test_server::{TestServer, index_hostile_duplicates, links};

/// Checks the properties that every page must have, and returns the links on the page.
fn check_page(server: &TestServer, path: &str, status: u16) -> Vec<String> {
    let answer = server.get(path);
    assert_eq!(answer.status, status, "{path}: {}", answer.body);
    let page = &answer.body;
    assert_eq!(
        answer.header("content-type"),
        Some("text/html; charset=utf-8"),
        "{path}"
    );
    for (part, count) in [
        ("<main id=\"content\"", 1),
        ("<h1", 1),
        ("</html>", 1),
        ("<title>", 1),
    ] {
        let title_in_charts = if part == "<title>" {
            page.matches("<rect").count()
        } else {
            0
        };
        let found = page.matches(part).count();
        assert!(
            found >= count && found <= count + title_in_charts,
            "{path}: {found} times {part}"
        );
    }
    assert!(
        !page.contains("<style") && !page.contains(" style=\""),
        "{path} has an inline style"
    );
    let scripts = page.matches("<script").count();
    assert_eq!(
        scripts,
        page.matches("<script src=\"/assets/site-").count(),
        "{path} has an inline script"
    );
    let ids: Vec<&str> = page
        .split(" id=\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect();
    let unique: BTreeSet<&&str> = ids.iter().collect();
    assert_eq!(ids.len(), unique.len(), "{path}: an id twice: {ids:?}");
    links(page)
}

#[test]
fn every_link_of_the_demo_leads_to_a_page() {
    let server = TestServer::start_demo();
    let mut open = vec!["/".to_owned(), "/about".to_owned(), "/figures".to_owned()];
    let mut seen: BTreeSet<String> = open.iter().cloned().collect();
    let mut kinds: BTreeSet<String> = BTreeSet::new();
    let mut count = 0;
    while let Some(path) = open.pop() {
        let path = path.split('#').next().unwrap_or_default().to_owned();
        let kind = |path: &str| path.split('/').take(2).collect::<Vec<_>>().join("/");
        if path.starts_with("/api/") || path.starts_with("/assets/") || path == "/metrics" {
            let answer = server.get(&path);
            assert_eq!(answer.status, 200, "{path}");
            continue;
        }
        kinds.insert(kind(&path));
        count += 1;
        for link in check_page(&server, &path, 200) {
            // Of many pages of a kind, some are enough.
            let alike = seen.iter().filter(|other| {
                kind(other.split('?').next().unwrap_or_default())
                    == kind(link.split('?').next().unwrap_or_default())
            });
            if alike.count() < 9 && seen.insert(link.clone()) {
                open.push(link);
            }
        }
    }
    assert!(count > 15, "{count} pages: {kinds:?}");
}

#[test]
fn attack_folders_with_hostile_names_can_be_walked() {
    let root = tempfile::tempdir().unwrap();
    let server = TestServer::start_with(
        |_, _| {},
        |options| index_hostile_duplicates(options.duplicates.as_deref().unwrap(), root.path()),
    );
    let (mut seen, mut open) = (BTreeSet::new(), vec!["/duplicates".to_owned()]);
    while let Some(path) = open.pop() {
        if seen.insert(path.clone()) {
            let links = check_page(&server, &path, 200).into_iter();
            open.extend(links.filter(|link| link.starts_with("/duplicates?")));
        }
    }
    // Five folders, the one in each, and those above.
    assert!(seen.len() > 10, "{seen:?}");
}

#[test]
fn the_dashboard_of_the_book_asks_for_gauges_that_are_there() {
    let file = "../../docs/src/files/grafana-dashboard.json";
    let text = std::fs::read_to_string(file).unwrap();
    let dashboard: serde_json::Value = serde_json::from_str(&text).unwrap();
    let answer = TestServer::start_demo().get("/metrics");
    let gauges: BTreeSet<&str> = answer
        .body
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next())
        .collect();
    let is_part = |c: char| c.is_ascii_lowercase() || c == '_';
    let panels = dashboard["panels"].as_array().unwrap();
    for panel in panels {
        let asked = panel["targets"][0]["expr"].as_str().unwrap();
        let names: Vec<&str> = asked
            .split(|c| !is_part(c))
            .filter(|word| word.starts_with("assay_"))
            .collect();
        assert!(!names.is_empty(), "{asked}");
        assert!(
            names.iter().all(|name| gauges.contains(name)),
            "{asked}: {gauges:?}"
        );
    }
    assert!(panels.len() > 5);
}
