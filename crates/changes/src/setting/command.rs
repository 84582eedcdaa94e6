//! Settings that the user defines with three commands: read, set and undo. The commands run without a shell.

use super::setting_kind::{Found, Original, Reading, SettingKind, ValueOrigin, Work, run};
use crate::error::ChangeError;
use assay_host::HostMut;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

/// Time limit of each of the user's commands; a command may restart a service.
pub(super) const COMMAND_LIMIT: Duration = Duration::from_secs(120);

/// The user's three commands.
pub(super) struct Commands {
    pub(super) name: String,
    pub(super) read: Vec<String>,
    pub(super) apply: Vec<String>,
    pub(super) undo: Vec<String>,
}

impl Commands {
    fn run(&self, host: &dyn HostMut, argv: &[String], value: &str) -> Result<(), ChangeError> {
        let words: Vec<_> = argv
            .iter()
            .map(|word| word.replace("{value}", value))
            .collect();
        let argv: Vec<_> = words.iter().map(OsStr::new).collect();
        run(host, &self.name, &argv, COMMAND_LIMIT).map(drop)
    }
}

impl SettingKind for Commands {
    fn identity(&self) -> String {
        format!("command:{:?}", self.read)
    }

    fn find(&self, host: &dyn HostMut) -> Result<Found, ChangeError> {
        for (role, argv) in [
            ("read", &self.read),
            ("apply", &self.apply),
            ("undo", &self.undo),
        ] {
            let Some(program) = argv.first() else {
                let reason = format!("there is no {role} command, so it could not be reverted");
                return Err(ChangeError::refused(&self.name, reason));
            };
            if host.which(OsStr::new(program)).is_none() {
                let reason = format!("its {role} command {program:?} is not installed");
                return Err(ChangeError::refused(&self.name, reason));
            }
        }
        let Reading { value, shown } = self.read(host)?;
        Ok(Found {
            original: Original {
                value,
                shown,
                origin: ValueOrigin::Set,
                place: PathBuf::new(),
                along: Vec::new(),
                file: None,
            },
            contents: None,
        })
    }

    fn check(&self, _host: &dyn HostMut, value: Option<&str>) -> Result<(), ChangeError> {
        match value {
            Some(value) if !value.contains('\0') => Ok(()),
            Some(value) => Err(ChangeError::refused(
                &self.name,
                format!("{value:?} is not a value"),
            )),
            None => {
                let reason = "is set by a command, which needs a value";
                Err(ChangeError::refused(&self.name, reason))
            }
        }
    }

    fn read(&self, host: &dyn HostMut) -> Result<Reading, ChangeError> {
        let argv: Vec<_> = self.read.iter().map(OsStr::new).collect();
        let value = run(host, &self.name, &argv, COMMAND_LIMIT)?
            .trim()
            .to_owned();
        Ok(Reading {
            value: Some(value.clone()),
            shown: value,
        })
    }

    fn write(
        &self,
        host: &dyn HostMut,
        value: Option<&str>,
        _work: &Work,
    ) -> Result<(), ChangeError> {
        self.run(host, &self.apply, value.unwrap_or_default())
    }

    fn restore(
        &self,
        host: &dyn HostMut,
        original: &Original,
        _work: &Work,
    ) -> Result<(), ChangeError> {
        self.run(
            host,
            &self.undo,
            original.value.as_deref().unwrap_or_default(),
        )
    }

    /// Returns false, because the other effects of the command are unknown. Only its undo command can revert them.
    fn settled(
        &self,
        _host: &dyn HostMut,
        _original: &Original,
        _work: &Work,
    ) -> Result<bool, ChangeError> {
        Ok(false)
    }

    /// Returns true, because an interrupted command may have had any effect.
    fn may_become(&self, _wanted: Option<&str>, _found: Option<&str>) -> bool {
        true
    }
}
