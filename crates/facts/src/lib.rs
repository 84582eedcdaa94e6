//! Facts of a machine with their provenance (one collector for each source), the layers under a path, and whether a
//! block device is in use. All access uses [`assay_host::Host`], so a captured directory gives the same facts as the
//! live machine.
//!
//! A source that cannot be read gives [`assay_model::FactValue::Unknown`] with the reason. Facts of a missing source
//! are left out.

pub mod block;
mod collectors;
mod device_use;
mod dm;
mod formats;
mod gather;
mod harmless;
mod machine;
pub mod mountinfo;
pub mod overwrite;
pub mod redact;
mod script;
mod siblings;
mod signatures;
mod survey;
mod target;
mod unredacted;

pub use formats::{
    crypt, image, libvirt, limits, lvm, mdstat, module_parameter, proxmox, qemu, zpool,
    zpool_health,
};

pub use collectors::services::packages::{has_all_packages, installed_packages};
pub use device_use::{DeviceInUse, device_use, device_use_held};
pub use dm::kind as dm_kind;
pub use machine::machine;
pub use redact::Redacted;
pub use script::{script, script_for};
pub use siblings::siblings;
pub use survey::{Survey, survey, survey_at};
pub use target::{TargetError, target};

use assay_host::Host;
use assay_model::Facts;
use gather::Gather;
use std::path::PathBuf;

/// Which facts a collection contains.
#[derive(Clone, Copy, Debug, Default)]
pub struct CollectOptions<'a> {
    /// Whether to collect facts that identify this machine: serial numbers and the host name.
    pub with_identity: bool,
    /// Paths whose file systems are read in more detail, such as the ZFS properties of the dataset.
    pub targets: &'a [PathBuf],
    /// Whether to collect the configuration of services, and all pools and datasets. Checks need these facts;
    /// measurements do not.
    pub services: bool,
    /// Whether `services` also reads the files that let accounts log in. Requires the machine itself, or a tree of its
    /// files, because captures and bundles do not contain account names.
    pub accounts: bool,
}

/// Collects the facts of a machine. Never fails: a source that cannot be read gives an unknown fact with the reason.
///
/// Collectors read the machine through [`Redacted`], so facts contain no secrets. The collectors of the module
/// `unredacted` read names, but put no names into their facts.
#[must_use]
pub fn collect(host: &dyn Host, options: &CollectOptions<'_>) -> Facts {
    let identity = options.with_identity;
    let raw = host;
    let redacted = Redacted::new(host, identity);
    let host: &dyn Host = &redacted;
    // A command takes milliseconds and a file microseconds, so commands run in parallel.
    std::thread::scope(|scope| {
        let mut parts = Vec::new();
        for which in 0..collectors::tools::COUNT {
            parts.push(scope.spawn(move || part(host, |g| collectors::tools::collect(g, which))));
        }
        parts.push(
            scope.spawn(move || part(host, |g| collectors::virtualisation::collect(g, identity))),
        );
        parts.push(scope.spawn(move || part(host, collectors::dm::collect)));
        parts.push(scope.spawn(move || part(host, collectors::lvm::collect)));
        parts.push(scope.spawn(move || {
            part(host, |g| {
                collectors::vm::collect(g, identity, options.accounts.then_some(raw))
            })
        }));
        parts.push(
            scope.spawn(move || part(host, |g| collectors::mounts::collect(g, options.targets))),
        );
        if options.services {
            parts.push(scope.spawn(move || part(host, collectors::zfs::everything)));
            let accounts = options.accounts;
            let services = move || part(host, |g| collectors::services::collect(g, accounts));
            parts.push(scope.spawn(services));
            parts.push(scope.spawn(move || part(host, collectors::services::smart::collect)));
            if options.accounts {
                let collect = collectors::services::authorized_keys::collect;
                parts.push(scope.spawn(move || part(host, collect)));
                parts.push(scope.spawn(move || part(raw, unredacted::collect)));
            }
        }
        let mut facts = part(host, |g| collectors::of_files(g, identity));
        for part in parts {
            match part.join() {
                Ok(found) => facts.map.extend(found.map),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        facts
    })
}

/// Collects the facts that can be read without running a program: kernel, CPU, memory and settings in files. Otherwise
/// like [`collect`].
#[must_use]
pub fn collect_from_files(host: &dyn Host) -> Facts {
    let redacted = Redacted::new(host, false);
    part(&redacted, |g| collectors::of_files(g, false))
}

fn part(host: &dyn Host, collect: impl FnOnce(&mut Gather<'_>)) -> Facts {
    let mut g = Gather::new(host);
    collect(&mut g);
    g.facts
}
