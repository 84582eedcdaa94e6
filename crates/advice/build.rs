//! Lists the pages in `advice/DOMAIN/ID.md` and embeds them in the binary. Their front matter is converted to JSON,
//! because every command that reads the catalogue parses it, and parsing TOML takes five times as long.
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

/// Returns the front matter of a page as JSON, and the Markdown below it.
fn split(text: &str) -> Result<(String, String), Box<dyn Error>> {
    let mut lines = text.lines();
    let is_fence = |line: &&str| line.trim_end() == "+++";
    lines.next().filter(is_fence).ok_or("no front matter")?;
    let front: Vec<&str> = lines.by_ref().take_while(|line| !is_fence(line)).collect();
    let front: toml::Table = toml::from_str(&front.join("\n"))?;
    let page: Vec<&str> = lines.collect();
    Ok((
        serde_json::to_string(&front)?,
        page.join("\n").trim().to_owned(),
    ))
}

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new(&std::env::var("CARGO_MANIFEST_DIR")?).join("../../advice");
    let root = root.canonicalize()?;
    let mut list = String::from("[\n");
    for domain in entries(&root)?.iter().filter(|path| path.is_dir()) {
        for page in entries(domain)? {
            if page.extension().is_some_and(|extension| extension == "md") {
                println!("cargo:rerun-if-changed={}", page.display());
                let name = page.strip_prefix(&root)?;
                let text = std::fs::read_to_string(&page)?;
                let (front, body) =
                    split(&text).map_err(|error| format!("{}: {error}", page.display()))?;
                writeln!(list, "    ({name:?}, {front:?}, {body:?}),")?;
            }
        }
    }
    list.push_str("]\n");
    let out = Path::new(&std::env::var("OUT_DIR")?).join("pages.rs");
    std::fs::write(out, list)?;
    Ok(())
}
