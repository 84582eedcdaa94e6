//! For tests only: every parser of assay as a [`Target`], and inputs for it that are mutated from real
//! ones. The same targets are run by this crate's test, in process, and by the programs in `fuzz/`.
#![allow(
    clippy::disallowed_methods,
    reason = "reads fixtures, and looks at the clock to tell a parser that hangs"
)]

mod mutate;
mod run;
mod targets;

/// Files of crates that keep their parsers to themselves, compiled for what reads.
macro_rules! borrowed {
    ($($name:ident = $path:literal),+ $(,)?) => {$(
        #[allow(
            dead_code,
            missing_docs,
            reason = "compiled for what reads, not for what writes"
        )]
        #[path = $path]
        mod $name;
    )+};
}

borrowed! {
    formats = "../../facts/src/overwrite/formats.rs",
    imap = "../../loads/src/imap/server_replies.rs",
    nbd = "../../changes/src/side_by_side/nbd/mod.rs",
}

pub use mutate::{LONGEST, Mutator};
pub use run::{TargetFailure, attack};
pub use targets::all_targets;

/// A parser.
pub struct ParserTarget {
    /// Its name, as in `fuzz/fuzz_targets`.
    pub name: &'static str,
    /// Real inputs.
    pub seeds: Vec<Vec<u8>>,
    /// Reads an input; panics where a promise is broken.
    pub run: fn(&[u8]),
}

/// The parser of that name.
///
/// # Panics
/// There is none.
#[must_use]
pub fn find_target(name: &str) -> ParserTarget {
    let found = all_targets().into_iter().find(|target| target.name == name);
    found.unwrap_or_else(|| panic!("no target `{name}`"))
}
