//! nginx 1.22: `ngx_conf_include` and `ngx_conf_read_token` (src/core/ngx_conf_file.c); what is
//! inherited is the merging of `ngx_http_core_module` and its like, as nginx.org tells it for each
//! directive.
//!
//! A directive is inherited from the block around when the inner one has no line for it, lists as a
//! whole. A file that includes itself is read until memory or descriptors run out.

use super::builder::{Builder, SourceFile};
use super::files::{FileFault, Files};
use super::walk::ProgramRules;
use super::{Effective, ScopeId, SettingPlace, glob};
use crate::languages::nginx::word_meaning;
use crate::text::to_lossy_text;
use crate::tree::{Directive, Inclusion};
use assay_model::change::ConfigLanguage as Language;
use std::path::{Path, PathBuf};

/// nginx itself has no limit but memory.
const DEEPEST: usize = 64;

pub struct Nginx;

impl ProgramRules for Nginx {
    fn language(&self) -> Language {
        Language::Nginx
    }

    fn may_open(&self, _path: &Path, from: &[PathBuf]) -> bool {
        from.len() < DEEPEST
    }

    fn patterns(&self, said: &Inclusion) -> (Vec<String>, bool) {
        // A name without wildcards has to be there; that it is not is told as unread.
        (vec![said.pattern.clone()], false)
    }

    fn included(
        &self,
        builder: &Builder<'_>,
        pattern: &str,
        from: &[PathBuf],
    ) -> Result<Vec<PathBuf>, FileFault> {
        let main = from.first().map_or(Path::new("/"), |main| main);
        included_files(main, pattern, builder.files)
    }

    fn setting(
        &self,
        builder: &mut Builder<'_>,
        scope: ScopeId,
        said: &Directive,
        (source, place): (&SourceFile, SettingPlace),
    ) {
        let mut words = said
            .words
            .iter()
            .map(|word| word_meaning(&source.text, word));
        let key = to_lossy_text(&words.next().unwrap_or_default());
        let words = words.collect();
        builder.add_words(scope, key, said.value.clone(), words, place);
    }
}

pub fn included_files(
    main: &Path,
    pattern: &str,
    files: &dyn Files,
) -> Result<Vec<PathBuf>, FileFault> {
    // The prefix of the configuration is its directory.
    let dir = main.parent().unwrap_or(Path::new("/"));
    let path = dir.join(pattern);
    match path.to_str() {
        // glob(3) is asked only then; a backslash in another name is part of it.
        Some(pattern) if pattern.contains(['*', '?', '[']) => {
            glob::expand(files, pattern, glob::Style::Libc)
        }
        _ => Ok(vec![path]),
    }
}

/// From a block outwards as far as directives are inherited.
pub fn scope_chain(all: &Effective, scope: ScopeId, key: &str) -> Vec<ScopeId> {
    /// Of these the block around says nothing about the block inside (nginx.org, "Context" and the
    /// modules' merging: handlers, rewrite's program, and what names the block itself).
    const OWN: [&str; 18] = [
        "alias",
        "break",
        "empty_gif",
        "fastcgi_pass",
        "grpc_pass",
        "if",
        "internal",
        "listen",
        "memcached_pass",
        "proxy_pass",
        "return",
        "rewrite",
        "scgi_pass",
        "server_name",
        "set",
        "stub_status",
        "try_files",
        "uwsgi_pass",
    ];
    const INHERITING: [&str; 7] = [
        "http",
        "server",
        "location",
        "if",
        "limit_except",
        "stream",
        "mail",
    ];
    let mut chain = vec![scope];
    let mut at = all.scope(scope);
    while let Some(parent) = at.parent {
        let name = at.head.first().map_or("", |name| &name[..]);
        if OWN.contains(&key) || !INHERITING.contains(&name) {
            break;
        }
        chain.push(parent);
        at = all.scope(parent);
    }
    chain
}
