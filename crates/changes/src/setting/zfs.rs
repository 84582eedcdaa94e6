//! Properties of ZFS datasets (zfsprops(7), zfs-get(8), zfs-set(8), zfs-inherit(8); zfs 2.1).

use super::setting_kind::{Found, Original, Reading, SettingKind, ValueOrigin, Work, run};
use crate::error::ChangeError;
use assay_host::HostMut;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

/// Time limit of `zfs`. Setting a property waits until a transaction group is written.
const ZFS_LIMIT: Duration = Duration::from_secs(120);

/// Properties that can be set only at the creation of a dataset.
const SET_ONCE: [&str; 7] = [
    "volblocksize",
    "casesensitivity",
    "normalization",
    "utf8only",
    "encryption",
    "keyformat",
    "pbkdf2iters",
];

/// One property of a dataset as a setting.
pub(super) struct Property {
    pub(super) name: String,
    pub(super) dataset: String,
    pub(super) property: String,
}

/// Output of `zfs get` for one property.
struct Got {
    dataset_type: String,
    value: String,
    source: String,
}

impl Property {
    fn refused(&self, reason: impl Into<String>) -> ChangeError {
        ChangeError::refused(&self.name, reason)
    }

    fn get(&self, host: &dyn HostMut) -> Result<Got, ChangeError> {
        let properties = format!("type,{}", self.property);
        let argv = [
            "zfs",
            "get",
            "-Hp",
            "-o",
            "property,value,source",
            &properties,
            &self.dataset,
        ];
        let text = run(host, &self.name, &argv.map(OsStr::new), ZFS_LIMIT)?;
        let find = |property: &str| {
            text.lines().find_map(|line| {
                let mut fields = line.split('\t');
                (fields.next()? == property).then_some(())?;
                Some((fields.next()?.to_owned(), fields.next()?.to_owned()))
            })
        };
        let strange = || self.refused(format!("zfs get answered {text:?}"));
        let (dataset_type, _) = find("type").ok_or_else(strange)?;
        let (value, source) = find(&self.property).ok_or_else(strange)?;
        Ok(Got {
            dataset_type,
            value,
            source,
        })
    }
}

impl Got {
    fn reading(&self) -> Reading {
        let Self { value, source, .. } = self;
        let own = source == "local" || source == "received";
        Reading {
            value: own.then(|| value.clone()),
            shown: match own {
                true => value.clone(),
                false => format!("{value} ({source})"),
            },
        }
    }

    fn origin(&self) -> ValueOrigin {
        match self.source.as_str() {
            "local" => ValueOrigin::Set,
            "received" => ValueOrigin::Received,
            _ => ValueOrigin::Absent,
        }
    }
}

impl SettingKind for Property {
    fn identity(&self) -> String {
        format!("zfs:{}:{}", self.dataset, self.property)
    }

    fn find(&self, host: &dyn HostMut) -> Result<Found, ChangeError> {
        let word = |text: &str, more: &[char]| {
            text.starts_with(|first: char| first.is_ascii_alphanumeric())
                && text
                    .chars()
                    .all(|one| one.is_ascii_alphanumeric() || more.contains(&one))
        };
        if !word(&self.property, &['_', ':', '.', '-']) {
            return Err(self.refused("not the name of a property"));
        }
        if !word(&self.dataset, &['_', ':', '.', '-', '/', ' ']) {
            return Err(self.refused("not the name of a file system or volume"));
        }
        if self.property == "volsize" {
            return Err(self.refused("is the size of the volume: making it smaller destroys data"));
        }
        let got = self.get(host)?;
        if SET_ONCE.contains(&self.property.as_str()) {
            let reason = format!(
                "it is {} and was settled when the {} was created; try it on a new one",
                got.value, got.dataset_type
            );
            return Err(self.refused(reason));
        }
        match (got.value.as_str(), got.source.as_str()) {
            ("-", "-") => {
                let reason = format!("a {} has no such property", got.dataset_type);
                Err(self.refused(reason))
            }
            (_, "-") => Err(self.refused("is read-only in ZFS")),
            (_, "temporary") => {
                Err(self.refused("was set for this mount alone (mount -o); remount it first"))
            }
            _ => {
                let Reading { value, shown } = got.reading();
                let origin = got.origin();
                let original = Original {
                    value,
                    shown,
                    origin,
                    place: PathBuf::from(&self.dataset),
                    along: Vec::new(),
                    file: None,
                };
                Ok(Found {
                    original,
                    contents: None,
                })
            }
        }
    }

    fn check(&self, _host: &dyn HostMut, value: Option<&str>) -> Result<(), ChangeError> {
        match value {
            Some(value) if value.is_empty() || value.contains('\0') => {
                Err(self.refused(format!("{value:?} is not a value")))
            }
            _ => Ok(()),
        }
    }

    fn read(&self, host: &dyn HostMut) -> Result<Reading, ChangeError> {
        Ok(self.get(host)?.reading())
    }

    fn write(
        &self,
        host: &dyn HostMut,
        value: Option<&str>,
        _work: &Work,
    ) -> Result<(), ChangeError> {
        let argv = match value {
            Some(value) => vec!["set".to_owned(), format!("{}={value}", self.property)],
            None => vec!["inherit".to_owned(), self.property.clone()],
        };
        self.zfs(host, &argv)
    }

    fn restore(
        &self,
        host: &dyn HostMut,
        original: &Original,
        work: &Work,
    ) -> Result<(), ChangeError> {
        match original.origin {
            ValueOrigin::Set => self.write(host, original.value.as_deref(), work),
            ValueOrigin::Absent => self.write(host, None, work),
            ValueOrigin::Received => {
                let argv = ["inherit", "-S", &self.property].map(str::to_owned);
                self.zfs(host, &argv)
            }
        }
    }

    fn settled(
        &self,
        host: &dyn HostMut,
        original: &Original,
        _work: &Work,
    ) -> Result<bool, ChangeError> {
        let got = self.get(host)?;
        let value = got.reading().value;
        Ok(got.origin() == original.origin
            && self.same(value.as_deref(), original.value.as_deref()))
    }

    /// Returns whether two values are equal. A user may write `1M` where `zfs get -p` prints bytes, and the limit
    /// `none` where it prints 0.
    fn same(&self, one: Option<&str>, other: Option<&str>) -> bool {
        one == other
            || one
                .zip(other)
                .is_some_and(|(one, other)| parse_zfs_size(one) == parse_zfs_size(other))
    }
}

impl Property {
    fn zfs(&self, host: &dyn HostMut, words: &[String]) -> Result<(), ChangeError> {
        let mut argv = vec![OsStr::new("zfs")];
        argv.extend(words.iter().map(OsStr::new));
        argv.push(OsStr::new(&self.dataset));
        run(host, &self.name, &argv, ZFS_LIMIT).map(drop)
    }
}

/// Parses a size in bytes as `zfs_nicestrtonum` of libzfs does. As error, returns the text unchanged.
fn parse_zfs_size(text: &str) -> Result<u128, &str> {
    if text == "none" {
        return Ok(0);
    }
    let digits = text.len()
        - text
            .trim_start_matches(|one: char| one.is_ascii_digit())
            .len();
    let (number, unit) = text.split_at(digits);
    let unit = unit.to_ascii_uppercase();
    let unit = unit
        .strip_suffix("IB")
        .or(unit.strip_suffix('B'))
        .unwrap_or(&unit);
    let power = match unit {
        "" => 0,
        unit => {
            "KMGTPE"
                .find(unit)
                .filter(|_| unit.len() == 1)
                .ok_or(text)?
                + 1
        }
    };
    let number: u64 = number.parse().map_err(|_| text)?;
    Ok(u128::from(number) << (10 * power))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_compared_as_sizes() {
        assert_eq!(parse_zfs_size("1M"), Ok(1 << 20));
        assert_eq!(parse_zfs_size("128KiB"), parse_zfs_size("131072"));
        assert_eq!(parse_zfs_size("none"), Ok(0));
        for word in [
            "lz4",
            "zstd-3",
            "K",
            "1KM",
            "",
            "B",
            "99999999999999999999999",
        ] {
            assert_eq!(parse_zfs_size(word), Err(word));
        }
    }
}
