//! Creates the objects (arms) that a session compares, one for each row of candidates. The two objects of a pair exist
//! at the same time; an object that is no longer needed is removed.

use super::driver::SessionResources;
use crate::engine::{Environment, LoadTarget, MeasureEvent};
use crate::trials::TrialError;
use crate::trials::loader::load_size;
use crate::trials::machine::{ArmPlace, BuiltArm, build_arm};
use crate::tuning::TuneEvent;
use assay_changes::ChangeSession;
use assay_model::Load;
use assay_model::change::Arm;
use assay_tune::{ComparedArms, Row};

/// Maximum number of objects that exist at the same time: one for each side of a pair.
const MOST: usize = 2;

/// The objects of a session.
pub(super) struct ArmBoard<'a> {
    env: Environment<'a>,
    session: &'a ChangeSession,
    arms: ComparedArms,
    /// Existing objects with their rows. The last one was used last.
    built: Vec<(Row, BuiltArm<'a>)>,
    /// Number of objects that were created until now. It makes their names unique.
    created: u32,
}

impl<'a> ArmBoard<'a> {
    /// Creates a board for the objects of a session; `None` if the session only changes settings. Creates no object.
    pub(super) fn of(lent: &SessionResources<'a>) -> Option<Self> {
        Some(Self {
            env: lent.env,
            session: lent.session,
            arms: lent.record.arms.clone()?,
            built: Vec::new(),
            created: 0,
        })
    }

    /// Returns whether QEMU serves the objects over NBD.
    pub(super) fn is_over_nbd(&self) -> bool {
        matches!(self.arms.base, Arm::Image(_))
    }

    /// Creates the object of a row if it does not exist, and directs the load at it. Returns its configuration as the
    /// running object reports it.
    pub(super) fn enter(
        &mut self,
        row: &Row,
        lent: &mut SessionResources<'_>,
        load: &Load,
    ) -> Result<String, TrialError> {
        let changes = |at: &&usize| self.arms.pages.get(**at).is_some_and(Option::is_some);
        let row: Row = row.iter().filter(changes).copied().collect();
        match self.built.iter().position(|(built, _)| *built == row) {
            Some(at) => {
                let last = self.built.remove(at);
                self.built.push(last);
            }
            None => self.create(row, lent, load)?,
        }
        match self.built.last() {
            Some((_, arm)) => Ok(arm.built.read_back()?),
            None => Err(TrialError::Unfit("an object to measure")),
        }
    }

    fn create(
        &mut self,
        row: Row,
        lent: &mut SessionResources<'_>,
        load: &Load,
    ) -> Result<(), TrialError> {
        // Removed first, because the disk may have no space for a third object.
        while self.built.len() >= MOST {
            self.built.remove(0);
        }
        let arm = self.arms.arm_of(&row);
        let arm = arm.ok_or(TrialError::Unfit("an object with these changes"))?;
        self.created += 1;
        let name = format!("object-{}", self.created);
        (lent.tell)(TuneEvent::Measuring(MeasureEvent::Making(&name)));
        let place = ArmPlace {
            ground: lent.ground,
            work: lent.scratch.dir(),
            size: load_size(load),
        };
        let built = build_arm(&self.env, self.session, place, &arm, &name)?;
        self.built.push((row, built));
        Ok(())
    }

    /// Returns the target at which the load is directed.
    pub(super) fn place(&self) -> Option<&LoadTarget> {
        self.built.last().map(|(_, arm)| &arm.place)
    }

    /// Removes all objects.
    pub(super) fn remove_all(&mut self) {
        self.built.clear();
    }
}
