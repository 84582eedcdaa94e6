//! Looks up settings in the blocks of an nginx configuration. The modules `nginx_pitfalls`, `nginx_headers` and
//! `served_files` interpret the settings.

use super::lines_of_files::is_loopback;
use assay_config::effective::{Effective, ScopeId, Setting};

/// Returns the values of a setting in the block itself, not in outer blocks.
pub(super) fn own_values<'a>(
    all: &'a Effective,
    id: ScopeId,
    key: &'a str,
) -> impl Iterator<Item = &'a Setting> {
    let of_block = move |said: &&Setting| said.scope == id && said.key == key;
    all.settings().iter().filter(of_block)
}

/// Returns the first value of a setting in the block itself.
pub(super) fn own_value<'a>(all: &'a Effective, id: ScopeId, key: &'a str) -> Option<&'a Setting> {
    own_values(all, id, key).next()
}

/// Returns the words of a setting as text.
pub(super) fn words(said: &Setting) -> Vec<String> {
    let text = |word: &Vec<u8>| String::from_utf8_lossy(word).into_owned();
    said.words.iter().map(text).collect()
}

/// Returns whether the `server` that contains a block listens on the loopback interface only.
pub(super) fn is_local(all: &Effective, id: ScopeId) -> bool {
    let mut around = std::iter::successors(Some(id), |id| all.scope(*id).parent);
    let server = around.find(|id| {
        all.scope(*id)
            .head
            .first()
            .is_some_and(|head| head == "server")
    });
    let listens = server.map(|id| all.get(id, "listen")).unwrap_or_default();
    !listens.is_empty()
        && listens
            .iter()
            .all(|said| is_loopback(&said.word().unwrap_or_default()))
}
