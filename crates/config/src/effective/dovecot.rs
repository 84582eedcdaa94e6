//! Dovecot 2.3: follows `src/config/config-parser.c` of 2.3.19.
//! Named blocks with the same name are merged, and so are `plugin` and `dict`. Other blocks without a name remain
//! separate. `protocol`, `local`, `remote` and `local_name` are filters: a setting inside a filter takes precedence
//! over a setting outside of filters, whichever is first in the file.
//! In a value, an unquoted word `$name` is replaced by the value that the setting `name` has up to this line. The
//! setting's own name is looked up in this filter and outside of it. Any other name is looked up only in this filter.
//! If the setting `name` has no value, the word remains as written, because the default is not known here. Dovecot 2.4
//! has another language. Its files are recognised by `dovecot_config_version` and recorded as a problem.

use super::builder::{Builder, SourceFile};
use super::files::{FileFault, Files};
use super::walk::ProgramRules;
use super::{Effective, ScopeId, SettingPlace, Trouble, glob};
use crate::languages::merges_blocks;
use crate::tree::{Block, Directive, Inclusion};
use assay_model::change::ConfigLanguage as Language;
use std::path::{Path, PathBuf};

/// Maximum depth of includes. Dovecot keeps every including file open, so only the number of file descriptors limits
/// the depth (1024, getrlimit(2)). Real configurations are not that deep.
const DEEPEST: usize = 100;

const FILTERS: [&str; 4] = ["protocol", "local", "remote", "local_name"];

pub struct Dovecot;

impl ProgramRules for Dovecot {
    fn language(&self) -> Language {
        Language::Dovecot
    }

    /// Returns whether Dovecot opens the file. Dovecot rejects a file that includes itself, and compares its names as
    /// they are written. (Paths are compared part by part from the end, which takes long for deep similar paths.)
    fn may_open(&self, path: &Path, from: &[PathBuf]) -> bool {
        let recursive = from.iter().any(|open| open.as_os_str() == path.as_os_str());
        from.len() < DEEPEST && !recursive
    }

    fn patterns(&self, said: &Inclusion) -> (Vec<String>, bool) {
        (vec![said.pattern.clone()], said.key == "!include")
    }

    fn included(
        &self,
        builder: &Builder<'_>,
        pattern: &str,
        from: &[PathBuf],
    ) -> Result<Vec<PathBuf>, FileFault> {
        let including = from.last().map_or(Path::new("/"), |including| including);
        included_files(including, pattern, builder.files)
    }

    fn scope(
        &self,
        builder: &mut Builder<'_>,
        around: ScopeId,
        block: &Block,
        (_, place): (&SourceFile, SettingPlace),
    ) -> ScopeId {
        let head = block.head.clone();
        match merges_blocks(Language::Dovecot, &head) {
            false => builder.scope(around, head, place),
            true => builder.same_scope(around, head, place),
        }
    }

    fn setting(
        &self,
        builder: &mut Builder<'_>,
        scope: ScopeId,
        said: &Directive,
        (source, place): (&SourceFile, SettingPlace),
    ) {
        if said.key == "dovecot_config_version" {
            let what = "this is a configuration of Dovecot 2.4, whose language is not understood";
            let trouble = Trouble::Unknown(what.to_owned());
            builder.problem(ScopeId::ROOT, place.clone(), trouble);
        }
        let written = source.text.get(said.value_span.start);
        let quoted = matches!(written, Some(b'"' | b'\''));
        let file = said.quote.is_none() && said.value.starts_with(b"<");
        let value = match !quoted && !file && said.value.contains(&b'$') {
            true => {
                let words = expand_variables(&builder.out, &said.key, &said.value, scope);
                let length = words.iter().map(|word| word.len() + 1).sum();
                if length > builder.room() {
                    builder.stop(scope, &place);
                    return;
                }
                let value = words.join(&b' ');
                builder.take(length);
                value
            }
            false => said.value.clone(),
        };
        builder.add(scope, said.key.clone(), value, place);
    }
}

/// Replaces words that begin with `$`, like `config_write_keyvariable` of Dovecot.
fn expand_variables<'a>(
    so_far: &'a Effective,
    key: &str,
    value: &'a [u8],
    scope: ScopeId,
) -> Vec<&'a [u8]> {
    let mut filter = scope;
    while let (Some(parent), false) = (
        so_far.scope(filter).parent,
        is_filter(&so_far.scope(filter).head),
    ) {
        filter = parent;
    }
    let known = |name: &str| {
        let known = so_far.value(filter, name)?;
        (name == key || known.scope == filter).then_some(&known.value)
    };
    let words = value.split(|byte| matches!(byte, b' ' | b'\t'));
    words
        .filter(|word| !word.is_empty())
        .map(|word| {
            let name = word.strip_prefix(b"$");
            let name = name.and_then(|name| std::str::from_utf8(name).ok());
            name.and_then(known).map_or(word, |known| &known[..])
        })
        .collect()
}

pub fn included_files(
    including: &Path,
    pattern: &str,
    files: &dyn Files,
) -> Result<Vec<PathBuf>, FileFault> {
    let dir = including.parent().unwrap_or(Path::new("/"));
    match dir.join(pattern).to_str() {
        Some(pattern) => glob::expand(files, pattern, glob::Style::Braces),
        None => Err(FileFault::Unreadable(
            "its directory is not UTF-8".to_owned(),
        )),
    }
}

/// Returns the scope, and then the same scope with fewer and fewer filters. The innermost filter is removed first.
pub fn scope_chain(all: &Effective, scope: ScopeId) -> Vec<ScopeId> {
    let path: Vec<&[String]> = all.path(scope);
    let mut chain = vec![scope];
    let mut rest: Vec<&[String]> = path.clone();
    while let Some(at) = rest.iter().rposition(|head| is_filter(head)) {
        rest.remove(at);
        // A block without a name is separate, so it does not exist outside the filter.
        if rest
            .iter()
            .any(|head| !merges_blocks(Language::Dovecot, head))
        {
            break;
        }
        chain.extend(descend_to(all, &rest));
    }
    chain
}

fn is_filter(head: &[String]) -> bool {
    head.first()
        .is_some_and(|name| FILTERS.contains(&&name[..]))
}

fn descend_to(all: &Effective, path: &[&[String]]) -> Option<ScopeId> {
    let mut at = ScopeId::ROOT;
    for head in path {
        at = *all.inner.get(&(at, head.to_vec()))?;
    }
    Some(at)
}
