//! Lists the pages in `suspects/`, so that they are embedded in the binary.
#![allow(
    clippy::disallowed_methods,
    reason = "a build script reads the source tree and writes into OUT_DIR"
)]

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new(&std::env::var("CARGO_MANIFEST_DIR")?).join("suspects");
    println!("cargo:rerun-if-changed={}", folder.display());
    let mut pages: Vec<PathBuf> = std::fs::read_dir(&folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_, std::io::Error>>()?;
    pages.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "toml")
    });
    pages.sort();
    let mut list = String::from("[\n");
    for page in pages {
        let stem = page.file_stem().unwrap_or_default();
        writeln!(list, "    ({stem:?}, include_str!({page:?})),")?;
    }
    list.push_str("]\n");
    std::fs::write(
        Path::new(&std::env::var("OUT_DIR")?).join("suspects.rs"),
        list,
    )?;
    Ok(())
}
