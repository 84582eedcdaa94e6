//! Layers that are there, and work on the top of them.

use super::guest_or_dataset::Ground;
use super::load::Job;
use super::settings::Image;
use crate::StudyError;
use assay_changes::MadeId;
use assay_fio::json::FioDocument;
use assay_model::Bytes;
use std::time::Duration;

/// Layers that are there.
#[derive(Debug)]
pub(super) struct Built {
    /// Where fio works: a directory, or else a block device.
    pub directory: Option<String>,
    /// The topmost block device; none on a dataset that is worked on directly.
    pub device: Option<String>,
    /// The virtual disk or the image's device under LVM, LUKS and the file system.
    pub bottom: Option<String>,
    /// The zvol or dataset.
    pub dataset: Option<String>,
    /// What the image lies in: a block device or a file.
    pub image: Option<String>,
    /// Its format.
    pub format: Option<Image>,
    /// Takes it away, last one first.
    pub undo: Vec<Undo>,
}

impl Built {
    /// Runs a job of fio on the top of it.
    ///
    /// # Errors
    /// fio fails, or takes longer than `limit`.
    pub fn fio(
        &self,
        ground: &Ground<'_>,
        job: &Job<'_>,
        limit: Duration,
    ) -> Result<FioDocument, StudyError> {
        let (key, on) = match (&self.directory, &self.device) {
            // fio takes no link to a directory for one.
            (Some(dir), _) => ("directory", (dir, "/.")),
            (None, Some(device)) => ("filename", (device, "")),
            (None, None) => return Err(StudyError::measure("fio", "there is nothing to work on")),
        };
        let (on, end) = on;
        ground.fio(on, &|on| job.render(key, &format!("{on}{end}")), limit)
    }

    /// Fills an image that only a guest sees, by way of its format.
    ///
    /// # Errors
    /// The tools of QEMU fail.
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
        // qemu-io splits at blanks and knows no quotes.
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

/// How a layer is taken away.
#[derive(Debug)]
pub(super) enum Undo {
    /// By a command, in a guest.
    Run(Vec<String>),
    /// By the journal, on this machine.
    Made(MadeId),
}

/// Bytes that qemu-io is told to write at a time.
const PIECE: usize = 64 << 20;
