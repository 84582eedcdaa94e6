//! The parsers, each with real inputs and what it promises.

mod files;
mod kept;
mod machine;
mod net;
mod probe;
mod settings;
mod talks;

use crate::Target;

/// Every parser.
#[must_use]
pub fn all() -> Vec<Target> {
    let mut all = settings::targets();
    all.extend(machine::targets());
    all.extend(files::targets());
    all.extend(kept::targets());
    all.extend(talks::targets());
    all.extend(probe::targets());
    all.extend(net::targets());
    all
}

/// Text as every reader of ours takes it: what is not UTF-8 is replaced.
fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// Seeds from text.
fn texts(seeds: &[&str]) -> Vec<Vec<u8>> {
    seeds.iter().map(|seed| seed.as_bytes().to_vec()).collect()
}
