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

use crate::{Bench, Place, StudyError};

/// A bench by its name.
pub struct Known {
    /// As studies name it.
    pub name: &'static str,
    /// What of the user's own it can work on.
    pub own: Own,
    make: for<'a> fn(&'a Place<'a>) -> Box<dyn Bench + 'a>,
}

/// What of the user's own a bench can work on, besides the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Own {
    /// Nothing else.
    Nothing,
    /// A ZFS file system ([`Place::on`]); no guest image is needed then.
    Dataset,
    /// Directories on file systems ([`Place::dirs`]).
    Directories,
}

impl Known {
    /// A bench that works in a place.
    #[must_use]
    pub fn make<'a>(&self, place: &'a Place<'a>) -> Box<dyn Bench + 'a> {
        (self.make)(place)
    }
}

/// Every bench.
pub const BENCHES: &[Known] = &[
    Known {
        name: "commands",
        own: Own::Nothing,
        make: |place| Box::new(commands::Commands::new(place)),
    },
    Known {
        name: "distribution",
        own: Own::Nothing,
        make: |place| Box::new(distribution::Distribution::new(place)),
    },
    Known {
        name: "clones",
        own: Own::Nothing,
        make: |place| Box::new(clones::Clones::new(place)),
    },
    Known {
        name: "unequal",
        own: Own::Nothing,
        make: |place| Box::new(unequal::Unequal::new(place)),
    },
    Known {
        name: "guest-disks",
        own: Own::Directories,
        make: |place| Box::new(guest_disks::GuestDisks::new(place)),
    },
    Known {
        name: "points",
        own: Own::Nothing,
        make: |place| Box::new(points::Points::new(place)),
    },
    Known {
        name: "web-servers",
        own: Own::Nothing,
        make: |place| Box::new(web_servers::WebServers::new(place)),
    },
    Known {
        name: "zfs",
        own: Own::Dataset,
        make: |place| Box::new(zfs::Zfs::new(place)),
    },
];

/// The bench of that name.
///
/// # Errors
/// There is none; says which there are.
pub fn bench(name: &str) -> Result<&'static Known, StudyError> {
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
