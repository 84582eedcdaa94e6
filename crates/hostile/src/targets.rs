//! All parsers of assay, each with real inputs and with the guarantees that are checked.

mod benchmarks;
mod files;
mod machine;
mod mail;
mod net;
mod peer_protocols;
mod probe;
mod seeds;
mod settings;
mod stored_files;
mod tables;
mod wifi;

use crate::ParserTarget;

/// Returns the targets for all parsers.
#[must_use]
pub fn all_targets() -> Vec<ParserTarget> {
    let mut all = settings::targets();
    all.extend(machine::targets());
    all.extend(files::targets());
    all.extend(benchmarks::targets());
    all.extend(stored_files::targets());
    all.extend(peer_protocols::targets());
    all.extend(probe::targets());
    all.extend(net::targets());
    all.extend(wifi::targets());
    all.extend(mail::targets());
    all.extend(tables::targets());
    all
}
