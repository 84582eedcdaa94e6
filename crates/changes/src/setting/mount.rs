//! Mount options, changed with a remount (mount(8), proc(5)).

use super::setting_kind::{Found, Original, Reading, SettingKind, ValueOrigin, Work, run};
use super::table::{Mount, parse_mounts};
use crate::error::ChangeError;
use assay_host::HostMut;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time limit of a remount, which may write all dirty data.
const REMOUNT_LIMIT: Duration = Duration::from_secs(120);

/// Modes of access-time updates. The kernel prints `relatime`, `noatime`, or nothing for `strictatime`.
const ATIME: [&str; 3] = ["relatime", "noatime", "strictatime"];

/// A setting that selects one of several mutually exclusive options of a mount.
pub(super) struct OneOf {
    pub(super) name: String,
    pub(super) mountpoint: PathBuf,
    pub(super) choices: Vec<String>,
}

/// Returns the mount point with symbolic links resolved.
pub(super) fn place(host: &dyn HostMut, mountpoint: &str) -> Result<PathBuf, ChangeError> {
    Ok(host.realpath(Path::new(mountpoint))?)
}

impl OneOf {
    fn refused(&self, reason: impl Into<String>) -> ChangeError {
        ChangeError::refused(&self.name, reason)
    }

    fn mount(&self, host: &dyn HostMut) -> Result<Mount, ChangeError> {
        let table = host.read(Path::new("/proc/self/mounts"))?;
        let mut mounts: Vec<_> = parse_mounts(&table).collect();
        mounts.retain(|mount| mount.mountpoint == self.mountpoint);
        mounts.pop().ok_or_else(|| ChangeError::Gone {
            what: self.name.clone(),
            reason: "nothing is mounted there".into(),
        })
    }

    fn atime(&self) -> bool {
        self.choices
            .iter()
            .any(|choice| ATIME.contains(&choice.as_str()))
    }

    /// Returns the choice in effect, as the kernel prints it. The result is empty for a choice that the kernel does not
    /// print.
    fn choice<'a>(&self, mount: &'a Mount) -> Option<&'a str> {
        let mine = |option: &&String| self.choices.contains(option);
        let printed = mount.options.iter().find(mine).map(String::as_str);
        let absent = self
            .choices
            .iter()
            .any(|choice| choice.is_empty() || choice == "strictatime");
        // relatime is printed too, so an empty output identifies strictatime.
        let hidden = self.atime()
            && mount
                .options
                .iter()
                .any(|one| ATIME.contains(&one.as_str()));
        printed.or((absent && !hidden).then_some(""))
    }

    /// Returns all options of the mount except the mutually exclusive ones.
    fn rest(&self, mount: &Mount) -> String {
        let mut rest = mount.options.clone();
        rest.retain(|option| !self.choices.contains(option));
        rest.join(",")
    }

    /// Returns the mount option that selects `wanted`.
    fn option(&self, mount: &Mount, wanted: &str) -> Result<String, ChangeError> {
        let now = self.choice(mount).unwrap_or_default();
        Ok(match wanted {
            "" if self.atime() => "strictatime".to_owned(),
            // `relatime` alone would have no effect, because noatime stays in force.
            "relatime" => "atime,relatime".to_owned(),
            "" => self.opposite(&mount.fstype, now)?,
            wanted => wanted.to_owned(),
        })
    }

    /// Returns the option that reverts another option.
    fn opposite(&self, fstype: &str, option: &str) -> Result<String, ChangeError> {
        let known = match (fstype, option.split_once('=')) {
            // ext4(5): 0 is the default.
            ("ext4", Some(("commit", _))) => Some("commit=0".to_owned()),
            // btrfs(5).
            ("btrfs", Some(("commit", _))) => Some("commit=30".to_owned()),
            ("btrfs", Some(("compress" | "compress-force", _))) => Some("compress=no".to_owned()),
            (_, Some(("discard", _))) => Some("nodiscard".to_owned()),
            (_, Some(_)) => None,
            (_, None) => match option {
                "sync" => Some("async".to_owned()),
                "ro" => Some("rw".to_owned()),
                "dirsync" => None,
                option => Some(match option.strip_prefix("no") {
                    Some(positive) => positive.to_owned(),
                    None => format!("no{option}"),
                }),
            },
        };
        known.ok_or_else(|| {
            self.refused(format!(
                "assay does not know what takes {option} away on {fstype}; name an option to set instead"
            ))
        })
    }

    fn remount(&self, host: &dyn HostMut, option: &str) -> Result<(), ChangeError> {
        let options = format!("remount,{option}");
        // Without the source, mount(8) takes the other options from fstab, which may differ from those in
        // effect.
        let words = [
            "mount",
            "--options-source",
            "mtab",
            "-o",
            &options,
            "--target",
        ];
        let mut argv: Vec<_> = words.iter().map(OsStr::new).collect();
        argv.push(self.mountpoint.as_os_str());
        run(host, &self.name, &argv, REMOUNT_LIMIT).map(drop)
    }

    fn set(&self, host: &dyn HostMut, wanted: &str) -> Result<(), ChangeError> {
        let before = self.mount(host)?;
        self.remount(host, &self.option(&before, wanted)?)?;
        let after = self.mount(host)?;
        match self.rest(&before) == self.rest(&after) {
            true => Ok(()),
            false => Err(self.refused(format!(
                "the remount changed other options as well: from {} to {}",
                self.rest(&before),
                self.rest(&after)
            ))),
        }
    }
}

/// Returns the option as the kernel prints it; `strictatime` is never printed.
fn printed_option(choice: &str) -> &str {
    match choice {
        "strictatime" => "",
        other => other,
    }
}

impl SettingKind for OneOf {
    /// Returns the mount point, because a remount affects all options of the mount.
    fn identity(&self) -> String {
        format!("mount:{}", self.mountpoint.display())
    }

    fn find(&self, host: &dyn HostMut) -> Result<Found, ChangeError> {
        let bad = |choice: &String| choice.contains([',', '\0', '\n', ' ']);
        if self.choices.iter().any(bad) || self.choices.len() < 2 {
            return Err(self.refused("at least two options that exclude each other are needed"));
        }
        let mount = self.mount(host)?;
        let Reading { value, shown } = self.read(host)?;
        let rest = self.rest(&mount);
        Ok(Found {
            original: Original {
                value,
                shown,
                origin: ValueOrigin::Set,
                place: self.mountpoint.clone(),
                along: vec![(self.mountpoint.clone(), rest)],
                file: None,
            },
            contents: None,
        })
    }

    fn check(&self, host: &dyn HostMut, value: Option<&str>) -> Result<(), ChangeError> {
        let wanted = value.unwrap_or_default();
        let offered = |choice: &String| printed_option(choice) == printed_option(wanted);
        match self.choices.iter().any(offered) {
            true => self
                .option(&self.mount(host)?, printed_option(wanted))
                .map(drop),
            false => Err(self.refused(format!(
                "{wanted:?} is none of the choices ({:?})",
                self.choices
            ))),
        }
    }

    fn read(&self, host: &dyn HostMut) -> Result<Reading, ChangeError> {
        let mount = self.mount(host)?;
        let Some(choice) = self.choice(&mount) else {
            return Err(self.refused(format!(
                "mounted with {}, which has none of the choices",
                mount.options.join(",")
            )));
        };
        let shown = match choice {
            "" if self.atime() => "strictatime",
            "" => "default",
            choice => choice,
        };
        Ok(Reading {
            value: Some(choice.to_owned()),
            shown: shown.to_owned(),
        })
    }

    fn write(
        &self,
        host: &dyn HostMut,
        value: Option<&str>,
        _work: &Work,
    ) -> Result<(), ChangeError> {
        self.set(host, printed_option(value.unwrap_or_default()))
    }

    fn restore(
        &self,
        host: &dyn HostMut,
        original: &Original,
        _work: &Work,
    ) -> Result<(), ChangeError> {
        self.set(host, original.value.as_deref().unwrap_or_default())
    }

    fn settled(
        &self,
        host: &dyn HostMut,
        original: &Original,
        _work: &Work,
    ) -> Result<bool, ChangeError> {
        let mount = self.mount(host)?;
        let now = self.choice(&mount);
        Ok(self.same(now, original.value.as_deref()))
    }

    fn same(&self, one: Option<&str>, other: Option<&str>) -> bool {
        printed_option(one.unwrap_or_default()) == printed_option(other.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    fn one_of(choices: &[&str]) -> OneOf {
        OneOf {
            name: "choice of /mnt".into(),
            mountpoint: "/mnt".into(),
            choices: choices.iter().map(|&choice| choice.into()).collect(),
        }
    }

    fn host(options: &str) -> Recorded {
        let table = format!("/dev/vda / ext4 rw 0 0\n/dev/vdb /mnt ext4 {options} 0 0\n");
        Recorded::new()
            .file("/proc/self/mounts", table)
            .file("/mnt/x", "")
    }

    #[test]
    fn what_is_not_printed_is_told_apart_from_what_is_not_a_choice() {
        let choice = |choices: &[&str], options: &str| {
            let read = one_of(choices).read(&host(options));
            read.ok().and_then(|reading| reading.value)
        };
        let atime = ["relatime", "noatime"];
        assert_eq!(choice(&atime, "rw,relatime").as_deref(), Some("relatime"));
        assert_eq!(choice(&atime, "rw,noatime").as_deref(), Some("noatime"));
        assert_eq!(choice(&atime, "rw"), None);
        let all = ["relatime", "noatime", ""];
        assert_eq!(choice(&all, "rw").as_deref(), Some(""));
        assert_eq!(choice(&["noatime", ""], "rw,relatime"), None);
        assert_eq!(
            choice(&["lazytime", ""], "rw,relatime").as_deref(),
            Some("")
        );
    }

    #[test]
    fn each_option_has_its_opposite_or_is_refused() {
        let option = |choices: &[&str], options: &str, wanted: &str| {
            let one = one_of(choices);
            let mount = one.mount(&host(options)).unwrap();
            one.option(&mount, wanted).ok()
        };
        let told = |choices: &[&str], options: &str, wanted: &str| {
            option(choices, options, wanted).unwrap_or_default()
        };
        assert_eq!(
            told(&["relatime", "noatime"], "rw,noatime", "relatime"),
            "atime,relatime"
        );
        assert_eq!(told(&["noatime", ""], "rw,noatime", ""), "strictatime");
        assert_eq!(told(&["lazytime", ""], "rw,lazytime", ""), "nolazytime");
        assert_eq!(told(&["nobarrier", ""], "rw,nobarrier", ""), "barrier");
        assert_eq!(told(&["commit=60", ""], "rw,commit=60", ""), "commit=0");
        assert_eq!(option(&["stripe=4", ""], "rw,stripe=4", ""), None);
    }
}
