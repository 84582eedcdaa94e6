//! Where the bytes of duplicate files lie, as a page.

use assay_model::size::Convention::Binary;
use assay_render::html::{Chart, Table, page};
use assay_render::svg::treemap::{Tree, treemap as draw};
use minijinja::context;
use minijinja::value::Serde;

const TEMPLATE: &str = include_str!("dups/treemap.html");
const STYLE: &str = "svg .tile { stroke: var(--page); stroke-width: 1 }
.treemap { overflow-x: auto } .treemap svg { min-width: 40rem; width: 100% }
";
/// Folders in the table.
const MOST: usize = 40;

/// The page of a tree of folders, each with the bytes of redundant copies in it and below. `below`
/// gives the folders in one, the largest first.
#[must_use]
pub fn treemap<'a, T>(
    path: &str,
    root: &'a T,
    bytes: &dyn Fn(&T) -> u64,
    below: &dyn Fn(&'a T) -> Vec<(String, &'a T)>,
) -> String {
    let show = |bytes| Binary.show(bytes);
    let tree = Tree {
        size: bytes,
        below,
        show: &show,
    };
    let title = format!("Duplicates in {path}");
    let svg = draw("folders", &title, path, root, &tree);
    let folders = largest(path, root, &tree);
    let rows = folders
        .into_iter()
        .map(|(path, bytes)| vec![path, show(bytes)]);
    let chart = Chart {
        title: "By folder".to_owned(),
        svg,
        table: Table {
            head: ["folder", "redundant"].map(str::to_owned).to_vec(),
            rows: rows.collect(),
        },
    };
    page(
        &title,
        STYLE,
        TEMPLATE,
        context! {
            total => show(bytes(root)),
            chart => Serde(chart),
            most => MOST,
        },
    )
}

/// The folders with most bytes, the largest first; every one stands behind the one it lies in.
fn largest<'a, T>(path: &str, root: &'a T, tree: &Tree<'_, 'a, T>) -> Vec<(String, u64)> {
    let mut open = vec![(path.to_owned(), root)];
    let mut found = Vec::new();
    while let Some(at) =
        (0..open.len()).max_by_key(|at| ((tree.size)(open[*at].1), usize::MAX - at))
    {
        let (path, node) = open.swap_remove(at);
        for (name, child) in (tree.below)(node).into_iter().take(MOST) {
            open.push((format!("{}/{name}", path.trim_end_matches('/')), child));
        }
        found.push((assay_render::text::clean(&path), (tree.size)(node)));
        if found.len() == MOST {
            break;
        }
    }
    found
}
