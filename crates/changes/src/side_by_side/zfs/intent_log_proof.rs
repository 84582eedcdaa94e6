//! Tests whether writes that a dataset acknowledges as durable are in the intent log.
//! The power of the machine's own pool cannot be cut, so the test counts the log's commits
//! (`zil_commit_count`, OpenZFS module/zfs/zil.c). A durable write without a commit is only in memory until
//! the next transaction group.

use super::{Dataset, PACKAGE};
use crate::side_by_side::ArmError;
use crate::side_by_side::durable::{self, BLOCK, WRITES};
use crate::side_by_side::teardown::Things;
use crate::side_by_side::tool::run;
use assay_host::HostMut;
use assay_loads::Cancel;
use assay_loads::counters::zfs::Zil;
use assay_model::trial::{DurabilityProof, Side};
use std::path::{Path, PathBuf};

impl Dataset {
    pub fn prove_durability(
        &self,
        things: &Things<'_>,
        side: Side,
        cancel: &Cancel,
    ) -> Result<DurabilityProof, ArmError> {
        let host = things.host;
        let (own, disabled) = self.look(host)?;
        let before = read_zil_commits(host, own.as_deref())?;
        let blocks = self.size.0 / BLOCK as u64;
        durable::write(&self.path, blocks, things.seed(), cancel)?;
        let commits = read_zil_commits(host, own.as_deref())?.saturating_sub(before);
        let dropped = find_dropped_flushes(host);
        // Without counters per dataset, the count may include commits of other datasets.
        let lost = match dropped.is_some() || disabled {
            true => WRITES,
            false => WRITES.saturating_sub(commits),
        };
        let whose = match own {
            Some(_) => "counted for the data set",
            None => "counted for all pools",
        };
        let and = match dropped {
            Some(parameter) => {
                format!("; {parameter}=1, so no flush follows them to the disks")
            }
            None if disabled => "; the data set has sync=disabled".to_owned(),
            None => String::new(),
        };
        Ok(DurabilityProof {
            side,
            method: format!(
                "{WRITES} writes waited for durability by fsync, fdatasync or O_DSYNC, for which \
                 ZFS committed its intent log {commits} times ({whose}){and}; what is not in it is \
                 gone after a power cut until the next transaction group"
            ),
            acknowledged: WRITES,
            lost,
        })
    }

    /// Returns the path of the dataset's commit counters, which exist since OpenZFS 2.2. Also returns whether commits
    /// are disabled (`sync=disabled`).
    fn look(&self, host: &dyn HostMut) -> Result<(Option<PathBuf>, bool), ArmError> {
        let properties = "objsetid,sync";
        let argv = ["zfs", "get", "-Hp", "-o", "value", properties, &self.name];
        let text = run(host, &argv, PACKAGE)?;
        let mut values = text.lines().map(str::trim);
        let id = values.next().and_then(|id| id.parse::<u64>().ok());
        let disabled = values.next() == Some("disabled");
        let pool = self.name.split('/').next().unwrap_or_default();
        let path = id.map(|id| {
            Path::new("/proc/spl/kstat/zfs")
                .join(pool)
                .join(format!("objset-{id:#x}"))
        });
        let has = |path: &PathBuf| {
            let text = host.read_text(path);
            text.is_ok_and(|text| Zil::parse(&text).is_some())
        };
        Ok((path.filter(has), disabled))
    }
}

fn read_zil_commits(host: &dyn HostMut, own: Option<&Path>) -> Result<u64, ArmError> {
    let path = own.unwrap_or(Path::new(assay_host::kstat::ZIL));
    let text = host.read_text(path)?;
    let zil = Zil::parse(&text).ok_or_else(|| ArmError::Refused {
        what: path.display().to_string(),
        source: "it does not tell the commits of the intent log".into(),
    })?;
    Ok(zil.commits)
}

/// Returns the module parameter that suppresses flushes of the disks, if one is set (zfs(4)).
fn find_dropped_flushes(host: &dyn HostMut) -> Option<&'static str> {
    ["zil_nocacheflush", "zfs_nocacheflush"]
        .into_iter()
        .find(|name| {
            let path = Path::new("/sys/module/zfs/parameters").join(name);
            host.read_text(&path).is_ok_and(|text| text.trim() == "1")
        })
}
