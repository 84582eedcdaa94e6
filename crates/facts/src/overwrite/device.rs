//! Checks a block device before assay overwrites it.

use crate::overwrite::{Against, OverwriteRefused, content, loops, refused};
use assay_host::Host;
use assay_host::held::Held;
use std::path::Path;

/// Checks that a block device may be overwritten, and opens it exclusively: no other program can mount or claim the
/// device while the returned value exists. With `unknown`, unrecognised content is accepted, but no known file system,
/// partition table or array member.
///
/// # Errors
/// All reasons against overwriting. A check that fails is a reason.
pub fn device(host: &dyn Host, path: &Path, unknown: bool) -> Result<Held, OverwriteRefused> {
    let held = match Held::device_exclusively(path) {
        Ok(held) => held,
        Err(error) => {
            // The detailed check reports who uses the device, or what is wrong with the path.
            let reasons = match crate::device_use(host, path) {
                Err(in_use) => in_use.reasons,
                Ok(()) => vec![format!("it was taken by something else just now: {error}")],
            };
            return Err(OverwriteRefused {
                path: path.to_owned(),
                reasons,
            });
        }
    };
    let mut against = Against::new(path);
    if let Err(in_use) = crate::device_use_held(host, path, &held.through()) {
        against.reasons.extend(in_use.reasons);
    }
    against.add(loops::of_device(host, &held));
    if !unknown && against.reasons.is_empty() {
        against.add(content::look(&held));
    }
    against.end()?;
    // The path may have belonged to another device before it was opened.
    match held.device_number() {
        Ok(Some(_)) => Ok(held),
        Ok(None) => Err(refused(path, "not a block device")),
        Err(error) => Err(refused(path, error)),
    }
}
