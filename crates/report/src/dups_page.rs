//! Page of duplicate files: a treemap and a table of the folders with redundant copies. The
//! duplicates are found in `assay-dups`.

use assay_model::size::Convention::Binary;
use assay_render::html::{Chart, ChartTable, render_page};
use assay_render::svg::treemap::{SizeTree, draw_treemap};
use minijinja::context;
use minijinja::value::Serde;

const TEMPLATE: &str = include_str!("dups_page/treemap.html");
const STYLE: &str = "svg .tile { stroke: var(--page); stroke-width: 1 }
.treemap { overflow-x: auto } .treemap svg { min-width: 40rem; width: 100% }
";
/// Maximum number of folders in the table.
const MOST: usize = 40;

/// Renders the page of a folder tree. `bytes` returns the bytes of redundant copies in a folder and its subfolders.
/// `below` returns the subfolders of a folder, the largest first.
#[must_use]
pub fn render_treemap_page<'a, T>(
    path: &str,
    root: &'a T,
    bytes: &dyn Fn(&T) -> u64,
    below: &dyn Fn(&'a T) -> Vec<(String, &'a T)>,
) -> String {
    let show = |bytes| Binary.show(bytes);
    let tree = SizeTree {
        size: bytes,
        below,
        link: None,
        show: &show,
    };
    let title = format!("Duplicates in {path}");
    let svg = draw_treemap("folders", &title, path, root, &tree);
    let folders = list_largest_folders(path, root, &tree);
    let rows = folders
        .into_iter()
        .map(|(path, bytes)| vec![path, show(bytes)]);
    let chart = Chart {
        title: "By folder".to_owned(),
        svg,
        table: ChartTable {
            head: ["folder", "redundant"].map(str::to_owned).to_vec(),
            rows: rows.collect(),
        },
    };
    render_page(
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

/// Lists the folders with the most bytes, the largest first. Each folder follows its parent.
fn list_largest_folders<'a, T>(
    path: &str,
    root: &'a T,
    tree: &SizeTree<'_, 'a, T>,
) -> Vec<(String, u64)> {
    let mut open = vec![(path.to_owned(), root)];
    let mut found = Vec::new();
    while let Some(at) =
        (0..open.len()).max_by_key(|at| ((tree.size)(open[*at].1), usize::MAX - at))
    {
        let (path, node) = open.swap_remove(at);
        for (name, child) in (tree.below)(node).into_iter().take(MOST) {
            open.push((format!("{}/{name}", path.trim_end_matches('/')), child));
        }
        found.push((assay_render::text::escape_line(&path), (tree.size)(node)));
        if found.len() == MOST {
            break;
        }
    }
    found
}
