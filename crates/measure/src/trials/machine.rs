//! Implements [`TrialBench`] on the machine. The sides differ in a setting, which is applied and reverted, or in two
//! objects that exist at the same time.

use crate::engine::{Environment, LoadTarget, MeasureEvent, Tell, link};
use crate::runner::OpenTarget;
use crate::trials::TrialError;
use crate::trials::bench::{Clocks, TrialBench};
use crate::trials::loader::{Loader, On, load_size};
use assay_changes::side_by_side::{Built, Endpoint};
use assay_changes::{ChangeSession, Switch};
use assay_model::advice::SafetyRule;
use assay_model::sample::Sample;
use assay_model::trial::{DurabilityProof, Side, Trial, TrialPlan};
use assay_model::{Bytes, Change, Nanos, change};
use std::path::Path;

/// The machine with both sides ready for measuring.
pub(crate) struct Machine<'a> {
    plan: &'a TrialPlan,
    /// Duration of the measured part of a slot.
    slot: Nanos,
    loader: Loader<'a>,
    sides: Sides<'a>,
}

enum Sides<'a> {
    /// Both sides use the same target and differ in a setting.
    Setting {
        switch: Box<Switch<'a>>,
        value: Option<String>,
        place: LoadTarget,
        /// Side that is in effect.
        now: Side,
    },
    /// Each side has its own target.
    Arms(Box<[BuiltArm<'a>; 2]>),
}

/// An arm that is built, and the target that it provides for the load.
pub(crate) struct BuiltArm<'a> {
    pub(crate) built: Built<'a>,
    pub(crate) place: LoadTarget,
}

impl<'a> Machine<'a> {
    /// Creates the objects. If the change is a setting, applies and reverts the setting once, which detects missing
    /// privileges before the measurement.
    pub(crate) fn new(
        trial: &'a Trial,
        env: &Environment<'a>,
        session: &'a ChangeSession,
        mut on: On<'_>,
        tell: &mut Tell<'_>,
    ) -> Result<Self, TrialError> {
        let plan = &trial.plan;
        let over_nbd = matches!(
            &plan.change,
            Change::SideBySide {
                now: change::Arm::Image(_),
                ..
            }
        );
        let loader = Loader::new(trial, env, on.scratch.dir(), over_nbd)?;
        let sides = match &plan.change {
            Change::Set { setting, value } => {
                // Comes first: it detects settings that cannot be changed before anything is
                // written.
                let switch = Switch::open(session, env.host, setting)?;
                if !plan.aa {
                    // Detects missing permissions: applied and reverted once, before a file is laid
                    // out for nothing.
                    switch.set(value.as_deref())?;
                    switch.restore()?;
                }
                let place = loader.find_own_place(plan, &mut on, tell)?;
                Sides::Setting {
                    switch: Box::new(switch),
                    value: value.clone(),
                    place,
                    now: Side::Now,
                }
            }
            Change::SideBySide { now, changed } => {
                // For A/A two equal objects, so that the difference of two equal objects is part of
                // the noise.
                let changed = if plan.aa { now } else { changed };
                let site = ArmPlace {
                    ground: on.ground,
                    work: &loader.work,
                    size: load_size(&plan.load),
                };
                let mut build = |arm, name| {
                    tell(MeasureEvent::Making(name));
                    build_arm(env, session, site, arm, name)
                };
                Sides::Arms(Box::new([build(now, "now")?, build(changed, "changed")?]))
            }
        };
        Ok(Self {
            plan,
            slot: plan.slot,
            loader,
            sides,
        })
    }

    /// Runs the flush test of both sides, if the plan requires it.
    pub(crate) fn durability(&mut self) -> Result<Vec<DurabilityProof>, TrialError> {
        let cancel = self.loader.env.cancel;
        match (self.plan.safety, &mut self.sides) {
            (Some(SafetyRule::AcknowledgedWrites), Sides::Arms(arms)) => [Side::Now, Side::Changed]
                .into_iter()
                .zip(arms.iter_mut())
                .map(|(side, arm)| Ok(arm.built.prove_durability(side, cancel)?))
                .collect(),
            _ => Ok(Vec::new()),
        }
    }

    /// Reverts the setting, and removes the objects.
    pub(crate) fn set_back(self) -> Result<(), TrialError> {
        match self.sides {
            Sides::Setting { switch, .. } => drop(switch.restore()?),
            Sides::Arms(_) => {}
        }
        Ok(())
    }
}

impl TrialBench for Machine<'_> {
    fn enter(&mut self, side: Side) -> Result<String, TrialError> {
        match &mut self.sides {
            Sides::Setting {
                switch, value, now, ..
            } => {
                if self.plan.aa {
                    return Ok(switch.read()?);
                }
                let put = |side| match side {
                    Side::Now => switch.restore(),
                    Side::Changed => switch.set(value.as_deref()),
                };
                // Already in effect: switched away and back, so that every slot begins after a
                // change.
                if *now == side {
                    put(side.other())?;
                }
                *now = side;
                Ok(put(side)?)
            }
            Sides::Arms(arms) => Ok(arms[side as usize].built.read_back()?),
        }
    }

    fn load(&mut self, side: Side, pair: u32, slot: u32) -> Result<Sample, TrialError> {
        let place = match (&self.sides, side) {
            (Sides::Setting { place, .. }, _) => place,
            (Sides::Arms(arms), side) => &arms[side as usize].place,
        };
        self.loader.take(self.plan, self.slot, place, pair, slot)
    }

    fn slots_last(&mut self, length: Nanos) {
        self.slot = length;
    }

    fn clocks(&self) -> Clocks {
        Clocks::read(self.loader.env.now)
    }
}

/// Where arms are created, and how large they are.
#[derive(Clone, Copy)]
pub(crate) struct ArmPlace<'a> {
    /// Open target of the user; `None` if the arms are services.
    pub(crate) ground: Option<&'a OpenTarget>,
    /// Directory of the scratch files, which receives links to the arms.
    pub(crate) work: &'a Path,
    /// Number of bytes that the load uses.
    pub(crate) size: Bytes,
}

/// Builds an arm. `name` is unique among the arms that exist at the same time.
pub(crate) fn build_arm<'a>(
    env: &Environment<'a>,
    session: &'a ChangeSession,
    place: ArmPlace<'_>,
    arm: &change::Arm,
    name: &str,
) -> Result<BuiltArm<'a>, TrialError> {
    let site = assay_changes::side_by_side::ArmSite {
        // A service has no directory; its copy is beside the scratch files.
        dir: place
            .ground
            .map_or_else(|| place.work.to_owned(), OpenTarget::through),
        name: name.to_owned(),
        size: place.size,
    };
    let work = place.work;
    let built = assay_changes::side_by_side::build(env.host, session, arm, &site, env.cancel)?;
    let place = match built.endpoint() {
        Endpoint::Path(path) => {
            let mut place = LoadTarget::at(work, name, &path)?;
            let fs = matches!(
                arm,
                change::Arm::Dataset { .. } | change::Arm::FileSystem { .. }
            );
            if let LoadTarget::File { dir, .. } = &mut place {
                *dir = path.parent().filter(|_| fs).map(Path::to_owned);
            }
            place
        }
        Endpoint::Nbd { socket, export } => LoadTarget::Nbd {
            link: link(work, name, &socket)?,
            export,
        },
        Endpoint::Address { host, port } => LoadTarget::Address { host, port },
    };
    Ok(BuiltArm { built, place })
}
