//! `assay lab cp`: copies files into and out of a guest.

use super::open::Lab;
use crate::context::print;
use crate::status::Status;
use anyhow::Context as _;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Arguments of `assay lab cp`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  assay lab cp job.fio :/root/              into the guest that is up
  assay lab cp nas:/var/log/kern.log .      out of the guest `nas`
  assay lab cp ./a:b lab:/tmp/c             a file here whose name has a colon

A path in a guest has a colon before it, and before the colon the guest's name where several are up;
--guest says it as everywhere else.
Permission bits come along; a file appears whole or not at all, and replaces what is there.")]
pub(super) struct Copy {
    /// File to copy
    #[arg(value_name = "[[GUEST]:]FILE")]
    from: OsString,
    /// Destination file, or a directory if it ends in a slash
    #[arg(value_name = "[[GUEST]:]FILE")]
    to: OsString,
    /// Use this guest; not needed if exactly one is running
    #[arg(long, value_name = "NAME")]
    guest: Option<String>,
}

/// Source or destination of a copy: a local path, or a path in a guest.
enum End {
    Here(PathBuf),
    Guest(Option<String>, PathBuf),
}

impl End {
    /// Parses a source or destination like scp: a colon before the first slash separates guest and path.
    fn read(text: &OsStr) -> anyhow::Result<Self> {
        let bytes = text.as_bytes();
        let colon = bytes.iter().position(|&byte| byte == b':');
        let slash = bytes.iter().position(|&byte| byte == b'/');
        let Some(colon) = colon.filter(|colon| slash.is_none_or(|slash| slash > *colon)) else {
            return Ok(Self::Here(PathBuf::from(text)));
        };
        let name = std::str::from_utf8(&bytes[..colon]).context("the guest's name")?;
        let path = PathBuf::from(OsStr::from_bytes(&bytes[colon + 1..]));
        anyhow::ensure!(
            path.is_absolute(),
            "{}: a path in a guest must begin with /",
            text.display()
        );
        let name = Some(name.to_owned()).filter(|name| !name.is_empty());
        Ok(Self::Guest(name, path))
    }
}

impl Lab {
    pub(super) fn copy(&self, copy: &Copy) -> anyhow::Result<Status> {
        let (from, to) = (End::read(&copy.from)?, End::read(&copy.to)?);
        let named = |name: Option<&str>| match (name, copy.guest.as_deref()) {
            (Some(one), Some(other)) if one != other => {
                anyhow::bail!("which guest: {one} or {other}?")
            }
            (name, guest) => self.running(name.or(guest)),
        };
        let (guest, to) = match (&from, to) {
            (End::Here(from), End::Guest(name, to)) => {
                let guest = named(name.as_deref())?;
                let to = place(from, to, false)?;
                guest.push(from, &to)?;
                (guest, format!("{} in guest", to.display()))
            }
            (End::Guest(name, from), End::Here(to)) => {
                let guest = named(name.as_deref())?;
                let to = place(from, to, true)?;
                guest.pull(from, &to)?;
                (guest, format!("{} from guest", to.display()))
            }
            (End::Here(_), End::Here(_)) => {
                anyhow::bail!("neither path is in a guest: write a guest's path as :/PATH")
            }
            (End::Guest(..), End::Guest(..)) => {
                anyhow::bail!("both paths are in a guest: copy there with `assay lab run -- cp`")
            }
        };
        print(&format!("{to} {}\n", guest.entry().name))?;
        Ok(Status::Ok)
    }
}

/// Returns the path of the copy. If `to` is a directory, the file name of `from` is appended. `here` is true if `to` is
/// on this machine.
fn place(from: &Path, to: PathBuf, here: bool) -> anyhow::Result<PathBuf> {
    let slash = to.as_os_str().as_bytes().ends_with(b"/");
    if slash || (here && to.is_dir()) {
        let name = from.file_name();
        let name =
            name.with_context(|| format!("{}: this path has no file name", from.display()))?;
        return Ok(to.join(name));
    }
    Ok(to)
}
