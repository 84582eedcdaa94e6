//! Volumes in the user's pool or volume group that assay created, and removes when they are dropped.

use super::sibling_layers::Volume;
use super::{Environment, MeasureError};
use assay_changes::ChangeSession;
use assay_changes::side_by_side::{ArmError, ArmSite, Built, Endpoint, LogicalVolume};
use assay_model::change::Arm;
use std::path::{Path, PathBuf};

/// A volume or file system that assay created and that still exists.
pub(super) struct Held<'a> {
    what: What<'a>,
}

enum What<'a> {
    Zfs {
        _built: Box<Built<'a>>,
        path: PathBuf,
    },
    Logical(LogicalVolume<'a>),
}

impl Held<'_> {
    /// Returns the path of the file or device, all of whose blocks have been written.
    pub(super) fn path(&self) -> &Path {
        match &self.what {
            What::Zfs { path, .. } => path,
            What::Logical(volume) => volume.path(),
        }
    }
}

/// Creates the volume and writes it completely.
pub(super) fn build<'a>(
    env: &Environment<'a>,
    session: &'a ChangeSession,
    volume: &Volume,
    place: &ArmSite,
) -> Result<Held<'a>, MeasureError> {
    let fail = |source| match source {
        ArmError::Cancelled => MeasureError::Interrupted,
        source => MeasureError::Image {
            rung: place.name.clone(),
            source,
        },
    };
    let arm = match volume.clone() {
        Volume::Dataset { parent, properties } => Arm::Dataset { parent, properties },
        Volume::Zvol { parent, properties } => Arm::Zvol { parent, properties },
        Volume::Logical { group, thin_pool } => {
            let pool = thin_pool.as_deref();
            let made = assay_changes::side_by_side::logical_volume(
                env.host, session, &group, pool, place, env.cancel,
            );
            let what = What::Logical(made.map_err(fail)?);
            return Ok(Held { what });
        }
    };
    let built = assay_changes::side_by_side::build(env.host, session, &arm, place, env.cancel)
        .map_err(fail)?;
    match built.endpoint() {
        Endpoint::Path(path) => Ok(Held {
            what: What::Zfs {
                _built: Box::new(built),
                path,
            },
        }),
        _ => Err(MeasureError::Job {
            workload: place.name.clone(),
            reason: "a ZFS volume has a path".to_owned(),
        }),
    }
}
