//! Applies a row of candidates to the settings of the machine, checks that the row is in effect, and reverts the
//! settings.

use super::TuneError;
use super::joined_switches::{SwitchGroup, group_changes};
use assay_changes::{ChangeError, ChangeSession, Switch};
use assay_host::HostMut;
use assay_tune::{CandidateChange, Incident, Row};

/// Settings that the groups of a session change. A setting is opened at its first change.
pub(super) struct SwitchBoard<'a> {
    session: &'a ChangeSession,
    host: &'a dyn HostMut,
    groups: Vec<SwitchGroup>,
    changes: Vec<Option<CandidateChange>>,
    /// Open setting of each group; `None` before its first change.
    open: Vec<Option<OpenSwitch<'a>>>,
}

struct OpenSwitch<'a> {
    switch: Switch<'a>,
    /// Value of the setting that was read after the last change.
    reads: String,
    /// Candidates of the group that are in effect.
    on: Row,
    name: String,
}

impl<'a> SwitchBoard<'a> {
    /// Creates a switch board. Neither reads nor changes a setting.
    pub(super) fn new(
        session: &'a ChangeSession,
        host: &'a dyn HostMut,
        changes: &[Option<CandidateChange>],
    ) -> Self {
        let groups = group_changes(changes);
        Self {
            session,
            host,
            open: groups.iter().map(|_| None).collect(),
            groups,
            changes: changes.to_vec(),
        }
    }

    /// Applies a row of candidates. If a setting of `differ` already has its value, it is changed to another value and
    /// back, so that both sides of a pair have the same history. Returns the values of the settings.
    pub(super) fn enter(&mut self, row: &Row, differ: &Row) -> Result<String, ChangeError> {
        let mut reads = Vec::new();
        for at in 0..self.groups.len() {
            let members = |row: &Row| -> Row {
                let of = |candidate: &&usize| {
                    let is = |member: &super::joined_switches::GroupMember| {
                        member.candidate == **candidate
                    };
                    self.groups[at].members.iter().any(is)
                };
                row.iter().filter(of).copied().collect()
            };
            let (wanted, toggled) = (members(row), members(differ));
            if wanted.is_empty() && toggled.is_empty() {
                self.revert(at)?;
                continue;
            }
            let is_so = match &self.open[at] {
                Some(open) => open.on == wanted,
                None => wanted.is_empty(),
            };
            if is_so && !toggled.is_empty() {
                let away = wanted.symmetric_difference(&toggled).copied().collect();
                self.put(at, &away)?;
            }
            self.put(at, &wanted)?;
            if let Some(open) = &self.open[at] {
                reads.push(format!("{}={}", open.name, open.reads));
            }
        }
        Ok(reads.join("; "))
    }

    fn put(&mut self, at: usize, row: &Row) -> Result<(), ChangeError> {
        if self.open[at].is_none() {
            self.open_switch(at)?;
        }
        let group = &self.groups[at];
        let Some(open) = &mut self.open[at] else {
            return Ok(());
        };
        let original = open.switch.original().value.clone();
        open.reads = match group.value_of(row, original.as_deref()) {
            Some(value) => open.switch.set(value.as_deref())?,
            None => open.switch.restore()?,
        };
        open.on.clone_from(row);
        Ok(())
    }

    fn open_switch(&mut self, at: usize) -> Result<(), ChangeError> {
        let setting = self.groups[at].setting.clone();
        let switch = match Switch::open(self.session, self.host, &setting) {
            Ok(switch) => switch,
            // Another group of the same file is open. The planner never switches both on.
            Err(_) if self.release_idle() > 0 => Switch::open(self.session, self.host, &setting)?,
            Err(error) => return Err(error),
        };
        let reads = switch.read()?;
        let name = assay_changes::setting_name(&setting);
        self.open[at] = Some(OpenSwitch {
            switch,
            reads,
            on: Row::new(),
            name,
        });
        Ok(())
    }

    /// Closes the settings of groups without a candidate in effect. Returns the number of closed settings.
    fn release_idle(&mut self) -> usize {
        let idle = |open: &&mut Option<OpenSwitch<'a>>| {
            open.as_ref().is_some_and(|open| open.on.is_empty())
        };
        self.open.iter_mut().filter(idle).map(Option::take).count()
    }

    fn revert(&mut self, at: usize) -> Result<(), ChangeError> {
        if let Some(open) = &mut self.open[at]
            && !open.on.is_empty()
        {
            open.reads = open.switch.restore()?;
            open.on.clear();
        }
        Ok(())
    }

    /// Reverts all settings, in the reverse order of their changes.
    pub(super) fn revert_all(&mut self) -> Result<(), ChangeError> {
        let mut first = Ok(());
        for at in (0..self.groups.len()).rev() {
            first = first.and(self.revert(at));
        }
        first
    }

    /// Checks that no other program has changed a setting since it was applied.
    pub(super) fn check(&self) -> Result<(), TuneError> {
        for open in self.open.iter().flatten() {
            let found = open.switch.read()?;
            if found != open.reads {
                let setting = open.name.clone();
                return Err(TuneError::Stopped(Incident::Meddled { setting, found }));
            }
        }
        Ok(())
    }

    /// Applies a row and leaves its changes in the journal, so that [`ChangeSession::put_by`] can keep them. Closes all
    /// other settings. The journal then contains only settings that the row changes: another setting of the same file
    /// may change later without a conflict.
    pub(super) fn leave(&mut self, row: &Row) -> Result<(), ChangeError> {
        self.revert_all()?;
        let kept = |(at, change): (usize, &Option<CandidateChange>)| {
            change.clone().filter(|_| row.contains(&at))
        };
        let changes: Vec<_> = self.changes.iter().enumerate().map(kept).collect();
        self.groups = group_changes(&changes);
        self.open = self.groups.iter().map(|_| None).collect();
        for at in 0..self.groups.len() {
            self.put(at, row)?;
        }
        for open in self.open.iter_mut().filter_map(Option::take) {
            open.switch.leave();
        }
        Ok(())
    }
}
