//! `assay lab build`, and the image for the other verbs.

use super::documents::{self, Built};
use super::machine::ZfsArg;
use super::open::Lab;
use crate::context::print;
use crate::status::Status;
use assay_lab::Image;
use assay_model::Bytes;

#[derive(clap::Args)]
pub(super) struct Build {
    /// Choose OpenZFS for the image: of Debian stable or its backports
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = ZfsArg::Stable)]
    zfs: ZfsArg,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

impl Lab {
    pub(super) fn build(&self, build: &Build) -> anyhow::Result<Status> {
        let image = self.image(build.zfs)?;
        let packages = image.packages();
        print(&match build.json {
            true => documents::printed(&Built::of(&image))?,
            false => format!(
                "guest image {}: {}, {} on disk; its packages: {}\n",
                image.hash(),
                image.dir().display(),
                Bytes(image.disk_bytes()),
                packages.display()
            ),
        })?;
        Ok(Status::Ok)
    }

    /// Returns the image; builds it if missing.
    pub(in crate::verbs) fn image(&self, zfs: ZfsArg) -> anyhow::Result<Image> {
        let cache = self.cache.with(zfs.into());
        if let Some(image) = cache.find() {
            return Ok(image);
        }
        let mut shown = super::progress::Progress::new();
        let built = cache.build(&mut |progress| shown.tell(&progress), &self.cancel);
        shown.end();
        Ok(built?)
    }
}
