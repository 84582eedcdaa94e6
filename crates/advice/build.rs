//! Lists the pages in `advice/DOMAIN/ID.md`, so that they are embedded in the binary.
#![allow(
    clippy::disallowed_methods,
    reason = "a build script reads the source tree and writes into OUT_DIR"
)]

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn entries(dir: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    // Cargo rescans a watched directory when an entry is added or removed.
    println!("cargo:rerun-if-changed={}", dir.display());
    let mut found = std::fs::read_dir(dir)?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<_>, std::io::Error>>()?;
    found.sort();
    Ok(found)
}

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new(&std::env::var("CARGO_MANIFEST_DIR")?).join("../../advice");
    let root = root.canonicalize()?;
    let mut list = String::from("[\n");
    for domain in entries(&root)?.iter().filter(|path| path.is_dir()) {
        for page in entries(domain)? {
            if page.extension().is_some_and(|extension| extension == "md") {
                let name = page.strip_prefix(&root)?;
                writeln!(list, "    ({name:?}, include_str!({page:?})),")?;
            }
        }
    }
    list.push_str("]\n");
    let out = Path::new(&std::env::var("OUT_DIR")?).join("pages.rs");
    std::fs::write(out, list)?;
    Ok(())
}
