//! What is true of a machine, with its provenance: facts, one collector per source; what lies
//! under a path; whether a block device is in use. Everything through [`assay_host::Host`], so a
//! captured directory is understood as the live machine is.
//!
//! Unreadable is [`assay_model::FactValue::Unknown`] with the reason. Only what does not exist is
//! left out.

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

/// What to collect.
#[derive(Clone, Copy, Debug, Default)]
pub struct CollectOptions<'a> {
    /// Also what names this one machine: serial numbers, host name.
    pub with_identity: bool,
    /// Paths whose file systems are looked at more closely (ZFS properties of the dataset).
    pub targets: &'a [PathBuf],
    /// Also what is configured in services, and all pools and data sets: what a check looks at, and a
    /// measurement does not.
    pub services: bool,
    /// With `services`, also the files by which accounts let somebody in: on the machine itself, or in a
    /// tree of its files. Captures and bundles do not say who has an account.
    pub accounts: bool,
}

/// Collects the facts of a machine. Never fails: what could not be read is unknown, and says why.
/// Collectors see the machine through [`Redacted`], so no secret gets as far as a fact; those of
/// `unredacted` see names, and tell only whether they fit.
#[must_use]
pub fn collect(host: &dyn Host, options: &CollectOptions<'_>) -> Facts {
    let identity = options.with_identity;
    let raw = host;
    let redacted = Redacted::new(host, identity);
    let host: &dyn Host = &redacted;
    // Commands take milliseconds each, files microseconds: commands run beside one another.
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
                collectors::vm::collect(g, identity, options.accounts)
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

fn part(host: &dyn Host, collect: impl FnOnce(&mut Gather<'_>)) -> Facts {
    let mut g = Gather::new(host);
    collect(&mut g);
    g.facts
}
