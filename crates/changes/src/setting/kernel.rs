//! Attributes in /proc/sys and /sys: sysctls, module parameters, queues of block devices, and other attributes
//! by path.

mod arc;

use super::setting_kind::{Found, Original, Reading, SettingKind, ValueOrigin, Work};
use crate::error::ChangeError;
use assay_host::{FileKind, HostError, HostMut};
use assay_model::change::Setting;
use std::path::{Path, PathBuf};

/// Largest page of any architecture in KiB; the kernel rounds sizes in KiB to whole pages.
const LARGEST_PAGE_KIB: u64 = 64;

/// Pairs of sysctls: if one of the two is set, the kernel sets the other to 0. Some of them cannot be set to 0 directly
/// (Documentation/admin-guide/sysctl/vm.rst).
const COUNTERPARTS: [(&str, &str); 3] = [
    ("vm/dirty_bytes", "vm/dirty_ratio"),
    ("vm/dirty_background_bytes", "vm/dirty_background_ratio"),
    ("vm/overcommit_kbytes", "vm/overcommit_ratio"),
];

/// Error that the kernel returns for an attribute that is turned off.
const EINVAL: i32 = rustix::io::Errno::INVAL.raw_os_error();

const SYSCTL: &str = "/proc/sys";

/// One attribute in /proc/sys or /sys.
pub(super) struct Attribute {
    name: String,
    path: PathBuf,
    queue: bool,
    /// Whether the file may list all choices, with the present choice in brackets.
    choices: bool,
}

/// Returns the file of a module parameter.
pub(super) fn module_parameter(module: &str, name: &str) -> Result<PathBuf, ChangeError> {
    let what = format!("parameter {name} of {module}");
    // The kernel replaces dashes in module names by underscores.
    let module = module.replace('-', "_");
    Ok(Path::new("/sys/module")
        .join(check_component(&what, &module)?)
        .join("parameters")
        .join(check_component(&what, name)?))
}

/// Returns the file of a sysctl. As in sysctl(8), the first separator decides whether `.` or `/` separates the parts.
/// The other character is then part of a name.
pub(super) fn sysctl_path(key: &str) -> Result<PathBuf, ChangeError> {
    let dots = key
        .find(['.', '/'])
        .is_none_or(|at| key[at..].starts_with('.'));
    let mut path = PathBuf::from(SYSCTL);
    for part in key.split(if dots { '.' } else { '/' }) {
        let part = match dots {
            true => part.replace('/', "."),
            false => part.to_owned(),
        };
        path.push(check_component(key, &part)?);
    }
    Ok(path)
}

/// Returns the file of a queue attribute. A partition uses the queue of its disk.
pub(super) fn queue_attribute_path(
    host: &dyn HostMut,
    device: &str,
    attribute: &str,
) -> Result<PathBuf, ChangeError> {
    let what = format!("{attribute} of {device}");
    let attribute = check_component(&what, attribute)?;
    let link = match device.contains('/') {
        false => Path::new("/sys/class/block").join(check_component(&what, device)?),
        true => {
            let stat = host.stat(Path::new(device))?;
            let number = match stat.kind {
                FileKind::BlockDevice => stat.rdev,
                _ => stat.dev,
            };
            Path::new("/sys/dev/block").join(number.to_string())
        }
    };
    let dir = match host.realpath(&link) {
        Err(error) if error.is_absent() => {
            let reason = "no block device of its own lies there; name the device";
            return Err(ChangeError::refused(what, reason));
        }
        other => other?,
    };
    let whole = match host.exists(&dir.join("partition"))? {
        true => dir.parent().unwrap_or(&dir).to_owned(),
        false => dir,
    };
    Ok(whole.join("queue").join(attribute))
}

/// Returns the file of an attribute below /sys. An attribute that belongs to another kind of setting is refused,
/// because only that kind handles the related attributes and the values that are never kept.
pub(super) fn sysfs_path(host: &dyn HostMut, attribute: &str) -> Result<PathBuf, ChangeError> {
    let what = format!("/sys/{attribute}");
    let mut path = PathBuf::from("/sys");
    for part in attribute.split('/') {
        path.push(check_component(&what, part)?);
    }
    let path = match host.realpath(&path) {
        // A missing attribute is reported when it is read.
        Err(error) if error.is_absent() => return Ok(path),
        other => other?,
    };
    let within = |name: &str| path.iter().any(|part| part == name);
    let kind = match () {
        () if !path.starts_with("/sys") => {
            return Err(ChangeError::refused(what, "leads out of /sys"));
        }
        () if within("queue") && (within("block") || within("devices")) => "queue",
        () if path.starts_with("/sys/module") => "module-parameter",
        () => return Ok(path),
    };
    let reason = format!("is a setting of the kind {kind}: name it so");
    Err(ChangeError::refused(what, reason))
}

/// Checks that a name is a single path component.
fn check_component<'a>(what: &str, name: &'a str) -> Result<&'a str, ChangeError> {
    match name.is_empty() || name == "." || name == ".." || name.contains(['/', '\0', '\n']) {
        true => {
            let reason = format!("{name:?} is not a name");
            Err(ChangeError::refused(what, reason))
        }
        false => Ok(name),
    }
}

impl Attribute {
    pub(super) fn new(name: String, path: PathBuf, setting: &Setting) -> Self {
        let queue = matches!(setting, Setting::Queue { .. });
        let choices = queue || matches!(setting, Setting::Sysfs { .. });
        Self {
            name,
            path,
            queue,
            choices,
        }
    }

    /// Whether this is the size limit of ZFS's ARC. Its file does not show the limit in effect.
    fn is_arc_limit(&self) -> bool {
        self.path == Path::new(arc::PARAMETER)
    }

    fn is_scheduler(&self) -> bool {
        self.queue && self.path.ends_with("queue/scheduler")
    }

    /// Returns the other sysctl of the pair in [`COUNTERPARTS`].
    fn counterpart(&self) -> Option<PathBuf> {
        let key = self.path.strip_prefix(SYSCTL).ok()?.to_str()?;
        COUNTERPARTS.iter().find_map(|(one, other)| match key {
            key if key == *one => Some(Path::new(SYSCTL).join(other)),
            key if key == *other => Some(Path::new(SYSCTL).join(one)),
            _ => None,
        })
    }

    /// Returns the attributes that change together with this attribute, with their present values. A change of the
    /// scheduler resets the queue length and removes the scheduler's own attributes (block/elevator.c).
    fn along(&self, host: &dyn HostMut) -> Result<Vec<(PathBuf, String)>, ChangeError> {
        let mut paths = Vec::new();
        if self.is_scheduler() {
            let queue = self.path.parent().unwrap_or(Path::new("/"));
            let own = queue.join("iosched");
            paths.extend(["nr_requests", "wbt_lat_usec"].map(|name| queue.join(name)));
            match host.list(&own) {
                Ok(names) => paths.extend(names.into_iter().map(|name| own.join(name))),
                Err(error) if error.is_absent() => {}
                Err(error) => return Err(error.into()),
            }
        }
        paths.extend(self.counterpart());
        let mut along = Vec::new();
        if self.is_arc_limit() {
            along.push((
                PathBuf::from(arc::ARCSTATS),
                arc::read_arc_limit(host, &self.name)?,
            ));
        }
        for path in paths {
            match read_text(host, &path) {
                Ok(value) => along.push((path, value)),
                // The attribute does not exist in this kernel or is switched off: nothing to restore.
                Err(error) if error.is_absent() || error.errno() == Some(EINVAL) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(along)
    }

    fn put(&self, host: &dyn HostMut, path: &Path, value: &str) -> Result<(), ChangeError> {
        Ok(host.write_in_place(path, format!("{value}\n").as_bytes())?)
    }
}

fn read_text(host: &dyn HostMut, path: &Path) -> Result<String, HostError> {
    Ok(host.read_text(path)?.trim().to_owned())
}

/// Returns the word in brackets of a list such as `[mq-deadline] kyber none`.
fn bracketed_word(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once('[')?;
    rest.split_once(']').map(|(chosen, _)| chosen)
}

impl SettingKind for Attribute {
    fn identity(&self) -> String {
        // Setting one resets the other.
        if let Some(other) = self.counterpart() {
            return format!("kernel:{}", self.path.as_path().min(&other).display());
        }
        let coupled = ["scheduler", "nr_requests", "wbt_lat_usec"];
        match self.path.file_name().and_then(|name| name.to_str()) {
            Some(name) if self.queue && coupled.contains(&name) => {
                format!("kernel:{}", self.path.with_file_name("scheduler").display())
            }
            _ => format!("kernel:{}", self.path.display()),
        }
    }

    fn find(&self, host: &dyn HostMut) -> Result<Found, ChangeError> {
        let Reading { value, shown } = self.read(host)?;
        host.check_writable(&self.path).map_err(|error| {
            let reason = format!(
                "cannot be changed while the system runs ({})",
                error.reason()
            );
            ChangeError::refused(&self.name, reason)
        })?;
        Ok(Found {
            original: Original {
                value,
                shown,
                origin: ValueOrigin::Set,
                place: self.path.clone(),
                along: self.along(host)?,
                file: None,
            },
            contents: None,
        })
    }

    fn check(&self, host: &dyn HostMut, value: Option<&str>) -> Result<(), ChangeError> {
        let refuse = |reason: String| Err(ChangeError::refused(&self.name, reason));
        let Some(value) = value else {
            return refuse("always has a value: it cannot be taken away".into());
        };
        if value.trim().is_empty() || value.contains(['\n', '\0']) {
            return refuse(format!("{value:?} is not a value"));
        }
        if self.counterpart().is_some() && value.trim() == "0" {
            return refuse("0 is not set but follows from setting its counterpart".into());
        }
        let offered = match self.choices {
            true => read_text(host, &self.path)?,
            false => String::new(),
        };
        // Other queue attributes are numbers, or words without brackets.
        if self.is_scheduler() || bracketed_word(&offered).is_some() {
            let offers = |one: &str| one.trim_matches(['[', ']']) == value;
            if !offered.split_ascii_whitespace().any(offers) {
                let offered = offered.replace(['[', ']'], "");
                return refuse(format!(
                    "{value:?} is not offered here; there is: {offered}"
                ));
            }
        }
        Ok(())
    }

    fn read(&self, host: &dyn HostMut) -> Result<Reading, ChangeError> {
        let text = match read_text(host, &self.path) {
            Err(error) if error.is_absent() => {
                return Err(ChangeError::Gone {
                    what: self.name.clone(),
                    reason: format!("this machine does not have it ({error})"),
                });
            }
            other => other?,
        };
        let value = match self.choices {
            true => bracketed_word(&text).map_or(text.clone(), str::to_owned),
            false => text,
        };
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
        let value = value.unwrap_or_default().trim();
        self.put(host, &self.path, value)?;
        match self.is_arc_limit() {
            true => arc::check(host, &self.name, value),
            false => Ok(()),
        }
    }

    fn restore(
        &self,
        host: &dyn HostMut,
        original: &Original,
        _work: &Work,
    ) -> Result<(), ChangeError> {
        let value = original.value.as_deref().unwrap_or_default();
        if let Some(limit) = arc::limit_of(original) {
            // After a write of 0 (automatic), ZFS keeps the limit in effect.
            self.put(host, &self.path, limit)?;
            self.put(host, &self.path, value)?;
            return arc::check(host, &self.name, limit);
        }
        let follows = self.counterpart().is_some() && value == "0";
        if !follows && !self.same(self.read(host)?.value.as_deref(), Some(value)) {
            self.put(host, &self.path, value)?;
        }
        for (path, value) in &original.along {
            let follows = self.counterpart().is_some() && value == "0";
            if !follows && read_text(host, path)? != *value {
                self.put(host, path, value)?;
            }
        }
        Ok(())
    }

    fn settled(
        &self,
        host: &dyn HostMut,
        original: &Original,
        _work: &Work,
    ) -> Result<bool, ChangeError> {
        let now = self.read(host)?.value;
        if let Some(limit) = arc::limit_of(original) {
            let same = self.same(now.as_deref(), original.value.as_deref());
            return Ok(same && arc::read_arc_limit(host, &self.name)? == limit);
        }
        let along = original.along.iter();
        let mut same =
            along.map(|(path, value)| read_text(host, path).is_ok_and(|now| now == *value));
        Ok(self.same(now.as_deref(), original.value.as_deref()) && same.all(|same| same))
    }

    /// Returns whether two values are equal. One of them may be in the kernel's notation: tabs for spaces
    /// (`net.ipv4.tcp_rmem`), `Y` for 1 (module parameters), and no leading zeros or signs.
    fn same(&self, one: Option<&str>, other: Option<&str>) -> bool {
        let words = |text: &str| -> Vec<String> {
            let words = text.split_ascii_whitespace();
            words
                .map(|word| match word.parse::<i128>() {
                    Ok(number) => number.to_string(),
                    Err(_) if !self.path.starts_with("/sys/module") => word.to_owned(),
                    Err(_) => match word {
                        "Y" | "y" => "1".to_owned(),
                        "N" | "n" => "0".to_owned(),
                        word => word.to_owned(),
                    },
                })
                .collect()
        };
        one.map(words) == other.map(words)
    }

    /// Returns whether writing `wanted` can have led to `found`; the kernel rounds sizes in KiB down to whole pages.
    fn may_become(&self, wanted: Option<&str>, found: Option<&str>) -> bool {
        let number = |text: Option<&str>| text?.trim().parse::<u64>().ok();
        self.same(wanted, found)
            || self.queue
                && number(wanted)
                    .zip(number(found))
                    .is_some_and(|(wanted, found)| {
                        found <= wanted && wanted - found < LARGEST_PAGE_KIB
                    })
    }
}
