//! Manages the owner's key: 32 random bytes in a file of the state directory that only this user can read.

use crate::context::{random, state_dir, write_secret};
use anyhow::{Context as _, bail};
use assay_host::{Host as _, LiveHost, lockfile};
use assay_pool::OwnerKey;
use assay_render::text::escape_line;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path;

/// Returns the key; creates it if it is missing. Two concurrent exports create only one key.
#[allow(
    clippy::disallowed_methods,
    reason = "the key is a file of the state directory, which is the user's alone"
)]
pub(super) fn key() -> anyhow::Result<OwnerKey> {
    let dir = state_dir()?.join("pool");
    let shown = |path: &Path| escape_line(&path.to_string_lossy());
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&dir)
        .with_context(|| format!("cannot make {}", shown(&dir)))?;
    let path = dir.join("key");
    let _one = lockfile::wait(&dir.join("lock"))
        .with_context(|| format!("cannot lock {}", shown(&dir)))?;
    if !path.exists() {
        // A kill between the two steps leaves the partial file, which the next export replaces.
        let part = dir.join("key.part");
        let _ = std::fs::remove_file(&part);
        let made = write_secret(&part, &digits()?)
            .and_then(|()| Ok(std::fs::File::open(&part)?.sync_all()?))
            .and_then(|()| Ok(std::fs::rename(&part, &path)?));
        if made.is_err() {
            let _ = std::fs::remove_file(&part);
        }
        made.with_context(|| format!("cannot create the key {}", shown(&path)))?;
    }
    let mode = std::fs::metadata(&path)
        .with_context(|| shown(&path))?
        .permissions()
        .mode();
    if mode & 0o077 != 0 {
        bail!(
            "cannot use the key {}: others can read it and sign for you. Run `chmod 600` on it, or remove it to get \
             a new key.",
            shown(&path)
        );
    }
    let bytes = LiveHost
        .read(&path)
        .map_err(|error| anyhow::anyhow!("{}", escape_line(&error.to_string())))?;
    let seed = seed(&bytes).with_context(|| {
        format!(
            "cannot use the key {}: it is not 64 hexadecimal digits. Restore your copy, or remove it to get a new \
             key (a new key is a new owner).",
            shown(&path)
        )
    })?;
    Ok(OwnerKey::of(seed)?)
}

fn digits() -> anyhow::Result<String> {
    let seed = [random()?, random()?].concat();
    let digits: String = seed.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(digits + "\n")
}

fn seed(bytes: &[u8]) -> Option<[u8; 32]> {
    let text = std::str::from_utf8(bytes).ok()?.trim_end();
    if text.len() != 64 || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let mut seed = [0; 32];
    for (place, byte) in seed.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * place..2 * place + 2)?, 16).ok()?;
    }
    Some(seed)
}
