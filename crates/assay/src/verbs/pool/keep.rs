//! Stores shared bundles. Each bundle is a file with its signature in a directory next to the store. The combined
//! results are computed whenever the bundles are read.

use crate::context::{store_path, tell, unwritten};
use crate::global::Global;
use crate::input;
use crate::status::Unreadable;
use anyhow::{Context as _, bail};
use assay_host::{Host as _, LiveHost, lockfile, write_output};
use assay_pool::{Added, LONGEST, Pool, read};
use assay_render::text::escape_line;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// File name ending of bundles, and of the directory.
const END: &str = ".pool";
/// Minimum number of digits of a public key with which an owner can be selected.
const LEAST_DIGITS: usize = 8;

/// Returns the directory of shared trials, which is next to the store.
pub(in crate::verbs) fn pool_dir(store: PathBuf) -> PathBuf {
    let mut dir = OsString::from(store);
    dir.push(END);
    dir.into()
}

/// The directory of shared bundles.
pub(super) struct Kept {
    dir: PathBuf,
}

impl Kept {
    /// Returns the pool of shared trials next to the store. Does not create its directory.
    pub(super) fn of(global: &Global) -> anyhow::Result<Self> {
        let dir = pool_dir(store_path(global)?);
        Ok(Self { dir })
    }

    fn shown(&self) -> String {
        escape_line(&self.dir.to_string_lossy())
    }

    /// Returns the file names of the bundles, sorted.
    fn files(&self) -> anyhow::Result<Vec<String>> {
        if LiveHost.stat(&self.dir).is_err() {
            return Ok(Vec::new());
        }
        let names = LiveHost
            .list(&self.dir)
            .map_err(|error| Unreadable(escape_line(&error.to_string())))?;
        let names = names.into_iter().filter_map(|name| name.into_string().ok());
        Ok(names
            .filter(|name| name.ends_with(END) && !name.starts_with('.'))
            .collect())
    }

    /// Loads all bundles. Reports damaged or inconsistent bundles, and skips them.
    pub(super) fn load(&self) -> anyhow::Result<Pool> {
        let mut pool = Pool::default();
        for name in self.files()? {
            let path = self.dir.join(&name);
            let added = LiveHost
                .read(&path)
                .map_err(|error| anyhow::anyhow!("{error}"))
                .and_then(|bytes| Ok(read(&bytes)?))
                .and_then(|bundle| Ok(pool.add(&bundle)?));
            if let Err(error) = added {
                tell(format_args!(
                    "{} is left out: {}\n",
                    escape_line(&path.to_string_lossy()),
                    escape_line(&format!("{error:#}"))
                ));
            }
        }
        Ok(pool)
    }

    /// Adds a bundle if it is consistent with the existing bundles. A trial that the same owner has already shared is
    /// ignored.
    #[allow(
        clippy::disallowed_methods,
        reason = "the directory is the pool's own, beside the store"
    )]
    pub(super) fn add(&self, file: &Path) -> anyhow::Result<(String, Added)> {
        let said = escape_line(&file.to_string_lossy());
        let bytes = input::bytes(
            file,
            LONGEST as u64,
            "a bundle of `assay fleet pool export`",
        )?;
        let cause = |error: &dyn std::fmt::Display| escape_line(&error.to_string());
        let bundle = read(&bytes).map_err(|error| anyhow::anyhow!("{said}: {}", cause(&error)))?;
        std::fs::create_dir_all(&self.dir)
            .with_context(|| format!("cannot make {}", self.shown()))?;
        let _one = lockfile::wait(&self.dir.join(".lock"))
            .with_context(|| format!("cannot lock {}", self.shown()))?;
        let mut pool = self.load()?;
        let added = pool
            .add(&bundle)
            .map_err(|error| anyhow::anyhow!("{said}: {}", cause(&error)))?;
        if added.new + added.longer > 0 {
            let digest = blake3::hash(&bytes).to_hex();
            let name = format!("{}-{}{END}", bundle.owner, &digest[..16]);
            // A file that a killed assay of version 0.2 or older left. The lock is held, so no
            // process uses it.
            let _ = std::fs::remove_file(self.dir.join(".part"));
            write_output(&self.dir.join(name), &bytes).map_err(unwritten)?;
        }
        Ok((bundle.owner, added))
    }

    /// Removes all bundles of an owner. Returns the owner, and the number of removed bundles.
    #[allow(
        clippy::disallowed_methods,
        reason = "the directory is the pool's own, beside the store"
    )]
    pub(super) fn remove(&self, owner: &str) -> anyhow::Result<(String, usize)> {
        let digits = owner
            .bytes()
            .all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'));
        if owner.len() < LEAST_DIGITS || !digits {
            bail!(
                "`{}` is not an owner: give the first {LEAST_DIGITS} or more hexadecimal digits of the key",
                escape_line(owner)
            );
        }
        if LiveHost.stat(&self.dir).is_err() {
            bail!(
                "there are no shared trials in {}: add some with `assay fleet pool add FILE`",
                self.shown()
            );
        }
        let _one = lockfile::wait(&self.dir.join(".lock"))
            .with_context(|| format!("cannot lock {}", self.shown()))?;
        let files = self.files()?;
        let mine: Vec<&String> = files
            .iter()
            .filter(|name| name.starts_with(owner))
            .collect();
        let mut owners: Vec<&str> = mine
            .iter()
            .filter_map(|name| Some(name.split_once('-')?.0))
            .collect();
        owners.dedup();
        let [whole] = owners.as_slice() else {
            match owners.is_empty() {
                true => bail!("no owner in {} begins with {owner}", self.shown()),
                false => bail!("several owners begin with {owner}: give more digits"),
            }
        };
        for name in &mine {
            let path = self.dir.join(name);
            std::fs::remove_file(&path).with_context(|| {
                format!("cannot remove {}", escape_line(&path.to_string_lossy()))
            })?;
        }
        Ok(((*whole).to_owned(), mine.len()))
    }
}
