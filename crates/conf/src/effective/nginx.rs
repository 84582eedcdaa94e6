//! nginx 1.22: `ngx_conf_include` and `ngx_conf_read_token` (src/core/ngx_conf_file.c); what is
//! inherited is the merging of `ngx_http_core_module` and its like, as nginx.org tells it for each
//! directive.
//!
//! A directive is inherited from the block around when the inner one has no line for it, lists as a
//! whole. A file that includes itself is read until memory or descriptors run out.

use super::builder::{Builder, Source};
use super::files::{Fault, Files};
use super::{Effective, Place, ScopeId, Trouble, glob};
use crate::lang::nginx::meaning;
use crate::tree::{Block, Item};
use assay_model::change::ConfigLanguage as Language;
use std::path::{Path, PathBuf};

/// nginx itself has no limit but memory.
const DEEPEST: usize = 64;

pub fn read(builder: &mut Builder<'_>, main: &Path) -> Result<(), Fault> {
    let source = builder.open(main)?;
    let mut reader = Reader { builder, main };
    reader.file(&source, ScopeId::ROOT, 0);
    Ok(())
}

struct Reader<'a, 'b> {
    builder: &'a mut Builder<'b>,
    main: &'a Path,
}

impl Reader<'_, '_> {
    fn file(&mut self, source: &Source, scope: ScopeId, depth: usize) {
        if let Some(root) = self.builder.parsed(Language::Nginx, scope, source) {
            self.items(source, &root, scope, depth);
        }
    }

    fn items(&mut self, source: &Source, block: &Block, scope: ScopeId, depth: usize) {
        for item in &block.items {
            if self.builder.stopped {
                return;
            }
            let place = source.place(item.span());
            match item {
                Item::Directive(directive) => {
                    let mut words = directive.words.iter();
                    let key = words.next().map(|word| meaning(&source.text, word));
                    let key = crate::text::lossy(&key.unwrap_or_default());
                    let words = words.map(|word| meaning(&source.text, word)).collect();
                    let value = directive.value.clone();
                    self.builder.add_words(scope, key, value, words, place);
                }
                Item::Inclusion(inclusion) => {
                    self.include(&inclusion.pattern, scope, &place, depth);
                }
                Item::Block(block) => {
                    let scope = self.builder.scope(scope, block.head.clone(), place);
                    self.items(source, block, scope, depth);
                }
            }
        }
    }

    fn include(&mut self, pattern: &str, scope: ScopeId, from: &Place, depth: usize) {
        let include = pattern.to_owned();
        match included(self.main, pattern, self.builder.files) {
            Err(fault) => {
                let trouble = Trouble::Unread { include, fault };
                self.builder.problem(scope, from.clone(), trouble);
            }
            Ok(paths) => {
                for path in paths {
                    if depth >= DEEPEST {
                        return self.builder.stop(scope, from);
                    }
                    // A name without wildcards must be there; that it is not is told as unread.
                    if let Some(source) = self.builder.open_included(&path, scope, from) {
                        self.file(&source, scope, depth + 1);
                    }
                }
            }
        }
    }
}

pub fn included(main: &Path, pattern: &str, files: &dyn Files) -> Result<Vec<PathBuf>, Fault> {
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
pub fn chain(all: &Effective, scope: ScopeId, key: &str) -> Vec<ScopeId> {
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
