//! Writes real inputs of every parser to the directory in which `cargo fuzz` searches them: `corpus DIR`.
#![allow(
    clippy::disallowed_methods,
    reason = "writes into the directory that is named"
)]

use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let dir = std::env::args_os()
        .nth(1)
        .map_or_else(|| PathBuf::from("fuzz/corpus"), PathBuf::from);
    for target in assay_hostile::all_targets() {
        let dir = dir.join(target.name);
        std::fs::create_dir_all(&dir)?;
        for (number, seed) in target.seeds.iter().enumerate() {
            std::fs::write(dir.join(format!("seed-{number}")), seed)?;
        }
    }
    Ok(())
}
