//! The benches, one module each.

mod clones;
mod commands;
mod distribution;
mod guest_disks;
mod points;
mod unequal;
mod web_servers;
mod zfs;
mod zpool;

use crate::{BenchContext, StudyBench, StudyError};

/// A bench by its name.
pub struct NamedBench {
    /// As studies name it.
    pub name: &'static str,
    /// What of the user's own it can work on.
    pub own: UserTarget,
    make: for<'a> fn(&'a BenchContext<'a>) -> Box<dyn StudyBench + 'a>,
}

/// What of the user's own a bench can work on, besides the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserTarget {
    /// Nothing else.
    Nothing,
    /// A ZFS file system ([`Place::on`]); no guest image is needed then.
    Dataset,
    /// Directories on file systems ([`Place::dirs`]).
    Directories,
}

impl NamedBench {
    /// A bench that works in a place.
    #[must_use]
    pub fn make<'a>(&self, place: &'a BenchContext<'a>) -> Box<dyn StudyBench + 'a> {
        (self.make)(place)
    }
}

/// Every bench.
pub const BENCHES: &[NamedBench] = &[
    NamedBench {
        name: "commands",
        own: UserTarget::Nothing,
        make: |place| Box::new(commands::Commands::new(place)),
    },
    NamedBench {
        name: "distribution",
        own: UserTarget::Nothing,
        make: |place| Box::new(distribution::Distribution::new(place)),
    },
    NamedBench {
        name: "clones",
        own: UserTarget::Nothing,
        make: |place| Box::new(clones::Clones::new(place)),
    },
    NamedBench {
        name: "unequal",
        own: UserTarget::Nothing,
        make: |place| Box::new(unequal::Unequal::new(place)),
    },
    NamedBench {
        name: "guest-disks",
        own: UserTarget::Directories,
        make: |place| Box::new(guest_disks::GuestDisks::new(place)),
    },
    NamedBench {
        name: "points",
        own: UserTarget::Nothing,
        make: |place| Box::new(points::Points::new(place)),
    },
    NamedBench {
        name: "web-servers",
        own: UserTarget::Nothing,
        make: |place| Box::new(web_servers::WebServers::new(place)),
    },
    NamedBench {
        name: "zfs",
        own: UserTarget::Dataset,
        make: |place| Box::new(zfs::Zfs::new(place)),
    },
];

/// The bench of that name.
///
/// # Errors
/// There is none; says which there are.
pub fn find_bench(name: &str) -> Result<&'static NamedBench, StudyError> {
    let known = BENCHES.iter().find(|known| known.name == name);
    known.ok_or_else(|| StudyError::Setting {
        of: "bench".to_owned(),
        message: format!(
            "there is no bench `{name}`; there are {}",
            BENCHES
                .iter()
                .map(|known| known.name)
                .collect::<Vec<_>>()
                .join(", ")
        ),
    })
}
