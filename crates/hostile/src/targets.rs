//! The parsers, each with real inputs and what it promises.

mod files;
mod kept;
mod machine;
mod net;
mod probe;
mod seeds;
mod settings;
mod tables;
mod talks;
mod wifi;

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
    all.extend(wifi::targets());
    all.extend(tables::targets());
    all
}
