//! Tests the page of duplicates by folder.

mod common;

use common::page::check;

struct Folder(u64, Vec<(&'static str, Folder)>);

fn page(root: &Folder) -> String {
    assay_report::dups_page::render_treemap_page(
        "/srv",
        root,
        &|one: &Folder| one.0,
        &|one: &Folder| {
            let below = one.1.iter();
            below.map(|(name, one)| ((*name).to_owned(), one)).collect()
        },
    )
}

#[test]
fn the_page_has_the_folders_as_a_picture_and_as_a_table_in_order() {
    let small = Folder(1 << 20, Vec::new());
    let large = Folder(3 << 20, vec![("deep", Folder(2 << 20, Vec::new()))]);
    let root = Folder(4 << 20, vec![("<large>", large), ("small", small)]);
    let page = page(&root);
    check(&page);
    let shown = page.replace("&#x2f;", "/");
    let rows: Vec<&str> = shown
        .split("<th scope=\"row\">")
        .skip(1)
        .map(|row| row.split("</th>").next().unwrap())
        .collect();
    assert_eq!(
        rows,
        [
            "/srv",
            "/srv/&lt;large&gt;",
            "/srv/&lt;large&gt;/deep",
            "/srv/small"
        ]
    );
    assert!(page.contains("3 MiB") && page.contains("name=\"viewport\""));
}

#[test]
fn nothing_to_gain_is_a_page_too() {
    check(&page(&Folder(0, Vec::new())));
}
