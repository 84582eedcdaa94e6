//! `assay lab build`, `pack` and `fetch`. Also provides the image for the other verbs of `assay lab`.

use super::documents::{self, Built};
use super::machine::ZfsArg;
use super::open::Lab;
use super::progress;
use crate::context::{print, unwritten};
use crate::status::Status;
use anyhow::ensure;
use assay_host::OutputFile;
use assay_lab::{Image, pack_image};
use assay_model::Bytes;
use std::io::{BufRead as _, BufWriter, IsTerminal as _, Write as _};
use std::path::PathBuf;

#[derive(clap::Args)]
pub(super) struct Build {
    /// Choose OpenZFS for the image: from Debian stable or backports
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
    /// Choose OpenZFS of the image: from Debian stable or backports
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = ZfsArg::Stable)]
    zfs: ZfsArg,
    /// Build a missing guest image without asking
    #[arg(long)]
    yes: bool,
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
        print_image(&self.build_image(build.zfs)?, build.json)
    }

    pub(super) fn pack(&self, pack: &Pack) -> anyhow::Result<Status> {
        let mut output = OutputFile::create(&pack.file).map_err(unwritten)?;
        let image = self.image(pack.zfs, pack.yes)?;
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

    /// Returns the image. If it is missing, asks the user and builds it. With `yes`, builds it without asking.
    ///
    /// # Errors
    /// The user declines, there is no terminal to ask on, or the build fails.
    pub(in crate::verbs) fn image(&self, zfs: ZfsArg, yes: bool) -> anyhow::Result<Image> {
        let cache = self.cache.with(zfs.into());
        if let Some(image) = cache.find() {
            return Ok(image);
        }
        if !yes {
            let minutes = cache.usual_build_time().as_secs().div_ceil(60);
            let command = match zfs {
                ZfsArg::Stable => "assay lab build",
                ZfsArg::Backports => "assay lab build --zfs backports",
            };
            let way_out = format!(
                "Build it with `{command}` (about {minutes} min, as root), install one with `assay lab fetch FILE`, \
                 or use --yes."
            );
            ensure!(
                std::io::stdin().is_terminal(),
                "cannot start a guest: there is no guest image. {way_out}"
            );
            eprint!("There is no guest image. Build it now (about {minutes} min)? [y/N] ");
            std::io::stderr().flush()?;
            let mut answer = String::new();
            std::io::stdin().lock().read_line(&mut answer)?;
            ensure!(
                matches!(answer.trim(), "y" | "Y" | "yes"),
                "no guest image was built. {way_out}"
            );
        }
        self.build_image(zfs)
    }

    /// Returns the image; builds it if it is missing.
    fn build_image(&self, zfs: ZfsArg) -> anyhow::Result<Image> {
        let cache = self.cache.with(zfs.into());
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
