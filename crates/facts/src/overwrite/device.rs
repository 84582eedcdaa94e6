//! Block devices.

use crate::overwrite::{Against, OverwriteRefused, content, loops, refused};
use assay_host::Host;
use assay_host::held::Held;
use std::path::Path;

/// Checks that a block device may be overwritten, and holds it exclusively: nobody can mount it, or
/// claim it in another way, as long as what is returned lives. With `unknown` what is on it does not
/// matter, unless it is known to be a file system, a partition table or a member of something.
///
/// # Errors
/// Everything against it. What could not be checked is a reason.
pub fn device(host: &dyn Host, path: &Path, unknown: bool) -> Result<Held, OverwriteRefused> {
    let held = match Held::device_exclusively(path) {
        Ok(held) => held,
        Err(error) => {
            // The longer look says who has it, or what is wrong with the name.
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
    // Before this descriptor was there, the name may have been another's.
    match held.device_number() {
        Ok(Some(_)) => Ok(held),
        Ok(None) => Err(refused(path, "not a block device")),
        Err(error) => Err(refused(path, error)),
    }
}
