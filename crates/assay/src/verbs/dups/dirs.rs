//! `assay dups dirs`: finds folders with equal or common content, using the index.

use super::documents::{Folders, Name, Overlap, Same};
use super::explore::{load_files, print_json};
use super::index_location::Place;
use crate::context::report_writer;
use crate::status::Status;
use assay_dups::folders::{compare_folders, folder_label};
use assay_dups::name::format_readable;
use assay_model::SCHEMA_VERSION;
use assay_model::size::Convention::Binary;
use assay_render::units::format_plural;
use clap::Args;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

/// Arguments of `assay dups dirs`.
#[derive(Args)]
#[command(after_help = "\
Example:
  assay dups dirs --top 50               also those that are equal only in part")]
pub struct Dirs {
    /// Show only folders at or below PATH [default: all]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Show at most N equal and N partly equal folders; 0 shows all
    #[arg(long, value_name = "N", default_value_t = 20)]
    top: usize,
}

const ONE: &str = "may be one folder seen twice, and promise nothing";

pub fn dirs(args: &Dirs, place: &Place) -> anyhow::Result<Status> {
    let (_, files, below) = load_files(place, &args.paths)?;
    let most = if args.top == 0 { usize::MAX } else { args.top };
    let mut folders = compare_folders(&files);
    let inside = |path: &[u8]| {
        let path = std::path::Path::new(std::ffi::OsStr::from_bytes(path));
        below.is_empty() || below.iter().any(|root| path.starts_with(root))
    };
    folders
        .same
        .retain(|one| one.paths.iter().any(|path| inside(path)));
    folders
        .overlapping
        .retain(|one| inside(files.dir_path(one.a)) || inside(files.dir_path(one.b)));
    if place.json {
        let same = folders.same.iter().take(most).map(|one| Same {
            folders: one.paths.iter().map(|path| Name::of(path)).collect(),
            files: one.files,
            bytes: one.bytes,
            doubtful: one.doubtful,
        });
        let overlapping = folders.overlapping.iter().take(most).map(|one| Overlap {
            a: Name::of(&folder_label(&files, one.a)),
            b: Name::of(&folder_label(&files, one.b)),
            files: one.files,
            bytes: one.bytes,
            bytes_a: one.bytes_a,
            bytes_b: one.bytes_b,
            doubtful: one.doubtful,
        });
        print_json(&Folders {
            schema: SCHEMA_VERSION,
            same: same.collect(),
            overlapping: overlapping.collect(),
        })?;
        return Ok(Status::Ok);
    }
    let mut out = report_writer()?;
    if folders.same.is_empty() {
        writeln!(out, "no two folders are wholly equal")?;
    } else {
        writeln!(
            out,
            "wholly equal: {}",
            format_plural(
                folders.same.len() as u64,
                "set of folders",
                "sets of folders"
            )
        )?;
    }
    for one in folders.same.iter().take(most) {
        writeln!(
            out,
            "\n{} × {} in {}",
            one.paths.len(),
            Binary.show(one.bytes),
            format_plural(one.files, "file", "files")
        )?;
        for path in &one.paths {
            writeln!(out, "  {}", format_readable(path))?;
        }
        if one.doubtful > 0 {
            writeln!(out, "  {} of them {ONE}", one.doubtful)?;
        }
    }
    if !folders.overlapping.is_empty() {
        writeln!(
            out,
            "\nequal in part: {} (each folder without its subfolders)",
            format_plural(
                folders.overlapping.len() as u64,
                "pair of folders",
                "pairs of folders"
            )
        )?;
    }
    for one in folders.overlapping.iter().take(most) {
        let part = |whole: u64| match one.bytes as f64 * 100.0 / whole.max(1) as f64 {
            small if small > 0.0 && small < 0.5 => " <1".to_owned(),
            percent => format!("{percent:>3.0}"),
        };
        writeln!(
            out,
            "\n{} in {}\n  {} % of {}\n  {} % of {}",
            Binary.show(one.bytes),
            format_plural(one.files, "file", "files"),
            part(one.bytes_a),
            format_readable(&folder_label(&files, one.a)),
            part(one.bytes_b),
            format_readable(&folder_label(&files, one.b))
        )?;
        if one.doubtful {
            writeln!(out, "  the two {ONE}")?;
        }
    }
    out.flush()?;
    Ok(Status::Ok)
}
