//! Every parser of assay as a [`ParserTarget`], and inputs that are mutations of real inputs. The test of this crate
//! runs the targets in its own process. The programs in `fuzz/` run the same targets under a fuzzer.
#![allow(
    clippy::disallowed_methods,
    reason = "reads fixtures, and looks at the clock to tell a parser that hangs"
)]

mod mutate;
mod run;
mod targets;

/// Compiles source files of other crates into this crate, because their parsers are private.
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

/// A parser, with real inputs for it.
pub struct ParserTarget {
    /// Name of the target, as in `fuzz/fuzz_targets`.
    pub name: &'static str,
    /// Real inputs, from which mutated inputs are made.
    pub seeds: Vec<Vec<u8>>,
    /// Parses an input. Panics if the parser breaks one of its guarantees.
    pub run: fn(&[u8]),
}

/// Returns the target with this name.
///
/// # Panics
/// No target has this name.
#[must_use]
pub fn find_target(name: &str) -> ParserTarget {
    let found = all_targets().into_iter().find(|target| target.name == name);
    found.unwrap_or_else(|| panic!("no target `{name}`"))
}
