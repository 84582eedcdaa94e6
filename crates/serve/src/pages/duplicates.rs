//! Duplicate files by folder, as a treemap in which the user can open folders. The data comes from the index of
//! `assay dups scan`.

use super::{LinkView, TimeView};
use crate::answer::{Answer, Refusal};
use crate::query::encode;
use crate::routes::PageRequest;
use crate::site::Site;
use crate::site_page::Section;
use assay_dups::Index;
use assay_dups::group::by_hash;
use assay_dups::name::format_readable;
use assay_dups::tree::{Node, build_tree};
use assay_model::size::Convention::Binary;
use assay_render::html::{Chart, ChartTable};
use assay_render::svg::treemap::{SizeTree, draw_treemap};
use axum::http::StatusCode;
use jiff::Timestamp;
use minijinja::context;
use minijinja::value::Serde;
use serde::Serialize;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of folders that the table shows.
const MOST_FOLDERS: usize = 100;

/// Identity of the index file: inode, size, and time of its last change in nanoseconds.
type IndexIdentity = (u64, u64, i64);

/// Tree of folders, with the time of the last scan.
type DatedTree = (Arc<Node>, Option<Timestamp>);

/// Cache of the folder tree, with the identity of the index file from which it was read.
#[derive(Debug, Default)]
pub(crate) struct DuplicatesCache(Mutex<Option<(IndexIdentity, Arc<Node>)>>);

#[derive(Serialize)]
struct FolderRow {
    link: LinkView,
    size: String,
    files: usize,
}

/// Answers `/duplicates?path=/srv` with the treemap of a folder.
pub(crate) fn show(site: &Site, request: &PageRequest) -> Result<Answer, Refusal> {
    let Some((tree, changed)) = load_tree(site)? else {
        return Ok(Answer::page(site.render_page(
            "Duplicates",
            Section::Duplicates,
            include_str!("../templates/duplicates.html"),
            context! { is_empty => true },
        )));
    };
    let (path, node) = match request.query.get("path") {
        Some(path) => (path.to_owned(), find_folder(&tree, path)?),
        None => {
            let (path, top) = tree.top();
            match path.is_empty() {
                true => ("/".to_owned(), top),
                false => (format_readable(&path), top),
            }
        }
    };
    let show_size = |bytes| Binary.show(bytes);
    let svg = draw_treemap(
        "folders",
        "Bytes of redundant copies by folder",
        &path,
        node,
        &SizeTree {
            size: &|node: &Node| node.bytes,
            below: &list_below,
            link: Some(&folder_href),
            show: &show_size,
        },
    );
    let folders = list_below(node);
    let rows: Vec<FolderRow> = folders
        .iter()
        .take(MOST_FOLDERS)
        .map(|(name, one)| FolderRow {
            link: LinkView {
                text: super::short_name(name),
                href: folder_href(&join_path(&path, name)),
            },
            size: show_size(one.bytes),
            files: one.files.len(),
        })
        .collect();
    let page = site.render_page(
        "Duplicates",
        Section::Duplicates,
        include_str!("../templates/duplicates.html"),
        context! {
            is_empty => false,
            crumbs => Serde(list_crumbs(&path)),
            path => super::short_name(&path),
            total => show_size(node.bytes),
            files => node.files.len(),
            scanned => Serde(changed.map(TimeView::new)),
            chart => Serde(Chart {
                title: "Redundant copies by folder".to_owned(),
                svg,
                table: ChartTable::default(),
            }),
            rows => Serde(rows),
            left_out => folders.len().saturating_sub(MOST_FOLDERS),
        },
    );
    Ok(Answer::page(page))
}

fn folder_href(path: &str) -> String {
    match path.len() > 2 * super::MOST_LINKED {
        true => "/duplicates".to_owned(),
        false => format!("/duplicates?{}", encode(&[("path", path)])),
    }
}

fn join_path(path: &str, name: &str) -> String {
    format!("{}/{name}", path.trim_end_matches('/'))
}

/// Returns the folders below a node with their names, the largest first.
fn list_below(node: &Node) -> Vec<(String, &Node)> {
    let folders = node.folders().into_iter();
    folders
        .map(|(name, one)| (format_readable(name), one))
        .collect()
}

/// Returns the folder with this path. Compares escaped names, because the path comes from a hyperlink of this page.
fn find_folder<'a>(tree: &'a Node, path: &str) -> Result<&'a Node, Refusal> {
    let mut node = tree;
    for part in path.split('/').filter(|part| !part.is_empty()) {
        let mut below = node.children.iter();
        let found = below.find(|(name, _)| format_readable(name) == part);
        node = found.map(|(_, one)| one).ok_or_else(|| {
            Refusal::missing(
                "The index knows no duplicates in this folder. The page above has all.",
            )
        })?;
    }
    Ok(node)
}

fn list_crumbs(path: &str) -> Vec<LinkView> {
    let mut crumbs = vec![LinkView {
        text: "/".to_owned(),
        href: folder_href("/"),
    }];
    let mut whole = String::new();
    for part in path.split('/').filter(|part| !part.is_empty()) {
        whole = join_path(&whole, part);
        crumbs.push(LinkView {
            text: super::short_name(part),
            href: folder_href(&whole),
        });
    }
    crumbs
}

/// Returns the folder tree of the index and the time of the last scan. Reads the index only if the file has changed.
fn load_tree(site: &Site) -> Result<Option<DatedTree>, Refusal> {
    let Some(path) = &site.options.duplicates else {
        return Ok(None);
    };
    let Ok(meta) = std::fs::metadata(path) else {
        return Ok(None);
    };
    let changed = Timestamp::new(meta.mtime(), 0).ok();
    let nanos = meta
        .mtime()
        .wrapping_mul(1_000_000_000)
        .wrapping_add(meta.mtime_nsec());
    let identity = (meta.ino(), meta.len(), nanos);
    let mut last = site
        .duplicates
        .0
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    if let Some((known, tree)) = &*last
        && *known == identity
    {
        return Ok(Some((tree.clone(), changed)));
    }
    let tree = Arc::new(read_tree(path)?);
    *last = Some((identity, tree.clone()));
    Ok(Some((tree, changed)))
}

fn read_tree(path: &Path) -> Result<Node, Refusal> {
    let refuse = |error: &dyn std::fmt::Display| {
        Refusal::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "The index of duplicates cannot be read",
            error.to_string(),
        )
    };
    let index = Index::read(path).map_err(|error| refuse(&error))?;
    let files = index.load(&[]).map_err(|error| refuse(&error))?;
    let groups = by_hash(&files);
    Ok(build_tree(&files, &groups))
}
