//! The created layers of a configuration, and operations on the topmost layer.

use super::guest_or_dataset::Ground;
use super::load::Job;
use super::settings::Image;
use crate::StudyError;
use assay_changes::MadeId;
use assay_fio::json::FioDocument;
use assay_model::Bytes;
use std::time::Duration;

/// The created layers of a configuration.
#[derive(Debug)]
pub(super) struct Built {
    /// Directory in which fio runs; `None` if fio uses the block device.
    pub directory: Option<String>,
    /// Topmost block device; `None` for a dataset.
    pub device: Option<String>,
    /// Device of the virtual disk or image below LVM, LUKS and the file system.
    pub bottom: Option<String>,
    /// Name of the zvol or dataset.
    pub dataset: Option<String>,
    /// Block device or file that contains the image.
    pub image: Option<String>,
    /// Format of the image; `None` without an image.
    pub format: Option<Image>,
    /// Steps that remove the layers. They are executed in reverse order.
    pub undo: Vec<Undo>,
}

impl Built {
    /// Runs an fio job on the topmost layer.
    ///
    /// # Errors
    /// fio fails, or exceeds `limit`.
    pub fn fio(
        &self,
        ground: &Ground<'_>,
        job: &Job<'_>,
        limit: Duration,
    ) -> Result<FioDocument, StudyError> {
        let (key, on) = match (&self.directory, &self.device) {
            // fio does not follow a link to a directory.
            (Some(dir), _) => ("directory", (dir, "/.")),
            (None, Some(device)) => ("filename", (device, "")),
            (None, None) => return Err(StudyError::measure("fio", "there is nothing to work on")),
        };
        let (on, end) = on;
        ground.fio(on, &|on| job.render(key, &format!("{on}{end}")), limit)
    }

    /// Writes an image that only a guest uses, through its format.
    ///
    /// # Errors
    /// A QEMU tool fails.
    pub fn fill_image(&self, ground: &Ground<'_>, size: Bytes) -> Result<(), StudyError> {
        let (Some(image), Some(format)) = (&self.image, self.format) else {
            return Ok(());
        };
        let data = ground.path("data");
        let to = format!("of={data}");
        ground.command(&[
            "dd",
            "if=/dev/urandom",
            &to,
            "bs=1M",
            "count=4",
            "status=none",
        ])?;
        // qemu-io splits at blanks and has no quotes.
        if data.contains(char::is_whitespace) {
            let reason = "name a directory without blanks for the study";
            return Err(StudyError::measure(data, reason));
        }
        let mut argv = vec![
            "qemu-io".to_owned(),
            "-f".to_owned(),
            format.name().to_owned(),
        ];
        for at in (0..size.0).step_by(PIECE) {
            let piece = (size.0 - at).min(PIECE as u64);
            argv.extend(["-c".to_owned(), format!("write -q -s {data} {at} {piece}")]);
        }
        argv.extend(["-c".to_owned(), "flush".to_owned(), image.clone()]);
        let words: Vec<&str> = argv.iter().map(String::as_str).collect();
        ground.command(&words).map(drop)
    }
}

/// A step that removes a layer.
#[derive(Debug)]
pub(super) enum Undo {
    /// Run this command in the guest.
    Run(Vec<String>),
    /// Revert this entry of the journal on this machine.
    Made(MadeId),
}

/// Size of each write of qemu-io, in bytes.
const PIECE: usize = 64 << 20;
