//! `assay lab build`, `pack` and `fetch`, and the image for the other verbs.

use super::documents::{self, Built};
use super::machine::ZfsArg;
use super::open::Lab;
use super::progress;
use crate::context::{print, unwritten};
use crate::status::Status;
use assay_host::OutputFile;
use assay_lab::{Image, pack_image};
use assay_model::Bytes;
use std::io::BufWriter;
use std::path::PathBuf;

#[derive(clap::Args)]
pub(super) struct Build {
    /// Choose OpenZFS for the image: of Debian stable or its backports
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = ZfsArg::Stable)]
    zfs: ZfsArg,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub(super) struct Pack {
    /// File to write, such as lab.img.zst
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Choose OpenZFS of the image: of Debian stable or its backports
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = ZfsArg::Stable)]
    zfs: ZfsArg,
}

#[derive(clap::Args)]
pub(super) struct Fetch {
    /// File that `assay lab pack` of the same version wrote
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

impl Lab {
    pub(super) fn build(&self, build: &Build) -> anyhow::Result<Status> {
        print_image(&self.image(build.zfs)?, build.json)
    }

    pub(super) fn pack(&self, pack: &Pack) -> anyhow::Result<Status> {
        let mut output = OutputFile::create(&pack.file).map_err(unwritten)?;
        let image = self.image(pack.zfs)?;
        let shown = progress::spinner("packing the guest image");
        let packed = pack_image(&image, BufWriter::new(&mut output), &self.cancel);
        shown.finish_and_clear();
        packed?;
        output.publish().map_err(unwritten)?;
        Ok(Status::Ok)
    }

    pub(super) fn fetch(&self, fetch: &Fetch) -> anyhow::Result<Status> {
        let shown = progress::spinner("installing the guest image");
        let installed = self.cache.install(&fetch.file, &self.cancel);
        shown.finish_and_clear();
        print_image(&installed?, fetch.json)
    }

    /// Returns the image; builds it if missing.
    pub(in crate::verbs) fn image(&self, zfs: ZfsArg) -> anyhow::Result<Image> {
        let cache = self.cache.with(zfs.into());
        if let Some(image) = cache.find() {
            return Ok(image);
        }
        let mut shown = progress::Progress::new();
        let built = cache.build(&mut |progress| shown.tell(&progress), &self.cancel);
        shown.end();
        Ok(built?)
    }
}

fn print_image(image: &Image, json: bool) -> anyhow::Result<Status> {
    print(&match json {
        true => documents::printed(&Built::of(image))?,
        false => format!(
            "guest image {}: {}, {} on disk; its packages: {}\n",
            image.hash(),
            image.dir().display(),
            Bytes(image.disk_bytes()),
            image.packages().display()
        ),
    })?;
    Ok(Status::Ok)
}
