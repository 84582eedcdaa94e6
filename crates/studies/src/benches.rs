//! All benches, each in its own module.

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

/// A bench, with the name by which studies select it.
pub struct NamedBench {
    /// Name of the bench in study files.
    pub name: &'static str,
    /// Storage that the user can name for this bench, in addition to the directory.
    pub own: UserTarget,
    make: for<'a> fn(&'a BenchContext<'a>) -> Box<dyn StudyBench + 'a>,
}

/// Storage that a user can name for a bench, in addition to the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserTarget {
    /// The user can name only the directory.
    Nothing,
    /// A ZFS file system ([`BenchContext::on`]). If the user names one, no guest image is needed.
    Dataset,
    /// Directories on particular file systems ([`BenchContext::dirs`]).
    Directories,
}

impl NamedBench {
    /// Creates the bench for one study.
    #[must_use]
    pub fn make<'a>(&self, place: &'a BenchContext<'a>) -> Box<dyn StudyBench + 'a> {
        (self.make)(place)
    }
}

/// All benches that a study can use.
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

/// Returns the bench with this name.
///
/// # Errors
/// The bench does not exist. The error lists the known benches.
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
