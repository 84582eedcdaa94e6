//! nginx 1.22: follows `ngx_conf_include` and `ngx_conf_read_token` (src/core/ngx_conf_file.c). Inheritance follows the
//! merge functions of `ngx_http_core_module` and similar modules, as nginx.org documents them for each directive.
//! A block inherits a directive from the enclosing block if the block itself has no line for the directive. Lists are
//! inherited as a whole. If a file includes itself, nginx reads it until memory or descriptors are exhausted.

use super::builder::{Builder, SourceFile};
use super::files::{FileFault, Files};
use super::walk::ProgramRules;
use super::{Effective, ScopeId, SettingPlace, glob};
use crate::languages::nginx::word_meaning;
use crate::text::to_lossy_text;
use crate::tree::{Directive, Inclusion};
use assay_model::change::ConfigLanguage as Language;
use std::path::{Path, PathBuf};

/// Maximum depth of includes. nginx itself has no limit except memory.
const DEEPEST: usize = 64;

/// Files of the nginx package that contain only MIME types, or parameters of other protocols.
const PACKAGED: [&str; 6] = [
    "mime.types",
    "fastcgi_params",
    "fastcgi.conf",
    "proxy_params",
    "scgi_params",
    "uwsgi_params",
];

pub struct Nginx;

impl ProgramRules for Nginx {
    fn language(&self) -> Language {
        Language::Nginx
    }

    fn may_open(&self, _path: &Path, from: &[PathBuf]) -> bool {
        from.len() < DEEPEST
    }

    fn patterns(&self, said: &Inclusion) -> (Vec<String>, bool) {
        // A name without wildcards must exist; a missing file is recorded as unread.
        (vec![said.pattern.clone()], false)
    }

    fn included(
        &self,
        builder: &Builder<'_>,
        pattern: &str,
        from: &[PathBuf],
    ) -> Result<Vec<PathBuf>, FileFault> {
        let main = from.first().map_or(Path::new("/"), |main| main);
        let found = included_files(main, pattern, builder.files)?;
        // Copies of a machine often lack what the package brings, and nothing of it is asked.
        let is_left_out = |path: &PathBuf| {
            let name = path
                .file_name()
                .and_then(|name| name.to_str())
                .unwrap_or_default();
            PACKAGED.contains(&name) && builder.files.exists(path) == Ok(false)
        };
        Ok(found
            .into_iter()
            .filter(|path| !is_left_out(path))
            .collect())
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
    // The prefix of relative paths is the directory of the configuration.
    let dir = main.parent().unwrap_or(Path::new("/"));
    let path = dir.join(pattern);
    match path.to_str() {
        // nginx calls glob(3) only for names with wildcards; a backslash in another name is part of the
        // name.
        Some(pattern) if pattern.contains(['*', '?', '[']) => {
            glob::expand(files, pattern, glob::Style::Libc)
        }
        _ => Ok(vec![path]),
    }
}

/// Returns the block, and the enclosing blocks from which it inherits the directive.
pub fn scope_chain(all: &Effective, scope: ScopeId, key: &str) -> Vec<ScopeId> {
    /// Directives that are not inherited from the enclosing block (nginx.org, "Context", and the modules' merge
    /// functions): handlers, rewrite rules, and names of the block itself.
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
