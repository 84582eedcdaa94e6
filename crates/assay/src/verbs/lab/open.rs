//! Shared functions of the verbs of `assay lab`: the guest image, and the list of registered guests.

use super::machine::Machine;
use super::progress;
use crate::context::{on_signals, state_dir};
use anyhow::Context as _;
use assay_lab::{Accel, Cache, Guest, GuestOptions, GuestRegistry};

pub struct Lab {
    pub state: GuestRegistry,
    pub(super) cache: Cache,
    pub cancel: assay_loads::Cancel,
}

impl Lab {
    pub fn open() -> anyhow::Result<Self> {
        let state = GuestRegistry::open(&state_dir()?)?;
        crate::sweep::guests_said(&state.sweep()?);
        let cache = Cache::of_user()?;
        if cache.tidy() {
            eprintln!("removed what was left of a build of the guest image");
        }
        Ok(Self {
            state,
            cache,
            cancel: on_signals()?,
        })
    }

    /// Checks the options of a guest. Called before the image is built, because a build may take minutes.
    pub(super) fn options(
        &self,
        machine: &Machine,
        name: &str,
        usual: &[&str],
    ) -> anyhow::Result<GuestOptions> {
        let options = machine.options(name, usual)?;
        options.check(&self.state)?;
        Ok(options)
    }

    pub(super) fn boot(
        &self,
        name: &str,
        machine: &Machine,
        detached: bool,
    ) -> anyhow::Result<Guest> {
        let mut options = self.options(machine, name, &[])?;
        options.detached = detached;
        if !machine.no_assay {
            let us = std::env::current_exe().context("cannot find the program file of assay")?;
            options.assay = Some(us);
        }
        let image = self.image(machine.zfs, machine.yes)?;
        let shown = progress::spinner("booting a guest");
        let booted = Guest::boot(&image, &options, &self.state, &self.cancel);
        shown.finish_and_clear();
        let guest = booted?;
        emulation_note(&guest, machine);
        Ok(guest)
    }

    /// Returns the guest with this name. Without a name, returns the only running guest, or `None` if none is running.
    pub(super) fn chosen(&self, name: Option<&str>) -> anyhow::Result<Option<Guest>> {
        let names = self.up_names();
        let name = match (name, names.as_slice()) {
            (Some(name), _) => name,
            (None, []) => return Ok(None),
            (None, [only]) => only,
            (None, many) => anyhow::bail!(
                "several guests are running: {}. Name one with --guest.",
                many.join(", ")
            ),
        };
        Ok(Some(Guest::attach(&self.state, name, &self.cancel)?))
    }

    pub(super) fn up_names(&self) -> Vec<String> {
        let entries = self.state.list().into_iter();
        entries
            .filter(|entry| entry.detached)
            .map(|entry| entry.name)
            .collect()
    }
}

/// Prints a note if the guest is emulated, and therefore slow, although the user did not request emulation.
pub(super) fn emulation_note(guest: &Guest, machine: &Machine) {
    if guest.accel().accel == Accel::Tcg && machine.accel.is_none() {
        let why = guest.accel().why.as_deref().unwrap_or("KVM is not there");
        eprintln!(
            "note: the guest is emulated ({why}); compare its figures with each other, not with real machines"
        );
    }
}
